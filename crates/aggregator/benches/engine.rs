//! What a flip of one child costs, how that grows with siblings and with levels, what a pass costs where all is ready, and
//! for how long the loop stands still while a page is told where everybody stands.
//!
//! Prints ratios of one run; figures of different machines do not compare.

use std::hint::black_box;
use std::time::{Duration, Instant};

use aggregator::{
    AnswerView, Decision, Digest, Engine, Evidence, Group, KindId, KindState, Link, ObjectId, ParentView,
    Policy, PolicyId, Quorum, Role, Target, Told, View,
};
use readiness::rollup::{ParentReason, Weight};
use readiness::{Level, Time};
use timer::Seed;

const POLICY: PolicyId = PolicyId(0);
const KIND: KindId = KindId(0);
const START: Time = Time(1_800_000_000_000);
/// Short ones, so that some of them are not interrupted by what else the machine does.
const ROUNDS: usize = 300;

/// A tree of parents: levels of them above `leaves` leaves below the lowest.
struct Tower {
    engine: Engine,
    now: Time,
    leaf: ObjectId,
    depth: u32,
}

fn policy() -> Policy {
    Policy {
        groups: vec![Group { kind: KIND, role: Role::Critical, min: 1, max: None, quorum: Quorum::All }],
        min: 0,
        kinds: vec![KIND],
        debounce: timer::Debounce { quiet: Duration::from_millis(100), cap: Duration::from_secs(1) },
        settle: Duration::ZERO,
        hold: Duration::ZERO,
        pending: Duration::from_mins(10),
        deadline: None,
        shadow: false,
        names: false,
    }
}

fn engine() -> Engine {
    let mut engine = Engine::new(Duration::from_secs(30), Duration::from_mins(10), Seed(1));
    engine.set_policy(START, POLICY, Some(policy()));
    engine.set_kind(START, KIND, KindState::Synced);
    engine
}

/// A parent that says that it is ready, below another or not.
fn parent(engine: &mut Engine, now: Time, id: ObjectId, above: Option<ObjectId>) {
    let told = Told { reason: ParentReason::AllChildrenReady, since: START, stalled: false };
    let answer = AnswerView { policy: POLICY, told: Some(told), about: Some(1), ..AnswerView::default() };
    let view = ParentView {
        generation: 1,
        evidence: Evidence::Handled,
        digest: digest(ParentReason::AllChildrenReady),
        answers: vec![answer],
        ..ParentView::default()
    };
    let weights = [Weight { level: Level::Progressing, terminal: false }];
    let links: Vec<Link> = above.map(link).into_iter().collect();
    let seen =
        View { weights: &weights, parent: Some(&view), links: &links, created: START, ..View::default() };
    engine.observe(now, id, Some(&seen));
}

fn link(of: ObjectId) -> Link {
    Link::new(POLICY, 0, 0, Target::Object(of))
}

fn digest(reason: ParentReason) -> Digest {
    Digest { whole: reason as u64 + 1, gist: reason as u64 + 1 }
}

fn child(engine: &mut Engine, now: Time, id: ObjectId, of: ObjectId, level: Level) {
    let weights = [Weight { level, terminal: false }];
    let links = [link(of)];
    engine.observe(
        now,
        id,
        Some(&View { weights: &weights, links: &links, created: START, ..View::default() }),
    );
}

impl Tower {
    fn new(depth: u32, leaves: u32) -> Tower {
        let mut engine = engine();
        for level in 0..depth {
            parent(&mut engine, START, ObjectId(level), level.checked_sub(1).map(ObjectId));
        }
        for leaf in 0..leaves {
            child(&mut engine, START, ObjectId(depth + leaf), ObjectId(depth - 1), Level::Ready);
        }
        let mut tower = Tower { engine, now: START + Duration::from_mins(1), leaf: ObjectId(depth), depth };
        assert_eq!(tower.turn().len(), depth as usize);
        tower
    }

    fn turn(&mut self) -> Vec<ObjectId> {
        let mut drafts = Vec::new();
        self.engine.poll(self.now, &mut drafts);
        drafts.into_iter().map(|d| d.parent).collect()
    }

    /// The leaf turns, everything above it is judged; so many parents changed their answer.
    fn flip(&mut self, level: Level, drafts: &mut Vec<aggregator::Draft>) {
        self.now = self.now + Duration::from_secs(2);
        child(&mut self.engine, self.now, self.leaf, ObjectId(self.depth - 1), level);
        drafts.clear();
        self.engine.poll(self.now, drafts);
    }
}

/// Nanoseconds per flip, the best of several rounds.
fn flip(depth: u32, leaves: u32) -> f64 {
    const TURNS: u32 = 500;
    let mut tower = Tower::new(depth, leaves);
    let mut drafts = Vec::new();
    tower.flip(Level::Failed, &mut drafts);
    assert_eq!(drafts.len(), depth as usize);
    tower.engine.take_counts();
    tower.flip(Level::Ready, &mut drafts);
    assert_eq!(tower.engine.take_counts().judged, u64::from(depth), "each is judged once");
    tower.flip(Level::Failed, &mut drafts);
    best(TURNS, |turn| {
        let level = if turn % 2 == 0 { Level::Ready } else { Level::Failed };
        tower.flip(level, &mut drafts);
        black_box(drafts.len());
    })
}

#[expect(clippy::disallowed_methods, reason = "this is what it is for")]
fn best(turns: u32, mut once: impl FnMut(u32)) -> f64 {
    let round = |_| {
        let start = Instant::now();
        (0..turns).for_each(&mut once);
        start.elapsed().as_secs_f64() * 1e9 / f64::from(turns)
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// Milliseconds that 30 s cost where `parents` parents with a child each are ready, and the reads that are due in them.
fn pass(parents: u32) -> (f64, usize) {
    let mut engine = engine();
    for at in 0..parents {
        parent(&mut engine, START, ObjectId(2 * at), None);
        child(&mut engine, START, ObjectId(2 * at + 1), ObjectId(2 * at), Level::Ready);
    }
    let mut drafts = Vec::new();
    let mut now = START + Duration::from_mins(1);
    engine.poll(now, &mut drafts);
    for draft in &drafts {
        let said = engine.answers(draft.parent)[0].1.reason;
        assert_eq!(engine.offer(draft.parent, digest(said), now), Decision::Same);
    }
    let mut reads = 0;
    let nanos = best(1, |_| {
        let until = now + Duration::from_secs(30);
        while let Some(at) = engine.next_deadline().filter(|at| *at <= until) {
            now = at;
            drafts.clear();
            engine.poll(now, &mut drafts);
            while engine.take_pass(now).is_some() {
                reads += 1;
            }
        }
        now = until;
    });
    (nanos / 1e6, reads)
}

/// Milliseconds for which the loop does nothing else, while a page is told where everybody stands.
fn look(parents: u32, children: u32) -> f64 {
    let mut engine = engine();
    for at in 0..parents {
        parent(&mut engine, START, ObjectId(at), None);
    }
    for at in 0..children {
        child(&mut engine, START, ObjectId(parents + at), ObjectId(at % parents), Level::Ready);
    }
    engine.poll(START + Duration::from_mins(1), &mut Vec::new());
    let nanos = best(1, |_| {
        let standings: Vec<_> = engine.rolls().map(|roll| (roll.parent, roll.policy, roll.answer)).collect();
        let edges: Vec<_> = engine.edges().collect();
        assert_eq!((standings.len(), edges.len()), (parents as usize, children as usize));
        black_box((standings, edges));
    });
    nanos / 1e6
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() {
    let base = flip(1, 10);
    println!("{:<48} {:>10} {:>8}", "one flip of a leaf, all above it judged", "ns", "ratio");
    for (depth, leaves) in [(1, 10), (2, 10), (4, 10), (8, 10), (1, 10_000), (4, 10_000)] {
        let nanos = flip(depth, leaves);
        println!("{:<48} {nanos:>10.0} {:>8.2}", format!("  depth {depth}, {leaves} siblings"), nanos / base);
    }
    println!("{:<48} {:>10} {:>8}", "30 s over parents that are all ready", "ms", "reads");
    for parents in [10_000, 100_000] {
        let (millis, reads) = pass(parents);
        println!("{:<48} {millis:>10.4} {reads:>8}", format!("  {parents} parents"));
    }
    println!("{:<48} {:>10}", "telling a page where everybody stands", "ms");
    for (parents, children) in [(1_000, 10_000), (100_000, 100_000), (100_000, 1_000_000)] {
        let words = format!("  {parents} parents, {children} children");
        println!("{words:<48} {:>10.3}", look(parents, children));
    }
}

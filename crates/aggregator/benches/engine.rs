//! Cost of a change of one child, its growth with siblings and with levels, the cost of a resync while everything is
//! ready, and the time for which the loop is blocked by a query of all states for a page.
//!
//! Prints ratios of one run; figures of different machines do not compare.

use std::hint::black_box;
use std::time::{Duration, Instant};

use aggregator::{
    AnswerView, ChildGroup, ChildLink, DeliveryDecision, Engine, EnginePolicy, EntriesDigest, GroupRole,
    HandledEvidence, KindId, KindState, LinkTarget, ObjectId, ObjectView, ParentView, PolicyId, Quorum,
    WrittenAnswer,
};
use readiness::rollup::{ChildWeight, ConditionStatus, ParentReason};
use readiness::{Level, Time};
use timer::Seed;

const POLICY: PolicyId = PolicyId(0);
const KIND: KindId = KindId(0);
const START: Time = Time(1_800_000_000_000);
/// Short rounds, so that some of them are not interrupted by other work of the machine.
const ROUNDS: usize = 300;

/// A tree of parents: levels of them above `leaves` leaves below the lowest.
struct ParentTower {
    engine: Engine,
    now: Time,
    leaf: ObjectId,
    depth: u32,
}

fn policy() -> EnginePolicy {
    EnginePolicy {
        groups: vec![ChildGroup {
            kind: KIND,
            role: GroupRole::Critical,
            min: 1,
            max: None,
            quorum: Quorum::All,
            is_prerequisite: false,
        }],
        min: 0,
        joint: Vec::new(),
        kinds: vec![KIND],
        debounce: timer::DebounceConfig { quiet: Duration::from_millis(100), cap: Duration::from_secs(1) },
        settle: Duration::ZERO,
        hold: Duration::ZERO,
        availability: aggregator::Availability::Strict,
        grace: Duration::ZERO,
        pending: Duration::from_mins(10),
        deadline: None,
        shadow: false,
        expects_names: false,
        requires_proof: false,
        acceptance: aggregator::Acceptance::Accepted,
    }
}

fn engine() -> Engine {
    let mut engine = Engine::new(Duration::from_secs(30), Duration::from_mins(10), Seed(1));
    engine.set_policy(START, POLICY, Some(policy()));
    engine.set_kind_state(START, KIND, KindState::Synced);
    engine
}

/// Adds a ready parent, with or without a parent of its own.
fn parent(engine: &mut Engine, now: Time, id: ObjectId, above: Option<ObjectId>) {
    let told = WrittenAnswer {
        reason: ParentReason::AllChildrenReady,
        status: Some(ConditionStatus::True),
        since: START,
        stalled: false,
    };
    let answer = AnswerView {
        policy: POLICY,
        written: Some(told),
        is_about_generation: true,
        ..AnswerView::default()
    };
    let view = ParentView {
        generation: 1,
        evidence: HandledEvidence::Handled,
        digest: digest(ParentReason::AllChildrenReady),
        answers: [answer].into(),
        ..ParentView::default()
    };
    let weights = [ChildWeight::of(Level::Progressing)];
    let links: Vec<ChildLink> = above.map(link).into_iter().collect();
    let seen = ObjectView {
        weights: &weights,
        parent: Some(&view),
        links: &links,
        created: START,
        ..ObjectView::default()
    };
    engine.observe_object(now, id, Some(&seen));
}

fn link(of: ObjectId) -> ChildLink {
    ChildLink::new(POLICY, 0, 0, LinkTarget::Object(of))
}

fn digest(reason: ParentReason) -> EntriesDigest {
    EntriesDigest { whole: reason as u64 + 1, without_messages: reason as u64 + 1 }
}

fn child(engine: &mut Engine, now: Time, id: ObjectId, of: ObjectId, level: Level) {
    let weights = [ChildWeight::of(level)];
    let links = [link(of)];
    engine.observe_object(
        now,
        id,
        Some(&ObjectView { weights: &weights, links: &links, created: START, ..ObjectView::default() }),
    );
}

impl ParentTower {
    fn new(depth: u32, leaves: u32) -> ParentTower {
        let mut engine = engine();
        for level in 0..depth {
            parent(&mut engine, START, ObjectId(level), level.checked_sub(1).map(ObjectId));
        }
        for leaf in 0..leaves {
            child(&mut engine, START, ObjectId(depth + leaf), ObjectId(depth - 1), Level::Ready);
        }
        let mut tower =
            ParentTower { engine, now: START + Duration::from_mins(1), leaf: ObjectId(depth), depth };
        assert_eq!(tower.turn().len(), depth as usize);
        tower
    }

    fn turn(&mut self) -> Vec<ObjectId> {
        let mut drafts = Vec::new();
        self.engine.poll(self.now, &mut drafts);
        drafts.into_iter().map(|d| d.parent).collect()
    }

    /// Changes the leaf and evaluates everything above it; returns through `drafts` the parents that changed.
    fn flip(&mut self, level: Level, drafts: &mut Vec<aggregator::ParentDraft>) {
        self.now = self.now + Duration::from_secs(2);
        child(&mut self.engine, self.now, self.leaf, ObjectId(self.depth - 1), level);
        drafts.clear();
        self.engine.poll(self.now, drafts);
    }
}

/// Returns nanoseconds per change, the best of several rounds.
fn flip(depth: u32, leaves: u32) -> f64 {
    const TURNS: u32 = 500;
    let mut tower = ParentTower::new(depth, leaves);
    let mut drafts = Vec::new();
    tower.flip(Level::Failed, &mut drafts);
    assert_eq!(drafts.len(), depth as usize);
    tower.engine.take_counts();
    tower.flip(Level::Ready, &mut drafts);
    assert_eq!(tower.engine.take_counts().evaluations, u64::from(depth), "each is judged once");
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

/// Returns the milliseconds that 30 s cost with `parents` ready parents of one child each, and the number of reads due
/// in that time.
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
        let said = engine.answers_to_write(draft.parent)[0].1.reason;
        assert_eq!(engine.offer_digest(draft.parent, digest(said), now), DeliveryDecision::Same);
    }
    let mut reads = 0;
    let nanos = best(1, |_| {
        let until = now + Duration::from_secs(30);
        while let Some(at) = engine.next_deadline().filter(|at| *at <= until) {
            now = at;
            drafts.clear();
            engine.poll(now, &mut drafts);
            while engine.take_due_resync(now).is_some() {
                reads += 1;
            }
        }
        now = until;
    });
    (nanos / 1e6, reads)
}

/// Returns the milliseconds for which the loop is blocked by a query of all states for a page.
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
        let standings: Vec<_> =
            engine.evaluation_states().map(|state| (state.parent, state.policy, state.answer)).collect();
        let edges: Vec<_> = engine.counted_children().collect();
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

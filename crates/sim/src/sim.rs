//! The simulation of one seed: a world, a wire that misbehaves, the product's core, and who watches over it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use aggregator::{KindId, ObjectId, Outcome};
use controller::core::{Core, Health, News, Read};
use readiness::Time;
use sandbox::store::Store;
use timer::Seed;
use watcher::plan::Interest;
use watcher::reflector::Reflector;

use crate::check::Watch;
use crate::dice::Dice;
use crate::memory::Remembered;
use crate::reads::Answered;
use crate::sabotage::Sabotage;
use crate::scenario::Scenario;
use crate::shown::Shown;
use crate::wire::Wire;
use crate::writes::{Flight, Landed};

/// When every world begins.
const START: i64 = 1_800_000_000_000;
/// The periods of the pass and of the audit.
pub(crate) const RESYNC: Duration = Duration::from_secs(30);
pub(crate) const AUDIT: Duration = Duration::from_secs(100);
/// Once faults have stopped, the world is left alone for so long: longer than any limit, yielding and three audits.
const QUIET: i64 = 360_000;
/// So long a restarted process may show that it has nothing to say.
const REST: i64 = 60_000;

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The invariant.
    pub invariant: &'static str,
    /// What was seen, and when.
    pub detail: String,
}

/// What happened in a run, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events of the simulation.
    pub events: u64,
    /// Writes that the server took.
    pub writes: u64,
    /// Of those, with a condition that turned True.
    pub trues: u64,
    /// Writes that were refused or failed.
    pub refused: u64,
    /// Restarts of the process.
    pub restarts: u64,
    /// Events that a watch lost.
    pub lost: u64,
    /// What live reads found and the watch did not bring.
    pub drift: u64,
    /// Parents at the end.
    pub parents: u64,
    /// What became of what was remembered.
    pub remembered: Remembered,
}

/// Something that will happen.
#[derive(Debug)]
pub(crate) enum Event {
    /// People and controllers do the next thing.
    World,
    /// The wire gets the next trouble.
    Trouble,
    /// An operator looks at a parent of this kind, namespace, name and uid, of which it knew this generation.
    Operator(usize, String, String, String, i64),
    /// What is owned by this uid becomes ready.
    Heal(String),
    /// A kind is listed or watched.
    Open(usize),
    /// The next page of a list.
    Page(usize),
    /// A watch brings what there is.
    Deliver(usize),
    /// The loop looks around.
    Turn,
    /// A write arrives at the server.
    Send(Box<Flight>),
    /// Its answer arrives, or its patience ends.
    Landed(Box<Landed>),
    /// A parent was read live after a failed guard.
    Reread(Box<Landed>),
    /// The next live read goes out.
    Look,
    /// A live read is answered.
    Answered(Box<Answered>),
    /// Was it drift?
    Drift(Vec<watcher::reflector::Awaited>),
    /// The audit of one kind.
    Audit(usize),
}

impl Event {
    /// Does it end with the process? What was sent may still arrive.
    fn is_of_the_process(&self) -> bool {
        !matches!(self, Event::World | Event::Trouble | Event::Operator(..) | Event::Heal(_) | Event::Send(_))
    }
}

/// One seed's run.
pub(crate) struct Sim {
    pub(crate) seed: u64,
    /// What the world does.
    pub(crate) dice: Dice,
    /// What goes wrong.
    pub(crate) fate: Dice,
    pub(crate) now: i64,
    queue: BTreeMap<(i64, u64), Event>,
    sequence: u64,
    pub(crate) store: Store,
    pub(crate) scenario: Scenario,
    pub(crate) interests: Vec<Interest>,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) log: Vec<String>,
    pub(crate) failure: Option<Failure>,
    pub(crate) counts: Counts,
    /// Faults have stopped.
    pub(crate) calm: bool,
    pub(crate) steps: u32,
    /// Which process this is.
    pub(crate) life: u32,
    pub(crate) core: Core,
    pub(crate) health: Health,
    pub(crate) news: VecDeque<(KindId, News)>,
    pub(crate) settled: VecDeque<(ObjectId, Outcome)>,
    pub(crate) turn_at: Option<i64>,
    pub(crate) looks: VecDeque<Read>,
    pub(crate) queued: BTreeSet<Read>,
    pub(crate) looking: bool,
    pub(crate) wires: Vec<Wire>,
    pub(crate) shown: Shown,
    pub(crate) watch: Watch,
}

fn process(seed: u64, life: u32) -> Core {
    let reflector = Arc::new(Reflector::new(|| ()));
    Core::new(reflector, RESYNC, AUDIT, Seed(seed).derive(1_000 + u64::from(life)))
}

impl Sim {
    pub(crate) fn new(seed: u64, sabotage: Option<Sabotage>) -> Sim {
        let mut dice = Dice::new(seed, 1);
        let scenario = Scenario::new(&mut dice);
        let interests = (0..scenario.kinds.len()).map(|kind| scenario.interest(kind)).collect();
        let wires = scenario.kinds.iter().map(|_| Wire::default()).collect();
        Sim {
            seed,
            fate: Dice::new(seed, 2),
            now: START,
            queue: BTreeMap::new(),
            sequence: 0,
            store: Store::new(seed),
            interests,
            sabotage,
            log: Vec::new(),
            failure: None,
            counts: Counts::default(),
            calm: false,
            steps: 40 + dice.below(50) as u32,
            life: 0,
            core: process(seed, 0),
            health: Health::default(),
            news: VecDeque::new(),
            settled: VecDeque::new(),
            turn_at: None,
            looks: VecDeque::new(),
            queued: BTreeSet::new(),
            looking: false,
            wires,
            shown: Shown::default(),
            watch: Watch::default(),
            scenario,
            dice,
        }
    }

    pub(crate) fn at(&mut self, after: i64, event: Event) {
        self.sequence += 1;
        self.queue.insert((self.now + after.max(0), self.sequence), event);
    }

    pub(crate) fn time(&self) -> Time {
        Time(self.now)
    }

    pub(crate) fn say(&mut self, what: impl Display) {
        self.log.push(format!("{:>9.3} {what}", (self.now - START) as f64 / 1_000.0));
    }

    /// The same, of one kind.
    pub(crate) fn say_of(&mut self, kind: usize, what: impl Display) {
        let name = self.scenario.name(kind).to_owned();
        self.say(format_args!("{name}: {what}"));
    }

    /// The first invariant that does not hold ends the run.
    pub(crate) fn fail(&mut self, invariant: &'static str, detail: impl Display) {
        if self.failure.is_none() {
            self.say(format_args!("FAILED {invariant}: {detail}"));
            let at = (self.now - START) as f64 / 1_000.0;
            self.failure = Some(Failure { invariant, detail: format!("at {at:.3} s: {detail}") });
        }
    }

    /// The whole history: faults, quiet, the oracle, a restart at rest.
    pub(crate) fn play(&mut self) {
        self.found();
        self.begin();
        self.at(0, Event::World);
        self.at(1_000, Event::Trouble);
        while self.failure.is_none() && self.steps > 0 {
            self.next(i64::MAX);
        }
        self.say("faults stop");
        self.calm();
        self.run_for(QUIET);
        if self.failure.is_none() {
            self.check_end();
        }
        if self.failure.is_none() {
            self.rest();
        }
    }

    /// A restart at rest writes nothing.
    fn rest(&mut self) {
        let (revision, sent) = (self.store.revision(), self.watch.sent);
        self.restart();
        self.run_for(REST);
        if self.watch.sent != sent || self.store.revision() != revision {
            self.fail("a restart at rest writes nothing", format_args!("{} writes", self.watch.sent - sent));
        }
        if self.failure.is_none() {
            self.check_end();
        }
    }

    fn run_for(&mut self, span: i64) {
        let until = self.now + span;
        while self.failure.is_none() && self.next(until) {}
        self.now = until;
    }

    /// The next event, if it comes by `until`.
    fn next(&mut self, until: i64) -> bool {
        let Some(entry) = self.queue.first_entry().filter(|e| e.key().0 <= until) else { return false };
        self.now = entry.key().0;
        let event = entry.remove();
        self.counts.events += 1;
        self.happen(event);
        self.wake_watches();
        true
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::World => self.world_step(),
            Event::Trouble => self.trouble(),
            Event::Operator(kind, namespace, name, uid, knew) => {
                self.operate(kind, &namespace, &name, &uid, knew);
            }
            Event::Heal(owner) => self.heal(&owner),
            Event::Open(kind) => self.open(kind),
            Event::Page(kind) => self.page(kind),
            Event::Deliver(kind) => self.deliver(kind),
            Event::Turn => self.turn(),
            Event::Send(flight) => self.arrive(*flight),
            Event::Landed(landed) => self.landed(*landed),
            Event::Reread(landed) => self.reread(&landed),
            Event::Look => self.look(),
            Event::Answered(answered) => self.answered(*answered),
            Event::Drift(awaited) => self.drift(&awaited),
            Event::Audit(kind) => self.audit(kind),
        }
    }

    /// The process starts: policies are read, kinds are followed.
    pub(crate) fn begin(&mut self) {
        for (at, def) in self.scenario.kinds.iter().enumerate() {
            self.core.name_kind(KindId(at as u16), &def.api.kind, &def.api.group);
        }
        let now = self.time();
        for policy in &self.scenario.policies {
            let compiled = policy.compiled(&self.scenario, self.sabotage);
            self.core.set_policy(now, policy.id, Some(compiled));
        }
        for kind in 0..self.wires.len() {
            self.news.push_back((KindId(kind as u16), News::Starting));
            let (open, audit) = (self.fate.between(0, 40), self.fate.between(0, AUDIT.as_millis() as i64));
            self.at(open, Event::Open(kind));
            self.at(audit, Event::Audit(kind));
        }
        self.wake_loop();
    }

    /// The process ends, at any moment, and another one starts.
    pub(crate) fn restart(&mut self) {
        self.say("restart");
        self.counts.restarts += 1;
        self.life += 1;
        self.queue.retain(|_, event| !event.is_of_the_process());
        self.core = process(self.seed, self.life);
        self.health = Health::default();
        self.news.clear();
        self.settled.clear();
        self.looks.clear();
        self.queued.clear();
        (self.turn_at, self.looking) = (None, false);
        for wire in &mut self.wires {
            wire.restart(self.now);
        }
        self.shown = Shown::default();
        self.watch.restart();
        self.begin();
    }

    fn calm(&mut self) {
        self.calm = true;
        for kind in 0..self.wires.len() {
            self.wires[kind].calm();
        }
        self.queue.retain(|_, event| !matches!(event, Event::World | Event::Trouble));
    }
}

//! The simulation of one seed: the cluster, a faulty wire, the product's core, and the invariants.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use aggregator::{DeliveryOutcome, KindId, ObjectId, WriteTicket};
use readiness::{Time, millis_to_seconds, saturating_millis};
use rollcall_core::{Core, KindEvent, LiveRead, WatchHealth};
use sandbox::store::SandboxStore;
use timer::Seed;
use watcher::plan::Interest;
use watcher::reflector::Reflector;

use crate::answered_read::{AnsweredRead, OrderedRead};
use crate::dice::Dice;
use crate::invariant_watch::InvariantWatch;
use crate::kind_wire::KindWire;
use crate::policies::{PolicyEvent, PolicyWatch};
use crate::sabotage::Sabotage;
use crate::scenario::{Scenario, kind_id, small_number};
use crate::shown_objects::ShownObjects;
use crate::simulation_counts::SimulationCounts;
use crate::write_in_flight::{LandedWrite, WriteInFlight};

/// Start time of every simulation, in milliseconds since the Unix epoch.
const SIMULATION_START_MS: i64 = 1_800_000_000_000;
/// Interval of the resync pass and of the audit.
pub(crate) const RESYNC_PERIOD: Duration = Duration::from_secs(30);
pub(crate) const AUDIT_PERIOD: Duration = Duration::from_secs(100);
/// Quiet span after faults have stopped, in milliseconds: longer than any limit, the yielding of a contested condition,
/// and three audits.
const QUIET_SPAN_MS: i64 = 360_000;
/// Time that a restarted process has to prove that it writes nothing, in milliseconds.
const REST_SPAN_MS: i64 = 60_000;

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvariantFailure {
    /// Name of the invariant.
    pub invariant: &'static str,
    /// Observation that violates it, with its time.
    pub detail: String,
}

/// A scheduled event.
#[derive(Debug)]
pub(crate) enum SimEvent {
    /// People and controllers take the next action.
    ActorStep,
    /// The wire gets the next fault.
    Fault,
    /// An operator handles a parent: kind, namespace, name, UID, and the generation that it knew.
    Operator(usize, String, String, String, i64),
    /// All objects owned by this UID become ready.
    Heal(String),
    /// A list or watch of a kind begins.
    Open(usize),
    /// The next page of a list arrives.
    Page(usize),
    /// A watch delivers the available lines.
    Deliver(usize),
    /// The loop runs a turn.
    Turn,
    /// A write arrives at the server.
    Send(Box<WriteInFlight>),
    /// The answer to a write arrives, or the write times out.
    Landed(Box<LandedWrite>),
    /// The live read after a failed precondition is answered.
    Reread(Box<LandedWrite>),
    /// The next live read is sent.
    NextRead,
    /// A live read is answered.
    Answered(Box<AnsweredRead>),
    /// Check for drift after the grace time.
    Drift(Vec<watcher::reflector::AwaitedVersion>),
    /// Audit of one kind.
    Audit(usize),
    /// An event of the policies' part.
    Policy(PolicyEvent),
}

impl SimEvent {
    /// Returns `true` if the event ends with the process. Requests that were already sent may still arrive.
    fn is_of_the_process(&self) -> bool {
        !matches!(
            self,
            SimEvent::ActorStep
                | SimEvent::Fault
                | SimEvent::Operator(..)
                | SimEvent::Heal(_)
                | SimEvent::Send(_)
                | SimEvent::Policy(PolicyEvent::Act)
        )
    }
}

/// Simulation of one seed.
pub(crate) struct Sim {
    pub(crate) seed: u64,
    /// Randomness of the cluster.
    pub(crate) dice: Dice,
    /// Randomness of the faults.
    pub(crate) fault_dice: Dice,
    /// Randomness of the server's wrong answers.
    pub(crate) denial_dice: Dice,
    pub(crate) now: i64,
    queue: BTreeMap<(i64, u64), SimEvent>,
    sequence: u64,
    pub(crate) store: SandboxStore,
    pub(crate) scenario: Scenario,
    pub(crate) interests: Vec<Interest>,
    pub(crate) sabotage: Option<Sabotage>,
    pub(crate) log: Vec<String>,
    pub(crate) failure: Option<InvariantFailure>,
    pub(crate) counts: SimulationCounts,
    /// Faults have stopped.
    pub(crate) calm: bool,
    pub(crate) steps: u32,
    /// Number of the current process: it increases with every restart.
    pub(crate) life: u32,
    pub(crate) core: Core,
    pub(crate) health: WatchHealth,
    pub(crate) news: VecDeque<(KindId, KindEvent)>,
    pub(crate) write_outcomes: VecDeque<(ObjectId, WriteTicket, DeliveryOutcome)>,
    pub(crate) turn_at: Option<i64>,
    pub(crate) queued_reads: VecDeque<OrderedRead>,
    pub(crate) queued_read_set: BTreeSet<LiveRead>,
    pub(crate) is_reading: bool,
    pub(crate) wires: Vec<KindWire>,
    pub(crate) shown: ShownObjects,
    pub(crate) watch: InvariantWatch,
    /// Number of times that somebody overwrote our conditions on a parent, by UID.
    pub(crate) overwritten: BTreeMap<String, u32>,
    pub(crate) policies: PolicyWatch,
}

fn new_core(seed: u64, life: u32) -> Core {
    let reflector = Arc::new(Reflector::new(|| ()));
    let seed_of_life = Seed(seed).derive(1_000 + u64::from(life));
    let mut core = Core::new(reflector, RESYNC_PERIOD, AUDIT_PERIOD, seed_of_life);
    core.set_max_in_flight_writes(writer_room(seed));
    core
}

/// Writes in flight for which the writer of this seed has room: few in some histories, so that parents wait for their
/// turn.
fn writer_room(seed: u64) -> usize {
    match Dice::new(seed, 4).below(8) {
        few @ 1..4 => few,
        _ => 32,
    }
}

impl Sim {
    /// Creates the simulation of a seed, in whose history policies change or not.
    pub(crate) fn new(seed: u64, sabotage: Option<Sabotage>, policies_change: bool) -> Sim {
        let mut dice = Dice::new(seed, 1);
        let scenario = Scenario::new(&mut dice);
        let interests =
            (0..scenario.kinds.len()).map(|kind| scenario.kind_interest(kind, &scenario.policies)).collect();
        let wires = scenario.kinds.iter().map(|_| KindWire::default()).collect();
        Sim {
            seed,
            fault_dice: Dice::new(seed, 2),
            denial_dice: Dice::new(seed, 5),
            now: SIMULATION_START_MS,
            queue: BTreeMap::new(),
            sequence: 0,
            store: SandboxStore::new(seed),
            interests,
            sabotage,
            log: Vec::new(),
            failure: None,
            counts: SimulationCounts::default(),
            calm: false,
            steps: small_number(40 + dice.below(50)),
            life: 0,
            core: new_core(seed, 0),
            health: WatchHealth::default(),
            news: VecDeque::new(),
            write_outcomes: VecDeque::new(),
            turn_at: None,
            queued_reads: VecDeque::new(),
            queued_read_set: BTreeSet::new(),
            is_reading: false,
            wires,
            shown: ShownObjects::default(),
            watch: InvariantWatch::default(),
            overwritten: BTreeMap::new(),
            policies: PolicyWatch::new(seed, &scenario.first_policies, policies_change),
            scenario,
            dice,
        }
    }

    pub(crate) fn schedule_event(&mut self, after: i64, event: SimEvent) {
        self.sequence += 1;
        self.queue.insert((self.now + after.max(0), self.sequence), event);
    }

    pub(crate) fn current_time(&self) -> Time {
        Time(self.now)
    }

    pub(crate) fn log_event(&mut self, what: impl Display) {
        self.log.push(format!("{:>9.3} {what}", millis_to_seconds(self.now - SIMULATION_START_MS)));
    }

    /// Logs an event of one kind.
    pub(crate) fn log_kind_event(&mut self, kind: usize, what: impl Display) {
        let name = self.scenario.kind_name(kind).to_owned();
        self.log_event(format_args!("{name}: {what}"));
    }

    /// Records the first violated invariant and ends the run.
    pub(crate) fn fail_invariant(&mut self, invariant: &'static str, detail: impl Display) {
        if self.failure.is_none() {
            self.log_event(format_args!("FAILED {invariant}: {detail}"));
            let at = millis_to_seconds(self.now - SIMULATION_START_MS);
            self.failure = Some(InvariantFailure { invariant, detail: format!("at {at:.3} s: {detail}") });
        }
    }

    /// Plays the whole history: faults, a quiet span, the oracle, a restart at rest.
    pub(crate) fn play_history(&mut self) {
        self.install_cluster();
        self.start_process();
        self.schedule_event(0, SimEvent::ActorStep);
        self.schedule_event(1_000, SimEvent::Fault);
        if self.policies.is_changing {
            self.schedule_policy_event(3_000, PolicyEvent::Act);
        }
        while self.failure.is_none() && self.steps > 0 {
            self.run_next_event(i64::MAX);
        }
        self.log_event("faults stop");
        self.stop_faults();
        self.run_for(QUIET_SPAN_MS);
        if self.failure.is_none() {
            self.check_end();
        }
        if self.failure.is_none() {
            self.check_restart_at_rest();
        }
    }

    /// Checks that a restart at rest writes nothing.
    fn check_restart_at_rest(&mut self) {
        let (revision, sent) = (self.store.revision(), self.watch.sent);
        self.restart_process();
        self.run_for(REST_SPAN_MS);
        if self.watch.sent != sent || self.store.revision() != revision {
            self.fail_invariant(
                "a restart at rest writes nothing",
                format_args!("{} writes", self.watch.sent - sent),
            );
        }
        if self.failure.is_none() {
            self.check_end();
        }
    }

    fn run_for(&mut self, span: i64) {
        let until = self.now + span;
        while self.failure.is_none() && self.run_next_event(until) {}
        self.now = until;
    }

    /// Runs the next event, if it is due by `until`.
    fn run_next_event(&mut self, until: i64) -> bool {
        let Some(entry) = self.queue.first_entry().filter(|e| e.key().0 <= until) else { return false };
        self.now = entry.key().0;
        let event = entry.remove();
        self.counts.events += 1;
        self.dispatch_event(event);
        self.wake_watches();
        true
    }

    fn dispatch_event(&mut self, event: SimEvent) {
        match event {
            SimEvent::ActorStep => self.step_actors(),
            SimEvent::Fault => self.inject_fault(),
            SimEvent::Operator(kind, namespace, name, uid, knew) => {
                self.run_operator(kind, &namespace, &name, &uid, knew);
            }
            SimEvent::Heal(owner) => self.heal_children(&owner),
            SimEvent::Open(kind) => self.open_kind(kind),
            SimEvent::Page(kind) => self.deliver_page(kind),
            SimEvent::Deliver(kind) => self.deliver_watch(kind),
            SimEvent::Turn => self.run_turns(),
            SimEvent::Send(flight) => self.deliver_write(*flight),
            SimEvent::Landed(landed) => self.receive_answer(*landed),
            SimEvent::Reread(landed) => self.receive_reread(&landed),
            SimEvent::NextRead => self.send_next_read(),
            SimEvent::Answered(answered) => self.receive_read(*answered),
            SimEvent::Drift(awaited) => self.count_drift(&awaited),
            SimEvent::Audit(kind) => self.audit_kind(kind),
            SimEvent::Policy(event) => self.run_policy_event(event),
        }
    }

    /// Starts the process: policies are loaded, kinds are followed.
    pub(crate) fn start_process(&mut self) {
        for (at, def) in self.scenario.kinds.iter().enumerate() {
            self.core.set_kind_name(kind_id(at), &def.api.kind, &def.api.group);
        }
        if self.policies.is_changing {
            self.start_audits();
            return self.start_policy_watch();
        }
        let now = self.current_time();
        for policy in &self.scenario.policies {
            let compiled = policy.compile_policy(&self.scenario, self.sabotage);
            self.core.set_policy(now, policy.id, Some(compiled));
        }
        for interest in &self.interests {
            self.core.reflector.set_interest(interest.clone());
        }
        for kind in 0..self.wires.len() {
            self.news.push_back((kind_id(kind), KindEvent::Starting));
            let (open, audit) =
                (self.fault_dice.between(0, 40), self.fault_dice.between(0, saturating_millis(AUDIT_PERIOD)));
            self.schedule_event(open, SimEvent::Open(kind));
            self.schedule_event(audit, SimEvent::Audit(kind));
        }
        self.wake_loop();
    }

    fn start_audits(&mut self) {
        for kind in 0..self.wires.len() {
            let audit = self.fault_dice.between(0, saturating_millis(AUDIT_PERIOD));
            self.schedule_event(audit, SimEvent::Audit(kind));
        }
    }

    /// Removes the events of a kind's list and watch.
    pub(crate) fn remove_events_of_kind(&mut self, kind: usize) {
        self.queue.retain(|_, event| match event {
            SimEvent::Open(of) | SimEvent::Page(of) | SimEvent::Deliver(of) => *of != kind,
            SimEvent::Policy(PolicyEvent::Follow(of)) => *of != kind,
            _ => true,
        });
    }

    /// Ends the process, at an arbitrary moment, and starts another.
    pub(crate) fn restart_process(&mut self) {
        self.log_event("restart");
        self.counts.restarts += 1;
        self.life += 1;
        self.queue.retain(|_, event| !event.is_of_the_process());
        self.core = new_core(self.seed, self.life);
        self.health = WatchHealth::default();
        self.news.clear();
        self.write_outcomes.clear();
        self.queued_reads.clear();
        self.queued_read_set.clear();
        (self.turn_at, self.is_reading) = (None, false);
        for wire in &mut self.wires {
            wire.reset_for_restart(self.now);
        }
        self.shown = ShownObjects::default();
        self.watch.reset_for_restart();
        self.policies.reset_for_restart(self.now);
        self.start_process();
    }

    fn stop_faults(&mut self) {
        self.calm = true;
        for kind in 0..self.wires.len() {
            self.wires[kind].clear_faults();
        }
        self.queue.retain(|_, event| {
            !matches!(event, SimEvent::ActorStep | SimEvent::Fault | SimEvent::Policy(PolicyEvent::Act))
        });
    }
}

//! One life of the process after the other: the service's loop without its wires.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use aggregator::{DeliveryOutcome, KindId, KindState, ObjectId, WriteTicket};
use readiness::Time;
use rollcall_core::{BlindKind, Core, KindEvent, LiveRead, ParentWrite, RuleSwaps, WatchHealth};
use timer::Seed;
use watcher::reflector::Reflector;

use super::policy_plan::PolicyPlan;
use crate::scenario::{DiceStream, PolicyDef, Sabotage, Scenario, SeedStreams, kind_id};
use crate::timeline::SimEvent;
use crate::world::{FaultConcern, SimWorld};

/// Interval of the resync pass and of the audit.
const RESYNC_PERIOD: Duration = Duration::from_secs(30);
pub(crate) const AUDIT_PERIOD: Duration = Duration::from_secs(100);
/// Largest number of changed objects taken in one turn.
const MAX_OBJECTS_PER_TURN: usize = 256;

/// The service under test: its core, and all that its loop hears.
pub(crate) struct ServiceUnderTest {
    streams: SeedStreams,
    sabotage: Option<Sabotage>,
    /// Number of the current process: it increases with every restart.
    pub(crate) life: u32,
    pub(crate) core: Core,
    /// Number of writes that the writer has room for.
    pub(crate) writer_room: usize,
    /// Policies that are in force in the loop.
    pub(crate) policies: Vec<PolicyDef>,
    health: WatchHealth,
    swaps: RuleSwaps,
    kind_events: VecDeque<(KindId, KindEvent)>,
    write_outcomes: VecDeque<(ObjectId, WriteTicket, DeliveryOutcome)>,
    /// Time of the next turn that is scheduled.
    turn_at: Option<i64>,
}

/// Policies that a plan took from the loop, or gave to it.
pub(crate) struct PlanDifference {
    /// Each with the number by which its successor is known.
    pub(crate) removed: Vec<(aggregator::PolicyId, usize)>,
    pub(crate) added: Vec<aggregator::PolicyId>,
}

fn new_core(streams: SeedStreams, life: u32) -> Core {
    let seed = streams.seed;
    let reflector = Arc::new(Reflector::new(|| ()));
    if evaluates_beside(streams) {
        reflector.rule_work().set_waker(|| ());
    }
    let seed_of_life = Seed(seed).derive(1_000 + u64::from(life));
    let mut core = Core::new(reflector, RESYNC_PERIOD, AUDIT_PERIOD, seed_of_life);
    core.set_max_in_flight_writes(writer_room(seed));
    core
}

/// Returns `true` if rules are evaluated beside the ingest of objects in the history of this seed; in some they are evaluated
/// on ingest, as where there are no threads for them.
fn evaluates_beside(streams: SeedStreams) -> bool {
    let shared = DiceStream::PolicyWire.dice(streams.seed);
    streams.split_from(&shared, DiceStream::RuleThreads).below(4) > 0
}

/// Writes in flight for which the writer of this seed has room: few in some histories, so that parents wait for their
/// turn.
fn writer_room(seed: u64) -> usize {
    match DiceStream::WriterRoom.dice(seed).below(8) {
        few @ 1..4 => few,
        _ => 32,
    }
}

impl ServiceUnderTest {
    pub(crate) fn new(streams: SeedStreams, sabotage: Option<Sabotage>) -> ServiceUnderTest {
        ServiceUnderTest::in_life(streams, sabotage, 0)
    }

    fn in_life(streams: SeedStreams, sabotage: Option<Sabotage>, life: u32) -> ServiceUnderTest {
        ServiceUnderTest {
            streams,
            sabotage,
            life,
            core: new_core(streams, life),
            writer_room: writer_room(streams.seed),
            policies: Vec::new(),
            health: WatchHealth::default(),
            swaps: RuleSwaps::default(),
            kind_events: VecDeque::new(),
            write_outcomes: VecDeque::new(),
            turn_at: None,
        }
    }

    /// Ends the process and begins another, which knows nothing.
    pub(crate) fn restart(&mut self) {
        *self = ServiceUnderTest::in_life(self.streams, self.sabotage, self.life + 1);
    }

    /// Begins another process beside this one, which is returned.
    pub(crate) fn split_for_takeover(&mut self) -> ServiceUnderTest {
        let next = ServiceUnderTest::in_life(self.streams, self.sabotage, self.life + 1);
        std::mem::replace(self, next)
    }

    /// Tells the core the names of all kinds.
    pub(crate) fn name_kinds(&mut self, scenario: &Scenario) {
        for (at, def) in scenario.kinds.iter().enumerate() {
            self.core.set_kind_name(kind_id(at), &def.api.kind, &def.api.group);
        }
    }

    /// Puts the policies in force with which the history begins.
    pub(crate) fn load_policies(&mut self, now: Time, scenario: &Scenario) {
        for policy in &scenario.first_policies {
            let compiled = policy.compile_policy(&scenario.kinds, self.sabotage);
            self.core.set_policy(now, policy.id, Some(compiled));
        }
        self.policies.clone_from(&scenario.first_policies);
    }

    /// Puts the policies of a plan in force.
    pub(crate) fn take_over_plan(
        &mut self,
        now: Time,
        scenario: &Scenario,
        plan: &PolicyPlan,
    ) -> PlanDifference {
        let before = std::mem::take(&mut self.policies);
        let gone = before.iter().filter(|old| plan.policies.iter().all(|new| new.id != old.id));
        let removed: Vec<_> = gone.map(|policy| (policy.id, policy.number)).collect();
        for (id, _) in &removed {
            self.core.set_policy(now, *id, None);
        }
        for policy in &plan.policies {
            let held = before.iter().find(|old| old.id == policy.id);
            let compile = |p: &PolicyDef| p.compile_policy(&scenario.kinds, self.sabotage);
            let compiled = compile(policy);
            if held.is_none_or(|held| compile(held).0 != compiled.0) {
                self.core.set_policy(now, policy.id, Some(compiled));
            }
        }
        let mut added = Vec::new();
        for policy in plan.policies.iter().filter(|new| before.iter().all(|old| old.id != new.id)) {
            self.swaps.on_policy_replaced(&policy.name(), now);
            added.push(policy.id);
        }
        self.policies.clone_from(&plan.policies);
        PlanDifference { removed, added }
    }

    /// Schedules a turn of the loop after a random delay.
    pub(crate) fn wake_loop(&mut self, world: &mut SimWorld) {
        let late = match world.faults.of(FaultConcern::Turns).below(20) {
            0 if !world.faults.is_off() => world.faults.of(FaultConcern::Turns).between(20, 150),
            1..5 => world.faults.of(FaultConcern::Turns).between(1, 8),
            _ => 0,
        };
        self.schedule_turn_by(world, world.now() + late);
    }

    /// Schedules a turn of the loop no later than `at`.
    pub(crate) fn schedule_turn_by(&mut self, world: &mut SimWorld, at: i64) {
        if self.turn_at.is_none_or(|old| old > at) {
            self.turn_at = Some(at);
            world.timeline.schedule_event(at - world.now(), SimEvent::Turn);
        }
    }

    /// Schedules the turn of the next deadline.
    pub(crate) fn schedule_deadline(&mut self, world: &mut SimWorld) {
        if let Some(next) = self.next_deadline() {
            self.schedule_turn_by(world, next);
        }
    }

    fn next_deadline(&self) -> Option<i64> {
        let deadlines = [self.core.next_deadline(), self.health.next_deadline(), self.swaps.next_deadline()];
        deadlines.into_iter().flatten().min().map(|t| t.0)
    }

    pub(crate) fn is_deadline_over(&self, now: i64) -> bool {
        self.next_deadline().is_some_and(|at| at <= now)
    }

    /// Returns `true` if this is the turn that was scheduled last.
    pub(crate) fn begin_turn(&mut self, now: i64) -> bool {
        let is_due = self.turn_at == Some(now);
        if is_due {
            self.turn_at = None;
        }
        is_due
    }

    /// Brings the numbers of all parents up to date.
    pub(crate) fn refresh_numbers(&mut self, now: Time) {
        self.core.refresh_numbers(now);
    }

    /// Tells the loop of a kind, at its next turn.
    pub(crate) fn queue_kind_event(&mut self, kind: usize, event: KindEvent) {
        self.kind_events.push_back((kind_id(kind), event));
    }

    /// Tells the loop of a kind, and wakes it.
    pub(crate) fn push_kind_event(&mut self, world: &mut SimWorld, kind: usize, event: KindEvent) {
        self.queue_kind_event(kind, event);
        self.wake_loop(world);
    }

    /// Tells the loop what became of a write, and wakes it.
    pub(crate) fn push_outcome(
        &mut self,
        world: &mut SimWorld,
        write: &ParentWrite,
        outcome: DeliveryOutcome,
    ) {
        self.write_outcomes.push_back((write.parent, write.ticket, outcome));
        self.wake_loop(world);
    }

    /// Returns the live reads of the parents whose resync is due, and of objects whose rule reads the clock.
    pub(crate) fn take_resync_reads(&mut self, now: Time) -> Vec<LiveRead> {
        let mut reads = self.core.take_reevaluation_reads();
        while let Some(parent) = self.core.engine.take_due_resync(now) {
            reads.extend(self.core.resync_reads(parent));
        }
        reads
    }

    /// Marks kinds that were not heard for too long as blind; returns those that are to be listed.
    pub(crate) fn mark_blind_kinds(&mut self, world: &SimWorld) -> Vec<usize> {
        let (now, mut unlisted) = (world.timeline.current_time(), Vec::new());
        while let Some(BlindKind { kind, state, needs_list }) = self.health.take_overdue(now) {
            world.timeline.log_kind_event(kind.index(), format_args!("{state:?}"));
            self.core.set_kind_state(now, kind, state);
            unlisted.extend(needs_list.then_some(kind.index()));
        }
        unlisted
    }

    /// Withdraws answers of changed rules whose kind could not be listed in time.
    pub(crate) fn withdraw_unswapped_rules(&mut self, world: &SimWorld) {
        let now = world.timeline.current_time();
        while let Some((kind, name)) = self.swaps.take_overdue(now) {
            world.timeline.log_event(format_args!("{name}: its changed rule is withdrawn"));
            for policy in self.policies.iter().filter(|p| p.name() == name) {
                self.core.engine.withdraw_changed_rule(now, policy.id, kind);
            }
        }
    }

    /// Takes in the outcome of a write; returns `false` if there is none.
    pub(crate) fn settle_next_write(&mut self, now: Time) -> bool {
        let Some((parent, ticket, outcome)) = self.write_outcomes.pop_front() else { return false };
        self.core.settle_write(now, parent, ticket, outcome);
        true
    }

    pub(crate) fn take_kind_event(&mut self) -> Option<(KindId, KindEvent)> {
        self.kind_events.pop_front()
    }

    /// Observes some changed objects; returns `false` if there are none.
    pub(crate) fn observe_some_objects(&mut self, now: Time) -> bool {
        if self.core.reflector.dirty_len() == 0 {
            return false;
        }
        let moved = self.core.reflector.take_dirty(MAX_OBJECTS_PER_TURN);
        self.core.observe_objects(now, &moved);
        true
    }

    /// Observes all changed objects.
    pub(crate) fn observe_all_objects(&mut self, now: Time) {
        let moved = self.core.reflector.take_dirty(usize::MAX);
        self.core.observe_objects(now, &moved);
    }

    /// Hears of the rules of a kind.
    pub(crate) fn observe_swap(&mut self, now: Time, kind: KindId, event: &KindEvent) {
        self.swaps.observe_event(kind, event, now);
    }

    /// Hears of the state of a kind, and returns it.
    pub(crate) fn observe_kind_state(
        &mut self,
        world: &SimWorld,
        kind: KindId,
        event: &KindEvent,
    ) -> KindState {
        let now = world.timeline.current_time();
        let state = self.health.observe_event(kind, event, now);
        if self.core.engine.kind_state(kind) != state {
            world.timeline.log_kind_event(kind.index(), format_args!("{state:?}"));
        }
        self.core.set_kind_state(now, kind, state);
        state
    }
}

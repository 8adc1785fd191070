//! The simulation of one seed: the world, the service under test, the wires between them, and the judges.

use std::collections::BTreeMap;

use readiness::saturating_millis;
use rollcall_core::{KindEvent, ParentWrite};

use crate::actors::{HistoryActors, Nights, OtherRelease, inject_fault};
use crate::judges::{JudgedScene, Jury, describe_answers};
use crate::perturbation::{NewProcessView, PointKind};
use crate::scenario::{DiceStream, HistoryKind, Sabotage, SeedStreams};
use crate::service::{AUDIT_PERIOD, ObjectFeed, ServiceUnderTest};
use crate::timeline::{InvariantFailure, PolicyEvent, SimEvent, SimulationCounts};
use crate::wires::{
    BudgetWatch, KindWires, LiveReadWire, PolicyWatch, RuleWire, SimStage, StatusWriteWire, Takeovers,
    WriteInFlight, WriteSender, count_drift, deliver_write, describe_write, disturb_write, send_answer,
};
use crate::world::{FaultConcern, SimWorld};

/// Quiet span after faults have stopped, in milliseconds: longer than any limit, the yielding of a contested condition,
/// and three audits.
const QUIET_SPAN_MS: i64 = 360_000;
/// Time that a restarted process has to prove that it writes nothing, in milliseconds.
const REST_SPAN_MS: i64 = 60_000;
/// Time before the end of the quiet span in which no status of a policy is written any more, in milliseconds.
const POLICIES_REST_MS: i64 = 120_000;
/// Largest number of turns in one instant; a loop that exceeds it does not come to rest.
const MAX_TURNS_PER_INSTANT: u32 = 2_000;

/// Simulation of one seed.
pub(crate) struct Sim {
    actors: HistoryActors,
    /// Another release, in histories in which there are two.
    other_release: Option<OtherRelease>,
    /// The world and the service, which the wires connect.
    stage: SimStage,
    kind_wires: KindWires,
    rules: RuleWire,
    reads: LiveReadWire,
    writes: StatusWriteWire,
    policy_watch: PolicyWatch,
    /// PodDisruptionBudgets, where there are any.
    budgets: Option<BudgetWatch>,
    jury: Jury,
    takeovers: Takeovers,
    /// Hours in which nothing happens, in histories that have some.
    nights: Option<Nights>,
}

impl Sim {
    /// Creates the simulation of a world, which these actors move.
    pub(crate) fn new(
        streams: SeedStreams,
        (sabotage, kind): (Option<Sabotage>, HistoryKind),
        actors: HistoryActors,
        mut world: SimWorld,
    ) -> Sim {
        let (seed, scenario) = (streams.seed, world.scenario.clone());
        let service = ServiceUnderTest::new(streams, sabotage);
        let feed = ObjectFeed::new(service.core.reflector.clone(), scenario.clone(), sabotage);
        let has_budgets = matches!(actors, HistoryActors::Drawn(_));
        let is_shared = kind == HistoryKind::SharedCluster;
        Sim {
            actors,
            other_release: is_shared.then(|| OtherRelease::draw(streams, &mut world)).flatten(),
            budgets: BudgetWatch::draw(streams, sabotage).filter(|_| has_budgets),
            kind_wires: KindWires::new(streams, scenario.kinds.len(), sabotage),
            rules: RuleWire::default(),
            reads: LiveReadWire::new(seed, sabotage),
            writes: StatusWriteWire::new(sabotage),
            policy_watch: PolicyWatch::new(streams, sabotage, kind, &scenario),
            jury: Jury::default(),
            takeovers: Takeovers::new(streams, sabotage),
            nights: streams.widened_by(DiceStream::Nights).and_then(Nights::draw),
            stage: SimStage { world, service, feed },
        }
    }

    /// Records that the run has panicked.
    pub(crate) fn fail_by_panic(&self) {
        self.stage.world.timeline.fail_invariant("nothing panics", "see above");
    }

    /// Returns the number of points that can be disturbed, of each kind, and what is said of each parent.
    pub(crate) fn describe_end(&self) -> (BTreeMap<PointKind, u32>, Vec<String>) {
        let world = &self.stage.world;
        (world.perturber.points().clone(), describe_answers(world))
    }

    /// Ends the run with its log, its counts, and the first violated invariant.
    pub(crate) fn into_report(self) -> (Vec<String>, SimulationCounts, Option<InvariantFailure>) {
        let (log, counts, failure) = self.stage.world.timeline.into_report();
        (log, self.jury.count_judged(counts), failure)
    }

    /// Plays the whole history: faults, a quiet span, the oracle, a restart at rest.
    pub(crate) fn play_history(&mut self) {
        self.stage.world.log_policies();
        self.actors.install_cluster(&mut self.stage.world);
        self.kind_wires.draw_lags(&mut self.stage.world.faults);
        self.start_process();
        let timeline = &mut self.stage.world.timeline;
        timeline.schedule_event(0, SimEvent::ActorStep);
        let is_drawn = matches!(self.actors, HistoryActors::Drawn(_));
        if is_drawn {
            timeline.schedule_event(1_000, SimEvent::Fault);
            self.takeovers.schedule_first(timeline);
            self.nights.iter_mut().for_each(|nights| nights.schedule_next(timeline, 0));
        }
        if let Some(budgets) = &self.budgets {
            budgets.schedule_edits(timeline);
        }
        if is_drawn && self.policy_watch.is_changing {
            timeline.schedule_policy_event(3_000, PolicyEvent::Act);
            self.policy_watch.schedule_edits(timeline);
        }
        while !self.has_failed() && self.actors.have_steps_left() {
            self.run_next_event(i64::MAX);
        }
        self.stage.world.timeline.log_event("faults stop");
        self.stop_faults();
        self.run_for(QUIET_SPAN_MS);
        if !self.has_failed() {
            self.check_end(false);
        }
        if !self.has_failed() {
            self.check_restart_at_rest();
        }
    }

    /// Checks that a restart at rest writes nothing.
    fn check_restart_at_rest(&mut self) {
        let (revision, sent) = (self.stage.world.store.revision(), self.writes.sent);
        let begun = self.stage.world.now();
        self.check_policies_rest(begun - POLICIES_REST_MS);
        self.restart_process();
        self.run_for(REST_SPAN_MS);
        let world = &self.stage.world;
        if self.writes.sent != sent || world.store.revision() != revision {
            let what = format_args!("{} writes", self.writes.sent - sent);
            world.timeline.fail_invariant("a restart at rest writes nothing", what);
        }
        self.check_policies_rest(begun);
        if !self.has_failed() {
            self.check_end(true);
        }
    }

    /// Checks that nobody has written the status of a policy since then.
    fn check_policies_rest(&self, since: i64) {
        let world = &self.stage.world;
        let written = world.policy_server.status_written_at;
        if written > since {
            let what = format_args!("the status of a policy was written at {written}");
            world.timeline.fail_invariant("a restart at rest writes nothing", what);
        }
    }

    fn has_failed(&self) -> bool {
        self.stage.world.timeline.has_failed()
    }

    fn run_for(&mut self, span: i64) {
        let until = self.stage.world.now() + span;
        while !self.has_failed() && self.run_next_event(until) {}
        self.stage.world.timeline.advance_to(until);
    }

    /// Runs the next event, if it is due by `until`.
    fn run_next_event(&mut self, until: i64) -> bool {
        let Some(event) = self.stage.world.timeline.take_next_event(until) else { return false };
        self.dispatch_event(event);
        if let Some(view) = self.stage.world.perturber.take_due_end() {
            self.restart_process();
            if view == NewProcessView::Behind {
                self.kind_wires.lag_behind();
            }
        }
        self.rules.start_evaluations(&mut self.stage);
        self.kind_wires.wake_watches(&mut self.stage);
        self.jury.check_readers((&self.stage, &self.kind_wires, &self.policy_watch));
        true
    }

    fn dispatch_event(&mut self, event: SimEvent) {
        let Sim {
            actors,
            stage,
            kind_wires,
            rules,
            reads,
            policy_watch,
            takeovers,
            budgets,
            other_release,
            nights,
            ..
        } = self;
        match event {
            SimEvent::ActorStep => actors.step_actors(&mut stage.world),
            SimEvent::Churn => actors.step_churn(&mut stage.world),
            SimEvent::ReportFailure => actors.step_failures(&mut stage.world),
            SimEvent::DeleteInForeground => actors.step_deletions(&mut stage.world),
            SimEvent::Drain => actors.step_drains(&mut stage.world),
            SimEvent::Budgets(step) => budgets.iter_mut().for_each(|budgets| budgets.run_step(stage, step)),
            SimEvent::DefinitionGoes => actors.delete_definition(&mut stage.world),
            SimEvent::DefinitionReturns(kind) => actors.put_definition_back(&mut stage.world, kind),
            SimEvent::Night => nights.iter_mut().for_each(|nights| nights.fall(&mut stage.world)),
            SimEvent::Morning => stage.world.faults.are_asleep = false,
            SimEvent::Fault => self.run_fault(),
            SimEvent::Operator(visit) => actors.run_operator(&mut stage.world, &visit),
            SimEvent::Heal(owner) => actors.heal_children(&mut stage.world, &owner),
            SimEvent::Open(kind) => kind_wires.open_kind(stage, kind),
            SimEvent::AnswerList(kind) => kind_wires.answer_list(stage, kind),
            SimEvent::Page(kind) => kind_wires.deliver_page(stage, kind),
            SimEvent::Deliver(kind) => kind_wires.deliver_watch(stage, kind),
            SimEvent::Turn => self.run_turns(),
            SimEvent::Judged(thread) => rules.finish_evaluation(stage, thread),
            SimEvent::Send(flight) => self.deliver_write(*flight),
            SimEvent::Landed(landed) => takeovers.receive_answer(stage, kind_wires, *landed),
            SimEvent::Reread(landed) => takeovers.receive_reread(stage, landed),
            SimEvent::Takeover => self.take_over(),
            SimEvent::OverlapEnds => takeovers.end(&stage.world),
            SimEvent::NextRead => reads.send_next_read(stage, kind_wires),
            SimEvent::Answered(answered) => reads.receive_read(stage, *answered),
            SimEvent::Drift(awaited) => count_drift(stage, &awaited),
            SimEvent::Audit(kind) => reads.audit_kind(stage, kind_wires, kind),
            SimEvent::OtherRelease(step) => {
                if let Some(other) = other_release {
                    other.run_step(&mut stage.world, step);
                }
            }
            SimEvent::Policy(event) => policy_watch.run_event(stage, kind_wires, event),
        }
    }

    /// Starts the process: policies are loaded, kinds are followed.
    fn start_process(&mut self) {
        let SimStage { world, service, feed } = &mut self.stage;
        service.name_kinds(&world.scenario);
        if let Some(budgets) = &mut self.budgets {
            budgets.start_watch(&mut world.timeline);
        }
        let is_changing = self.policy_watch.is_changing;
        if !is_changing {
            service.load_policies(world.timeline.current_time(), &world.scenario);
            feed.set_interests();
        }
        for kind in 0..world.scenario.kinds.len() {
            if !is_changing {
                service.queue_kind_event(kind, KindEvent::Starting);
                let open = world.faults.of(FaultConcern::Turns).between(0, 40);
                world.timeline.schedule_event(open, SimEvent::Open(kind));
            }
            let audit = world.faults.of(FaultConcern::Turns).between(0, saturating_millis(AUDIT_PERIOD));
            world.timeline.schedule_event(audit, SimEvent::Audit(kind));
        }
        if is_changing {
            self.policy_watch.start_watch(&mut self.stage);
        } else {
            service.wake_loop(world);
        }
    }

    /// Ends the process, at an arbitrary moment, and starts another.
    fn restart_process(&mut self) {
        self.takeovers.reset_for_restart();
        let SimStage { world, service, feed } = &mut self.stage;
        self.jury.note_former_policies(&service.policies);
        world.timeline.log_event("restart");
        world.timeline.counts.restarts += 1;
        world.timeline.remove_events(SimEvent::is_of_the_process);
        service.restart();
        feed.reset_for_restart(service.core.reflector.clone());
        self.start_new_process();
    }

    /// Starts a process that knows nothing.
    fn start_new_process(&mut self) {
        self.rules.reset_for_restart();
        self.reads.reset_for_restart();
        self.kind_wires.reset_for_restart(self.stage.world.now());
        self.policy_watch.reset_for_restart();
        self.budgets.iter_mut().for_each(BudgetWatch::reset_for_restart);
        self.jury.reset_for_restart();
        self.start_process();
    }

    /// Starts another process while this one goes on for a while.
    fn take_over(&mut self) {
        self.jury.note_former_policies(&self.stage.service.policies);
        if self.takeovers.begin(&mut self.stage) {
            self.start_new_process();
        }
    }

    fn run_fault(&mut self) {
        if inject_fault(&mut self.stage, &mut self.kind_wires) {
            self.restart_process();
        }
        let world = &mut self.stage.world;
        let after = world.faults.of(FaultConcern::Outages).between(500, 30_000);
        world.timeline.schedule_event(after, SimEvent::Fault);
    }

    fn stop_faults(&mut self) {
        self.stage.world.faults.have_stopped = true;
        self.kind_wires.clear_faults();
        self.stage.world.timeline.remove_events(SimEvent::is_unrest);
    }

    /// Runs turns of the loop until no work is left at this instant.
    fn run_turns(&mut self) {
        self.takeovers.run_turns(&mut self.stage, &mut self.writes);
        let SimStage { world, service, .. } = &mut self.stage;
        if !service.begin_turn(world.now()) {
            return;
        }
        let mut rounds = 0;
        while !self.has_failed() && self.run_turn() {
            rounds += 1;
            if rounds > MAX_TURNS_PER_INSTANT {
                let what = "it goes around and around in one instant";
                return self.stage.world.timeline.fail_invariant("the loop rests", what);
            }
        }
        let counts = self.jury.numbers.begin_turn();
        if counts {
            self.stage.service.refresh_numbers(self.stage.world.timeline.current_time());
        }
        self.jury.check_turns((&self.stage, &self.kind_wires, &self.policy_watch), counts);
        let SimStage { world, service, .. } = &mut self.stage;
        service.schedule_deadline(world);
    }

    /// Runs one turn of the loop, in the order of `controller::event_loop`: deadline, write outcome, news of kinds and
    /// policies, then some changed objects; returns `false` if there was no work.
    fn run_turn(&mut self) -> bool {
        let now = self.stage.world.timeline.current_time();
        // A turn begins with what the watches have brought.
        self.note_observed();
        for write in self.stage.service.core.run_turn(now) {
            self.send_write(write);
        }
        let reads = self.stage.service.take_resync_reads(now);
        self.reads.enqueue_reads(&mut self.stage, reads);
        let SimStage { world, service, .. } = &mut self.stage;
        if service.is_deadline_over(now.0) {
            let unlisted = service.mark_blind_kinds(world);
            for kind in unlisted {
                self.kind_wires.relist(world, kind);
            }
            service.withdraw_unswapped_rules(world);
            return true;
        }
        if service.settle_next_write(now) || self.take_kind_event() || self.take_plan() {
            return true;
        }
        // Changes that the product skipped as irrelevant count as observed too.
        let has_observed = self.stage.service.observe_some_objects(now);
        self.note_observed();
        has_observed
    }

    /// Lets the judges see what the loop has observed.
    fn note_observed(&mut self) {
        self.jury.note_observed(&mut self.stage, &self.kind_wires, &self.policy_watch);
    }

    /// The loop hears of a kind; returns `false` if there is nothing to hear.
    fn take_kind_event(&mut self) -> bool {
        let Some((kind, event)) = self.stage.service.take_kind_event() else { return false };
        self.jury.note_move();
        let now = self.stage.world.timeline.current_time();
        if event == KindEvent::Synced {
            self.stage.service.observe_all_objects(now);
            self.note_observed();
        }
        self.stage.service.observe_swap(now, kind, &event);
        if self.jury.plan_watch.observe_kind_event(now.0, kind.index(), &event) {
            self.note_listed_parents(kind.index());
        }
        let state = self.stage.service.observe_kind_state(&self.stage.world, kind, &event);
        self.jury.plan_watch.record_kind_state(kind, state);
        true
    }

    /// The loop takes over a plan; returns `false` if there is none.
    fn take_plan(&mut self) -> bool {
        let Some(plan) = self.policy_watch.take_plan(&mut self.stage.world) else { return false };
        let SimStage { world, service, .. } = &mut self.stage;
        if !self.policy_watch.note_resolved(&plan) {
            world
                .timeline
                .fail_invariant("no answer rests on half a list", format_args!("{:?}", plan.resolved));
        }
        self.jury.plan_watch.planned_since.get_or_insert(world.now());
        let moved = service.take_over_plan(world.timeline.current_time(), &world.scenario, &plan);
        for (policy, number) in moved.removed {
            self.jury.checked.forget_policy(policy, number);
        }
        self.jury.plan_watch.unseen.extend(moved.added.into_iter().map(|id| (id, plan.decided_at)));
        world.timeline.counts.plans += 1;
        world.timeline.log_event("the loop takes over a plan");
        for kind in 0..self.kind_wires.all().len() {
            if !self.jury.plan_watch.unlisted.contains(&kind) {
                self.note_listed_parents(kind);
            }
        }
        true
    }

    fn note_listed_parents(&mut self, kind: usize) {
        self.jury.note_listed_parents((&self.stage, &self.kind_wires, &self.policy_watch), kind);
    }

    /// Sends a write that the loop decided on.
    fn send_write(&mut self, write: ParentWrite) {
        self.stage.world.timeline.log_event(describe_write(&write));
        let scene: JudgedScene<'_> = (&self.stage, &self.kind_wires, &self.policy_watch);
        let was_shown_handled = self.jury.check_decision(scene, &write);
        self.writes.send_write(&mut self.stage, write, was_shown_handled);
    }

    /// Delivers a write to the server, and sends its answer back.
    fn deliver_write(&mut self, flight: WriteInFlight) {
        let disturbance = self.stage.world.disturb_point(PointKind::Write);
        let Some(flight) = disturb_write(&mut self.stage.world, flight, disturbance) else { return };
        let (answer, committed) = deliver_write(&mut self.stage.world, &flight.write, disturbance);
        let sender = self.takeovers.sender_of(&self.stage, flight.life);
        if let Some(committed) = committed {
            let scene: JudgedScene<'_> = (&self.stage, &self.kind_wires, &self.policy_watch);
            self.jury.check_commit(scene, (&flight, sender), &committed);
        }
        if answer.as_ref().is_none_or(|(status, ..)| *status != 200) {
            self.jury.note_failure(&flight.write.uid, answer.is_some(), self.stage.world.now());
        }
        send_answer(&mut self.stage, flight, answer, sender != WriteSender::Ended);
    }

    /// Checks the quiet end state.
    fn check_end(&mut self, has_restarted: bool) {
        let scene = (&self.stage, &self.kind_wires, &self.policy_watch);
        self.stage.world.timeline.counts.parents = self.jury.check_end(scene, has_restarted);
    }
}

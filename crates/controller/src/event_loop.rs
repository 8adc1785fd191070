//! The event loop: the only reader of the clock and the only owner of the engine.

mod conflict_notices;
mod loop_channels;
mod release_notice;
mod stats_schedule;

use std::collections::BTreeMap;
use std::sync::Arc;

use aggregator::{KindId, KindState, ObjectId};
use readiness::Time;
use timer::Seed;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};
use watcher::ApiFailureCause;
use watcher::reflector::{Reflector, UncountedChild};

use crate::clock::{DeadlineTimer, ServerClock};
use crate::failure_log::{FailureLine, FailureLog};
use crate::kind_tasks::{KindEvent, KindRequest};
use crate::live_reader::{ReadOrder, ResyncOrder};
use crate::metrics::Metrics;
use crate::parent_writer::{MAX_IN_FLIGHT_WRITES, SettledWrite, WriteFailure};
use crate::rollouts::EndedRollout;
use crate::snapshot::{NotReadyDetail, StatsSnapshot};
use policy::WatchPlan;
use rollcall_core::{BlindKind, Core, RecountDrift, RecountSchedule, RuleSwaps, VerdictAges, WatchHealth};

use conflict_notices::{ConflictNotices, NoticeRecorder};
pub(crate) use loop_channels::LoopChannels;
use loop_channels::LoopInput;
pub use loop_channels::TreeSender;
use release_notice::log_release_progress;
use stats_schedule::StatsSchedule;

/// Maximum number of objects taken from the dirty set in one turn, so that no other input of the loop is starved.
const MAX_OBJECTS_PER_TURN: usize = 256;

/// The event loop and the state it owns.
pub(crate) struct EventLoop {
    core: Core,
    clock: ServerClock,
    timer: DeadlineTimer,
    channels: LoopChannels,
    metrics: Arc<Metrics>,
    health: WatchHealth,
    rule_swaps: RuleSwaps,
    recounts: RecountSchedule,
    plan: Option<Arc<WatchPlan>>,
    stats: StatsSchedule,
    ages: VerdictAges,
    /// Time at which each write in flight was requested.
    requested_at: BTreeMap<ObjectId, Time>,
    conflicts: ConflictNotices,
    /// Failed writes, by kind, metric label and HTTP status.
    write_failures: FailureLog<(KindId, &'static str, u16), WriteFailure>,
}

impl EventLoop {
    /// Creates a loop over this core.
    pub(crate) fn new(
        mut core: Core,
        clock: ServerClock,
        wires: LoopChannels,
        metrics: Arc<Metrics>,
        seed: Seed,
    ) -> Self {
        core.set_max_in_flight_writes(MAX_IN_FLIGHT_WRITES);
        EventLoop {
            core,
            timer: clock.new_timer(),
            clock,
            channels: wires,
            metrics,
            health: WatchHealth::default(),
            rule_swaps: RuleSwaps::default(),
            recounts: RecountSchedule::new(seed),
            plan: None,
            stats: StatsSchedule::new(),
            ages: VerdictAges::default(),
            requested_at: BTreeMap::new(),
            conflicts: ConflictNotices::default(),
            write_failures: FailureLog::default(),
        }
    }

    /// Runs until `stop`. Ends early, with an error, only if the other end of a channel is closed.
    pub(crate) async fn run_loop(mut self, stop: CancellationToken) -> anyhow::Result<()> {
        // Before the server's first response its time is unknown, and nothing can be evaluated.
        while !self.clock.is_known() {
            tokio::select! { biased;
                () = stop.cancelled() => return Ok(()),
                () = self.clock.wait_until_known() => {}
                Some(ask) = self.channels.queries.recv() => ask.answer_query(&mut self.core, self.clock.now()),
            }
        }
        self.set_leadership(self.channels.leadership.is_leader());
        loop {
            let now = self.clock.now();
            self.metrics.begin_turn(self.core.reflector.dirty_len());
            for write in self.core.run_turn(now) {
                if let Some(since) = self.core.engine.take_first_touch(write.parent) {
                    self.requested_at.insert(write.parent, since);
                }
                self.channels.writes.send(write)?;
            }
            self.metrics.set_write_queue(self.core.write_queue_len());
            self.channels.transitions.publish_transitions(self.core.take_transitions());
            self.report_flaps();
            self.core.take_release_progress().into_iter().for_each(log_release_progress);
            self.order_resyncs(now)?;
            self.publish_stats(now);
            match self.next_input(&stop).await? {
                LoopInput::Stop => return Ok(()),
                LoopInput::Deadline => self.on_deadline()?,
                LoopInput::Settled(settled) => self.on_settled(&settled)?,
                LoopInput::Leadership(leads) => self.set_leadership(leads),
                LoopInput::Kind(kind, event) => self.on_kind_event(kind, &event),
                LoopInput::Plan(plan) => self.set_plan(plan)?,
                LoopInput::Query(ask) => ask.answer_query(&mut self.core, self.clock.now()),
                LoopInput::Dirty(moved) => {
                    self.stats.mark_changed();
                    self.core.observe_objects(self.clock.now(), &moved);
                }
            }
        }
    }

    /// Returns the next input. The deadline precedes the dirty set: a full set must not delay writes that are due.
    async fn next_input(&mut self, stop: &CancellationToken) -> anyhow::Result<LoopInput> {
        let gather = self.stats.next_deadline();
        let (core, health) = (self.core.next_deadline(), self.health.next_deadline());
        let (swaps, recounts) = (self.rule_swaps.next_deadline(), self.recounts.next_deadline());
        let deadline = [core, health, swaps, recounts, gather].into_iter().flatten().min();
        let wires = &mut self.channels;
        let gone = || anyhow::anyhow!("a supervised task has exited");
        Ok(tokio::select! { biased;
            () = stop.cancelled() => LoopInput::Stop,
            () = self.timer.wait_until(deadline) => LoopInput::Deadline,
            leads = wires.leadership.wait_for_change() => LoopInput::Leadership(leads),
            settled = wires.settled.recv() => LoopInput::Settled(settled.ok_or_else(gone)?),
            event = wires.kind_events.recv() => event.map(|(kind, event)| LoopInput::Kind(kind, event)).ok_or_else(gone)?,
            plan = wires.plans.recv() => LoopInput::Plan(plan.ok_or_else(gone)?),
            // Precedes the dirty set, which may stay full for long; queries are few, since each client waits for its
            // answer.
            Some(ask) = wires.queries.recv() => LoopInput::Query(ask),
            () = wires.dirty.notified() => {
                let moved = self.core.reflector.take_dirty(MAX_OBJECTS_PER_TURN);
                if self.core.reflector.dirty_len() > 0 {
                    wires.dirty.notify_one();
                }
                LoopInput::Dirty(moved)
            }
        })
    }

    fn on_deadline(&mut self) -> anyhow::Result<()> {
        let now = self.clock.now();
        self.stats.mark_changed();
        while let Some(BlindKind { kind, state, needs_list }) = self.health.take_overdue(now) {
            warn!(kind = %self.core.kind_label(kind), ?state, "watch is stale: kind could be neither watched nor listed for too long");
            self.set_kind_state(kind, state);
            if needs_list {
                self.channels.kind_requests.send(KindRequest::Relist(kind))?;
            }
        }
        self.withdraw_unswapped_rules(now);
        self.run_recounts(now);
        Ok(())
    }

    /// Withdraws answers that rest on an old rule because the new one could not judge its kind in time.
    fn withdraw_unswapped_rules(&mut self, now: Time) {
        while let Some((kind, policy)) = self.rule_swaps.take_overdue(now) {
            let planned = self.plan.iter().flat_map(|plan| &plan.policies);
            let ids: Vec<_> =
                planned.filter(|(_, (_, words))| words.name == policy).map(|(id, _)| *id).collect();
            warn!(
                kind = %self.core.kind_label(kind), policy,
                "withdrawing answers of a changed rule: its kind could not be listed in time"
            );
            for id in ids {
                self.core.engine.withdraw_changed_rule(now, id, kind);
            }
        }
    }

    /// Runs the self-checks that are due: one line for each kind in which something had to be put right.
    fn run_recounts(&mut self, now: Time) {
        let kinds: Vec<KindId> = self.plan.iter().flat_map(|plan| plan.kinds.keys().copied()).collect();
        for drift in self.recounts.run_due(&mut self.core, &kinds, now) {
            let kind = self.core.kind_label(drift.kind);
            let differences = u64::try_from(drift.total()).unwrap_or(u64::MAX);
            if self.is_followed(drift.kind) {
                self.metrics.count_drift(&kind, "recount", differences);
            }
            let RecountDrift { objects, edges, counts, numbers, example, .. } = drift;
            warn!(
                kind,
                objects,
                edges,
                counts,
                numbers,
                example,
                "drift: a recount found differences and mended them"
            );
        }
    }

    /// Switches leadership. Everything but writing continues on a standby; the leader exports the numbers.
    fn set_leadership(&mut self, leads: bool) {
        let now = self.clock.now();
        self.metrics.set_leader(leads);
        self.core.engine.set_standby(now, !leads);
        self.stats.publish_now(now);
    }

    fn on_settled(&mut self, settled: &SettledWrite) -> anyhow::Result<()> {
        let now = self.clock.now();
        if let Some(failure) = &settled.failure {
            let cause = (settled.kind, settled.label, failure.status);
            if let Some(line) = self.write_failures.record_failure(now, cause, failure.clone()) {
                log_write_failure(&line);
            }
        }
        let called = self.requested_at.remove(&settled.parent).map(|since| now - since);
        if let Some(plan) = &self.plan {
            self.metrics.record_write(settled, called, plan);
        }
        self.core.settle_write(now, settled.parent, settled.ticket, settled.outcome);
        self.stats.mark_changed();
        for policy in settled.policies.iter().filter(|_| settled.outcome.is_accepted()) {
            let since = self.core.engine.take_first_ready(settled.parent, *policy);
            let plan = self.plan.as_ref().and_then(|plan| plan.policies.get(policy));
            if let Some((since, (_, words))) = since.zip(plan) {
                self.metrics.observe_first_ready(&words.name, now - since);
                self.name_ended_rollout(settled.parent, &words.name);
            }
        }
        if self.core.take_outage_end() {
            // Their tasks wait longer and longer between attempts, as the server failed.
            for kind in self.health.stale_kinds() {
                self.channels.kind_requests.send(KindRequest::Relist(kind))?;
            }
        }
        Ok(())
    }

    /// Names a rollout that has ended to those who read what it waited for.
    fn name_ended_rollout(&self, parent: ObjectId, policy: &str) {
        let Some(rollouts) = &self.channels.rollouts else { return };
        let uid = self.core.reflector.read_row(parent, |row| Some(row.parent.as_ref()?.uid.to_string()));
        if let Some(uid) = uid.flatten() {
            rollouts.send(EndedRollout { uid: uid.into(), policy: policy.to_owned() });
        }
    }

    fn on_kind_event(&mut self, kind: KindId, event: &KindEvent) {
        if *event == KindEvent::Synced {
            // All objects of the list have to be observed before the list counts as synced.
            let moved = self.core.reflector.take_dirty(usize::MAX);
            self.core.observe_objects(self.clock.now(), &moved);
            report_uncounted_children(&self.core.reflector);
        }
        let now = self.clock.now();
        self.rule_swaps.observe_event(kind, event, now);
        if self.is_followed(kind) {
            self.metrics.record_kind_event(&self.core.kind_label(kind), event, now);
        }
        if let KindEvent::Failure(ApiFailureCause::Forbidden, _) = event {
            debug!(kind = %self.core.kind_label(kind), "not permitted to list or watch kind");
        }
        if *event == KindEvent::Synced {
            self.recounts.on_listed(kind, now);
        }
        let state = self.health.observe_event(kind, event, now);
        self.set_kind_state(kind, state);
    }

    /// Not exported: events of a kind that is not planned yet, or not planned any more.
    fn is_followed(&self, kind: KindId) -> bool {
        self.plan.as_ref().is_some_and(|plan| plan.kinds.contains_key(&kind))
    }

    fn set_kind_state(&mut self, kind: KindId, state: KindState) {
        if self.is_followed(kind) {
            self.metrics.set_kind_state(&self.core.kind_label(kind), state);
        }
        let now = self.clock.now();
        self.core.set_kind_state(now, kind, state);
        self.stats.mark_changed();
    }

    fn set_plan(&mut self, plan: Arc<WatchPlan>) -> anyhow::Result<()> {
        let now = self.clock.now();
        for (id, kind) in &plan.kinds {
            self.core.set_kind_name(*id, &kind.key.1, &kind.key.0);
        }
        self.register_series(&plan, now);
        let before = self.plan.take().unwrap_or_default();
        // What a replaced policy said stands on the parents until its successor speaks.
        for id in before.policies.keys().filter(|id| !plan.policies.contains_key(id)) {
            self.core.set_policy(now, *id, None);
        }
        for (id, policy) in
            plan.policies.iter().filter(|(id, policy)| before.policies.get(id) != Some(policy))
        {
            self.core.set_policy(now, *id, Some(policy.clone()));
        }
        info!(policies = plan.policies.len(), kinds = plan.kinds.len(), "plan updated");
        self.channels.kind_requests.send(KindRequest::ForgetUnplanned(Arc::clone(&plan)))?;
        for (_, (_, words)) in plan.policies.iter().filter(|(id, _)| !before.policies.contains_key(id)) {
            self.rule_swaps.on_policy_replaced(&words.name, now);
        }
        self.plan = Some(plan);
        self.stats.mark_changed();
        Ok(())
    }

    /// Registers the metric series of a plan.
    fn register_series(&self, plan: &WatchPlan, now: Time) {
        let label = |id: &KindId| self.core.kind_label(*id);
        let policies = plan.policies.values().map(|(policy, words)| {
            (words.name.clone(), policy.groups.iter().map(|group| label(&group.kind)).collect())
        });
        self.metrics.planned.set_planned(policies.collect(), plan.kinds.keys().map(label).collect());
        let names = plan.policies.iter().map(|(id, (_, words))| (*id, words.name.clone()));
        self.metrics.planned.set_policy_names(names.collect());
        // A kind's task may have reported before its plan arrived.
        for id in plan.kinds.keys().filter(|id| !self.is_followed(**id)) {
            let (state, _) = self.health.kind_status(*id);
            self.metrics.set_kind_state(&self.core.kind_label(*id), state);
            if state == KindState::Synced {
                self.metrics.record_kind_event(&self.core.kind_label(*id), &KindEvent::Alive, now);
            }
        }
    }

    /// Orders live reads for the parents whose resync is due, and of objects whose rule reads the clock.
    fn order_resyncs(&mut self, now: Time) -> anyhow::Result<()> {
        let reads = self.core.take_reevaluation_reads();
        if !reads.is_empty() {
            self.channels.live_reads.send(ReadOrder::Reevaluation(reads))?;
        }
        while let Some(parent) = self.core.engine.take_due_resync(now) {
            let (reads, pace) = (self.core.resync_reads(parent), self.core.engine.resync_pace(parent));
            self.channels.live_reads.send(ReadOrder::Resync(ResyncOrder { reads, pace }))?;
        }
        Ok(())
    }

    /// Counts finalizers that are repeatedly added and removed, and creates one Event per object.
    fn report_flaps(&mut self) {
        let counts = self.core.take_flap_counts();
        if let Some(plan) = self.plan.as_ref().filter(|_| !counts.is_empty()) {
            for (policy, count) in counts {
                if let Some((_, words)) = plan.policies.get(&policy) {
                    self.metrics.count_flaps(&words.name, count);
                }
            }
        }
        for (parent, note) in self.core.take_new_flaps() {
            let recorder = NoticeRecorder { core: &self.core, channels: &self.channels };
            recorder.send_notice(parent, "FinalizerFlapping", note);
        }
    }

    fn publish_stats(&mut self, now: Time) {
        if !self.stats.is_due(now) {
            return;
        }
        self.write_failures.take_due_lines(now).iter().for_each(log_write_failure);
        if let Some(trees) = &self.channels.trees {
            trees.send_replace(Arc::new(self.core.parent_trees(now, &mut self.ages)));
        }
        let snapshot = StatsSnapshot::take_snapshot(
            &mut self.core,
            self.plan.as_deref(),
            &self.health,
            self.metrics.named_parents(),
            now,
        );
        let recorder = NoticeRecorder { core: &self.core, channels: &self.channels };
        self.conflicts.report_overwrites(&recorder, &snapshot.overwritten);
        self.conflicts.report_owners(&recorder, self.plan.as_deref(), &snapshot.owned);
        self.stats.end_publish(now, self.channels.trees.is_some());
        self.metrics.set_clock_offset(self.clock.offset_seconds());
        let counts = self.core.engine.take_counts();
        self.metrics
            .record_snapshot(&snapshot, counts, |parent| NotReadyDetail::of_parent(&self.core, parent, now));
        self.channels.snapshot.send_replace(Arc::new(snapshot));
    }
}

fn log_write_failure(line: &FailureLine<WriteFailure>) {
    let FailureLine { sample: WriteFailure { object, cause, status, detail, reread }, failures } = line;
    warn!(object, status, cause, detail, reread, failures, "failed to patch status");
}

fn report_uncounted_children(reflector: &Reflector) {
    for UncountedChild { child, owner, is_owner_cluster_scoped } in reflector.uncounted_children(20) {
        if is_owner_cluster_scoped {
            warn!(
                child,
                owner,
                "not counting child of a cluster-scoped parent: name its namespace in find.allowedNamespaces of the policy"
            );
        } else {
            warn!(
                child,
                owner,
                "ignoring ownerReference to another namespace: the API server treats such an owner as absent"
            );
        }
    }
}

#[cfg(test)]
mod tests;

//! The engine: observations go in; drafts of conditions and the time of the next poll come out.

mod child_linker;
mod evaluation_run;
mod observer;
mod pending_proofs;
mod policy_update;
mod reader;
mod recount;
mod scheduler;

use std::collections::BTreeSet;
use std::time::Duration;

use readiness::Time;
use readiness::rollup::{LevelTally, ParentReason};
use timer::{ResyncPace, Seed};

pub use evaluation_run::{EvaluationCounts, ParentDraft};
pub use pending_proofs::{PendingProofs, ProofRequest};
pub use reader::{ChildOf, EngineReader, EvaluationState, UnreadyChild};
pub use recount::RecountResult;

use crate::delivery::{Brevity, DeliveryDecision, DeliveryOutcome, WriteTicket};
use crate::delivery_schedule::DeliverySchedule;
use crate::ids::{KindId, ObjectId, PolicyId};
use crate::observation_schedule::ObservationSchedule;
use crate::types::{EnginePolicy, EntriesDigest, GroupRole, KindState, ObjectView, PolicyAnswer};
use child_linker::ChildLinker;
use evaluation_run::EvaluationRun;
use observer::ObjectObserver;
use policy_update::PolicyUpdate;
use scheduler::EvaluationScheduler;

/// The engine; the crate documentation describes its use.
#[derive(Debug)]
pub struct Engine {
    /// What is known, and when it is evaluated.
    scheduler: EvaluationScheduler,
    deliveries: DeliverySchedule,
    observations: ObservationSchedule,
    /// Changes are known that were not observed yet.
    is_behind: bool,
    counts: EvaluationCounts,
    /// Number of polls.
    polls: u32,
    /// A buffer that every poll reuses: parents to draft.
    drafted: Vec<ObjectId>,
}

impl Engine {
    /// Creates an engine that resyncs unready parents every `resync`, and every `audit` once resyncs have stopped
    /// finding changes.
    pub fn new(resync: Duration, audit: Duration, seed: Seed) -> Self {
        Engine {
            scheduler: EvaluationScheduler::default(),
            deliveries: DeliverySchedule::new(seed.derive(0x1a15)),
            observations: ObservationSchedule::new(resync, audit, seed),
            is_behind: false,
            counts: EvaluationCounts::default(),
            polls: 0,
            drafted: Vec::new(),
        }
    }

    /// Returns what further queries are asked of.
    pub fn reader(&self) -> EngineReader<'_> {
        EngineReader { graph: &self.scheduler.graph, policies: &self.scheduler.policies }
    }

    fn policy_update(&mut self, now: Time) -> PolicyUpdate<'_> {
        PolicyUpdate { scheduler: &mut self.scheduler, now }
    }

    /// Sets a policy that is new or changed, or removes it (`None`).
    pub fn set_policy(&mut self, now: Time, id: PolicyId, policy: Option<EnginePolicy>) {
        self.policy_update(now).set_policy(id, policy);
    }

    /// Sets the list and watch state of a kind.
    pub fn set_kind_state(&mut self, now: Time, kind: KindId, state: KindState) {
        self.policy_update(now).set_kind_state(kind, state);
    }

    /// Withdraws the answers of this policy that rest on its rule for this kind, until the kind is listed: the rule has
    /// changed, and the new one cannot judge the kind.
    pub fn withdraw_changed_rule(&mut self, now: Time, policy: PolicyId, kind: KindId) {
        self.policy_update(now).withdraw_changed_rule(policy, kind);
    }

    /// Returns the list and watch state of a kind.
    pub fn kind_state(&self, kind: KindId) -> KindState {
        self.scheduler.policies.kind_state(kind)
    }

    /// Returns `true` if all kinds that the policy rests on have been listed.
    pub fn is_open(&self, policy: PolicyId) -> bool {
        self.scheduler.policies.is_open(policy)
    }

    /// Returns `true` if the policy is in shadow mode: nothing is written for it.
    pub fn is_shadow(&self, policy: PolicyId) -> bool {
        self.scheduler.policies.is_shadow(policy)
    }

    /// Returns `true` if the policy is in force. What one that is refused has on its parents was said by a predecessor.
    pub fn is_accepted(&self, policy: PolicyId) -> bool {
        self.scheduler.policies.is_accepted(policy)
    }

    /// Returns `true` if the children of a group are awaited and belong to others.
    pub fn is_prerequisite(&self, policy: PolicyId, group: u8) -> bool {
        self.scheduler.policies.find_group(policy, group).is_some_and(|group| group.is_prerequisite)
    }

    /// Returns the role of a group: may its children change the parent's condition?
    pub fn group_role(&self, policy: PolicyId, group: u8) -> Option<GroupRole> {
        self.scheduler.policies.find_group(policy, group).map(|group| group.role)
    }

    /// Observes an object in its current state, or (`None`) its deletion.
    pub fn observe_object(&mut self, now: Time, id: ObjectId, view: Option<&ObjectView<'_>>) {
        self.observe_one_of_many(now, id, view);
        self.end_observation(now);
    }

    /// Ends the observation of many objects: what lies on a cycle by now counts no more, and what is left of one counts again.
    #[inline]
    pub fn end_observation(&mut self, now: Time) {
        if self.scheduler.graph.has_cycle_doubts() {
            self.scheduler.settle_cycles(now);
        }
    }

    /// Observes one of many objects; [`Engine::end_observation`] has to follow the last of them.
    pub fn observe_one_of_many(&mut self, now: Time, id: ObjectId, view: Option<&ObjectView<'_>>) {
        let Engine { scheduler, deliveries, observations, .. } = self;
        let mut observer = ObjectObserver { scheduler, deliveries, observations, now };
        match view {
            Some(view) => observer.observe_present(id, view),
            None => observer.observe_deleted(id),
        }
    }

    /// Records that other components changed the text about this object without changing its verdict.
    pub fn mark_text_changed(&mut self, id: ObjectId, now: Time) {
        self.scheduler.touch_text(id, now);
    }

    /// Records the digest of the words in which those above quote `parent`. Where it is another one, they are scheduled.
    pub fn requote(&mut self, parent: ObjectId, quote: u64, now: Time) {
        self.scheduler.requote(parent, quote, now);
    }

    /// Says whether changes are known that were not observed yet. While there are, nothing turns True: what time alone seems to
    /// prove they may contradict.
    pub fn set_behind(&mut self, is_behind: bool) {
        self.is_behind = is_behind;
    }

    /// Evaluates everything that is due and adds each parent whose conditions may have changed to `drafts` once.
    pub fn poll(&mut self, now: Time, drafts: &mut Vec<ParentDraft>) {
        self.polls = self.polls.wrapping_add(1);
        self.end_observation(now);
        self.deliveries.end_due_conflicts(now, &mut self.scheduler.graph);
        let mut parents = std::mem::take(&mut self.drafted);
        while let Some(parent) = self.deliveries.take_due_draft(now) {
            self.scheduler.enqueue_doubted(parent, now);
            parents.push(parent);
        }
        let Engine { scheduler, observations, counts, polls: poll, is_behind, .. } = self;
        let (poll, is_behind) = (*poll, *is_behind);
        EvaluationRun { scheduler, observations, counts, poll, is_behind, now }.evaluate_due(&mut parents);
        self.scheduler.queue.end_poll(now);
        self.scheduler.policies.end_poll();
        parents.sort_unstable();
        parents.dedup();
        let reader = self.reader();
        parents.retain(|parent| reader.is_draftable(*parent));
        drafts.extend(parents.drain(..).map(|parent| ParentDraft { parent }));
        self.drafted = parents;
    }

    /// Is the draft that an earlier poll made of `parent` still one, now that its turn to be written has come? One that is
    /// not, because an answer is in doubt, is made again by the next poll once it is evaluated.
    pub fn confirm_draft(&mut self, parent: ObjectId, now: Time) -> bool {
        let draftable = self.reader().is_draftable(parent);
        if !draftable && self.reader().is_in_doubt(parent) {
            self.deliveries.schedule_draft(parent, now);
        }
        draftable
    }

    /// Puts off the draft of `parent`: it is made again at `until`, if there still is one.
    pub fn defer_draft(&mut self, parent: ObjectId, until: Time) {
        self.deliveries.schedule_draft(parent, until);
    }

    /// Offers a draft whose conditions were rendered to this digest.
    pub fn offer_digest(&mut self, parent: ObjectId, digest: EntriesDigest, now: Time) -> DeliveryDecision {
        let window = self.reader().write_window(parent);
        let Some(held) = self.scheduler.graph.parent_mut(parent) else { return DeliveryDecision::Same };
        let (decision, again) = self.deliveries.offer_digest(parent, held, digest, window, now);
        if let DeliveryDecision::Send(_) = decision {
            self.scheduler.record_sent(parent);
        }
        // A draft that needs no write, or whose write is delayed on purpose, measures no latency.
        if decision == DeliveryDecision::Same || again.is_some_and(|at| at > now + window) {
            self.take_first_touch(parent);
        }
        decision
    }

    /// Returns what awaits the proof of a policy.
    pub fn pending_proofs(&mut self) -> PendingProofs<'_> {
        PendingProofs { scheduler: &mut self.scheduler }
    }

    /// Records the outcome of a write that [`DeliveryDecision::Send`] requested. What was sent to whoever had the place of
    /// `parent` before means nothing to it.
    pub fn settle_write(
        &mut self,
        parent: ObjectId,
        ticket: WriteTicket,
        outcome: DeliveryOutcome,
        now: Time,
    ) {
        let Some(held) = self.scheduler.graph.parent_mut(parent) else { return };
        let is_settled = self.deliveries.settle_write(parent, held, ticket, outcome, now);
        if is_settled && held.delivery.is_pruned() {
            self.scheduler.announce_unwritable(parent, now);
        }
    }

    /// Enters or leaves standby. In standby, [`crate::DeliveryDecision::Later`] is the answer to every draft that differs from
    /// its parent; after standby exactly those drafts are offered again.
    ///
    /// What was found of these meanwhile is a change again: who led before may have ended without telling of it.
    pub fn set_standby(&mut self, now: Time, standby: bool) {
        if !standby {
            self.deliveries.withheld().for_each(|parent| self.scheduler.publish_anew(parent));
        }
        self.deliveries.set_standby(now, standby, &mut self.scheduler.graph);
    }

    /// Number of parents whose conditions differ from what this replica would write as the leader.
    pub fn withheld_count(&self) -> usize {
        self.deliveries.withheld_count()
    }

    /// Returns `true` if the condition on the parent is overwritten repeatedly, so that a fallback type should be used.
    pub fn is_repeatedly_overwritten(&self, parent: ObjectId) -> bool {
        self.scheduler.graph.find_parent(parent).is_some_and(|held| held.delivery.is_repeatedly_overwritten())
    }

    /// How briefly the parent is told what there is to say, because the server refuses more.
    pub fn brevity(&self, parent: ObjectId, now: Time) -> Brevity {
        self.scheduler
            .graph
            .find_parent(parent)
            .map_or_else(Brevity::default, |held| held.delivery.brevity(now))
    }

    /// Returns `false` while others keep writing the parent: a write that is bound to its version, because it adds a condition of
    /// a type to a list that may hold the type twice, would be forestalled once more.
    pub fn may_add_types(&self, parent: ObjectId, now: Time) -> bool {
        self.scheduler.graph.find_parent(parent).is_none_or(|held| held.delivery.may_add_types(now))
    }

    /// Number of writes to the parent that failed in a row: where there are some, others are written first.
    pub fn write_failures(&self, parent: ObjectId) -> u32 {
        self.scheduler.graph.find_parent(parent).map_or(0, |held| held.delivery.failures())
    }

    /// Takes an object whose verdict changes with time and is due: it has to be observed again.
    pub fn take_due_recheck(&mut self, now: Time) -> Option<ObjectId> {
        self.observations.take_due_recheck(now)
    }

    /// Takes an unready parent whose resync is due.
    pub fn take_due_resync(&mut self, now: Time) -> Option<ObjectId> {
        self.observations.take_due_resync(now, &mut self.scheduler.graph)
    }

    /// How often an unready parent is resynced, and how many others are as often.
    pub fn resync_pace(&self, parent: ObjectId) -> ResyncPace {
        self.observations.resync_pace(parent)
    }

    /// Number of parents enrolled in the resync. A parent that has become ready leaves when its next resync is due.
    pub fn unready_parent_count(&self) -> usize {
        self.observations.enrolled_count()
    }

    /// Returns the time of the next poll if nothing is observed before.
    pub fn next_deadline(&self) -> Option<Time> {
        let (evaluation, delivery) = (self.scheduler.queue.next_deadline(), self.deliveries.next_deadline());
        timer::earliest([evaluation, delivery, self.observations.next_deadline()])
    }

    /// Takes the counters since the last call.
    pub fn take_counts(&mut self) -> EvaluationCounts {
        std::mem::take(&mut self.counts)
    }

    /// Number of evaluations that are being debounced.
    pub fn debounced_count(&self) -> usize {
        self.scheduler.queue.debounced_count()
    }

    /// Objects of a kind that the engine holds to be there.
    pub fn present_objects(&self, kinds: &BTreeSet<KindId>) -> Vec<(KindId, ObjectId)> {
        self.scheduler.graph.present_objects(kinds)
    }

    /// Whether an object was observed as the reflector shows it now. One that changed since, or that changes with time,
    /// may not have been yet.
    pub fn is_observed_as(&self, id: ObjectId, view: Option<&ObjectView<'_>>) -> bool {
        self.reader().is_observed_as(id, view)
    }

    /// Compares the edges of these kinds' objects with their links, and all counts with their edges. What is wrong is put
    /// right, and the parents concerned are evaluated again. Iterates over all objects once, however many kinds there are.
    pub fn recount_kinds(&mut self, now: Time, kinds: &BTreeSet<KindId>) -> RecountResult {
        ChildLinker { scheduler: &mut self.scheduler, now }.recount_kinds(kinds)
    }

    /// Sums the evaluations of all policies anew, puts right what differs, and returns the policies of which something did.
    /// Iterates over all evaluations once.
    pub fn correct_sums(&mut self) -> Vec<PolicyId> {
        self.scheduler.graph.correct_sums()
    }

    /// Takes the first touch, of the parent or of its children, that led to the write now sent to `parent`. `None` if
    /// time alone or something below its children led to it. Queried once per write.
    pub fn take_first_touch(&mut self, parent: ObjectId) -> Option<Time> {
        self.scheduler.take_first_touch(parent)
    }

    /// Takes the time at which the generation of `parent` was first observed, if the parent now reports it ready for the first
    /// time, and had no conditions when it was first observed. Queried once per generation.
    pub fn take_first_ready(&mut self, parent: ObjectId, policy: PolicyId) -> Option<Time> {
        let id = self.scheduler.graph.find_evaluation_for(parent, policy)?;
        self.scheduler.graph.evaluation_mut(id)?.observed.as_mut()?.take_first_ready()
    }

    /// Takes the answers about `parent` whose reason changed since the last call, those of shadow policies included:
    /// policy, previous reason (the one on the parent, if this process has not evaluated it before) and current answer.
    pub fn take_changed_answers(
        &mut self,
        parent: ObjectId,
    ) -> Vec<(PolicyId, Option<ParentReason>, PolicyAnswer)> {
        self.scheduler.take_changed_answers(parent)
    }

    /// Returns the generation of `parent` that its answers are about; `None` if no policy applies to it.
    pub fn parent_generation(&self, parent: ObjectId) -> Option<u64> {
        self.reader().parent_generation(parent)
    }

    /// Returns every counted edge. Iterates over all objects: for pages and tools, not for the loop.
    pub fn counted_children(&self) -> impl Iterator<Item = ChildOf> + '_ {
        self.reader().counted_children()
    }

    /// Returns the last answer of `policy` about `parent`.
    pub fn answer_of(&self, parent: ObjectId, policy: PolicyId) -> Option<PolicyAnswer> {
        self.reader().answer_of(parent, policy)
    }

    /// Returns the answers to write to `parent`, by policy; without shadow policies and without types that another
    /// client owns.
    pub fn answers_to_write(&self, parent: ObjectId) -> Vec<(PolicyId, PolicyAnswer)> {
        self.reader().answers_to_write(parent)
    }

    /// Returns `true` if `policy` has evaluated `parent` itself. It has not before all lists are complete, nor during a
    /// relist; the existing conditions then stay.
    pub fn has_evaluated(&self, parent: ObjectId, policy: PolicyId) -> bool {
        self.reader().has_evaluated(parent, policy)
    }

    /// Returns `true` if the operator of `parent` has handled the current generation, as far as this is judged under
    /// `policy`.
    pub fn is_handled(&self, parent: ObjectId, policy: PolicyId) -> bool {
        self.reader().is_handled(parent, policy)
    }

    /// Returns `true` if the answer says True although children that count are not ready.
    pub fn is_tolerating(&self, parent: ObjectId, policy: PolicyId) -> bool {
        self.reader().is_tolerating(parent, policy)
    }

    /// Returns the unready children of `parent` under `policy`, worst first; those of critical or of optional groups.
    pub fn unready_children(
        &self,
        parent: ObjectId,
        policy: PolicyId,
        role: GroupRole,
    ) -> impl Iterator<Item = UnreadyChild> + '_ {
        self.reader().unready_children(parent, policy, role)
    }

    /// Returns the tally of one group.
    pub fn group_tally(&self, parent: ObjectId, policy: PolicyId, group: u8) -> LevelTally {
        self.reader().group_tally(parent, policy, group)
    }

    /// How many children `policy` expects of one group of `parent` at least: by its minimum, or by what it computes from this
    /// parent, and by its quorum.
    pub fn expected(&self, parent: ObjectId, policy: PolicyId, group: u8) -> u32 {
        self.reader().expected(parent, policy, group)
    }

    /// Does any policy apply to `id`, as a parent, or does a child name it as one?
    pub fn is_parent(&self, id: ObjectId) -> bool {
        !self.scheduler.graph.evaluations_of(id).is_empty()
    }

    /// Returns the policies that apply to `id` if it is a parent, in an order that does not depend on the order of
    /// observation.
    pub fn policies_of(&self, id: ObjectId) -> impl Iterator<Item = PolicyId> + '_ {
        self.reader().policies_of(id)
    }

    /// Settles the sums of all policies, and takes the parents that may have changed since the last call: each once.
    pub fn take_changed_parents(&mut self) -> Vec<ObjectId> {
        self.scheduler.graph.take_changed_parents()
    }

    /// Returns every evaluation that has an answer.
    pub fn evaluation_states(&self) -> impl Iterator<Item = EvaluationState<'_>> {
        self.reader().evaluation_states()
    }

    /// Returns the targets of a resync of `parent`: the unready children under any policy, and the groups in which an
    /// expected child is missing.
    pub fn resync_targets(&self, parent: ObjectId) -> (Vec<ObjectId>, Vec<KindId>) {
        self.reader().resync_targets(parent)
    }
}

//! Propagation of a change: debounce, evaluation, and evaluation of the owners in the same poll.

use std::collections::BTreeSet;

use readiness::Time;
use readiness::rollup::ParentReason;

use super::{Engine, ParentDraft};
use crate::evaluation::{ObservedParent, ParentEvaluation, QueuePosition, StageEvent};
use crate::graph::ResyncStage;
use crate::types::{Acceptance, ChangeOrigin, EvaluationId, ObjectId};

/// Largest number of evaluations of one parent in one poll. More means a loop that the cycle check missed; it continues
/// in a later poll.
const MAX_EVALUATIONS_PER_POLL: u8 = 64;
/// Delay until that later evaluation.
const EVALUATION_LOOP_DELAY: std::time::Duration = std::time::Duration::from_secs(1);

impl Engine {
    /// Schedules an evaluation after a change: debounced, or at once after a long quiet span or if the parent has
    /// failed or is stuck. The delivery limits how often the result is written.
    pub(super) fn touch_evaluation(&mut self, id: EvaluationId, now: Time, cause: ChangeOrigin) {
        let Some(roll) = self.graph.evaluation_mut(id) else { return };
        let Some((policy, gate)) = self.policies.find_gated(roll.policy) else { return };
        if gate.awaits_list() {
            return self.touch_unlisted(id, now, gate);
        }
        roll.restart_hold(policy);
        let at = roll.debounce.record_touch(now, policy.debounce);
        if at <= now || roll.queue.is_due() || roll.is_urgent(policy) {
            let before = roll.queue.become_due(cause);
            return self.push_due(id, before, now);
        }
        self.debounce_evaluation(id, at, cause);
        self.propagate_doubt(id);
    }

    fn debounce_evaluation(&mut self, id: EvaluationId, at: Time, cause: ChangeOrigin) {
        let Some(roll) = self.graph.evaluation_mut(id) else { return };
        let origin = roll.queue.origin_with(cause);
        if std::mem::replace(&mut roll.queue, QueuePosition::Debounced(origin)).is_deferred() {
            self.deferred.remove(&id);
        }
        self.quiet.set_deadline(id, at);
    }

    /// Schedules an evaluation in the next poll.
    pub(super) fn enqueue_evaluation(&mut self, id: EvaluationId, now: Time, cause: ChangeOrigin) {
        let Some(roll) = self.graph.evaluation_mut(id) else { return };
        if let Some(policy) = self.policies.find_policy(roll.policy) {
            roll.restart_hold(policy);
        }
        let before = roll.queue.become_due(cause);
        self.push_due(id, before, now);
    }

    /// Adds an evaluation that became due to the next poll, and removes it from where it waited before.
    fn push_due(&mut self, id: EvaluationId, before: QueuePosition, now: Time) {
        match before {
            QueuePosition::Due(_) => return,
            QueuePosition::Debounced(_) => _ = self.quiet.clear_deadline(id),
            QueuePosition::Deferred(_) => _ = self.deferred.remove(&id),
            QueuePosition::Idle => {}
        }
        self.immediate.push_back(id);
        self.immediate_since.get_or_insert(now);
    }

    /// Schedules the evaluations whose messages quote `id`, because its text changed.
    pub(super) fn touch_owners(&mut self, id: ObjectId, now: Time, cause: ChangeOrigin) {
        let edges = self.graph.edges_of(id);
        edges
            .iter()
            .filter(|e| !e.cyclic)
            .for_each(|edge| self.touch_evaluation(edge.evaluation, now, cause));
    }

    /// Records that other components changed the text about this object without changing its verdict.
    pub fn mark_text_changed(&mut self, id: ObjectId, now: Time) {
        for at in 0..self.graph.evaluations_of(id).len() {
            let roll = self.graph.evaluations_of(id)[at];
            self.touch_evaluation(roll, now, ChangeOrigin::External);
        }
        self.touch_owners(id, now, ChangeOrigin::External);
    }

    /// Marks a ready answer as in doubt while its evaluation is pending, so that no ancestor counts it as ready. One that
    /// was restored from the parent is in doubt until everything was listed: what is not listed yet may contradict it. What
    /// a refused policy said stands.
    pub(super) fn propagate_doubt(&mut self, id: EvaluationId) {
        let mut work = vec![id];
        while let Some(id) = work.pop() {
            let Some(roll) = self.graph.evaluation_mut(id) else { continue };
            let Some((policy, gate)) = self.policies.find_gated(roll.policy) else { continue };
            roll.restart_hold(policy);
            let Some(stage) = roll.observed.as_ref().map(|observed| observed.stage) else { continue };
            if !stage.says_true() {
                continue;
            }
            let unproven = !stage.is_own() && policy.acceptance == Acceptance::Accepted && gate.awaits_list();
            let doubted = unproven || !roll.may_be_ready(policy);
            let event = if doubted { StageEvent::Doubted } else { StageEvent::Confirmed };
            let Some(observed) = &mut roll.observed else { continue };
            if observed.advance_stage(event) != observed.stage {
                let parent = roll.parent;
                self.reweigh_child(parent);
                work.append(&mut self.moved);
            }
        }
    }

    /// Updates the weight of `child` at its owners; the affected evaluations are collected in `self.moved`.
    pub(super) fn reweigh_child(&mut self, child: ObjectId) {
        self.moved.clear();
        self.graph.reweigh_edges(child, self.policies.changed_rules(), &mut self.moved);
    }

    /// Evaluates everything that is due and adds each parent whose conditions may have changed to `drafts` once.
    pub fn poll(&mut self, now: Time, drafts: &mut Vec<ParentDraft>) {
        self.polls = self.polls.wrapping_add(1);
        self.end_due_conflicts(now);
        let mut parents = std::mem::take(&mut self.drafted);
        while let Some(parent) = self.redeliver.take_due(now) {
            self.enqueue_doubted(parent, now);
            parents.push(parent);
        }
        while let Some(id) = self.next_due_evaluation(now) {
            if self.is_looping(id) {
                self.debounce_evaluation(id, now + EVALUATION_LOOP_DELAY, ChangeOrigin::PossiblyOwn);
            } else if let Some(parent) = self.evaluate_now(id, now) {
                if self.graph.evaluations_of(parent).len() > 1 {
                    self.enqueue_doubted(parent, now);
                }
                parents.push(parent);
            }
        }
        self.immediate_since = None;
        if !self.postponed.is_empty() {
            self.immediate_since = Some(now);
            self.immediate.extend(self.postponed.drain(..));
        }
        self.policies.end_poll();
        parents.sort_unstable();
        parents.dedup();
        parents.retain(|parent| self.is_draftable(*parent));
        drafts.extend(parents.drain(..).map(|parent| ParentDraft { parent }));
        self.drafted = parents;
    }

    /// Schedules the evaluations in doubt, so that no parent is reported ready while a child is known not to be.
    fn enqueue_doubted(&mut self, parent: ObjectId, now: Time) {
        for at in 0..self.graph.evaluations_of(parent).len() {
            let id = self.graph.evaluations_of(parent)[at];
            if self.graph.find_evaluation(id).is_some_and(ParentEvaluation::is_in_doubt) {
                self.enqueue_evaluation(id, now, ChangeOrigin::PossiblyOwn);
            }
        }
    }

    /// Is the draft that an earlier poll made of `parent` still one, now that its turn to be written has come? One that is
    /// not, because an answer is in doubt, is made again by the next poll once it is evaluated.
    pub fn confirm_draft(&mut self, parent: ObjectId, now: Time) -> bool {
        let draftable = self.is_draftable(parent);
        let mut evaluations =
            self.graph.evaluations_of(parent).iter().filter_map(|id| self.graph.find_evaluation(*id));
        if !draftable && evaluations.any(ParentEvaluation::is_in_doubt) {
            self.redeliver.set_if_earlier(parent, now);
        }
        draftable
    }

    fn next_due_evaluation(&mut self, now: Time) -> Option<EvaluationId> {
        while let Some(id) = self.immediate.pop_front() {
            if self.graph.find_evaluation(id).is_some_and(|r| r.queue.is_due()) {
                return Some(id);
            }
        }
        self.quiet.take_due(now).or_else(|| self.time_dependent.take_due(now))
    }

    fn is_looping(&mut self, id: EvaluationId) -> bool {
        let Some(roll) = self.graph.evaluation_mut(id) else { return false };
        if roll.poll_evaluations.0 != self.polls {
            roll.poll_evaluations = (self.polls, 0);
        }
        roll.poll_evaluations.1 += 1;
        roll.poll_evaluations.1 > MAX_EVALUATIONS_PER_POLL
    }

    /// Returns `true` if a draft may be made: one of its policies has evaluated the parent, or no policy applies any
    /// more. Before that its conditions stay as they are. They also stay while an answer is in doubt and cannot be
    /// evaluated again.
    fn is_draftable(&self, parent: ObjectId) -> bool {
        let Some(parent) = self.graph.find_parent(parent).filter(|p| !p.termination_written) else {
            return false;
        };
        let rolls = parent.evaluations.iter().filter_map(|r| self.graph.find_evaluation(*r));
        let (mut any, mut say) = (false, false);
        for roll in rolls {
            any = true;
            let Some(observed) = &roll.observed else {
                say = true;
                continue;
            };
            let open = self.policies.is_open(roll.policy);
            if open && observed.stage.is_in_doubt() {
                return false;
            }
            say |= observed.stage.may_speak(open);
        }
        say || !any
    }

    fn evaluate_now(&mut self, id: EvaluationId, now: Time) -> Option<ObjectId> {
        let roll = self.graph.find_evaluation(id)?;
        let (parent, of, gate) = (roll.parent, roll.policy, self.policies.list_gate(roll.policy));
        let may = self.policies.can_evaluate(roll, gate);
        let held = may && !gate.only_takes_back() && self.is_held_by_child(roll);
        let policy = self.policies.find_policy(of);
        let roll = self.graph.evaluation_mut(id)?;
        let waited = std::mem::take(&mut roll.queue);
        if waited.is_debounced() {
            self.quiet.clear_deadline(id);
        }
        if self.is_behind && may && policy.is_some_and(|policy| roll.may_turn_true(policy)) {
            roll.queue = QueuePosition::Due(waited.origin_with(ChangeOrigin::PossiblyOwn));
            self.postponed.push(id);
            return None;
        }
        if held {
            roll.queue = QueuePosition::Deferred(waited.origin_with(ChangeOrigin::PossiblyOwn));
            self.deferred.insert(id);
            self.propagate_doubt(id);
            return None;
        }
        let reason_before = roll.answer().map(|answer| answer.reason);
        let news = roll.evaluate_at(policy.filter(|_| may)?, gate, now)?;
        let reason = roll.answer().map(|answer| answer.reason);
        let becomes_stuck = reason == Some(ParentReason::DeletionStuck) && reason != reason_before;
        roll.debounce.record_fire(now);
        let was_time_dependent = std::mem::replace(&mut roll.is_time_dependent, news.recheck_at.is_some());
        self.counts.evaluations += 1;
        self.counts.saved_flips += u64::from(news.saved_flip);
        self.graph.count_unsettled(news.settled, false);
        match news.recheck_at {
            Some(at) => self.time_dependent.set_deadline(id, at),
            None if was_time_dependent => _ = self.time_dependent.clear_deadline(id),
            None => {}
        }
        let cause = self.record_evaluated(parent, waited.origin_with(ChangeOrigin::PossiblyOwn), now);
        if becomes_stuck && let Some(parent) = self.graph.parent_mut(parent) {
            parent.termination_written = false;
        }
        if news.moved {
            self.propagate_change(parent, cause, now);
        }
        if !self.deferred.is_empty() {
            self.resume_deferred_above(parent, now, cause);
        }
        Some(parent)
    }

    /// Returns `true` if the evaluation has to wait for that of a child. A first word, and a last one, waits for nobody.
    fn is_held_by_child(&self, roll: &ParentEvaluation) -> bool {
        let waits = |observed: &ObservedParent| !observed.deleting && observed.phase.progress.is_announced();
        self.awaits_child_evaluation(roll) && roll.observed.as_ref().is_some_and(waits)
    }

    /// Returns `true` if the parent's unready children include a parent that was not evaluated because a list is
    /// awaited: its readiness is unknown. The answers of all ancestors stay until it is evaluated.
    fn awaits_child_evaluation(&self, roll: &ParentEvaluation) -> bool {
        (self.policies.is_awaiting_lists() || self.graph.has_unsettled())
            && roll.children.unready.iter().any(|t| self.is_evaluation_awaited(t.child))
    }

    fn is_evaluation_awaited(&self, child: ObjectId) -> bool {
        let mut rolls =
            self.graph.evaluations_of(child).iter().filter_map(|r| self.graph.find_evaluation(*r));
        // What a refused policy said stands: nobody waits for another word of it.
        let accepted = |r: &ParentEvaluation| {
            self.policies.find_policy(r.policy).is_none_or(|p| p.acceptance == Acceptance::Accepted)
        };
        rolls.any(|r| {
            let Some(observed) = r.observed.as_ref().filter(|observed| !observed.deleting) else {
                return false;
            };
            (observed.is_awaited() && accepted(r)) || self.awaits_child_evaluation(r)
        })
    }

    #[cold]
    /// Resumes the evaluations above `child` that were deferred, now that nobody waits for `child` any more.
    fn resume_deferred_above(&mut self, child: ObjectId, now: Time, cause: ChangeOrigin) {
        if self.is_evaluation_awaited(child) {
            return;
        }
        let (mut above, mut seen) = (vec![child], BTreeSet::new());
        while let Some(at) = above.pop() {
            for edge in self.graph.edges_of(at).iter().filter(|edge| !edge.cyclic) {
                let Some(roll) = self.graph.find_evaluation(edge.evaluation) else { continue };
                if roll.queue.is_deferred() {
                    self.touch_evaluation(edge.evaluation, now, cause);
                } else if seen.insert(roll.parent) {
                    above.push(roll.parent);
                }
            }
        }
    }

    /// Resumes every evaluation that was deferred: whether a list is awaited may be otherwise from now on.
    pub(super) fn resume_all_deferred(&mut self, now: Time) {
        for id in std::mem::take(&mut self.deferred) {
            self.enqueue_evaluation(id, now, ChangeOrigin::PossiblyOwn);
        }
    }

    /// A roll of `parent` was judged. The pass begins to be patient anew; and if others have moved something, we may
    /// write about it. Who moved what is said of it, since it was last offered.
    fn record_evaluated(&mut self, id: ObjectId, origin: ChangeOrigin, now: Time) -> ChangeOrigin {
        let Some(parent) = self.graph.parent_mut(id) else { return ChangeOrigin::PossiblyOwn };
        if origin == ChangeOrigin::External {
            parent.delivery.mark_external_change(now);
        }
        parent.origin = parent.origin.max(origin);
        let cause = parent.origin;
        if parent.resync == ResyncStage::Resynced {
            parent.resync = ResyncStage::Enrolled;
            self.resync.record_change(id, now);
        }
        cause
    }

    /// Propagates a changed answer of `parent`. Its owners are evaluated in the same poll, so that a cascade costs one
    /// debounce.
    fn propagate_change(&mut self, parent: ObjectId, cause: ChangeOrigin, now: Time) {
        self.counts.changed_answers += 1;
        self.enroll_in_resync(parent, now);
        self.reweigh_child(parent);
        for at in 0..self.moved.len() {
            let owner = self.moved[at];
            self.enqueue_evaluation(owner, now, cause);
        }
    }

    /// Enrolls a parent in the resync if it is not ready.
    fn enroll_in_resync(&mut self, id: ObjectId, now: Time) {
        if self.graph.find_parent(id).is_some_and(|p| p.resync == ResyncStage::Outside)
            && self.is_parent_unready(id)
            && let Some(parent) = self.graph.parent_mut(id)
        {
            parent.resync = ResyncStage::Enrolled;
            self.resync.enroll_key(id, now);
        }
    }

    pub(super) fn is_parent_unready(&self, parent: ObjectId) -> bool {
        let rolls = self.graph.evaluations_of(parent).iter().filter_map(|r| self.graph.find_evaluation(*r));
        let observed = rolls.filter_map(|r| r.observed.as_ref());
        let mut answers = observed.filter(|o| !o.deleting).filter_map(|o| o.stage.answer());
        answers.any(|a| a.reason != ParentReason::AllChildrenReady)
    }
}

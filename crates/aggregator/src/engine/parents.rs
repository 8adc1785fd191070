//! Observed conditions of a parent, and the conditions to write to it.

use std::time::Duration;

use readiness::Time;
use readiness::rollup::ParentReason;

use super::Engine;
use crate::delivery::{DeliveryDecision, DeliveryOutcome, JitterKey, WriteTicket};
use crate::evaluation::{EvaluationStage, GenerationPhase, ObservedParent, StageEvent};
use crate::graph::ResyncStage;
use crate::types::{
    AnswerView, ChangeOrigin, EntriesDigest, EvaluationId, ObjectId, ParentView, PolicyAnswer, PolicyId,
    SelectorId, WrittenAnswer,
};

impl Engine {
    pub(super) fn set_parent(&mut self, now: Time, id: ObjectId, view: Option<&ParentView>) {
        let answers = view.map_or(&[][..], |v| &v.answers);
        let selects: Vec<_> =
            answers.iter().flat_map(|a| a.selects.iter().map(move |s| (a.policy, *s))).collect();
        if view.is_none() {
            self.set_selectors(now, id, &[]);
        }
        for roll in self.graph.evaluations_of(id).to_vec() {
            let policy = self.graph.find_evaluation(roll).map(|r| r.policy);
            if !answers.iter().any(|a| Some(a.policy) == policy) {
                self.clear_answer(roll);
                // Conditions of a policy that no longer applies are to be removed.
                self.redeliver.set_if_earlier(id, now);
            }
        }
        let Some(view) = view else {
            self.resync.withdraw_key(id);
            self.redeliver.clear_deadline(id);
            self.withheld.remove(&id);
            if let Some(parent) = self.graph.parent_mut(id) {
                parent.resync = ResyncStage::Outside;
            }
            return;
        };
        let mut anew = false;
        for answer in answers {
            anew |= self.set_answer_view(now, id, view, answer);
        }
        self.set_selectors(now, id, &selects);
        self.observe_written(now, id, view, anew);
    }

    /// Compares the conditions on the parent with those last written.
    fn observe_written(&mut self, now: Time, id: ObjectId, view: &ParentView, anew: bool) {
        let leaves = view.deleting && !view.deletion_unexplained && self.says_its_end(now, view);
        let parent = self.graph.node_mut(id).parent.get_or_insert_default();
        parent.termination_written = leaves;
        let (before, apart) = (parent.delivery, JitterKey { seed: self.seed, key: u64::from(id.0) });
        if anew {
            parent.delivery.reset_write_window();
        }
        parent.delivery.observe_digest(view.digest, apart, now);
        if before != parent.delivery {
            self.redeliver.set_if_earlier(id, now);
        }
        self.schedule_conflict_end(id);
    }

    /// Does a parent that is being deleted say so for every policy that writes on it, and that it is stuck once it is? Then
    /// it is left alone until something else holds its deletion. Where somebody takes such an entry away, or turns it, it
    /// is set right like any other.
    fn says_its_end(&self, now: Time, view: &ParentView) -> bool {
        let mut written =
            view.answers.iter().filter(|a| !a.owned_by_other && !self.is_shadow(a.policy)).peekable();
        let says = |answer: &AnswerView| {
            let stuck = answer.deletion_stuck_at.is_some_and(|at| at <= now);
            let reason = if stuck { ParentReason::DeletionStuck } else { ParentReason::Terminating };
            answer.written.is_some_and(|told| told.reason == reason && told.is_untampered())
        };
        written.peek().is_some() && written.all(says)
    }

    fn schedule_conflict_end(&mut self, id: ObjectId) {
        let Some(parent) = self.graph.parent_mut(id) else { return };
        let at = parent.delivery.conflict_ends_at();
        let awaited = std::mem::replace(&mut parent.in_conflict, at.is_some());
        match at {
            Some(at) => self.conflict_ends.set_deadline(id, at),
            None if awaited => _ = self.conflict_ends.clear_deadline(id),
            None => {}
        }
    }

    pub(super) fn end_due_conflicts(&mut self, now: Time) {
        while let Some(id) = self.conflict_ends.take_due(now) {
            if let Some(parent) = self.graph.parent_mut(id) {
                parent.in_conflict = false;
                parent.delivery.end_conflict();
            }
        }
    }

    fn clear_answer(&mut self, roll: EvaluationId) {
        let observed = self.graph.evaluation_mut(roll).and_then(|r| r.observed.take());
        self.graph.count_unsettled(observed.is_some_and(|o| o.stage.is_unsettled()), false);
        self.drop_if_idle(roll);
    }

    /// Applies the observed answer of one policy. Returns `true` if a known parent begins a new generation, which is
    /// evaluated at once.
    fn set_answer_view(&mut self, now: Time, id: ObjectId, view: &ParentView, answer: &AnswerView) -> bool {
        let shadow = self.policies.find_policy(answer.policy).is_some_and(|p| p.shadow);
        let open = self.is_open(answer.policy);
        let unwritten = shadow || answer.owned_by_other;
        let told = answer.written.filter(|_| answer.about_generation == Some(view.generation));
        let at = self.graph.ensure_evaluation(id, answer.policy);
        let Some(roll) = self.graph.evaluation_mut(at) else { return false };
        let first = roll.observed.is_none();
        let observed = roll.observed.get_or_insert_with(|| ObservedParent {
            view: answer.clone(),
            evidence: view.evidence,
            deleting: view.deleting,
            phase: GenerationPhase::new(view.generation, now, told),
            stage: EvaluationStage::first_of(answer.written.map(restore_answer), open || !unwritten),
            last_published: answer.written.map(|t| t.reason),
        });
        let renewed = observed.phase.generation != view.generation;
        if renewed {
            observed.phase = GenerationPhase::new(view.generation, now, told);
            observed.phase.awaits_proof |= view.generation > 1;
        }
        // A condition type that its owner has released carries no earlier answer of Rollcall's.
        if observed.view.owned_by_other && !answer.owned_by_other {
            observed.phase.progress.retract();
        }
        if told.is_some() || unwritten {
            observed.phase.progress.announce();
        }
        (observed.evidence, observed.deleting) = (view.evidence, view.deleting);
        observed.view.clone_from(answer);
        if first {
            let is_unsettled = observed.stage.is_unsettled();
            self.graph.count_unsettled(false, is_unsettled);
        } else if renewed {
            // An answer about an older generation must never be rendered for this one.
            self.graph.advance_stage(at, StageEvent::Outdated);
        }
        self.touch_evaluation(at, now, ChangeOrigin::PossiblyOwn);
        if (first || renewed) && open {
            self.enqueue_evaluation(at, now, ChangeOrigin::PossiblyOwn);
        }
        renewed
    }

    fn set_selectors(&mut self, now: Time, id: ObjectId, selects: &[(PolicyId, SelectorId)]) {
        let Some(parent) = self.graph.parent_mut(id) else { return };
        if parent.selectors == selects {
            return;
        }
        let old = std::mem::replace(&mut parent.selectors, selects.to_vec());
        for select in old.iter().filter(|s| !selects.contains(s)) {
            self.remove_selector(now, id, *select, id);
        }
        for select in selects.iter().filter(|s| !old.contains(s)) {
            self.add_selector(now, id, *select, id);
        }
    }

    pub(super) fn add_selector(&mut self, now: Time, id: ObjectId, by: (PolicyId, SelectorId), of: ObjectId) {
        for (child, link) in self.graph.selectors.set_parent(id, by, of, true) {
            let roll = self.graph.ensure_evaluation(id, by.0);
            self.attach_child(now, child, roll, link, now);
        }
    }

    pub(super) fn remove_selector(
        &mut self,
        now: Time,
        id: ObjectId,
        by: (PolicyId, SelectorId),
        of: ObjectId,
    ) {
        for (child, link) in self.graph.selectors.set_parent(id, by, of, false) {
            if let Some(roll) = self.graph.find_evaluation_for(id, by.0) {
                self.detach_child(now, child, roll, link.group);
            }
        }
    }

    /// Those above quote `parent` in words with this digest from now on. Where those are others than before, they hear of it.
    pub fn requote(&mut self, parent: ObjectId, quote: u64, now: Time) {
        let Some(p) = self.graph.parent_mut(parent) else { return };
        let cause = p.origin;
        if std::mem::replace(&mut p.quoted, quote) != quote {
            self.touch_owners(parent, now, cause);
        }
    }

    /// The answers of a draft were rendered, to this digest.
    pub fn offer_digest(&mut self, parent: ObjectId, digest: EntriesDigest, now: Time) -> DeliveryDecision {
        let window = self.write_window(parent);
        let (standby, ticket) = (self.standby, WriteTicket(self.tickets));
        let Some(p) = self.graph.parent_mut(parent) else { return DeliveryDecision::Same };
        let (decision, again) = if standby {
            p.delivery.compare_digest(digest)
        } else {
            p.delivery.offer_digest(ticket, digest, window, now)
        };
        self.tickets += u64::from(decision == DeliveryDecision::Send(ticket));
        if standby && decision == DeliveryDecision::Later {
            self.withheld.insert(parent);
        } else {
            self.withheld.remove(&parent);
        }
        let Some(p) = self.graph.parent_mut(parent) else { return decision };
        p.origin = ChangeOrigin::PossiblyOwn;
        self.clear_touch_after_offer(parent, decision, again, window, now);
        if let Some(at) = again {
            self.redeliver.set_if_earlier(parent, at);
        }
        decision
    }

    /// Returns `true` if the condition on the parent is overwritten repeatedly, so that a fallback type should be used.
    pub fn is_repeatedly_overwritten(&self, parent: ObjectId) -> bool {
        self.graph.find_parent(parent).is_some_and(|p| p.delivery.is_repeatedly_overwritten())
    }

    /// Returns `true` if the last writes to the parent failed: others are written first.
    pub fn is_write_failing(&self, parent: ObjectId) -> bool {
        self.graph.find_parent(parent).is_some_and(|p| p.delivery.is_failing())
    }

    /// Window that contains at most two writes to a parent: the shortest debounce cap of its policies.
    fn write_window(&self, parent: ObjectId) -> Duration {
        let rolls = self.graph.evaluations_of(parent).iter().filter_map(|r| self.graph.find_evaluation(*r));
        let caps = rolls.filter_map(|r| Some(self.policies.find_policy(r.policy)?.debounce.cap));
        caps.min().unwrap_or_default()
    }

    /// Records the outcome of a write that [`DeliveryDecision::Send`] requested. What was sent to whoever had the place of `parent` before means
    /// nothing to it.
    pub fn settle_write(
        &mut self,
        parent: ObjectId,
        ticket: WriteTicket,
        outcome: DeliveryOutcome,
        now: Time,
    ) {
        let apart = JitterKey { seed: self.seed, key: u64::from(parent.0) };
        let Some(p) = self.graph.parent_mut(parent) else { return };
        if !p.delivery.settle_write(ticket, outcome, apart, now) {
            return;
        }
        if outcome != DeliveryOutcome::Gone {
            self.redeliver.set_if_earlier(parent, now);
        }
        self.schedule_conflict_end(parent);
        if self.graph.find_parent(parent).is_some_and(|p| p.delivery.is_pruned()) {
            self.announce_unwritable(parent, now);
        }
    }

    /// Announces a change of a parent that cannot be written; it is evaluated all the same, for metrics and for its own
    /// parents.
    fn announce_unwritable(&mut self, parent: ObjectId, now: Time) {
        for id in self.graph.evaluations_of(parent).to_vec() {
            let Some(roll) = self.graph.evaluation_mut(id) else { continue };
            let progress = roll.observed.as_mut().map(|observed| &mut observed.phase.progress);
            let Some(progress) = progress.filter(|progress| !progress.is_announced()) else { continue };
            progress.announce();
            self.enqueue_evaluation(id, now, ChangeOrigin::PossiblyOwn);
        }
    }
}

fn restore_answer(told: WrittenAnswer) -> PolicyAnswer {
    PolicyAnswer { reason: told.reason, total: 0, ready: 0, reconciling: false, stalled: told.stalled }
}

//! Evaluations that wait, each until its time comes.

use std::collections::{BTreeSet, VecDeque};

use readiness::Time;
use timer::DeadlineQueue;

use crate::evaluation::{ParentEvaluation, QueuePosition};
use crate::graph::ChildGraph;
use crate::ids::EvaluationId;
use crate::types::ChangeOrigin;

/// All evaluations that wait. The position of each is also in the evaluation itself.
#[derive(Debug, Default)]
pub(crate) struct EvaluationQueue {
    /// Evaluations due in the next poll, and the time since which there are any.
    immediate: VecDeque<EvaluationId>,
    immediate_since: Option<Time>,
    /// Evaluations of this poll that wait until all known changes are observed.
    postponed: Vec<EvaluationId>,
    /// Evaluations that wait for a child to be evaluated.
    deferred: BTreeSet<EvaluationId>,
    /// Debounced evaluations, by the time at which they are due.
    debounced: DeadlineQueue<EvaluationId, Time>,
    /// Evaluations whose answer changes with time alone.
    time_dependent: DeadlineQueue<EvaluationId, Time>,
}

impl EvaluationQueue {
    /// Adds an evaluation to the next poll, and removes it from where it waited before.
    pub(crate) fn enqueue(
        &mut self,
        id: EvaluationId,
        evaluation: &mut ParentEvaluation,
        now: Time,
        origin: ChangeOrigin,
    ) {
        match evaluation.queue.become_due(origin) {
            QueuePosition::Due(_) => return,
            QueuePosition::Debounced(_) => _ = self.debounced.clear_deadline(id),
            QueuePosition::Deferred(_) => _ = self.deferred.remove(&id),
            QueuePosition::Idle => {}
        }
        self.immediate.push_back(id);
        self.immediate_since.get_or_insert(now);
    }

    /// Lets an evaluation wait until `at`.
    pub(crate) fn debounce(
        &mut self,
        id: EvaluationId,
        evaluation: &mut ParentEvaluation,
        at: Time,
        origin: ChangeOrigin,
    ) {
        let debounced = QueuePosition::Debounced(evaluation.queue.origin_with(origin));
        if std::mem::replace(&mut evaluation.queue, debounced).is_deferred() {
            self.deferred.remove(&id);
        }
        self.debounced.set_deadline(id, at);
    }

    /// Lets an evaluation whose turn has come wait for that of a child.
    pub(crate) fn defer(
        &mut self,
        id: EvaluationId,
        evaluation: &mut ParentEvaluation,
        origin: ChangeOrigin,
    ) {
        evaluation.queue = QueuePosition::Deferred(origin);
        self.deferred.insert(id);
    }

    /// Lets an evaluation whose turn has come wait for the next poll.
    pub(crate) fn postpone(
        &mut self,
        id: EvaluationId,
        evaluation: &mut ParentEvaluation,
        origin: ChangeOrigin,
    ) {
        evaluation.queue = QueuePosition::Due(origin);
        self.postponed.push(id);
    }

    /// Takes the next evaluation whose turn has come. Its position stays until [`EvaluationQueue::leave`].
    pub(crate) fn take_due(&mut self, now: Time, graph: &ChildGraph) -> Option<EvaluationId> {
        while let Some(id) = self.immediate.pop_front() {
            if graph.find_evaluation(id).is_some_and(|evaluation| evaluation.queue.is_due()) {
                return Some(id);
            }
        }
        self.debounced.take_due(now).or_else(|| self.time_dependent.take_due(now))
    }

    /// Takes an evaluation out of its position because it takes place now; returns the origin of what has changed.
    pub(crate) fn leave(&mut self, id: EvaluationId, evaluation: &mut ParentEvaluation) -> ChangeOrigin {
        let waited = std::mem::take(&mut evaluation.queue);
        if waited.is_debounced() {
            self.debounced.clear_deadline(id);
        }
        waited.origin_with(ChangeOrigin::PossiblyOwn)
    }

    /// Sets the time at which the answer of an evaluation changes with time alone.
    pub(crate) fn set_recheck(
        &mut self,
        id: EvaluationId,
        evaluation: &mut ParentEvaluation,
        at: Option<Time>,
    ) {
        let was_time_dependent = std::mem::replace(&mut evaluation.is_time_dependent, at.is_some());
        match at {
            Some(at) => self.time_dependent.set_deadline(id, at),
            None if was_time_dependent => _ = self.time_dependent.clear_deadline(id),
            None => {}
        }
    }

    /// Removes an evaluation that was dropped.
    pub(crate) fn remove(&mut self, id: EvaluationId) {
        self.debounced.clear_deadline(id);
        self.time_dependent.clear_deadline(id);
        self.deferred.remove(&id);
    }

    /// Adds what was postponed to the next poll.
    pub(crate) fn end_poll(&mut self, now: Time) {
        self.immediate_since = None;
        if !self.postponed.is_empty() {
            self.immediate_since = Some(now);
            self.immediate.extend(self.postponed.drain(..));
        }
    }

    pub(crate) fn has_deferred(&self) -> bool {
        !self.deferred.is_empty()
    }

    /// Takes all evaluations that wait for a child.
    pub(crate) fn take_deferred(&mut self) -> BTreeSet<EvaluationId> {
        std::mem::take(&mut self.deferred)
    }

    /// Number of evaluations that are being debounced.
    pub(crate) fn debounced_count(&self) -> usize {
        self.debounced.len()
    }

    /// Returns the time at which the next evaluation is due.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        let (debounced, by_time) = (self.debounced.next_deadline(), self.time_dependent.next_deadline());
        timer::earliest([self.immediate_since, debounced, by_time])
    }
}

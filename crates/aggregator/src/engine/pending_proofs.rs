//! Parents that await the proof of their policy.

use readiness::Time;

use super::scheduler::EvaluationScheduler;
use crate::evaluation::GenerationProof;
use crate::ids::{ObjectId, PolicyId};
use crate::types::ChangeOrigin;

/// A parent that was evaluated, and whose generation does not count as handled before its policy's proof is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProofRequest {
    /// The parent.
    pub parent: ObjectId,
    /// The policy.
    pub policy: PolicyId,
    /// The generation that is to be proven.
    pub generation: u64,
}

/// What awaits the proof of a policy. It is asked for again with each evaluation: whatever changes in the parent or a child of
/// it leads to one.
#[derive(Debug)]
pub struct PendingProofs<'e> {
    pub(super) scheduler: &'e mut EvaluationScheduler,
}

impl PendingProofs<'_> {
    /// Takes those that were evaluated since the last call, each once.
    pub fn take_requests(&mut self) -> Vec<ProofRequest> {
        let unproven = std::mem::take(&mut self.scheduler.unproven);
        let request = |id| {
            let held = self.scheduler.graph.find_evaluation(id).filter(|held| held.awaits_proof())?;
            let generation = held.observed.as_ref()?.phase.generation;
            Some(ProofRequest { parent: held.parent, policy: held.policy, generation })
        };
        let mut requests: Vec<_> = unproven.into_iter().filter_map(request).collect();
        requests.sort_unstable();
        requests.dedup();
        requests
    }

    /// Returns `true` if the proof is still awaited.
    pub fn is_awaited(&self, request: ProofRequest) -> bool {
        let graph = &self.scheduler.graph;
        let held = graph.find_evaluation_for(request.parent, request.policy);
        let held = held.and_then(|id| graph.find_evaluation(id)).filter(|held| held.awaits_proof());
        held.and_then(|held| held.observed.as_ref())
            .is_some_and(|observed| observed.phase.generation == request.generation)
    }

    /// Records that the proof is given. Of another generation than the one that holds now it means nothing.
    pub fn record_proof(&mut self, request: ProofRequest, now: Time) {
        if !self.is_awaited(request) {
            return;
        }
        let Some(id) = self.scheduler.graph.find_evaluation_for(request.parent, request.policy) else {
            return;
        };
        let evaluation = self.scheduler.graph.evaluation_mut(id);
        if let Some(observed) = evaluation.and_then(|held| held.observed.as_mut()) {
            observed.phase.proof = GenerationProof::Given;
            self.scheduler.enqueue_evaluation(id, now, ChangeOrigin::External);
        }
    }
}

//! Proofs that are evaluated beside the loop: those that wait for a thread, and those that are done.
//!
//! It has no threads and no clock, as the queue of judgements has none. How many wait is up to the loop, which hands them in.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::planned::PlannedInterest;
use super::proofs::{ProofOutcome, ProofTask};

/// A proof that was evaluated.
#[derive(Debug)]
pub struct EvaluatedProof {
    /// What was evaluated.
    pub task: ProofTask,
    /// How that ended.
    pub outcome: ProofOutcome,
    /// By what the parent was judged then; `None` where that was not known.
    pub(super) plan: Option<Arc<PlannedInterest>>,
}

impl EvaluatedProof {
    /// Returns `true` if another plan has taken the place of the one that it was evaluated by.
    pub fn is_superseded(&self) -> bool {
        self.plan.as_ref().is_some_and(|plan| !plan.holds())
    }
}

#[derive(Debug, Default)]
struct ProofLists {
    waiting: VecDeque<ProofTask>,
    evaluated: Vec<EvaluatedProof>,
}

/// Proofs that wait for a thread, and those that wait for the loop.
#[derive(Debug, Default)]
pub(super) struct ProofExchange(Mutex<ProofLists>);

impl ProofExchange {
    fn lock(&self) -> MutexGuard<'_, ProofLists> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hand_in(&self, task: ProofTask) {
        self.lock().waiting.push_back(task);
    }

    pub(super) fn take_waiting(&self) -> Option<ProofTask> {
        self.lock().waiting.pop_front()
    }

    /// Returns `true` if the loop has to be woken: nothing was there for it.
    pub(super) fn hand_back(&self, evaluated: EvaluatedProof) -> bool {
        let mut lists = self.lock();
        lists.evaluated.push(evaluated);
        lists.evaluated.len() == 1
    }

    pub(super) fn take_evaluated(&self) -> Vec<EvaluatedProof> {
        std::mem::take(&mut self.lock().evaluated)
    }
}

//! Proofs that are evaluated beside the loop: those that wait for a thread, those that are done, and how they ended.
//!
//! It has no threads and no clock, as the queue of judgements has none. How many wait is up to the loop, which hands them in.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aggregator::{ObjectId, ProofRequest};
use rollcall_cel::ProofResult;

use super::planned::PlannedInterest;

/// A proof that is to be evaluated over a parent and these children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofTask {
    /// The proof.
    pub request: ProofRequest,
    /// The children that count, each with the number of its group.
    pub children: Vec<(u8, ObjectId)>,
}

/// Whether a proof holds, or why that cannot be told. No text quotes a value: those who read a parent may not be those who
/// read its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofVerdict {
    /// It holds.
    Holds,
    /// It does not hold.
    DoesNotHold,
    /// A field that it reads is absent.
    FieldAbsent,
    /// What it reads of the parent or of a child is too large, or nested too deeply.
    TooLarge,
    /// It was stopped at a limit.
    Stopped,
    /// It has no value for other reasons, such as the type of a field.
    NoValue,
    /// Something that it reads is not known as it is now: the parent has another generation, or an object awaits a list.
    Outdated,
}

/// Result of one evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofOutcome {
    /// Whether the proof holds.
    pub verdict: ProofVerdict,
    /// Number of steps that were spent.
    pub steps: u32,
}

impl From<ProofVerdict> for ProofOutcome {
    fn from(verdict: ProofVerdict) -> ProofOutcome {
        ProofOutcome { verdict, steps: 0 }
    }
}

impl From<ProofResult> for ProofOutcome {
    fn from(ProofResult { holds, steps }: ProofResult) -> ProofOutcome {
        let verdict = match holds {
            Ok(true) => ProofVerdict::Holds,
            Ok(false) => ProofVerdict::DoesNotHold,
            Err(error) if error.limit.is_some() => ProofVerdict::Stopped,
            Err(error) if error.absent => ProofVerdict::FieldAbsent,
            Err(_) => ProofVerdict::NoValue,
        };
        ProofOutcome { verdict, steps }
    }
}

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

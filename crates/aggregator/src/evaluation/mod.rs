//! Evaluation of one parent under one policy: what its children amount to, what is observed of the parent, and the stage
//! of the answer.

mod child_counts;
mod generation_phase;
mod queue_position;
mod stage;
mod steady_phase;
mod unready_set;

use readiness::rollup::{ChildWeight, ParentReason};
use readiness::{Level, Time};
use timer::DebounceState;

pub(crate) use child_counts::{ChildCounts, NamedChildren};
pub(crate) use generation_phase::{GenerationPhase, GenerationProgress};
pub(crate) use queue_position::QueuePosition;
pub(crate) use stage::{EvaluationStage, StageEvent};
pub(crate) use steady_phase::{SteadyLimits, SteadyPhase};
pub(crate) use unready_set::{UnreadyEntry, UnreadySet};

use crate::types::{AnswerView, HandledEvidence, ObjectId, PolicyAnswer, PolicyId};

/// Evaluation of one parent under one policy: its inputs, its place in the queues, and its stage.
#[derive(Clone, Debug)]
pub(crate) struct ParentEvaluation {
    pub(crate) parent: ObjectId,
    pub(crate) policy: PolicyId,
    pub(crate) children: ChildCounts,
    /// What is observed of the parent, and its stage; `None` while only children refer to it.
    pub(crate) observed: Option<ObservedParent>,
    pub(crate) queue: QueuePosition,
    /// The answer changes with time alone, so the queue of those contains it.
    pub(crate) is_time_dependent: bool,
    pub(crate) debounce: DebounceState<Time>,
    /// Poll of the last evaluation, and the number of evaluations in it.
    pub(crate) poll_evaluations: (u32, u8),
}

/// What is observed of a parent for one policy, and the stage of its answer.
#[derive(Clone, Debug)]
pub(crate) struct ObservedParent {
    /// Answer on the parent as last observed.
    pub(crate) view: AnswerView,
    pub(crate) evidence: HandledEvidence,
    pub(crate) deleting: bool,
    pub(crate) phase: GenerationPhase,
    pub(crate) stage: EvaluationStage,
    /// Last published reason: the one on the parent, or the one returned by [`crate::Engine::take_changed_answers`].
    pub(crate) last_published: Option<ParentReason>,
}

impl ParentEvaluation {
    pub(crate) fn new(parent: ObjectId, policy: PolicyId) -> Self {
        ParentEvaluation {
            parent,
            policy,
            children: ChildCounts::default(),
            observed: None,
            queue: QueuePosition::Idle,
            is_time_dependent: false,
            debounce: DebounceState::default(),
            poll_evaluations: (0, 0),
        }
    }

    /// Returns the last answer about the observed parent.
    pub(crate) fn answer(&self) -> Option<PolicyAnswer> {
        self.observed.as_ref()?.stage.answer()
    }

    /// Returns `true` if the answer says True, and must not be counted on.
    pub(crate) fn is_in_doubt(&self) -> bool {
        self.observed.as_ref().is_some_and(|observed| observed.stage.is_in_doubt())
    }
}

impl ObservedParent {
    /// Returns the weight of the answer if the parent is itself a child.
    pub(crate) fn weight(&self) -> ChildWeight {
        // Known regardless of everything else.
        if self.deleting {
            let is_stuck = self.stage.answer().is_some_and(|a| a.reason == ParentReason::DeletionStuck);
            let level = if is_stuck { Level::Stuck } else { Level::Terminating };
            return ChildWeight::of(level);
        }
        self.stage.weight()
    }

    /// Moves to the next stage; returns the one before.
    #[inline]
    pub(crate) fn advance_stage(&mut self, event: StageEvent) -> EvaluationStage {
        let before = self.stage;
        self.stage = before.after(event);
        before
    }

    /// Returns `true` if the parents above have to wait for its evaluation, unless its own children have to be waited for:
    /// its state is unknown.
    pub(crate) fn is_awaited(&self) -> bool {
        // Time alone ends that; an operator that has to act first is waited for by nobody.
        let settles = self.stage.is_unsettled()
            && matches!(self.evidence, HandledEvidence::Silent | HandledEvidence::Handled);
        !self.stage.is_own() || settles
    }
}

//! What is observed of a parent for one policy.

use readiness::rollup::{ChildWeight, ParentReason};
use readiness::{Level, Steadiness};

use super::{ChildCounts, EvaluationStage, GenerationPhase, StageEvent};
use crate::critical_tally::CriticalTally;
use crate::types::{AnswerView, EnginePolicy, HandledEvidence};

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

    /// Returns how far an answer that says True can count on children that are not all ready.
    pub(crate) fn steadiness_of(&self, children: &ChildCounts, policy: &EnginePolicy) -> Steadiness {
        if !self.phase.steady.was_whole_after(children.appeared_at) {
            return Steadiness::Unsteady;
        }
        CriticalTally::steadiness_of(children, &self.view, policy)
    }

    /// Returns `true` if a child was created, deleted or changed in its spec for this generation. Each kind has a watch of its
    /// own, so what an operator did at once may be seen a moment before the spec that called for it. What moved before this
    /// process first saw the generation is not known to have moved for it.
    pub(crate) fn has_moved_since_generation(&self, children: &ChildCounts, policy: &EnginePolicy) -> bool {
        let out_of_order = policy.settle.min(policy.debounce.cap);
        children.changed_at + out_of_order >= self.phase.observed_at
    }
}

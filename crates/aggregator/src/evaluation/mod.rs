//! Evaluation of one parent under one policy: what its children amount to, what is observed of the parent, and the stage
//! of the answer.

mod child_counts;
mod generation_phase;
mod observed_parent;
mod parent_evaluation;
mod queue_position;
mod stage;
mod steady_phase;
mod unready_set;

pub(crate) use child_counts::{ChildChange, ChildCounts, NamedChildren};
pub(crate) use generation_phase::{GenerationPhase, GenerationProgress, GenerationProof};
pub(crate) use observed_parent::ObservedParent;
pub(crate) use parent_evaluation::{EvaluationChanges, ParentEvaluation};
pub(crate) use queue_position::QueuePosition;
pub(crate) use stage::{EvaluationStage, StageEvent};
pub(crate) use steady_phase::{SteadyLimits, SteadyPhase};
pub(crate) use unready_set::{UnreadyEntry, UnreadySet};

//! Readiness rules: from the facts of one object to a verdict, and from the verdicts of many to a condition.
//!
//! Pure: no I/O, no clock, no async, no dependency.

mod assess;
mod branch;
mod child_weight;
mod counted_unit;
mod crash_loop;
mod custom;
mod disruption_budget;
mod facts;
mod finalizer_holder;
mod kind;
mod pod_refusal;
mod readiness_ruling;
mod reason;
mod reason_token;
pub mod rollup;
mod rules;
mod stale_generation;
mod steadiness;
mod stuck_limits;
mod text;
mod time;
mod unready_since;
mod verdict;

pub use assess::{assess, assess_before_rules, assess_with_branch, final_outcome};
pub use branch::Branch;
pub use counted_unit::CountedUnit;
pub use crash_loop::crash_loop_since;
pub use custom::{
    condition_priority, counts_lacking_parts, is_condition_list, is_count_field, is_current_field,
    is_part_field, is_part_state_field, is_pausing_annotation, is_rest_switch, is_state_field,
    is_state_field_within, is_trouble_list, part_flag_says, part_share, says_at_rest, says_paused,
    says_plain_trouble,
};
pub use disruption_budget::DisruptionBudget;
pub use facts::{
    ConditionFacts, ConditionLocation, ContainerExit, CountField, Facts, LaggingField, OwnerKind,
    PodContainers, ReplicaAmount, SpecFacts, StateField, StatusFacts, TruthValue, UnreadyContainer,
    WellKnownName,
};
pub use finalizer_holder::{FinalizerHold, LikelyFinalizerHolder, likely_holder};
pub use kind::RuleKind;
pub use pod_refusal::{PodCreationAttempt, PodShortage, assess_refused_pods, lacks_pods};
pub use reason::{CustomReason, Reason};
pub use reason_token::ReasonToken;
pub use rules::{KnownBeside, steadiness_beside, whole_replicas};
pub use steadiness::Steadiness;
pub use stuck_limits::StuckLimits;
pub use text::{BoundedText, is_line_break};
pub use time::{OptionalTime, Time, millis_to_seconds, saturating_millis};
pub use unready_since::{SinceSource, UnreadySince, unready_since};
pub use verdict::{Assessment, Level, Verdict};

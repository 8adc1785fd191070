//! Rollcall's conditions in a parent's status: parsing, ownership, and the only way of writing them.

mod added_types;
mod bounds;
mod entry;
mod json_members;
mod own;
mod own_words;
mod owned_condition;
mod parent_status;
mod patch;
pub mod raw_json;
mod reported_failure;
mod status_managers;
pub mod time;

pub use added_types::withhold_added_types;
pub use bounds::{StatusBounds, truncate_text};
pub use entry::{ConditionEntry, FIELD_MANAGER, WantedConditions, conditions_digest};
pub(crate) use own::is_beside_ready;
pub use own::{OwnTypes, written_types};
pub use own_words::{
    ARE_TOO_MANY, AWAITS_MEMBERS, AWAITS_OPERATOR, AWAITS_ROLLCALL, BEING_DELETED, FAILED_TO_HANDLE,
    IS_MISSING, NO_CHILDREN, NOT_HANDLED, NOT_IN_TIME, NOT_PERMITTED, NOT_SEEN, OF_CATEGORY,
    POLICY_IS_REFUSED, STATUS_REPORTS, is_in_our_words,
};
pub use owned_condition::OwnedCondition;
pub use parent_status::{ListShape, ParentStatus, UnwritableShape};
pub use patch::{PatchGuard, guarded_patch, is_bound_to_version, patch_body};
pub use reported_failure::{StatusFailure, judge_own_status};

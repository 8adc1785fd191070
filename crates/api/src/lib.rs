//! Custom resources of `rollcall.dev/v1alpha1`. Nothing else lives here.

pub mod admission;
mod children;
mod group_admission;
pub mod policy;
mod policy_status;
mod readiness_group;
pub mod record;
mod selectors;

pub use group_admission::GROUP_ADMISSION_RULES;
pub use policy::{ReadinessPolicy, ReadinessPolicySpec};
pub use policy_status::ReadinessPolicyStatus;
pub use readiness_group::{
    EarlierGroup, FluxObjectRef, GroupMember, MemberCount, MemberKind, MemberRef, ReadinessGroup,
    ReadinessGroupSpec, ReadinessGroupStatus,
};
pub use record::{ReadinessRecord, ReadinessRecordSpec};

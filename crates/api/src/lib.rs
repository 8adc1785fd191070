//! Custom resources of `rollcall.dev/v1alpha1`. Nothing else lives here.

pub mod admission;
mod children;
pub mod policy;
mod policy_status;
pub mod record;
mod selectors;

pub use policy::{ReadinessPolicy, ReadinessPolicySpec};
pub use policy_status::ReadinessPolicyStatus;
pub use record::{ReadinessRecord, ReadinessRecordSpec};

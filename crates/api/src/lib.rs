//! Custom resources of `rollcall.dev/v1alpha1`. Nothing else lives here.

pub mod admission;
mod children;
pub mod policy;
pub mod record;

pub use policy::{ReadinessPolicy, ReadinessPolicySpec, ReadinessPolicyStatus};
pub use record::{ReadinessRecord, ReadinessRecordSpec};

//! The promise: the custom resources of `rollcall.dev/v1alpha1`. Nothing else lives here.

mod children;
pub mod policy;
pub mod record;

pub use policy::{ReadinessPolicy, ReadinessPolicySpec, ReadinessPolicyStatus};
pub use record::{ReadinessRecord, ReadinessRecordSpec};

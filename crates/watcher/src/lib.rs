//! Input from the API server: `follow` one kind, live reads, and the in-memory reflector, which assesses each object on
//! ingest.

mod absence;
#[cfg(feature = "kube")]
mod api_client;
mod error_text;
mod event;
mod kind;
mod parent;
pub mod plan;
pub mod reflector;
mod served_kinds;
pub mod status;
pub mod wire;

pub use absence::proves_absence;
#[cfg(feature = "kube")]
pub use api_client::*;
pub use error_text::error_text;
pub use event::{ApiFailureCause, FollowEvent, FollowFailure, WireObject};
pub use kind::ApiKind;
pub use parent::{ParentObject, ReflectorObject};
pub use served_kinds::{ServedKind, ServedKinds};

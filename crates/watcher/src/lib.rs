//! I/O in: `follow` one kind, `look` again live, and the in-memory reflector; verdicts are assessed at the door.

#[cfg(feature = "kube")]
mod dates;
#[cfg(feature = "kube")]
mod discover;
mod event;
#[cfg(feature = "kube")]
mod follow;
#[cfg(feature = "kube")]
mod guard;
mod kind;
#[cfg(feature = "kube")]
mod look;
mod parent;
pub mod plan;
pub mod reflector;
pub mod status;
pub mod wire;

#[cfg(feature = "kube")]
pub use dates::{Timekeeper, timed_client};
#[cfg(feature = "kube")]
pub use discover::resolve;
pub use event::{Cause, Event, Trouble, Wire};
#[cfg(feature = "kube")]
pub use follow::{FollowOptions, follow};
#[cfg(feature = "kube")]
pub use guard::client;
pub use kind::ApiKind;
#[cfg(feature = "kube")]
pub use look::{
    LookError, Page, look, look_all, look_head, look_heads, look_metadata, look_pages, look_some,
};
pub use parent::{Feed, Parent};
/// Where jitter comes from.
#[cfg(feature = "kube")]
pub use timer::Seed;

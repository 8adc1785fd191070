//! Input from the API server: `follow` one kind, live reads, and the in-memory reflector, which assesses each object on
//! ingest.

mod absence;
#[cfg(feature = "kube")]
mod connection;
#[cfg(feature = "kube")]
mod date_header;
#[cfg(feature = "kube")]
mod discover;
mod event;
#[cfg(feature = "kube")]
mod follow;
#[cfg(feature = "kube")]
mod guard;
mod kind;
#[cfg(feature = "kube")]
mod live_read;
mod parent;
pub mod plan;
pub mod reflector;
pub mod status;
pub mod wire;

pub use absence::proves_absence;
#[cfg(feature = "kube")]
pub use connection::{ConnectionMonitor, client_without_retries, timed_client};
#[cfg(feature = "kube")]
pub use date_header::DateObserver;
#[cfg(feature = "kube")]
pub use discover::{Discovered, discover, resolve_kind};
pub use event::{ApiFailureCause, FollowEvent, FollowFailure, WireObject};
#[cfg(feature = "kube")]
pub use follow::{FollowOptions, follow};
pub use kind::ApiKind;
#[cfg(feature = "kube")]
pub use live_read::{
    LivePage, LiveReadError, get_live, get_live_head, list_live, list_live_at_most, list_live_heads,
    list_live_metadata, stream_live_pages,
};
pub use parent::{ParentObject, ReflectorObject};
/// Seed of jitter.
#[cfg(feature = "kube")]
pub use timer::Seed;

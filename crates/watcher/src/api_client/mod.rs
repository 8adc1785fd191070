//! Everything that talks to the API server: watches, live reads, discovery, and the connections that they share.

mod connection;
mod date_header;
mod discover;
mod follow;
mod guard;
mod live_metadata;
mod live_read;
mod percent;
mod retry_after;
mod served_kinds;

pub use connection::{ConnectionMonitor, client_without_retries, timed_client};
pub use date_header::DateObserver;
pub use discover::{Discovered, discover, resolve_kind};
pub use follow::{FollowOptions, follow};
pub use guard::RetryTurns;
pub use live_metadata::LiveMetadataList;
pub use live_read::{
    LivePage, LiveReadError, get_live, get_live_head, list_live, list_live_at_most, list_live_heads,
    list_live_metadata, read_list_version, stream_live_head_pages, stream_live_pages,
};
pub use percent::percent_encode;
pub use retry_after::parse_retry_after;
pub use served_kinds::read_served_kinds;
/// Seed of jitter.
pub use timer::Seed;

//! I/O out and wiring: supervised tasks, the event loop that reads the clock, the parent writer, metrics, and the HTTP
//! listener.
//!
//! The work of one turn is [`rollcall_core`]'s, what is made of policies [`policy`]'s: what is here reads the clock, talks
//! to the API server, or supervises what does.

pub mod access_review;
mod admin;
pub mod args;
mod audit;
pub mod build_info;
mod clock;
mod event_loop;
mod event_recorder;
mod failing_writes;
mod failure_log;
mod failure_reporter;
mod failure_traffic;
pub mod history;
mod kind_tasks;
pub mod lease;
mod listener;
mod live_reader;
mod metrics;
pub mod needed_kinds;
mod own_watches;
mod page;
mod parent_writer;
pub mod policies;
mod record_task;
pub mod release;
mod reviews;
mod rollouts;
mod rule_threads;
mod service;
mod snapshot;
mod supervised_tasks;
pub mod transitions;

/// Log directives for kube, which logs every failed list or watch, and each answer that it cannot read, in full. Rollcall logs
/// these itself, with the object, shorter and rate-limited.
pub const KUBE_LOG_DIRECTIVES: &str =
    "kube_runtime=error,kube_client::client=error,kube_client::client::tls=warn";

pub use clock::ServerClock;
pub use event_loop::TreeSender;
#[cfg(feature = "fixtures")]
#[doc(hidden)]
pub use metrics::hostile::HostileMetrics;
#[cfg(feature = "fixtures")]
#[doc(hidden)]
pub use page::fixture::PageFixture;
pub use service::{ControllerService, run_service};

//! History of transitions, stored outside the cluster's objects as compressed lines of JSON in any object store.
//!
//! [`history_writer`] batches transitions and uploads them in the background; transitions that it cannot keep are
//! counted. [`read`] queries them. Below the given URL a batch has the key
//! `date=2026-11-21/134502-<instance>-<number>.ndjson.gz`: the day of its transitions, the time of the last of them
//! (UTC), and the writer. Each line is one [`Transition`](rollcall_core::Transition).
//!
//! **Invariant:** no key is written twice: an instance is a process, and it numbers its batches.

mod batch;
mod batch_pace;
#[cfg(feature = "cloud-history")]
mod cloud;
mod history_writer;
mod outage;
mod put;
pub mod read;
mod rollout_line;
mod store;
mod stored_line;
#[cfg(feature = "cloud-history")]
mod transport;

pub(crate) use history_writer::HistoryWriter;
pub(crate) use rollout_line::RolloutLine;
pub use store::HistoryStore;

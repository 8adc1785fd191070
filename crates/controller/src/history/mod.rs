//! History outside the object: every transition, as compressed lines of JSON, in any object store.
//!
//! [`keep`] gathers transitions and puts them away in the background; what it cannot keep is counted. [`read`] finds them
//! again. Below the URL that is given, a batch lies at `date=2026-11-21/134502-<instance>-<number>.ndjson.gz`: the day of
//! its transitions, the time of the last of them (UTC), who wrote it. Each line is one [`Transition`](crate::core::Transition).
//!
//! **Invariant:** no key is written twice: an instance is a process, and it counts its batches.

mod batch;
mod keep;
mod outage;
mod pace;
mod put;
pub mod read;
mod store;
mod transport;

pub(crate) use keep::Keep;
pub use store::Store;

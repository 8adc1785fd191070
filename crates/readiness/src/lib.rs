//! What is ready: the facts of one object in, a verdict out; the verdicts of many in, a condition out.
//!
//! Pure: no I/O, no clock, no async, no dependency.

mod reason;
pub mod rollup;
mod time;
mod verdict;

pub use reason::Reason;
pub use time::Time;
pub use verdict::{Assessment, Level, Verdict};
mod interim;
pub use interim::*;

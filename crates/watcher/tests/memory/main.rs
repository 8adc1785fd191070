//! Remembered outcomes of deleted Jobs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

mod discarded;
mod ends;
mod harness;
mod restarts;
mod runs;
mod selected;
mod traces;

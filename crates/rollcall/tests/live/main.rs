//! What looks at a live cluster, as its user runs it: over a cluster in memory, with the terminals, the sizes and the
//! credentials that are hard to come by elsewhere.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

mod cluster;
mod credentials;
mod large;
mod narrow;
mod rights;
mod terminal;
mod watching;

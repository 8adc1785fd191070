//! Simulation of remembered Jobs: they come and go, and so does the process that remembers them; no answer is ever
//! wrong.
//!
//! It drives the service's own core, reflector and record store over a cluster of its own: watches that lag, lose their
//! position and lose the race against live reads; outages in which Jobs run again and vanish; Events that come late,
//! never, or expire too early; records that are written late, twice, or not at all before a crash, that people delete
//! and corrupt, and that are listed in pieces, again and again, by lists that break off.

mod job_cluster;
mod job_event_log;
mod job_history;
mod memory_checks;
mod memory_counts;
mod record_server;
mod record_wire;
mod service_process;
mod simulated_job;

pub use memory_counts::MemoryCounts;

use job_history::JobHistory;

use crate::scenario::Sabotage;
use crate::timeline::InvariantFailure;

/// Plays the history of a seed: its log, the first violated check, and the counts.
pub(crate) fn play_history(
    seed: u64,
    sabotage: Option<Sabotage>,
) -> (Vec<String>, Option<InvariantFailure>, MemoryCounts) {
    JobHistory::new(seed, sabotage).play()
}

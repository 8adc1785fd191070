//! A simulator: seed → faults → virtual time → invariants.
//!
//! It drives `rollcall_core`, the very code that the service's loop runs, and the reflector, against the sandbox's
//! store, over a simulated wire that lags, drops, repeats and breaks. Everything is derived from one seed, and no clock
//! is read, so a failing seed replays exactly.
//!
//! The product's answers are judged by code that shares nothing with it but the terms: a second cache of everything
//! that was shown to it, and a naive judge that counts from scratch. Checked after each step:
//!
//! - **no false ready**: an answer becomes True, and a True is written, only if the naive judge agrees over the state
//!   that the loop has observed, for the generation that the operator has handled (or was silent about for `settle`);
//! - every other answer equals the naive judge's within the debounce's cap;
//! - no answer is written before every kind was listed in this life of the process, and no True while a kind is blind;
//! - only our own entries change in the store, on the object that was meant, and never to the value that they already
//!   have;
//! - tallies equal a recount, messages are bounded, the loop comes to rest.
//!
//! Remembered Jobs are simulated in a cluster of their own for each seed: no remembered outcome is ever wrong, and the
//! last run counts of which any evidence is left.
//!
//! At the end faults stop; after a quiet span the conditions of every parent equal the result of an oracle that reads
//! nothing but the store, and a restart writes nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};

mod actors;
mod answered_read;
mod commit;
mod decision;
mod dice;
mod invariant_watch;
mod invariants;
mod kind_wire;
mod memory;
mod naive_judge;
mod object_model;
mod quoted;
mod reads;
mod sabotage;
mod scenario;
mod shown_objects;
mod sim;
mod store_oracle;
mod turn;
mod wire;
mod write_in_flight;
mod writes;

pub use memory::MemoryCounts;
pub use sabotage::Sabotage;
pub use sim::{InvariantFailure, SimulationCounts};

/// Result of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationRun {
    /// The seed.
    pub seed: u64,
    /// Log of the run, one line per event.
    pub log: Vec<String>,
    /// The first violated invariant.
    pub failure: Option<InvariantFailure>,
    /// Counts of what happened.
    pub counts: SimulationCounts,
}

/// Plays one seed to its end, or to the first violated invariant.
pub fn play_seed(seed: u64, sabotage: Option<Sabotage>) -> SimulationRun {
    let mut sim = sim::Sim::new(seed, sabotage);
    let of_memory = [Some(Sabotage::OutagesForgotten), Some(Sabotage::HearsayBelieved)];
    if !of_memory.contains(&sabotage) && catch_unwind(AssertUnwindSafe(|| sim.play_history())).is_err() {
        sim.fail_invariant("nothing panics", "see above");
    }
    if sim.failure.is_none() {
        play_memory(&mut sim, seed, sabotage);
    }
    SimulationRun { seed, log: sim.log, failure: sim.failure, counts: sim.counts }
}

/// Plays the same seed's history of remembered Jobs.
fn play_memory(sim: &mut sim::Sim, seed: u64, sabotage: Option<Sabotage>) {
    match catch_unwind(|| memory::play_history(seed, sabotage)) {
        Ok((log, failure, remembered)) => {
            sim.log.extend(log);
            sim.counts.remembered = remembered;
            if let Some(failure) = failure {
                sim.fail_invariant("a finished job stays finished", failure);
            }
        }
        Err(_) => sim.fail_invariant("nothing panics", "see above"),
    }
}

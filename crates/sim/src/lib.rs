//! A simulator: seed → faults → virtual time → invariants.
//!
//! It drives `controller::core`, the very code that the service's loop runs, and the reflector, against the sandbox's
//! store, with a wire in between that lags, drops, repeats and breaks. Everything comes from one seed, and no clock is
//! read, so a failing seed replays exactly.
//!
//! What the product says is judged by code that shares nothing with it but the words: a second cache of what was shown
//! to it, and a naive judge that counts from scratch. After each step:
//!
//! - **no false ready**: an answer turns True, and a True leaves, only if the naive judge agrees over what the loop has
//!   taken in, for the generation that the operator has handled (or was silent about for `settle`);
//! - every other answer is the naive judge's within the debounce's cap;
//! - nothing is said before every kind was listed in this life of the process, no True while one is blind;
//! - only our own entries changed in the store, on the object that was meant, and never to what it said already;
//! - tallies equal a recount, messages are bounded, the loop rests.
//!
//! What is remembered of Jobs has a world of its own in each seed: no outcome is ever wrong, and the last run counts of which
//! anything is left that tells of it.
//!
//! At the end faults stop; after a quiet while every parent says what an oracle says that looks at nothing but the
//! store, and a restart writes nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};

mod check;
mod commit;
mod decision;
mod dice;
mod end;
mod memory;
mod naive;
mod reads;
mod sabotage;
mod scenario;
mod shown;
mod sim;
mod thing;
mod turn;
mod wire;
mod world;
mod writes;

pub use memory::Remembered;
pub use sabotage::Sabotage;
pub use sim::{Counts, Failure};

/// What became of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The seed.
    pub seed: u64,
    /// Everything that happened, one line each.
    pub log: Vec<String>,
    /// The first invariant that did not hold.
    pub failure: Option<Failure>,
    /// How much happened.
    pub counts: Counts,
}

/// Plays one seed to its end, or to the first invariant that does not hold.
pub fn play(seed: u64, sabotage: Option<Sabotage>) -> Run {
    let mut sim = sim::Sim::new(seed, sabotage);
    let of_memory = [Some(Sabotage::OutagesForgotten), Some(Sabotage::HearsayBelieved)];
    if !of_memory.contains(&sabotage) && catch_unwind(AssertUnwindSafe(|| sim.play())).is_err() {
        sim.fail("nothing panics", "see above");
    }
    if sim.failure.is_none() {
        remember(&mut sim, seed, sabotage);
    }
    Run { seed, log: sim.log, failure: sim.failure, counts: sim.counts }
}

/// The same seed's history of what is remembered.
fn remember(sim: &mut sim::Sim, seed: u64, sabotage: Option<Sabotage>) {
    match catch_unwind(|| memory::play(seed, sabotage)) {
        Ok((log, failure, remembered)) => {
            sim.log.extend(log);
            sim.counts.remembered = remembered;
            if let Some(failure) = failure {
                sim.fail("a finished job stays finished", failure);
            }
        }
        Err(_) => sim.fail("nothing panics", "see above"),
    }
}

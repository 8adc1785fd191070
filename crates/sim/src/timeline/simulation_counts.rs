//! Counts of what happened in a run.

use std::ops::AddAssign;

use crate::memory::MemoryCounts;

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimulationCounts {
    /// Virtual time, in milliseconds.
    pub simulated_ms: u64,
    /// Events of the simulation.
    pub events: u64,
    /// Writes that the server committed.
    pub writes: u64,
    /// Committed writes in which a condition became True.
    pub trues: u64,
    /// Checks of a message whose every word was known.
    pub messages: u64,
    /// Looks of a reader at a parent that read as ready.
    pub looks: u64,
    /// Writes that were refused or failed.
    pub refused: u64,
    /// Restarts of the process.
    pub restarts: u64,
    /// Events that a watch lost.
    pub lost: u64,
    /// Differences that live reads found and the watch had not delivered.
    pub drift: u64,
    /// Parents at the end.
    pub parents: u64,
    /// Plans of policies that the loop took over.
    pub plans: u64,
    /// Definitions of kinds that were deleted.
    pub vanished: u64,
    /// Definitions that were put back.
    pub returned: u64,
    /// Takeovers from a process that went on writing.
    pub overlaps: u64,
    /// Writes of such processes that the server committed.
    pub ghost_writes: u64,
    /// Trues among these that the process that took over did not hold, and had to take back.
    pub ghost_trues: u64,
    /// Counts of remembered outcomes.
    pub remembered: MemoryCounts,
}

impl AddAssign for SimulationCounts {
    fn add_assign(&mut self, other: SimulationCounts) {
        self.simulated_ms += other.simulated_ms;
        self.events += other.events;
        self.writes += other.writes;
        self.trues += other.trues;
        self.messages += other.messages;
        self.looks += other.looks;
        self.refused += other.refused;
        self.restarts += other.restarts;
        self.lost += other.lost;
        self.drift += other.drift;
        self.parents += other.parents;
        self.plans += other.plans;
        self.vanished += other.vanished;
        self.returned += other.returned;
        self.overlaps += other.overlaps;
        self.ghost_writes += other.ghost_writes;
        self.ghost_trues += other.ghost_trues;
        self.remembered += other.remembered;
    }
}

//! Counts of remembered outcomes.

use std::ops::AddAssign;

/// Counts of remembered outcomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryCounts {
    /// Restarts of the process.
    pub restarts: u64,
    /// Restarts after an outage in which Jobs changed.
    pub outages: u64,
    /// Processes that took over after they had stood by.
    pub takeovers: u64,
    /// Lists of records that broke off.
    pub half_lists: u64,
    /// Outcomes at the end that match the true history.
    pub right: u64,
    /// Outcomes at the end that are marked as unseen.
    pub unseen: u64,
    /// Unseen outcomes whose marking came from Events of a Job with another owner.
    pub strangers: u64,
    /// Unobserved runs that Events revealed.
    pub superseded: u64,
}

impl AddAssign for MemoryCounts {
    fn add_assign(&mut self, other: MemoryCounts) {
        self.restarts += other.restarts;
        self.outages += other.outages;
        self.takeovers += other.takeovers;
        self.half_lists += other.half_lists;
        self.right += other.right;
        self.unseen += other.unseen;
        self.strangers += other.strangers;
        self.superseded += other.superseded;
    }
}

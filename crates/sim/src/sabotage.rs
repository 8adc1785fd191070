//! Faults injected at the product's border, to prove that the simulation detects them.

/// One kind of fault. None needs a hook in the product: each alters its input or its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Installs policies without their `settle`.
    NoSettle,
    /// Removes the operators' handled marks from parents.
    NoEvidence,
    /// Makes repeated watch lines look newer than the held objects.
    StaleLooksNew,
    /// Reports a list as complete when it begins.
    SyncedEarly,
    /// A watch that stands again after blindness counts as a list.
    BlindnessForgiven,
    /// Keeps objects that are missing from a list.
    NoSweep,
    /// Removes the preconditions from every write.
    NoGuards,
    /// Writes conditions of other managers too.
    ForeignTouched,
    /// Drops all deletions from watches, and skips audits.
    DeletesLost,
    /// Never looks for Events about an outage.
    OutagesForgotten,
    /// Takes an Event about a Job of the same name as the outcome of the parent's Job.
    HearsayBelieved,
}

impl Sabotage {
    /// All kinds of faults.
    pub const ALL: [Sabotage; 11] = [
        Sabotage::NoSettle,
        Sabotage::NoEvidence,
        Sabotage::StaleLooksNew,
        Sabotage::SyncedEarly,
        Sabotage::BlindnessForgiven,
        Sabotage::NoSweep,
        Sabotage::NoGuards,
        Sabotage::ForeignTouched,
        Sabotage::DeletesLost,
        Sabotage::OutagesForgotten,
        Sabotage::HearsayBelieved,
    ];
}

//! Ways to break the product at its border, to see that the simulation notices.

/// One way. None needs a hook in the product: each alters what goes into it or what comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// Policies are installed without their `settle`.
    NoSettle,
    /// What operators leave behind as their mark is cut out of parents.
    NoEvidence,
    /// What a watch repeats looks newer than what is held.
    StaleLooksNew,
    /// A list is said to be complete when it begins.
    SyncedEarly,
    /// What a list does not have is kept.
    NoSweep,
    /// The guards are cut out of every write.
    NoGuards,
    /// Conditions of others are written too.
    ForeignTouched,
    /// No watch brings a deletion, and nothing is audited.
    DeletesLost,
    /// Nobody asks what happened in an outage.
    OutagesForgotten,
    /// What Events tell of a Job by its name is taken for how the parent's ended.
    HearsayBelieved,
}

impl Sabotage {
    /// All of them.
    pub const ALL: [Sabotage; 10] = [
        Sabotage::NoSettle,
        Sabotage::NoEvidence,
        Sabotage::StaleLooksNew,
        Sabotage::SyncedEarly,
        Sabotage::NoSweep,
        Sabotage::NoGuards,
        Sabotage::ForeignTouched,
        Sabotage::DeletesLost,
        Sabotage::OutagesForgotten,
        Sabotage::HearsayBelieved,
    ];
}

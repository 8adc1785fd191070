//! Outcomes of status writes, as the loop hears of them.

use aggregator::{DeliveryOutcome, KindId, ObjectId, PolicyId, WriteTicket};
use readiness::rollup::ConditionStatus;

/// Result of a status write.
#[derive(Clone, Debug)]
pub(crate) struct SettledWrite {
    /// Parent that was written.
    pub(crate) parent: ObjectId,
    /// Which write it was.
    pub(crate) ticket: WriteTicket,
    /// Kind of the parent.
    pub(crate) kind: KindId,
    /// Policies whose answers the write carried.
    pub(crate) policies: Vec<PolicyId>,
    /// Outcome of the write.
    pub(crate) outcome: DeliveryOutcome,
    /// Outcome of the write, as a metric's label.
    pub(crate) label: &'static str,
    /// New status of the first policy's condition, if the write was accepted and changed it.
    pub(crate) status_transition: Option<ConditionStatus>,
    /// Failure to be logged.
    pub(crate) failure: Option<WriteFailure>,
}

/// Failed write, as it is logged. Many fail alike, so the loop logs one line for all of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteFailure {
    /// Kind, namespace and name of the parent.
    pub(crate) object: String,
    /// Cause, with its remedy if there is one.
    pub(crate) cause: &'static str,
    /// HTTP status; 0 if no response came.
    pub(crate) status: u16,
    /// Detail given by the server or by the client.
    pub(crate) detail: String,
    /// Error of the live read after the write, if that failed too.
    pub(crate) reread: Option<String>,
}

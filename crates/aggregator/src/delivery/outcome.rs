//! How writes to a parent end, and why some parents cannot be written.

use std::time::Duration;

use super::open_delivery::Brevity;

/// Outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The server accepted the write. The resulting status was observed before this outcome is reported.
    Written,
    /// The server accepted the write, but what the parent shows could not be observed: its kind is being listed by another
    /// plan.
    Unobserved,
    /// A precondition failed (409, 422). The parent was read live and observed before this outcome is reported.
    Conflict,
    /// The same, of a write that was bound to the version of the parent because it adds a condition of a type: whatever else was
    /// written to the parent since is enough. No type is added for a while where it happens again.
    Contended,
    /// The parent would be invalid with these conditions (422), which can be said within known bounds and this briefly: they are at
    /// once.
    Shortened(Brevity),
    /// The parent would be invalid with these conditions (422), however they are said: retried like a failure, and soon after its
    /// status has changed its shape.
    Invalid,
    /// Failed, or unknown: retried with a backoff that grows with each failure in a row, and no earlier than after this
    /// delay (`Retry-After`).
    Retry(Duration),
    /// Not permitted (403): retried like a failure.
    Denied,
    /// Never sent: this replica does not lead any more, or the kind is not served. Not a failure of the server.
    Unsent,
    /// The server accepted the write and dropped the fields: retried after 10 min, or 1 min where the parent held conditions before,
    /// and at once where the parent's status has changed its shape.
    Pruned,
    /// The parent no longer exists.
    Gone,
}

/// Why a parent cannot be told what there is to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnwrittenBecause {
    /// The server drops the conditions, or the status cannot hold them.
    Pruned,
    /// The server, or an admission policy, refuses them however they are said.
    Refused,
    /// Several writes in a row failed, or were not permitted.
    Failing,
}

impl DeliveryOutcome {
    /// Returns `true` if the server accepted the write and kept it, as far as is known.
    pub fn is_accepted(self) -> bool {
        matches!(self, DeliveryOutcome::Written | DeliveryOutcome::Unobserved)
    }
}

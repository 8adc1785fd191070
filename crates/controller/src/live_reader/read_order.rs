//! What the event loop asks to be read.

use rollcall_core::LiveRead;

/// Live reads that the event loop orders.
#[derive(Debug)]
pub(crate) enum ReadOrder {
    /// Of a parent that is not ready, and of what holds it back. Where nothing has changed, nothing is to be read.
    Resync(Vec<LiveRead>),
    /// Of objects that are to be evaluated again, whether they have changed or not.
    Reevaluation(Vec<LiveRead>),
}

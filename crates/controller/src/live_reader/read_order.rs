//! What the event loop asks to be read.

use rollcall_core::LiveRead;
use timer::ResyncPace;

/// Live reads that the event loop orders.
#[derive(Debug)]
pub(crate) enum ReadOrder {
    /// Of a parent that is not ready, and of what holds it back. Where nothing has changed, nothing is to be read.
    Resync(ResyncOrder),
    /// Of objects that are to be evaluated again, whether they have changed or not.
    Reevaluation(Vec<LiveRead>),
}

/// The resync of one parent.
#[derive(Debug)]
pub(crate) struct ResyncOrder {
    /// What is to be read.
    pub(crate) reads: Vec<LiveRead>,
    /// How often that is ordered, and of how many parents.
    pub(crate) pace: ResyncPace,
}

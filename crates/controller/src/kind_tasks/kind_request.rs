//! What the event loop asks of the tasks of kinds.

use std::sync::Arc;

use aggregator::KindId;
use policy::WatchPlan;

/// Request of the event loop to the owner of the kinds' tasks.
pub(crate) enum KindRequest {
    /// A kind became blind while no list of it was under way.
    Relist(KindId),
    /// The loop judges by this plan: what it does not follow may be forgotten. Under an earlier plan the absence of its objects
    /// would be taken for their deletion.
    ForgetUnplanned(Arc<WatchPlan>),
}

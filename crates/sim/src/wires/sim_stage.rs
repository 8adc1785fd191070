//! The parties that the simulated wires connect.

use crate::service::{ObjectFeed, ServiceUnderTest};
use crate::world::SimWorld;

/// The world on one side of every wire, the service on the other, and the caches that are fed by it.
pub(crate) struct SimStage {
    pub(crate) world: SimWorld,
    pub(crate) service: ServiceUnderTest,
    pub(crate) feed: ObjectFeed,
}

//! The parties that the simulated wires connect.

use crate::object_feed::ObjectFeed;
use crate::service_under_test::ServiceUnderTest;
use crate::sim_world::SimWorld;

/// The world on one side of every wire, the service on the other, and the caches that are fed by it.
pub(crate) struct SimStage {
    pub(crate) world: SimWorld,
    pub(crate) service: ServiceUnderTest,
    pub(crate) feed: ObjectFeed,
}

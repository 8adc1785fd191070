//! The service under test: one life of the process after the other, with its reflector and the policies that it has in
//! force. Nothing here judges it.

mod object_feed;
mod other_policies;
mod policy_follower;
mod policy_plan;
mod service_under_test;
mod type_inventory;

pub(crate) use object_feed::ObjectFeed;
pub(crate) use other_policies::OtherPolicies;
pub(crate) use policy_follower::{PolicyFollower, REFUSED_FOR_LONG};
pub(crate) use policy_plan::PolicyPlan;
pub(crate) use service_under_test::{AUDIT_PERIOD, ServiceUnderTest};
pub(crate) use type_inventory::TypeInventory;

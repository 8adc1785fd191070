//! Policies that are edited, refused, deleted and created again while the service runs, and the service's handling of
//! that: which spec is in force, what is followed for it, and what is released.

mod plan_watch;
pub(crate) mod policy_checks;
mod policy_event;
mod policy_follower;
mod policy_plan;
mod policy_server;
mod policy_watch;

pub(crate) use plan_watch::PlanWatch;
pub(crate) use policy_event::PolicyEvent;
pub(crate) use policy_plan::PolicyPlan;
pub(crate) use policy_server::PolicyServer;
pub(crate) use policy_watch::PolicyWatch;

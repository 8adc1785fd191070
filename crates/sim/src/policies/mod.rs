//! Policies that are edited, refused, deleted and created again while the service runs, and the service's handling of
//! that: which spec is in force, what is followed for it, and what is released.

mod policy_checks;
mod policy_follower;
mod policy_plan;
mod policy_server;
mod policy_steps;
mod policy_watch;

pub(crate) use policy_watch::{PolicyEvent, PolicyWatch};

//! All actors but Rollcall: people, operators, workload controllers, other writers of status, and random faults.

mod cluster_actors;
mod faults;
mod manifests;
mod operator;
mod operator_visit;

pub(crate) use cluster_actors::ClusterActors;
pub(crate) use faults::inject_fault;
pub(crate) use operator::run_operator;
pub(crate) use operator_visit::OperatorVisit;

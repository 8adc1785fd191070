//! All actors but Rollcall: people, operators, workload controllers, other writers of status, and random faults.

mod churn;
mod cluster_actors;
mod condition_writers;
mod definitions;
mod deletions;
mod drains;
mod failures;
mod faults;
mod history_actors;
mod manifests;
mod nights;
mod operator;
mod operator_visit;
mod optional_actors;
mod other_release;
mod script;
mod scripted_actors;

pub(crate) use churn::ChurnActors;
pub(crate) use cluster_actors::ClusterActors;
pub(crate) use definitions::DefinitionActors;
pub(crate) use deletions::DeletionActors;
pub(crate) use drains::DrainActors;
pub(crate) use failures::FailureActors;
pub(crate) use faults::inject_fault;
pub(crate) use history_actors::HistoryActors;
pub(crate) use nights::Nights;
pub(crate) use operator_visit::OperatorVisit;
pub(crate) use optional_actors::OptionalActors;
pub(crate) use other_release::OtherRelease;
pub(crate) use scripted_actors::{ScriptedActors, write_condition};

//! The table: kinds of Kubernetes itself, each with the question that a person would ask of it.

mod batch;
mod cluster;
mod network;
mod pod;
mod scale;
mod storage;
mod workload;

pub(crate) use batch::job;
pub(crate) use cluster::namespace_content;
pub(crate) use pod::pod;

use crate::Reason;
use crate::assess::{Limits, Ruling};
use crate::branch::Branch;
use crate::facts::Facts;
use crate::kind::Kind;

/// Judges an object of a kind that has a rule of its own.
pub(crate) fn table<'a>(kind: Kind, facts: &'a Facts, limits: &Limits) -> Ruling<'a> {
    match kind {
        Kind::Deployment => workload::deployment(facts, limits),
        Kind::StatefulSet => workload::stateful_set(facts),
        Kind::DaemonSet => workload::daemon_set(facts),
        Kind::ReplicaSet => workload::replica_set(facts, limits),
        Kind::Pod => pod(facts, limits),
        Kind::Job => job(facts, limits),
        Kind::CronJob => batch::cron_job(facts),
        Kind::Service => network::service(facts, limits),
        Kind::Ingress => network::ingress(facts, limits),
        Kind::EndpointSlice => network::endpoint_slice(facts),
        Kind::PersistentVolumeClaim => storage::claim(facts, limits),
        Kind::PersistentVolume => storage::volume(facts, limits),
        Kind::HorizontalPodAutoscaler => scale::autoscaler(facts, limits),
        Kind::PodDisruptionBudget => scale::budget(facts),
        Kind::Namespace => cluster::namespace(facts),
        Kind::Node => cluster::node(facts, limits),
        Kind::ApiService => cluster::api_service(facts, limits),
        Kind::CustomResourceDefinition => cluster::definition(facts),
        Kind::Plain | Kind::Run | Kind::Other => Ruling::unknown(Reason::NoSignal, Branch::Nothing),
    }
}

/// A number of the API as a count; none below zero.
fn count(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

//! The rules for the built-in kinds of Kubernetes.

mod batch;
mod cluster;
mod count;
mod network;
mod pod;
mod progress;
mod replica_numbers;
mod scale;
mod steady;
mod storage;
mod workload;

pub(crate) use batch::judge_job;
pub(crate) use cluster::remaining_namespace_content;
pub(crate) use pod::judge_pod;
pub(crate) use progress::limit_progress;
pub(crate) use steady::is_available_workload;
pub use steady::{KnownBeside, steadiness_beside, whole_replicas};

use crate::Reason;
use crate::branch::Branch;
use crate::facts::Facts;
use crate::kind::RuleKind;
use crate::readiness_ruling::ReadinessRuling;
use crate::stuck_limits::StuckLimits;

/// Judges an object of a kind that has a built-in rule.
pub(crate) fn judge_built_in<'a>(
    kind: RuleKind,
    facts: &'a Facts,
    limits: &StuckLimits,
) -> ReadinessRuling<'a> {
    match kind {
        RuleKind::Deployment => workload::judge_deployment(facts, limits),
        RuleKind::StatefulSet => workload::judge_stateful_set(facts),
        RuleKind::DaemonSet => workload::judge_daemon_set(facts),
        RuleKind::ReplicaSet => workload::judge_replica_set(facts, limits),
        RuleKind::Pod => judge_pod(facts, limits),
        RuleKind::Job => judge_job(facts, limits),
        RuleKind::CronJob => batch::judge_cron_job(facts),
        RuleKind::Service => network::judge_service(facts, limits),
        RuleKind::Ingress => network::judge_ingress(facts, limits),
        RuleKind::EndpointSlice => network::judge_endpoint_slice(facts),
        RuleKind::PersistentVolumeClaim => storage::judge_volume_claim(facts, limits),
        RuleKind::PersistentVolume => storage::judge_volume(facts, limits),
        RuleKind::HorizontalPodAutoscaler => scale::judge_autoscaler(facts, limits),
        RuleKind::PodDisruptionBudget => scale::judge_disruption_budget(facts),
        RuleKind::Namespace => cluster::judge_namespace(facts),
        RuleKind::Node => cluster::judge_node(facts, limits),
        RuleKind::ApiService => cluster::judge_api_service(facts, limits),
        RuleKind::CustomResourceDefinition => cluster::judge_definition(facts),
        RuleKind::Plain | RuleKind::Run | RuleKind::Other => {
            ReadinessRuling::unknown(Reason::NoSignal, Branch::Nothing)
        }
    }
}

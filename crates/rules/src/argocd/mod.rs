//! Argo CD's health of one object: a matching script, then deletion, then the rule of its kind, else no health.
//!
//! Status and message are Argo CD's own, except where its message is a Go error: there the text is ours. The kinds are
//! those of its built-in Go rules and the three core kinds whose rule is a script that ships with it; a script library
//! that is given takes precedence over these.

mod go_values;
mod health;
mod kinds;
mod types;
mod workloads;

use readiness::Time;
use serde_json::Value;

use crate::json::ObjectGvk;
use crate::peer_verdict::PeerVerdict;
use go_values::{list_at, text_at};
use health::{PROGRESSING, UNKNOWN, peer_verdict};

const HOOK_FINALIZER: &str = "argocd.argoproj.io/hook-finalizer";

/// Returns the health of an object that no script matches.
pub(crate) fn judge_built_in(object: &Value) -> PeerVerdict {
    if is_deleting(object) && !is_hook_kept(object) {
        return peer_verdict(PROGRESSING, "Pending deletion");
    }
    judge_by_kind(object).unwrap_or_else(|| PeerVerdict { status: None, message: String::new() })
}

/// Returns `true` for a valid deletion timestamp. One that does not parse, or is Go's zero time, does not count.
fn is_deleting(object: &Value) -> bool {
    const GO_ZERO_TIME: Time = Time(-62_135_596_800_000);
    Time::from_rfc3339(text_at(object, &["metadata", "deletionTimestamp"]))
        .is_some_and(|at| at != GO_ZERO_TIME)
}

/// Returns `true` if Argo CD itself holds the object by a finalizer: it then assesses the hook's outcome, not its
/// deletion.
fn is_hook_kept(object: &Value) -> bool {
    let finalizers = list_at(object, &["metadata", "finalizers"]);
    finalizers.iter().all(Value::is_string) && finalizers.iter().any(|f| f == HOOK_FINALIZER)
}

/// A rule for the objects of one kind. Called only if the object converts to the kind's type.
type KindRule = fn(&Value) -> PeerVerdict;

fn judge_by_kind(object: &Value) -> Option<PeerVerdict> {
    let gvk = ObjectGvk::of_object(object);
    let (versions, rule): (&[(&str, &str)], KindRule) = match (gvk.group, gvk.kind) {
        ("apps", "Deployment") => (&[("v1", "apps/v1.Deployment")], workloads::judge_deployment),
        ("apps", "StatefulSet") => (&[("v1", "apps/v1.StatefulSet")], workloads::judge_stateful_set),
        ("apps", "ReplicaSet") => (&[("v1", "apps/v1.ReplicaSet")], workloads::judge_replica_set),
        ("apps", "DaemonSet") => (&[("v1", "apps/v1.DaemonSet")], workloads::judge_daemon_set),
        ("batch", "Job") => (&[("v1", "batch/v1.Job")], workloads::judge_job),
        ("", "Pod") => (&[("v1", "core/v1.Pod")], workloads::judge_pod),
        ("", "Service") => (&[("v1", "core/v1.Service")], kinds::judge_service),
        ("", "PersistentVolumeClaim") => {
            (&[("v1", "core/v1.PersistentVolumeClaim")], kinds::judge_volume_claim)
        }
        ("apiregistration.k8s.io", "APIService") => (
            &[("v1", "apiregistration/v1.APIService"), ("v1beta1", "apiregistration/v1beta1.APIService")],
            kinds::judge_api_service,
        ),
        ("autoscaling", "HorizontalPodAutoscaler") => (
            &[
                ("v1", "autoscaling/v1.HorizontalPodAutoscaler"),
                ("v2", "autoscaling/v2.HorizontalPodAutoscaler"),
            ],
            kinds::judge_autoscaler,
        ),
        ("extensions" | "networking.k8s.io", "Ingress") => return Some(kinds::judge_ingress(object)),
        ("argoproj.io", "Workflow") => return Some(kinds::judge_workflow(object)),
        ("batch", "CronJob") => return Some(kinds::judge_cron_job(object)),
        ("policy", "PodDisruptionBudget") => return Some(kinds::judge_disruption_budget(object)),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => return Some(kinds::judge_definition(object)),
        _ => return None,
    };
    let Some((_, name)) = versions.iter().find(|(version, _)| *version == gvk.version) else {
        return Some(peer_verdict(
            UNKNOWN,
            format!("version {} of {} is not supported", gvk.version, gvk.kind),
        ));
    };
    Some(match types::check_type(object, name) {
        Ok(()) => rule(object),
        Err(mismatch) => peer_verdict(UNKNOWN, format!("failed to convert the {}: {mismatch}", gvk.kind)),
    })
}

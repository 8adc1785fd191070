//! Objects owned by a leaf that explain why it is not ready: pods, their containers and claims, ReplicaSets.

use readiness::{Level, PodShortage, RuleKind, StuckLimits, Time, assess};
use serde::Serialize;
use serde_json::Value;
use watcher::{ParentObject, list_live_at_most, percent_encode};

use super::api_group::api_group;
use super::client::{CLAIMS_LABEL, InspectClient, PODS_LABEL, REPLICA_SETS_LABEL, built_in_kind};
use rollcall_core::event_causes::EventExplainedWorkload;
use rollcall_core::pod_causes::{is_ordered_ready, is_pod_of, pod_selector};

/// Maximum number of pods that are described: the worst ones.
const MAX_DESCRIBED_PODS: usize = 3;
/// Maximum number of pods listed per workload.
const MAX_LISTED_PODS: u32 = 500;
/// Maximum number of claims read per pod.
const MAX_CLAIMS_PER_POD: usize = 8;
/// Maximum number of parts in the description of a pod.
const MAX_PARTS_PER_POD: usize = 4;

/// Object owned by a leaf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnedObject {
    /// Kind and name, as in `Pod web-0`.
    pub object: String,
    /// Description of its problem.
    pub says: String,
    /// Its Events are shown too.
    #[serde(skip)]
    pub uid: String,
    /// Kind of the problem, if there is specific advice for it.
    #[serde(skip)]
    pub trouble: Option<OwnedTrouble>,
}

/// Kinds of problems that require different actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedTrouble {
    /// A container has terminated, or terminates repeatedly.
    Ends(String),
    /// The image of a container cannot be pulled.
    Image(String),
    /// A ConfigMap or Secret that a container references does not exist.
    Config(String),
    /// A container is running, and its probe fails.
    Probe(String),
    /// No node accepts the pod.
    Unscheduled,
    /// The claim is not bound.
    Unbound,
    /// Pods cannot be created.
    NotCreated,
}

/// Context of the inspected object.
pub(super) struct InspectContext<'a> {
    /// The Events about it.
    pub(super) events: &'a [Value],
    /// Time limits after which an object is stuck.
    pub(super) limits: &'a StuckLimits,
    /// Current time.
    pub(super) now: Time,
}

/// Inspects the objects owned by a built-in workload; empty for other kinds.
pub(super) async fn inspect_owned(
    ask: &mut InspectClient,
    client: &kube::Client,
    object: &ParentObject,
    around: &InspectContext<'_>,
) -> Vec<OwnedObject> {
    let limits = around.limits;
    let kind = RuleKind::from_group_kind(api_group(object), &object.child.meta.kind);
    let meta = &object.child.meta;
    let mut found = Vec::new();
    if kind == RuleKind::Pod {
        if let Ok(pod) = serde_json::from_str::<Value>(object.text.get()) {
            found.extend(describe_containers(&pod));
            found.extend(unbound_claims(ask, &meta.namespace, &pod).await);
        }
        return found;
    }
    let Some(selector) = pod_selector(&object.text).filter(|_| kind.owns_pods()) else { return found };
    if !ask.may_read(PODS_LABEL) {
        return found;
    }
    let kind_of_pods = built_in_kind("", "Pod", "pods");
    let space = Some(&*meta.namespace);
    let pods = match list_live_at_most::<ParentObject>(
        client,
        &kind_of_pods,
        space,
        Some(&selector),
        MAX_LISTED_PODS,
    )
    .await
    {
        Ok(pods) => pods,
        Err(error) => {
            ask.refused.insert(format!("{PODS_LABEL} of {} {}: {}", meta.kind, meta.name, error.detail));
            return found;
        }
    };
    let pods: Vec<&ParentObject> = pods.iter().filter(|pod| is_pod_of(&pod.child, &meta.name)).collect();
    for pod in worst_pods(&pods, limits) {
        found.push(describe_pod(pod, limits));
        if let Ok(value) = serde_json::from_str::<Value>(pod.text.get()) {
            found.extend(unbound_claims(ask, &meta.namespace, &value).await);
        }
    }
    found.extend(refused_creation(kind, object, &pods, around));
    if kind == RuleKind::Deployment {
        found.extend(failed_replica_sets(ask, &meta.namespace, &meta.uid, &selector).await);
    }
    found.dedup();
    found
}

/// Pods that are not ready, worst first, at most [`MAX_DESCRIBED_PODS`].
fn worst_pods<'p>(pods: &[&'p ParentObject], limits: &StuckLimits) -> Vec<&'p ParentObject> {
    let level = |pod: &ParentObject| assess(RuleKind::Pod, &pod.child.facts, limits).verdict.level;
    let mut unready: Vec<(Level, &ParentObject)> =
        pods.iter().map(|pod| (level(pod), *pod)).filter(|(level, _)| *level != Level::Ready).collect();
    unready.sort_by(|a, b| (a.0, &a.1.child.meta.name).cmp(&(b.0, &b.1.child.meta.name)));
    unready.truncate(MAX_DESCRIBED_PODS);
    unready.into_iter().map(|(_, pod)| pod).collect()
}

fn describe_pod(pod: &ParentObject, limits: &StuckLimits) -> OwnedObject {
    let value: Value = serde_json::from_str(pod.text.get()).unwrap_or_default();
    let parts = describe_containers(&value);
    let says = if parts.is_empty() {
        assess(RuleKind::Pod, &pod.child.facts, limits).verdict.reason.to_string()
    } else {
        parts.iter().map(|part| &*part.says).collect::<Vec<_>>().join("; ")
    };
    let (object, uid) = (format!("Pod {}", pod.child.meta.name), pod.child.meta.uid.to_string());
    OwnedObject { object, says, uid, trouble: parts.into_iter().find_map(|part| part.trouble) }
}

/// Descriptions of a pod's scheduling and its containers.
fn describe_containers(pod: &Value) -> Vec<OwnedObject> {
    let status = &pod["status"];
    let mut parts = Vec::new();
    for condition in array_items(&status["conditions"]) {
        if condition["type"] == "PodScheduled" && condition["status"] == "False" {
            let says = format!("not scheduled: {}", text_or_empty(&condition["message"]));
            parts.push((says, Some(OwnedTrouble::Unscheduled)));
        }
    }
    for container in
        array_items(&status["initContainerStatuses"]).chain(array_items(&status["containerStatuses"]))
    {
        parts.extend(describe_container(container).map(|says| (says, container_trouble(container))));
    }
    if let Some(message) = status["message"].as_str() {
        parts.push((format!("{}: {message}", text_or_empty(&status["reason"])), None));
    }
    parts.truncate(MAX_PARTS_PER_POD);
    let object = format!("Pod {}", text_or_empty(&pod["metadata"]["name"]));
    let owned = |(says, trouble)| OwnedObject { object: object.clone(), says, uid: String::new(), trouble };
    parts.into_iter().map(owned).collect()
}

fn describe_container(container: &Value) -> Option<String> {
    let name = text_or_empty(&container["name"]);
    let ended = |end: &Value| {
        let message = end["message"].as_str().map_or(String::new(), |message| format!(": {message}"));
        format!("ended with code {} ({}){message}", end["exitCode"], text_or_empty(&end["reason"]))
    };
    let (state, last) = (&container["state"], &container["lastState"]["terminated"]);
    let now = if let Some(waiting) = state.get("waiting").filter(|_| container["ready"] != true) {
        let message = waiting["message"].as_str().map_or(String::new(), |message| format!(": {message}"));
        format!("waits: {}{message}", text_or_empty(&waiting["reason"]))
    } else if state["terminated"]["exitCode"].as_i64().is_some_and(|code| code != 0) {
        ended(&state["terminated"])
    } else if container["ready"] == false && state.get("running").is_some() {
        "runs and is not ready".to_owned()
    } else {
        return None;
    };
    let restarts = container["restartCount"].as_u64().unwrap_or(0);
    let again = if restarts > 0 { format!(", restarted {restarts} times") } else { String::new() };
    let before = if last.is_object() { format!("; before that it {}", ended(last)) } else { String::new() };
    Some(format!("container {name} {now}{again}{before}"))
}

/// Kind of a container's problem, from the kubelet's reasons.
fn container_trouble(container: &Value) -> Option<OwnedTrouble> {
    let (name, state) = (text_or_empty(&container["name"]), &container["state"]);
    let waits = state["waiting"]["reason"].as_str().unwrap_or_default();
    if waits.contains("Image") || waits == "RegistryUnavailable" {
        return Some(OwnedTrouble::Image(name));
    }
    if waits == "CreateContainerConfigError" {
        return Some(OwnedTrouble::Config(name));
    }
    let ended = !state["terminated"].is_null() || !container["lastState"]["terminated"].is_null();
    if waits == "CrashLoopBackOff" || ended {
        return Some(OwnedTrouble::Ends(name));
    }
    (!state["running"].is_null()).then_some(OwnedTrouble::Probe(name))
}

/// Claims of a pod that are not bound.
async fn unbound_claims(ask: &mut InspectClient, namespace: &str, pod: &Value) -> Vec<OwnedObject> {
    let mut found = Vec::new();
    let volumes = array_items(&pod["spec"]["volumes"]);
    let names = volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str());
    for name in names.take(MAX_CLAIMS_PER_POD) {
        let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{}", percent_encode(name));
        let claim = ask.get(CLAIMS_LABEL, &path).await;
        if claim.is_some() || ask.may_read(CLAIMS_LABEL) {
            found.extend(describe_claim(name, claim.as_ref()));
        }
    }
    found
}

fn describe_claim(name: &str, claim: Option<&Value>) -> Option<OwnedObject> {
    let object = format!("PersistentVolumeClaim {name}");
    let Some(claim) = claim else {
        let says = "not found, or not permitted to read it".to_owned();
        return Some(OwnedObject { object, says, uid: String::new(), trouble: Some(OwnedTrouble::Unbound) });
    };
    let phase = text_or_empty(&claim["status"]["phase"]);
    if phase == "Bound" {
        return None;
    }
    let class = claim["spec"]["storageClassName"].as_str().unwrap_or("of the cluster's default");
    Some(OwnedObject {
        object,
        says: format!("not bound ({phase}), storage class {class}"),
        uid: text_or_empty(&claim["metadata"]["uid"]),
        trouble: Some(OwnedTrouble::Unbound),
    })
}

/// Refused creation of pods that only Events report.
fn refused_creation(
    kind: RuleKind,
    object: &ParentObject,
    pods: &[&ParentObject],
    around: &InspectContext<'_>,
) -> Option<OwnedObject> {
    let silent = EventExplainedWorkload::from_child(kind, &object.child, is_ordered_ready(&object.text))?;
    let lack = silent.pod_shortage(pods.iter().map(|pod| &pod.child))?;
    let lack = PodShortage { now: around.now, ..lack };
    let found = silent.refused_creation(around.events, lack, around.limits)?;
    let meta = &object.child.meta;
    Some(OwnedObject {
        object: format!("{} {}", meta.kind, meta.name),
        says: found.assessment.verdict.reason.to_string(),
        uid: String::new(),
        trouble: Some(OwnedTrouble::NotCreated),
    })
}

/// Failures of a Deployment's ReplicaSets to create pods, such as an exceeded quota.
async fn failed_replica_sets(
    ask: &mut InspectClient,
    namespace: &str,
    owner: &str,
    selector: &str,
) -> Vec<OwnedObject> {
    let path = format!(
        "/apis/apps/v1/namespaces/{namespace}/replicasets?labelSelector={}",
        percent_encode(selector)
    );
    let sets = ask.list_items(REPLICA_SETS_LABEL, &path).await;
    sets.iter()
        .filter(|set| array_items(&set["metadata"]["ownerReferences"]).any(|o| o["uid"] == owner))
        .filter_map(replica_failure)
        .collect()
}

fn replica_failure(set: &Value) -> Option<OwnedObject> {
    let failed = array_items(&set["status"]["conditions"])
        .find(|condition| condition["type"] == "ReplicaFailure" && condition["status"] == "True")?;
    Some(OwnedObject {
        object: format!("ReplicaSet {}", text_or_empty(&set["metadata"]["name"])),
        says: format!("{}: {}", text_or_empty(&failed["reason"]), text_or_empty(&failed["message"])),
        uid: text_or_empty(&set["metadata"]["uid"]),
        trouble: Some(OwnedTrouble::NotCreated),
    })
}

fn array_items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text_or_empty(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn says(status: &Value) -> Vec<String> {
        let pod = json!({ "metadata": { "name": "web-0" }, "status": status });
        describe_containers(&pod).into_iter().map(|owned| owned.says).collect()
    }

    #[test]
    fn a_pod_says_what_its_containers_and_the_scheduler_say() {
        let loops = json!({ "name": "main", "ready": false, "restartCount": 7,
            "state": { "waiting": { "reason": "CrashLoopBackOff", "message": "back-off 5m0s" } },
            "lastState": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } } });
        assert_eq!(
            says(&json!({ "containerStatuses": [loops] })),
            [
                "container main waits: CrashLoopBackOff: back-off 5m0s, restarted 7 times; before that it ended with code 137 (OOMKilled)"
            ]
        );
        let scheduled = json!({ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes are available" });
        assert_eq!(says(&json!({ "conditions": [scheduled] })), ["not scheduled: 0/3 nodes are available"]);
        let well = json!({ "name": "main", "ready": true, "state": { "running": {} } });
        assert!(says(&json!({ "containerStatuses": [well] })).is_empty());
    }

    #[test]
    fn the_kind_of_trouble_is_told_by_the_words_of_the_kubelet() {
        let of = |state: Value, last: Value| {
            container_trouble(&json!({ "name": "main", "state": state, "lastState": last }))
        };
        let waits = |reason: &str| of(json!({ "waiting": { "reason": reason } }), json!({}));
        let main = || "main".to_owned();
        for reason in ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"] {
            assert_eq!(waits(reason), Some(OwnedTrouble::Image(main())), "{reason}");
        }
        assert_eq!(waits("CrashLoopBackOff"), Some(OwnedTrouble::Ends(main())));
        assert_eq!(waits("CreateContainerConfigError"), Some(OwnedTrouble::Config(main())));
        assert_eq!(waits("ContainerCreating"), None);
        let ended = json!({ "terminated": { "exitCode": 1 } });
        assert_eq!(of(json!({ "running": {} }), ended), Some(OwnedTrouble::Ends(main())));
        assert_eq!(of(json!({ "running": {} }), json!({})), Some(OwnedTrouble::Probe(main())));
    }

    #[test]
    fn a_claim_that_is_not_bound_and_a_quota_that_is_used_up_are_named() {
        let claim = json!({ "spec": { "storageClassName": "fast" }, "status": { "phase": "Pending" } });
        assert_eq!(
            describe_claim("data", Some(&claim)).unwrap().says,
            "not bound (Pending), storage class fast"
        );
        assert_eq!(describe_claim("data", Some(&json!({ "status": { "phase": "Bound" } }))), None);
        let set = json!({ "metadata": { "name": "web-5d" }, "status": { "conditions": [
            { "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: small" },
        ] } });
        let failed = replica_failure(&set).unwrap();
        assert_eq!(
            (&*failed.object, &*failed.says),
            ("ReplicaSet web-5d", "FailedCreate: exceeded quota: small")
        );
    }
}

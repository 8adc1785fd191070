//! What a leaf owns, and what of it explains why the leaf is not ready: pods, their containers and claims, ReplicaSets.

use readiness::{Kind, Lack, Level, Limits, Time, assess};
use serde::Serialize;
use serde_json::Value;
use watcher::{Parent, look_some};

use super::ask::{Ask, CLAIM, PODS, SETS, built_in, encoded};
use crate::core::below::{in_order, is_of, selector};
use crate::core::silent::Silent;

/// So many pods are told about: the worst.
const TOLD: usize = 3;
/// So many pods of one workload are looked at.
const LOOKED_AT: u32 = 500;
/// So many claims of one pod.
const CLAIMS: usize = 8;
/// So many parts of the message of a pod.
const PARTS: usize = 4;

/// Something below a leaf.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Owned {
    /// As `Pod web-0`.
    pub object: String,
    /// What is the matter with it.
    pub says: String,
    /// Its Events belong to the story.
    #[serde(skip)]
    pub uid: String,
    /// What kind of trouble that is, where it is one that much can be said about.
    #[serde(skip)]
    pub trouble: Option<Trouble>,
}

/// Kinds of trouble that ask for different things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A container ends again and again, or has ended.
    Ends(String),
    /// The image of a container cannot be had.
    Image(String),
    /// What a container is made from is not there: a ConfigMap, a Secret.
    Config(String),
    /// A container runs, and its probe says no.
    Probe(String),
    /// No node takes the pod.
    Unscheduled,
    /// The claim is not bound.
    Unbound,
    /// Pods cannot be created.
    NotCreated,
}

/// What else is known of the object.
pub(super) struct Around<'a> {
    /// The Events about it.
    pub(super) events: &'a [Value],
    /// From when on something is stuck.
    pub(super) limits: &'a Limits,
    /// What time it is.
    pub(super) now: Time,
}

/// Looks below an object of Kubernetes' own; nothing below any other.
pub(super) async fn look(
    ask: &mut Ask,
    client: &kube::Client,
    object: &Parent,
    around: &Around<'_>,
) -> Vec<Owned> {
    let limits = around.limits;
    let kind = Kind::of(super::group(object), &object.child.meta.kind);
    let meta = &object.child.meta;
    let mut found = Vec::new();
    if kind == Kind::Pod {
        if let Ok(pod) = serde_json::from_str::<Value>(object.text.get()) {
            found.extend(containers(&pod));
            found.extend(claims(ask, &meta.namespace, &pod).await);
        }
        return found;
    }
    let Some(selector) = selector(&object.text).filter(|_| kind.owns_pods()) else { return found };
    if !ask.may(PODS) {
        return found;
    }
    let kind_of_pods = built_in("", "Pod", "pods");
    let space = Some(&*meta.namespace);
    let pods = match look_some::<Parent>(client, &kind_of_pods, space, Some(&selector), LOOKED_AT).await {
        Ok(pods) => pods,
        Err(error) => {
            ask.refused.insert(format!("{PODS} of {} {}: {}", meta.kind, meta.name, error.detail));
            return found;
        }
    };
    let pods: Vec<&Parent> = pods.iter().filter(|pod| is_of(&pod.child, &meta.name)).collect();
    for pod in worst(&pods, limits) {
        found.push(told(pod, limits));
        if let Ok(value) = serde_json::from_str::<Value>(pod.text.get()) {
            found.extend(claims(ask, &meta.namespace, &value).await);
        }
    }
    found.extend(refused(kind, object, &pods, around));
    if kind == Kind::Deployment {
        found.extend(replica_sets(ask, &meta.namespace, &meta.uid, &selector).await);
    }
    found.dedup();
    found
}

/// The first few that are not ready, worst first.
fn worst<'p>(pods: &[&'p Parent], limits: &Limits) -> Vec<&'p Parent> {
    let level = |pod: &Parent| assess(Kind::Pod, &pod.child.facts, limits).verdict.level;
    let mut unready: Vec<(Level, &Parent)> =
        pods.iter().map(|pod| (level(pod), *pod)).filter(|(level, _)| *level != Level::Ready).collect();
    unready.sort_by(|a, b| (a.0, &a.1.child.meta.name).cmp(&(b.0, &b.1.child.meta.name)));
    unready.truncate(TOLD);
    unready.into_iter().map(|(_, pod)| pod).collect()
}

fn told(pod: &Parent, limits: &Limits) -> Owned {
    let value: Value = serde_json::from_str(pod.text.get()).unwrap_or_default();
    let parts = containers(&value);
    let says = if parts.is_empty() {
        assess(Kind::Pod, &pod.child.facts, limits).verdict.reason.to_string()
    } else {
        parts.iter().map(|part| &*part.says).collect::<Vec<_>>().join("; ")
    };
    let (object, uid) = (format!("Pod {}", pod.child.meta.name), pod.child.meta.uid.to_string());
    Owned { object, says, uid, trouble: parts.into_iter().find_map(|part| part.trouble) }
}

/// What a pod says of its scheduling and its containers.
fn containers(pod: &Value) -> Vec<Owned> {
    let status = &pod["status"];
    let mut parts = Vec::new();
    for condition in list(&status["conditions"]) {
        if condition["type"] == "PodScheduled" && condition["status"] == "False" {
            let says = format!("not scheduled: {}", text(&condition["message"]));
            parts.push((says, Some(Trouble::Unscheduled)));
        }
    }
    for container in list(&status["initContainerStatuses"]).chain(list(&status["containerStatuses"])) {
        parts.extend(container_says(container).map(|says| (says, trouble(container))));
    }
    if let Some(message) = status["message"].as_str() {
        parts.push((format!("{}: {message}", text(&status["reason"])), None));
    }
    parts.truncate(PARTS);
    let object = format!("Pod {}", text(&pod["metadata"]["name"]));
    let owned = |(says, trouble)| Owned { object: object.clone(), says, uid: String::new(), trouble };
    parts.into_iter().map(owned).collect()
}

fn container_says(container: &Value) -> Option<String> {
    let name = text(&container["name"]);
    let ended = |end: &Value| {
        let message = end["message"].as_str().map_or(String::new(), |message| format!(": {message}"));
        format!("ended with code {} ({}){message}", end["exitCode"], text(&end["reason"]))
    };
    let (state, last) = (&container["state"], &container["lastState"]["terminated"]);
    let now = if let Some(waiting) = state.get("waiting").filter(|_| container["ready"] != true) {
        let message = waiting["message"].as_str().map_or(String::new(), |message| format!(": {message}"));
        format!("waits: {}{message}", text(&waiting["reason"]))
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

/// What kind of trouble it is in; the words are those of the kubelet.
fn trouble(container: &Value) -> Option<Trouble> {
    let (name, state) = (text(&container["name"]), &container["state"]);
    let waits = state["waiting"]["reason"].as_str().unwrap_or_default();
    if waits.contains("Image") || waits == "RegistryUnavailable" {
        return Some(Trouble::Image(name));
    }
    if waits == "CreateContainerConfigError" {
        return Some(Trouble::Config(name));
    }
    let ended = !state["terminated"].is_null() || !container["lastState"]["terminated"].is_null();
    if waits == "CrashLoopBackOff" || ended {
        return Some(Trouble::Ends(name));
    }
    (!state["running"].is_null()).then_some(Trouble::Probe(name))
}

/// Claims of a pod that are not bound.
async fn claims(ask: &mut Ask, namespace: &str, pod: &Value) -> Vec<Owned> {
    let mut found = Vec::new();
    let volumes = list(&pod["spec"]["volumes"]);
    let names = volumes.filter_map(|volume| volume["persistentVolumeClaim"]["claimName"].as_str());
    for name in names.take(CLAIMS) {
        let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{}", encoded(name));
        let claim = ask.get(CLAIM, &path).await;
        if claim.is_some() || ask.may(CLAIM) {
            found.extend(unbound(name, claim.as_ref()));
        }
    }
    found
}

fn unbound(name: &str, claim: Option<&Value>) -> Option<Owned> {
    let object = format!("PersistentVolumeClaim {name}");
    let Some(claim) = claim else {
        let says = "not found, or not to be read".to_owned();
        return Some(Owned { object, says, uid: String::new(), trouble: Some(Trouble::Unbound) });
    };
    let phase = text(&claim["status"]["phase"]);
    if phase == "Bound" {
        return None;
    }
    let class = claim["spec"]["storageClassName"].as_str().unwrap_or("of the cluster's default");
    Some(Owned {
        object,
        says: format!("not bound ({phase}), storage class {class}"),
        uid: text(&claim["metadata"]["uid"]),
        trouble: Some(Trouble::Unbound),
    })
}

/// What cannot be created, where only Events say so.
fn refused(kind: Kind, object: &Parent, pods: &[&Parent], around: &Around<'_>) -> Option<Owned> {
    let silent = Silent::of(kind, &object.child, in_order(&object.text))?;
    let lack = silent.lack(pods.iter().map(|pod| &pod.child))?;
    let lack = Lack { now: around.now, ..lack };
    let found = silent.refused(around.events, lack, around.limits)?;
    let meta = &object.child.meta;
    Some(Owned {
        object: format!("{} {}", meta.kind, meta.name),
        says: found.assessment.verdict.reason.to_string(),
        uid: String::new(),
        trouble: Some(Trouble::NotCreated),
    })
}

/// What the ReplicaSets of a Deployment could not create, as with a quota that is used up.
async fn replica_sets(ask: &mut Ask, namespace: &str, owner: &str, selector: &str) -> Vec<Owned> {
    let path =
        format!("/apis/apps/v1/namespaces/{namespace}/replicasets?labelSelector={}", encoded(selector));
    let sets = ask.list(SETS, &path).await;
    sets.iter()
        .filter(|set| list(&set["metadata"]["ownerReferences"]).any(|o| o["uid"] == owner))
        .filter_map(failure)
        .collect()
}

fn failure(set: &Value) -> Option<Owned> {
    let failed = list(&set["status"]["conditions"])
        .find(|condition| condition["type"] == "ReplicaFailure" && condition["status"] == "True")?;
    Some(Owned {
        object: format!("ReplicaSet {}", text(&set["metadata"]["name"])),
        says: format!("{}: {}", text(&failed["reason"]), text(&failed["message"])),
        uid: text(&set["metadata"]["uid"]),
        trouble: Some(Trouble::NotCreated),
    })
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn says(status: &Value) -> Vec<String> {
        let pod = json!({ "metadata": { "name": "web-0" }, "status": status });
        containers(&pod).into_iter().map(|owned| owned.says).collect()
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
            trouble(&json!({ "name": "main", "state": state, "lastState": last }))
        };
        let waits = |reason: &str| of(json!({ "waiting": { "reason": reason } }), json!({}));
        let main = || "main".to_owned();
        for reason in ["ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"] {
            assert_eq!(waits(reason), Some(Trouble::Image(main())), "{reason}");
        }
        assert_eq!(waits("CrashLoopBackOff"), Some(Trouble::Ends(main())));
        assert_eq!(waits("CreateContainerConfigError"), Some(Trouble::Config(main())));
        assert_eq!(waits("ContainerCreating"), None);
        let ended = json!({ "terminated": { "exitCode": 1 } });
        assert_eq!(of(json!({ "running": {} }), ended), Some(Trouble::Ends(main())));
        assert_eq!(of(json!({ "running": {} }), json!({})), Some(Trouble::Probe(main())));
    }

    #[test]
    fn a_claim_that_is_not_bound_and_a_quota_that_is_used_up_are_named() {
        let claim = json!({ "spec": { "storageClassName": "fast" }, "status": { "phase": "Pending" } });
        assert_eq!(unbound("data", Some(&claim)).unwrap().says, "not bound (Pending), storage class fast");
        assert_eq!(unbound("data", Some(&json!({ "status": { "phase": "Bound" } }))), None);
        let set = json!({ "metadata": { "name": "web-5d" }, "status": { "conditions": [
            { "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: small" },
        ] } });
        let failed = failure(&set).unwrap();
        assert_eq!(
            (&*failed.object, &*failed.says),
            ("ReplicaSet web-5d", "FailedCreate: exceeded quota: small")
        );
    }
}

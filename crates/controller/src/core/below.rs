//! What a workload owns, and what of it explains that the workload is not ready.

use std::collections::BTreeMap;

use aggregator::ObjectId;
use readiness::{Assessment, Kind, Level, Limits, Reason, Text, Verdict, assess};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use watcher::plan::Interest;
use watcher::reflector::{Refined, Reflector};
use watcher::status::time;
use watcher::wire::Child;

/// The pods of a workload that is not ready.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Below {
    /// The workload.
    pub owner: ObjectId,
    /// Where it lives.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// How its pods are found: a label selector.
    pub selector: String,
    /// Where to look.
    pub at: At,
    /// From when on a pod is stuck.
    pub limits: Limits,
}

/// What is looked at below a workload, or around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum At {
    /// Its pods. Where there are none, its own conditions say why.
    Pods,
    /// Its pods, and where there are none, its Events: no condition of this kind says why they could not be created.
    PodsThenEvents,
    /// Its Events.
    Events,
}

#[derive(Deserialize)]
struct Workload {
    spec: Option<Spec>,
}

#[derive(Deserialize)]
struct Spec {
    selector: Option<Selector>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Selector {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<Expression>,
}

#[derive(Deserialize)]
struct Expression {
    key: String,
    operator: String,
    #[serde(default)]
    values: Vec<String>,
}

/// Where to look for the reason that this object is not ready; `None` where it is, or has no pods.
pub fn below(reflector: &Reflector, interest: &Interest, child: &Child, object: &RawValue) -> Option<Below> {
    let owner = reflector.find(&child.meta.uid).filter(|_| interest.judge.owns_pods())?;
    let explains = |level| matches!(level, Level::Progressing | Level::Failed | Level::Stuck);
    let unready = reflector.read(owner, |row| explains(row.assessment.verdict.level)).unwrap_or(false);
    let selector = unready.then(|| selector(object)).flatten()?;
    let limits = interest.lenses.first()?.limits;
    let (namespace, name) = (child.meta.namespace.to_string(), child.meta.name.to_string());
    let silent = matches!(interest.judge, Kind::StatefulSet | Kind::DaemonSet | Kind::Job);
    let at = if silent { At::PodsThenEvents } else { At::Pods };
    Some(Below { owner, namespace, name, uid: child.meta.uid.to_string(), selector, at, limits })
}

/// What its controller says of pods that it could not create, as with a quota that is used up; the oldest word, so that the
/// next try says the same.
pub fn refused(events: &Value, uid: &str, limits: &Limits) -> Option<Refined> {
    let about = |event: &&Value| event["involvedObject"]["uid"] == uid && event["reason"] == "FailedCreate";
    let dated = |event: &Value| {
        let since = time::parse(event["metadata"]["creationTimestamp"].as_str()?)?;
        Some((since, event["message"].as_str()?.to_owned()))
    };
    let events = events["items"].as_array().into_iter().flatten().filter(about);
    let (since, message) = events.filter_map(dated).min()?;
    let reason = Reason::ReplicaFailure(Text::foreign(&format!("FailedCreate: {message}")));
    let stuck = Verdict { level: Level::Stuck, reason: reason.clone() };
    let then = Some(Box::new((since + limits.pending, stuck)));
    let assessment = Assessment { verdict: Verdict { level: Level::Progressing, reason }, then };
    Some(Refined { name: "Event".into(), assessment })
}

/// The label selector of a workload, as the API reads it.
pub fn selector(object: &RawValue) -> Option<String> {
    let workload: Workload = serde_json::from_str(object.get()).ok()?;
    text(&workload.spec?.selector?)
}

fn text(selector: &Selector) -> Option<String> {
    let labels = selector.match_labels.iter().map(|(key, value)| Some(format!("{key}={value}")));
    let expressions = selector.match_expressions.iter().map(|e| {
        let (key, values) = (&e.key, e.values.join(","));
        match &*e.operator {
            "In" => Some(format!("{key} in ({values})")),
            "NotIn" => Some(format!("{key} notin ({values})")),
            "Exists" => Some(key.clone()),
            "DoesNotExist" => Some(format!("!{key}")),
            _ => None,
        }
    });
    let all: Vec<String> = labels.chain(expressions).collect::<Option<_>>()?;
    (!all.is_empty()).then(|| all.join(","))
}

/// The pod that explains most: the worst, and of those the first by name. Pods that only have not got far explain nothing.
pub fn cause(pods: &[Child], workload: &str, limits: &Limits) -> Option<Refined> {
    let pods = pods.iter().filter(|pod| pod.meta.deleted.is_none() && is_of(pod, workload));
    let judged = pods.filter_map(|pod| {
        let assessment = assess(Kind::Pod, &pod.facts, limits);
        explains(&assessment).then_some((assessment.verdict.level, &pod.meta.name, assessment))
    });
    let (_, name, assessment) = judged.min_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)))?;
    Some(Refined { name: format!("Pod {name}").into(), assessment })
}

/// Labels may be copied; the controller of a pod is the workload, or what a Deployment has named after itself.
pub fn is_of(pod: &Child, workload: &str) -> bool {
    pod.meta.owners.iter().any(|owner| owner.controller && owner.name.starts_with(workload))
}

fn explains(assessment: &Assessment) -> bool {
    matches!(
        assessment.verdict.reason,
        Reason::Unschedulable(_)
            | Reason::Waiting(_)
            | Reason::ContainerFailed(_)
            | Reason::PodFailed(_)
            | Reason::Pending(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, status: &Value) -> Child {
        let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d", "uid": "r", "controller": true });
        let meta = json!({ "name": name, "uid": name, "ownerReferences": [owner] });
        let pod = json!({ "metadata": meta, "status": status });
        serde_json::from_value::<Box<RawValue>>(pod).map(|text| Child::read(&text)).unwrap_or_default()
    }

    fn waiting(reason: &str) -> Value {
        let container =
            json!({ "name": "web", "ready": false, "state": { "waiting": { "reason": reason } } });
        json!({ "phase": "Pending", "containerStatuses": [container] })
    }

    #[test]
    fn the_worst_pod_explains_and_of_those_the_first_by_name() {
        let pods = [
            pod("c", &waiting("ImagePullBackOff")),
            pod("b", &waiting("ImagePullBackOff")),
            pod("a", &waiting("ContainerCreating")),
        ];
        let found = cause(&pods, "web", &Limits::default())
            .map(|r| (r.name, r.assessment.verdict.reason.to_string()));
        assert_eq!(found, Some(("Pod b".into(), "waiting: ImagePullBackOff".to_owned())));
    }

    #[test]
    fn pods_that_are_well_or_leaving_explain_nothing() {
        let ready = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
        let mut leaving = pod("a", &waiting("ErrImagePull"));
        leaving.meta.deleted = Some(readiness::Time(1));
        assert_eq!(cause(&[pod("b", &ready), leaving], "web", &Limits::default()), None);
        // It carries the same labels, but belongs to another.
        assert_eq!(cause(&[pod("a", &waiting("ErrImagePull"))], "api", &Limits::default()), None);
    }

    #[test]
    fn what_could_not_be_created_is_told_in_the_words_of_the_first_try_and_is_stuck_beyond_the_limit() {
        let event = |uid: &str, at: &str, reason: &str, message: &str| {
            json!({ "involvedObject": { "uid": uid }, "reason": reason, "message": message,
                "metadata": { "creationTimestamp": format!("2026-01-01T00:0{at}Z") } })
        };
        let events = json!({ "items": [
            event("u", "2:00", "FailedCreate", "pods \"b\" is forbidden: exceeded quota: small"),
            event("u", "1:00", "FailedCreate", "pods \"a\" is forbidden: exceeded quota: small"),
            event("u", "0:00", "SuccessfulCreate", "created pod a"),
            event("other", "0:00", "FailedCreate", "another one's"),
        ] });
        let found = refused(&events, "u", &Limits::default()).unwrap();
        assert!(
            found
                .assessment
                .verdict
                .reason
                .to_string()
                .contains("pods \"a\" is forbidden: exceeded quota: small")
        );
        let (at, then) = *found.assessment.then.unwrap();
        assert_eq!((at.to_string(), then.level), ("2026-01-01T00:11:00Z".to_owned(), Level::Stuck));
        assert_eq!(refused(&events, "nobody", &Limits::default()), None);
        assert_eq!(refused(&json!("odd"), "u", &Limits::default()), None);
    }

    #[test]
    fn selectors_are_written_as_the_api_reads_them() {
        let written = |selector: Value| serde_json::from_value(selector).ok().and_then(|s| text(&s));
        let expressions = json!([
            { "key": "tier", "operator": "In", "values": ["a", "b"] },
            { "key": "old", "operator": "DoesNotExist" },
        ]);
        let all = json!({ "matchLabels": { "app": "web" }, "matchExpressions": expressions });
        assert_eq!(written(all), Some("app=web,tier in (a,b),!old".to_owned()));
        assert_eq!(written(json!({})), None, "an empty selector would select every pod");
    }
}

//! What a workload owns, and what of it explains that the workload is not ready.

use std::collections::BTreeMap;

use aggregator::ObjectId;
use readiness::{Assessment, Kind, Lack, Level, Limits, Moment, Reason, Time, assess};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use watcher::plan::Interest;
use watcher::reflector::{Refined, Reflector, Row};
use watcher::wire::Child;

use super::silent::Silent;

/// A workload that is not ready, and where to look for what explains it.
#[derive(Clone, Debug)]
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
    /// From when on a pod is stuck, or what cannot be created: through each lens.
    pub limits: Vec<Limits>,
    /// It has no condition that says what cannot be created.
    pub silent: Option<Box<Silent>>,
    /// When it was seen to stop being ready.
    pub since: Option<Time>,
    /// Where to look.
    pub at: At,
}

/// What is looked at below a workload, or around it.
#[derive(Clone, Debug)]
pub enum At {
    /// Its pods.
    Pods,
    /// Its Events: it lacks pods. What those that it has tell is known.
    Events(Lack, Vec<Option<Refined>>),
}

#[derive(Deserialize)]
struct Workload {
    spec: Option<Spec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    selector: Option<Selector>,
    pod_management_policy: Option<String>,
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
    let seen = |row: &Row| row.since(0).filter(|since| since.from == Moment::Seen).map(|since| since.at);
    let unready = |row: &Row| explains(row.assessment.verdict.level).then(|| seen(row));
    let since = reflector.read(owner, unready).flatten()?;
    let limits = interest.lenses.iter().map(|lens| lens.limits).collect();
    let (namespace, name, uid) =
        (child.meta.namespace.to_string(), child.meta.name.to_string(), child.meta.uid.to_string());
    let silent = Silent::of(interest.judge, child, in_order(object)).map(Box::new);
    Some(Below {
        owner,
        namespace,
        name,
        uid,
        selector: selector(object)?,
        limits,
        silent,
        since,
        at: At::Pods,
    })
}

impl Below {
    /// What its pods tell, through each lens; and whether some are lacking, so that its Events have to be asked too.
    pub fn pods(&self, pods: &[Child]) -> (Vec<Option<Refined>>, Option<Lack>) {
        let lack = self.silent.as_ref().and_then(|silent| silent.lack(pods.iter()));
        let causes = self.limits.iter().map(|limits| cause(pods, &self.name, limits)).collect();
        (causes, lack.map(|lack| Lack { since: self.since, ..lack }))
    }

    /// What explains it, now that its Events are known too: whichever makes it stuck first. Those that it has may have trouble
    /// of their own.
    pub fn events(&self, events: &Value, lack: Lack, causes: Vec<Option<Refined>>) -> Vec<Option<Refined>> {
        let events = events["items"].as_array().map_or(&[][..], Vec::as_slice);
        let refused =
            |limits: &Limits| self.silent.as_ref().and_then(|silent| silent.refused(events, lack, limits));
        let explains = |(limits, cause): (&Limits, Option<Refined>)| match (cause, refused(limits)) {
            (Some(cause), Some(refused)) => Some(first(cause, refused)),
            (cause, refused) => cause.or(refused),
        };
        self.limits.iter().zip(causes).map(explains).collect()
    }
}

/// Of the trouble of a pod and a refusal, the one that makes their workload stuck first. A pod that only has not got far says
/// less than the refusal, whenever that was.
fn first(pod: Refined, mut refused: Refined) -> Refined {
    let stuck = |found: &Refined| found.assessment.then.as_ref().map_or(Time(i64::MAX), |then| then.0);
    let at = stuck(&pod);
    if at >= stuck(&refused) {
        return refused;
    }
    if !matches!(pod.assessment.verdict.reason, Reason::Pending(_)) {
        return pod;
    }
    if let Some(then) = &mut refused.assessment.then {
        then.0 = at;
    }
    refused
}

/// Its pods are created one after the other, each when those before it are ready.
pub fn in_order(object: &RawValue) -> bool {
    let workload: Option<Workload> = serde_json::from_str(object.get()).ok();
    let policy = workload.and_then(|workload| workload.spec?.pod_management_policy);
    policy.is_some_and(|policy| policy == "OrderedReady")
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
    use watcher::status::time;

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

    /// A StatefulSet that lacks pods, under policies with these limits, in minutes.
    fn lacking(minutes: &[u64]) -> Below {
        let pending = |minutes: &u64| std::time::Duration::from_secs(60 * minutes);
        let limits =
            minutes.iter().map(|minutes| Limits { pending: pending(minutes), ..Limits::default() }).collect();
        let set = json!({ "metadata": { "name": "web", "uid": "r", "generation": 1 }, "spec": { "replicas": 3 },
            "status": { "observedGeneration": 1, "replicas": 1 } });
        let set = serde_json::from_value::<Box<RawValue>>(set).map(|text| Child::read(&text)).unwrap();
        let silent = Silent::of(Kind::StatefulSet, &set, false).map(Box::new);
        let text = String::new;
        Below {
            owner: ObjectId(0),
            namespace: text(),
            name: "web".to_owned(),
            uid: text(),
            selector: text(),
            limits,
            silent,
            since: None,
            at: At::Pods,
        }
    }

    #[test]
    fn what_makes_it_stuck_first_explains_a_workload_that_lacks_pods() {
        let denied = json!({ "items": [{ "involvedObject": { "uid": "r" }, "reason": "FailedCreate", "message": "quota",
            "source": { "component": "statefulset-controller" },
            "metadata": { "creationTimestamp": "2026-01-01T00:01:00Z" } }] });
        let explained = |pod: Child, events: &Value| {
            let below = lacking(&[10]);
            let (cause, lack) = below.pods(&[pod]);
            let now = Time(1_767_225_720_000);
            let found = below.events(events, Lack { now, ..lack.unwrap() }, cause).pop().unwrap();
            let told = |found: Refined| {
                let stuck = found.assessment.then.map_or("never".to_owned(), |then| then.0.to_string());
                format!("{} {}", &stuck[stuck.len().saturating_sub(9)..], found.assessment.verdict.reason)
            };
            found.map_or("nothing".to_owned(), told)
        };
        let born = |second: u8, status: &Value| {
            let mut pod = pod("web-0", status);
            pod.meta.created = Some(Time(1_767_225_600_000 + i64::from(second) * 1_000));
            pod.facts.created = pod.meta.created;
            pod
        };
        let well = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
        let mut crash = waiting("CrashLoopBackOff");
        crash["phase"] = json!("Running");
        let unscheduled = json!({ "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "no node", "lastTransitionTime": "2026-01-01T00:00:05Z" }] });
        let starting = waiting("ContainerCreating");
        let none = json!({ "items": [] });
        let quota = "00:11:00Z FailedCreate: quota";
        assert_eq!(explained(born(0, &well), &denied), quota);
        assert_eq!(explained(born(0, &crash), &denied), quota, "a crash loop alone is never stuck");
        assert_eq!(explained(born(0, &crash), &none), "never waiting: CrashLoopBackOff");
        assert_eq!(
            explained(born(0, &unscheduled), &denied),
            "00:10:00Z unschedulable: no node",
            "since longer"
        );
        assert_eq!(explained(born(0, &starting), &denied), "00:10:00Z FailedCreate: quota", "that says more");
        assert_eq!(explained(born(61, &well), &denied), "nothing", "the pod came after the refusal");
    }

    #[test]
    fn each_policy_has_its_own_limit_for_what_lies_below() {
        let below = lacking(&[3, 60]);
        let stuck = |found: &[Option<Refined>]| -> Vec<String> {
            let then =
                |found: &Option<Refined>| Some(found.as_ref()?.assessment.then.as_ref()?.0.to_string());
            found.iter().map(|found| then(found).unwrap_or_default()).map(|at| at[11..].to_owned()).collect()
        };
        let unscheduled = json!({ "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "no node", "lastTransitionTime": "2026-01-01T00:00:05Z" }] });
        let mut born = pod("web-0", &unscheduled);
        born.facts.created = time::parse("2026-01-01T00:00:00Z");
        let (causes, lack) = below.pods(&[born]);
        assert_eq!(stuck(&causes), ["00:03:00Z", "01:00:00Z"]);
        let denied = json!({ "items": [{ "involvedObject": { "uid": "r" }, "reason": "FailedCreate", "message": "quota",
            "source": { "component": "statefulset-controller" },
            "metadata": { "creationTimestamp": "2026-01-01T00:00:01Z" } }] });
        let lack = Lack { now: time::parse("2026-01-01T00:02:00Z").unwrap(), ..lack.unwrap() };
        assert_eq!(stuck(&below.events(&denied, lack, vec![None, None])), ["00:03:01Z", "01:00:01Z"]);
        assert_eq!(stuck(&below.events(&denied, lack, causes)), ["00:03:00Z", "01:00:00Z"]);
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

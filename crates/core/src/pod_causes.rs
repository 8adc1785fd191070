//! Pods of a workload, and the causes among them that explain why the workload is not ready.

use std::collections::BTreeMap;
use std::sync::Arc;

use aggregator::{KindId, ObjectId};
use readiness::{
    Assessment, Level, PodShortage, Reason, RuleKind, SinceSource, StuckLimits, Time, Verdict, assess,
    crash_loop_since,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use watcher::plan::Interest;
use watcher::reflector::{ObjectRow, RefinedCause, Reflector};
use watcher::wire::ChildObject;

use super::event_causes::EventExplainedWorkload;

/// Workload that is not ready, and the lookup that may explain it.
#[derive(Clone, Debug)]
pub struct UnreadyWorkload {
    /// Id of the workload.
    pub owner: ObjectId,
    /// By what it was judged when it was read: the lenses are those of this.
    pub interest: Arc<Interest>,
    /// Namespace of the workload.
    pub namespace: String,
    /// Name of the workload.
    pub name: String,
    /// Uid of the workload.
    pub uid: String,
    /// Label selector of its pods.
    pub selector: String,
    /// Time limits after which a pod, or a failing creation, is stuck: one per rule index.
    pub limits: Vec<StuckLimits>,
    /// Set if no condition of the workload reports failing pod creation, so that Events have to explain it.
    pub event_explained: Option<Box<EventExplainedWorkload>>,
    /// Time at which it was observed to become not ready.
    pub since: Option<Time>,
    /// Next lookup.
    pub lookup: WorkloadLookup,
}

/// Objects to look up for a workload.
#[derive(Clone, Debug)]
pub enum WorkloadLookup {
    /// Its pods.
    Pods,
    /// Its Events: it lacks pods. Holds the causes found in the pods it has.
    Events(PodShortage, Vec<Option<RefinedCause>>),
}

#[derive(Deserialize)]
struct WorkloadManifest {
    spec: Option<WorkloadSpec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadSpec {
    selector: Option<WorkloadSelector>,
    pod_management_policy: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WorkloadSelector {
    #[serde(default)]
    match_labels: BTreeMap<String, String>,
    #[serde(default)]
    match_expressions: Vec<SelectorExpression>,
}

#[derive(Deserialize)]
struct SelectorExpression {
    key: String,
    operator: String,
    #[serde(default)]
    values: Vec<String>,
}

/// Lookup for the cause that this object is not ready; `None` if it is ready, or has no pods.
pub fn find_unready_workload(
    reflector: &Reflector,
    kind: KindId,
    child: &ChildObject,
    object: &RawValue,
) -> Option<UnreadyWorkload> {
    let interest = reflector.interest(kind)?;
    let owner = reflector.find_object(&child.meta.uid).filter(|_| interest.judge.owns_pods())?;
    let explains = |level| matches!(level, Level::Progressing | Level::Failed | Level::Stuck);
    let seen = |row: &ObjectRow| {
        row.unready_since(0).filter(|since| since.from == SinceSource::Seen).map(|since| since.at)
    };
    let unready = |row: &ObjectRow| explains(row.assessment.verdict.level).then(|| seen(row));
    let since = reflector.read_row(owner, unready).flatten()?;
    let limits = interest.assessment_rules.iter().map(|rule| rule.limits).collect();
    let (namespace, name, uid) =
        (child.meta.namespace.to_string(), child.meta.name.to_string(), child.meta.uid.to_string());
    let silent =
        EventExplainedWorkload::from_child(interest.judge, child, is_ordered_ready(object)).map(Box::new);
    Some(UnreadyWorkload {
        owner,
        interest,
        namespace,
        name,
        uid,
        selector: pod_selector(object)?,
        limits,
        event_explained: silent,
        since,
        lookup: WorkloadLookup::Pods,
    })
}

impl UnreadyWorkload {
    /// Causes found in the pods, one per rule index, and the shortage of pods, in which case its Events have to be read
    /// too.
    pub fn explain_by_pods(&self, pods: &[ChildObject]) -> (Vec<Option<RefinedCause>>, Option<PodShortage>) {
        let lack = self.event_explained.as_ref().and_then(|silent| silent.pod_shortage(pods.iter()));
        let causes = self.limits.iter().map(|limits| worst_pod_cause(pods, &self.name, limits)).collect();
        (causes, lack.map(|lack| PodShortage { since: self.since, ..lack }))
    }

    /// Causes found in the pods and the Events together: the one that makes the workload stuck first. Existing pods may
    /// have problems of their own.
    pub fn explain_by_events(
        &self,
        events: &Value,
        lack: PodShortage,
        causes: Vec<Option<RefinedCause>>,
    ) -> Vec<Option<RefinedCause>> {
        let events = events["items"].as_array().map_or(&[][..], Vec::as_slice);
        let refused = |limits: &StuckLimits| {
            self.event_explained.as_ref().and_then(|silent| silent.refused_creation(events, lack, limits))
        };
        let explains = |(limits, cause): (&StuckLimits, Option<RefinedCause>)| match (cause, refused(limits))
        {
            (Some(cause), Some(refused)) => Some(stuck_first(cause, refused)),
            (cause, refused) => cause.or(refused),
        };
        self.limits.iter().zip(causes).map(explains).collect()
    }
}

/// Selects the one of a pod's problem and a refused creation that makes the workload stuck first. A pod that is merely
/// starting explains less than a refusal at any time.
fn stuck_first(pod: RefinedCause, mut refused: RefinedCause) -> RefinedCause {
    let stuck = |found: &RefinedCause| found.assessment.then.as_ref().map_or(Time(i64::MAX), |then| then.0);
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

/// True if pods are created one after the other, each when its predecessors are ready.
pub fn is_ordered_ready(object: &RawValue) -> bool {
    let workload: Option<WorkloadManifest> = serde_json::from_str(object.get()).ok();
    let policy = workload.and_then(|workload| workload.spec?.pod_management_policy);
    policy.is_some_and(|policy| policy == "OrderedReady")
}

/// Label selector of a workload, in the API's query syntax.
pub fn pod_selector(object: &RawValue) -> Option<String> {
    let workload: WorkloadManifest = serde_json::from_str(object.get()).ok()?;
    selector_text(&workload.spec?.selector?)
}

fn selector_text(selector: &WorkloadSelector) -> Option<String> {
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

/// Cause in the worst pod, and of equally bad ones in the first by name. Pods that are merely starting explain nothing.
pub fn worst_pod_cause(pods: &[ChildObject], workload: &str, limits: &StuckLimits) -> Option<RefinedCause> {
    let pods = pods.iter().filter(|pod| pod.meta.deleted.is_none() && is_pod_of(pod, workload));
    let judged = pods.filter_map(|pod| {
        let assessment = limit_crash_loop(pod, assess(RuleKind::Pod, &pod.facts, limits), limits);
        is_explanatory(&assessment).then_some((assessment.verdict.level, &pod.meta.name, assessment))
    });
    let (_, name, assessment) = judged.min_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)))?;
    Some(RefinedCause { name: format!("Pod {name}").into(), assessment })
}

/// A pod that has been in a crash loop for `limits.progress` makes its workload stuck, however often it runs for a moment.
fn limit_crash_loop(pod: &ChildObject, found: Assessment, limits: &StuckLimits) -> Assessment {
    let since = crash_loop_since(&pod.facts).filter(|_| found.verdict.level == Level::Failed);
    let stuck = |since: Time| {
        let reason = Reason::NoProgress(Box::new(found.verdict.reason.clone()));
        Box::new((since + limits.progress, Verdict { level: Level::Stuck, reason, ..found.verdict.clone() }))
    };
    let then = found.then.clone().or_else(|| since.map(stuck));
    Assessment { then, ..found }
}

/// True if the pod is controlled by the workload, or by an object that a Deployment named after itself. Labels alone
/// may be copied.
pub fn is_pod_of(pod: &ChildObject, workload: &str) -> bool {
    pod.meta.owners.iter().any(|owner| owner.controller && owner.name.starts_with(workload))
}

fn is_explanatory(assessment: &Assessment) -> bool {
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

    fn pod(name: &str, status: &Value) -> ChildObject {
        let owner = json!({ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d", "uid": "r", "controller": true });
        let meta = json!({ "name": name, "uid": name, "ownerReferences": [owner] });
        let pod = json!({ "metadata": meta, "status": status });
        serde_json::from_value::<Box<RawValue>>(pod)
            .map(|text| ChildObject::from_raw(&text))
            .unwrap_or_default()
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
        let found = worst_pod_cause(&pods, "web", &StuckLimits::default())
            .map(|r| (r.name, r.assessment.verdict.reason.to_string()));
        assert_eq!(found, Some(("Pod b".into(), "waiting: ImagePullBackOff".to_owned())));
    }

    #[test]
    fn pods_that_are_well_or_leaving_explain_nothing() {
        let ready = json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] });
        let mut leaving = pod("a", &waiting("ErrImagePull"));
        leaving.meta.deleted = Some(readiness::Time(1));
        assert_eq!(worst_pod_cause(&[pod("b", &ready), leaving], "web", &StuckLimits::default()), None);
        // A pod with the same labels that is controlled by another workload.
        assert_eq!(
            worst_pod_cause(&[pod("a", &waiting("ErrImagePull"))], "api", &StuckLimits::default()),
            None
        );
    }

    /// StatefulSet that lacks pods, under policies with these limits in minutes.
    fn lacking(minutes: &[u64]) -> UnreadyWorkload {
        let pending = |minutes: &u64| std::time::Duration::from_secs(60 * minutes);
        let limits = minutes
            .iter()
            .map(|minutes| StuckLimits { pending: pending(minutes), ..StuckLimits::default() })
            .collect();
        let set = json!({ "metadata": { "name": "web", "uid": "r", "generation": 1 }, "spec": { "replicas": 3 },
            "status": { "observedGeneration": 1, "replicas": 1 } });
        let set =
            serde_json::from_value::<Box<RawValue>>(set).map(|text| ChildObject::from_raw(&text)).unwrap();
        let silent = EventExplainedWorkload::from_child(RuleKind::StatefulSet, &set, false).map(Box::new);
        let text = String::new;
        UnreadyWorkload {
            owner: ObjectId(0),
            interest: Arc::new(Interest::for_kind(KindId(0), "apps", "StatefulSet")),
            namespace: text(),
            name: "web".to_owned(),
            uid: text(),
            selector: text(),
            limits,
            event_explained: silent,
            since: None,
            lookup: WorkloadLookup::Pods,
        }
    }

    #[test]
    fn what_makes_it_stuck_first_explains_a_workload_that_lacks_pods() {
        let denied = json!({ "items": [{ "involvedObject": { "uid": "r" }, "reason": "FailedCreate", "message": "quota",
            "source": { "component": "statefulset-controller" },
            "metadata": { "creationTimestamp": "2026-01-01T00:01:00Z" } }] });
        let explained = |pod: ChildObject, events: &Value| {
            let below = lacking(&[10]);
            let (cause, lack) = below.explain_by_pods(&[pod]);
            let now = Time(1_767_225_720_000);
            let found =
                below.explain_by_events(events, PodShortage { now, ..lack.unwrap() }, cause).pop().unwrap();
            let told = |found: RefinedCause| {
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
    fn a_crash_loop_makes_its_workload_stuck_though_it_runs_for_a_moment_each_time() {
        let crash = |restarts: u32| {
            let ended = json!({ "exitCode": 1, "reason": "Error", "startedAt": "2026-01-01T00:04:00Z",
                "finishedAt": "2026-01-01T00:04:02Z" });
            let container = json!({ "name": "web", "ready": false, "restartCount": restarts,
                "state": { "waiting": { "reason": "CrashLoopBackOff" } }, "lastState": { "terminated": ended } });
            pod(
                "web-0",
                &json!({ "phase": "Running", "startTime": "2026-01-01T00:00:00Z",
                "conditions": [{ "type": "Ready", "status": "False" }], "containerStatuses": [container] }),
            )
        };
        let told = |restarts: u32| {
            let found = worst_pod_cause(&[crash(restarts)], "web", &StuckLimits::default());
            let assessment = found.expect("it explains").assessment;
            assert_eq!(assessment.verdict.reason.to_string(), "waiting: CrashLoopBackOff");
            assessment.then.map(|then| (then.0.to_string(), then.1.level, then.1.reason.to_string()))
        };
        let stuck = ("2026-01-01T00:10:00Z".to_owned(), Level::Stuck);
        let words = "waiting: CrashLoopBackOff, without progress".to_owned();
        assert_eq!(told(4), Some((stuck.0, stuck.1, words)));
        assert_eq!(told(1), None);
    }

    #[test]
    fn each_policy_has_its_own_limit_for_what_lies_below() {
        let below = lacking(&[3, 60]);
        let stuck = |found: &[Option<RefinedCause>]| -> Vec<String> {
            let then =
                |found: &Option<RefinedCause>| Some(found.as_ref()?.assessment.then.as_ref()?.0.to_string());
            found.iter().map(|found| then(found).unwrap_or_default()).map(|at| at[11..].to_owned()).collect()
        };
        let unscheduled = json!({ "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "no node", "lastTransitionTime": "2026-01-01T00:00:05Z" }] });
        let mut born = pod("web-0", &unscheduled);
        born.facts.created = time::parse_rfc3339("2026-01-01T00:00:00Z");
        let (causes, lack) = below.explain_by_pods(&[born]);
        assert_eq!(stuck(&causes), ["00:03:00Z", "01:00:00Z"]);
        let denied = json!({ "items": [{ "involvedObject": { "uid": "r" }, "reason": "FailedCreate", "message": "quota",
            "source": { "component": "statefulset-controller" },
            "metadata": { "creationTimestamp": "2026-01-01T00:00:01Z" } }] });
        let lack = PodShortage { now: time::parse_rfc3339("2026-01-01T00:02:00Z").unwrap(), ..lack.unwrap() };
        assert_eq!(
            stuck(&below.explain_by_events(&denied, lack, vec![None, None])),
            ["00:03:01Z", "01:00:01Z"]
        );
        assert_eq!(stuck(&below.explain_by_events(&denied, lack, causes)), ["00:03:00Z", "01:00:00Z"]);
    }

    #[test]
    fn selectors_are_written_as_the_api_reads_them() {
        let written = |selector: Value| serde_json::from_value(selector).ok().and_then(|s| selector_text(&s));
        let expressions = json!([
            { "key": "tier", "operator": "In", "values": ["a", "b"] },
            { "key": "old", "operator": "DoesNotExist" },
        ]);
        let all = json!({ "matchLabels": { "app": "web" }, "matchExpressions": expressions });
        assert_eq!(written(all), Some("app=web,tier in (a,b),!old".to_owned()));
        assert_eq!(written(json!({})), None, "an empty selector would select every pod");
    }
}

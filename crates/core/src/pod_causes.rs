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
use watcher::plan::{Interest, LabelMatchTerm, LabelMatcher};
use watcher::reflector::{ObjectRow, RefinedCause, Reflector};
use watcher::wire::{ChildObject, SpecVersion, WireMeta};

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
    /// Its resourceVersion when it was read.
    pub version: u64,
    /// What its row was wanted to be then.
    pub spec_version: SpecVersion,
    /// Label selector of its pods.
    pub selector: String,
    /// The same, to be matched here.
    pub labels: LabelMatcher,
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
    let seen = |row: &ObjectRow| {
        row.unready_since(0).filter(|since| since.from == SinceSource::Seen).map(|since| since.at)
    };
    let unready = |row: &ObjectRow| is_explained_by_pods(row).then(|| (seen(row), row.spec_version));
    let (since, spec_version) = reflector.read_row(owner, unready).flatten()?;
    let limits = interest.assessment_rules.iter().map(|rule| rule.limits).collect();
    let (namespace, name, uid) =
        (child.meta.namespace.to_string(), child.meta.name.to_string(), child.meta.uid.to_string());
    let silent =
        EventExplainedWorkload::from_child(interest.judge, child, is_ordered_ready(object)).map(Box::new);
    let selector = serde_json::from_str::<WorkloadManifest>(object.get()).ok()?.spec?.selector?;
    Some(UnreadyWorkload {
        owner,
        interest,
        namespace,
        name,
        uid,
        version: child.meta.resource_version,
        spec_version,
        selector: selector_text(&selector)?,
        labels: label_matcher(selector),
        limits,
        event_explained: silent,
        since,
        lookup: WorkloadLookup::Pods,
    })
}

/// Whether pods may explain why an object is not ready.
pub fn is_explained_by_pods(row: &ObjectRow) -> bool {
    matches!(row.assessment.verdict.level, Level::Progressing | Level::Failed | Level::Stuck)
}

impl UnreadyWorkload {
    /// Whether a pod is one of those that explain it, told by its metadata.
    pub fn has_pod(&self, pod: &WireMeta) -> bool {
        *pod.namespace == *self.namespace
            && is_controlled_by(pod, &self.name)
            && self.labels.matches(&pod.labels)
    }

    /// Whether what is read of its pods explains it as it is held now, and by what it is judged now. The pods alone explain
    /// the kinds that tell of refused pods themselves, as long as their spec is the same; the others also by what they say.
    pub fn is_current(&self, reflector: &Reflector) -> bool {
        let is_interest = |interest| Arc::ptr_eq(&interest, &self.interest);
        let is_same = |row: &ObjectRow| {
            let is_version = row.version == self.version || self.event_explained.is_none();
            is_version && row.spec_version == self.spec_version && is_explained_by_pods(row)
        };
        reflector.find_object(&self.uid) == Some(self.owner)
            && reflector.interest(self.interest.id).is_some_and(is_interest)
            && reflector.read_row(self.owner, is_same) == Some(true)
    }

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

/// The terms of a selector whose operators are known.
fn label_matcher(selector: WorkloadSelector) -> LabelMatcher {
    let labels = selector.match_labels.into_iter();
    let labels = labels.map(|(key, value)| LabelMatchTerm::In(key.into(), vec![value.into()]));
    let expressions = selector.match_expressions.into_iter().map(|term| {
        let (key, values) = (term.key.into(), term.values.into_iter().map(Into::into).collect());
        match &*term.operator {
            "In" => LabelMatchTerm::In(key, values),
            "NotIn" => LabelMatchTerm::NotIn(key, values),
            "Exists" => LabelMatchTerm::Exists(key),
            _ => LabelMatchTerm::DoesNotExist(key),
        }
    });
    LabelMatcher { requirements: labels.chain(expressions).collect() }
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
    is_controlled_by(&pod.meta, workload)
}

fn is_controlled_by(pod: &WireMeta, workload: &str) -> bool {
    pod.owners.iter().any(|owner| owner.controller && owner.name.starts_with(workload))
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
mod tests;

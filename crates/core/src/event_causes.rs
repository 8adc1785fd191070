//! Workloads without a condition about refused pods: their controllers report that in Events.

use readiness::{
    BoundedText, Level, PodCreationAttempt, PodShortage, RuleKind, StuckLimits, Time, assess,
    assess_refused_pods, lacks_pods,
};
use serde_json::Value;
use watcher::reflector::RefinedCause;
use watcher::status::time;
use watcher::wire::ChildObject;

/// StatefulSet, DaemonSet or Job, as read.
#[derive(Clone, Debug)]
pub struct EventExplainedWorkload {
    kind: RuleKind,
    child: ChildObject,
    in_order: bool,
}

impl EventExplainedWorkload {
    /// Creates one for such a kind. `in_order`: pods are created one after the other, each when its predecessors are
    /// ready.
    pub fn from_child(kind: RuleKind, child: &ChildObject, in_order: bool) -> Option<EventExplainedWorkload> {
        let silent = matches!(kind, RuleKind::StatefulSet | RuleKind::DaemonSet | RuleKind::Job);
        silent.then(|| EventExplainedWorkload { kind, child: child.clone(), in_order })
    }

    /// Shortage of pods, judged by those that exist; `None` if there is none, or if the controller waits for a pod that
    /// is not ready before it creates the next one: earlier refusals mean nothing then.
    pub fn pod_shortage<'p>(&self, pods: impl Iterator<Item = &'p ChildObject>) -> Option<PodShortage> {
        let uid = &self.child.meta.uid;
        let is_its =
            |pod: &&ChildObject| pod.meta.owners.iter().any(|owner| owner.controller && owner.uid == *uid);
        let pods: Vec<&ChildObject> = pods.filter(is_its).collect();
        let ready = |pod: &ChildObject| {
            assess(RuleKind::Pod, &pod.facts, &StuckLimits::default()).verdict.level == Level::Ready
        };
        let waits = self.in_order && pods.iter().any(|pod| !ready(pod));
        let lacks = !waits && lacks_pods(self.kind, &self.child.facts, !pods.is_empty());
        let youngest = pods.iter().filter_map(|pod| pod.meta.created).max();
        lacks.then_some(PodShortage { youngest, ..PodShortage::default() })
    }

    /// Refused creation that explains the shortage, found in the Events about the workload.
    pub fn refused_creation<'e>(
        &self,
        events: impl IntoIterator<Item = &'e Value>,
        lack: PodShortage,
        limits: &StuckLimits,
    ) -> Option<RefinedCause> {
        let said: Vec<PodCreationAttempt> =
            events.into_iter().filter_map(|event| self.parse_attempt(event)).collect();
        let assessment = assess_refused_pods(&said, lack, limits)?;
        Some(RefinedCause { name: "Event".into(), assessment })
    }

    /// Creation attempt that the workload's own controller reports in an Event.
    fn parse_attempt(&self, event: &Value) -> Option<PodCreationAttempt> {
        let by = [&event["source"]["component"], &event["reportingComponent"]];
        let about = &event["involvedObject"]["uid"];
        if *about != *self.child.meta.uid || !by.iter().any(|by| **by == self.controller_name()) {
            return None;
        }
        let refused = match event["reason"].as_str()? {
            "FailedCreate" => Some(BoundedText::from_foreign(&format!(
                "FailedCreate: {}",
                refusal_text(event["message"].as_str()?)
            ))),
            "SuccessfulCreate" => None,
            _ => return None,
        };
        let at = |moment: &Value| moment.as_str().and_then(time::parse_rfc3339);
        // Time of creation at the server, by the clock that also dates pods.
        let first = at(&event["metadata"]["creationTimestamp"])?;
        let again = [&event["lastTimestamp"], &event["eventTime"], &event["series"]["lastObservedTime"]];
        let last = again.into_iter().filter_map(at).map(whole_seconds).chain([first]).max()?;
        Some(PodCreationAttempt { first, last, refused })
    }

    fn controller_name(&self) -> &'static str {
        match self.kind {
            RuleKind::StatefulSet => "statefulset-controller",
            RuleKind::DaemonSet => "daemonset-controller",
            _ => "job-controller",
        }
    }
}

/// Truncates to whole seconds: some timestamps have microseconds, those of pods have none.
fn whole_seconds(at: Time) -> Time {
    Time(at.0.div_euclid(1_000) * 1_000)
}

/// Extracts the refusal from a message, without the prefixes that only repeat the attempt: long messages are truncated
/// at the end.
fn refusal_text(message: &str) -> &str {
    let message = message.strip_prefix("(combined from similar events): ").unwrap_or(message);
    let message = message.strip_prefix("Error creating: ").unwrap_or(message);
    message.split_once(" failed error: ").map_or(message, |(_, why)| why)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::RawValue;

    use super::*;

    fn read(object: &Value) -> ChildObject {
        serde_json::from_value::<Box<RawValue>>(object.clone())
            .map(|text| ChildObject::from_raw(&text))
            .unwrap_or_default()
    }

    /// StatefulSet of three that has two pods.
    fn set(in_order: bool) -> EventExplainedWorkload {
        let set = json!({ "metadata": { "name": "store", "uid": "u", "generation": 1 }, "spec": { "replicas": 3 },
            "status": { "observedGeneration": 1, "replicas": 2 } });
        EventExplainedWorkload::from_child(RuleKind::StatefulSet, &read(&set), in_order).unwrap()
    }

    fn pod(owner: &str, second: u8, ready: &str) -> ChildObject {
        let owner = json!({ "kind": "StatefulSet", "name": "store", "uid": owner, "controller": true });
        read(&json!({ "metadata": { "name": "store-0", "uid": "p", "ownerReferences": [owner],
                "creationTimestamp": format!("2026-01-01T00:00:0{second}Z") },
            "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": ready }] } }))
    }

    fn event(uid: &str, by: &str, reason: &str, first: &str, last: &str, message: &str) -> Value {
        json!({ "involvedObject": { "uid": uid }, "reason": reason, "message": message, "source": { "component": by },
            "metadata": { "creationTimestamp": format!("2026-01-01T00:{first}Z") },
            "lastTimestamp": format!("2026-01-01T00:{last}Z") })
    }

    const STATEFULSET_CONTROLLER: &str = "statefulset-controller";
    const QUOTA_MESSAGE: &str = "create Pod store-2 in StatefulSet store failed error: pods \"store-2\" is forbidden: exceeded quota: small";

    /// Time since which the refusal counts (with a limit of zero), and its text.
    fn told(events: &[Value]) -> Option<(String, String)> {
        let now = time::parse_rfc3339("2026-01-01T00:10:00Z").unwrap();
        let limits = StuckLimits { pending: std::time::Duration::ZERO, ..StuckLimits::default() };
        let found =
            set(false).refused_creation(events, PodShortage { now, ..PodShortage::default() }, &limits)?;
        let (since, then) = *found.assessment.then?;
        Some((since.to_string()[14..19].to_owned(), then.reason.to_string()))
    }

    #[test]
    fn what_is_refused_is_told_in_the_words_of_whoever_refuses() {
        let by_name = "FailedCreate: pods \"store-2\" is forbidden: exceeded quota: small";
        let denied = |last| event("u", STATEFULSET_CONTROLLER, "FailedCreate", "01:00", last, QUOTA_MESSAGE);
        for (what, events, expected) in [
            ("as said", vec![denied("09:00")], Some(("01:00", by_name))),
            (
                "created after that",
                vec![
                    denied("09:00"),
                    event("u", STATEFULSET_CONTROLLER, "SuccessfulCreate", "09:01", "09:01", ""),
                ],
                None,
            ),
            (
                "created before that",
                vec![
                    denied("09:00"),
                    event("u", STATEFULSET_CONTROLLER, "SuccessfulCreate", "00:01", "00:01", ""),
                ],
                Some(("01:00", by_name)),
            ),
            (
                "of another object",
                vec![event("other", STATEFULSET_CONTROLLER, "FailedCreate", "01:00", "09:00", QUOTA_MESSAGE)],
                None,
            ),
            (
                "by somebody else",
                vec![event("u", "me", "FailedCreate", "01:00", "09:00", QUOTA_MESSAGE)],
                None,
            ),
            (
                "about something else",
                vec![event("u", STATEFULSET_CONTROLLER, "FailedDelete", "01:00", "09:00", QUOTA_MESSAGE)],
                None,
            ),
            (
                "many alike",
                vec![event(
                    "u",
                    STATEFULSET_CONTROLLER,
                    "FailedCreate",
                    "01:00",
                    "09:00",
                    "(combined from similar events): Error creating: no",
                )],
                Some(("01:00", "FailedCreate: no")),
            ),
            ("not an Event", vec![json!("odd"), json!({ "involvedObject": { "uid": "u" } })], None),
        ] {
            let expected = expected.map(|(since, why)| (since.to_owned(), why.to_owned()));
            assert_eq!(told(&events), expected, "{what}");
        }
    }

    #[test]
    fn an_event_of_the_newer_kind_says_when_in_its_series() {
        let said = json!({ "involvedObject": { "uid": "u" }, "reason": "FailedCreate", "message": "no",
            "reportingComponent": STATEFULSET_CONTROLLER, "metadata": { "creationTimestamp": "2026-01-01T00:01:00Z" }, "lastTimestamp": null,
            "eventTime": "2026-01-01T00:01:00.123456Z", "series": { "count": 7, "lastObservedTime": "2026-01-01T00:08:00.9Z" } });
        let created = |last| event("u", STATEFULSET_CONTROLLER, "SuccessfulCreate", "00:01", last, "");
        assert_eq!(told(&[said.clone(), created("08:00")]), None);
        assert_eq!(told(&[said, created("07:59")]).map(|(since, _)| since).as_deref(), Some("07:59"));
    }

    #[test]
    fn pods_are_lacking_where_fewer_are_there_than_wanted_and_the_next_one_is_asked_for() {
        let youngest = |set: EventExplainedWorkload, pods: &[ChildObject]| {
            set.pod_shortage(pods.iter()).map(|lack| lack.youngest.map(|at| at.0 / 1_000 % 10))
        };
        let pods = [pod("u", 1, "True"), pod("u", 5, "False"), pod("another", 9, "True")];
        assert_eq!(youngest(set(false), &pods), Some(Some(5)), "another one's pods are not its own");
        assert_eq!(youngest(set(true), &pods), None, "it waits for the second to become ready");
        assert_eq!(youngest(set(true), &pods[..1]), Some(Some(1)));
        assert_eq!(youngest(set(true), &[]), Some(None));
        assert!(
            EventExplainedWorkload::from_child(RuleKind::Deployment, &ChildObject::default(), false)
                .is_none(),
            "it has a condition for that"
        );
    }
}

//! Evidence in Events about Jobs: that they ran, and their outcomes.
//!
//! Anyone who may create Events in a namespace can forge these. They are used only for runs that were not observed:
//! never against an observation.

use std::collections::BTreeMap;

use aggregator::KindId;
use readiness::Time;
use serde_json::Value;
use watcher::reflector::{RunEnd, RunTrace};
use watcher::status::time;
use watcher::wire::{MAX_NAME_BYTES, MAX_UID_BYTES};

/// Event reasons by which the Job controller reports that a Job failed permanently.
const JOB_FAILURE_REASONS: [&str; 5] = [
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
];

/// Event reasons by which the Job controller reports that a Job has started.
const JOB_START_REASONS: [&str; 2] = ["SuccessfulCreate", "Suspended"];

/// Evidence collected page by page.
#[derive(Clone, Debug)]
pub struct JobEvents {
    kind: KindId,
    run_traces: BTreeMap<Box<str>, (RunTrace, Vec<RunEnd>)>,
}

impl JobEvents {
    /// Empty evidence about Jobs, whose kind has this id.
    pub fn new(kind: KindId) -> JobEvents {
        JobEvents { kind, run_traces: BTreeMap::new() }
    }

    /// Reads one page of core/v1 Events. Traces for which `matters` is false are dropped.
    pub fn read_page(&mut self, events: &Value, matters: impl Fn(&RunTrace) -> bool) {
        for event in events["items"].as_array().into_iter().flatten() {
            let Some(new) = self.parse_trace(event).filter(|trace| matters(trace)) else { continue };
            let by = [&event["source"]["component"], &event["reportingComponent"]];
            let (known, ends) =
                self.run_traces.entry(new.uid.clone()).or_insert_with(|| (new.clone(), Vec::new()));
            known.first_seen = [known.first_seen, new.first_seen].into_iter().flatten().min();
            known.version = [known.version, new.version].into_iter().filter(|v| *v > 0).min().unwrap_or(0);
            if !by.iter().any(|by| **by == "job-controller") {
                continue;
            }
            match event["reason"].as_str().unwrap_or_default() {
                "Completed" => ends.push(RunEnd::Complete),
                reason if JOB_FAILURE_REASONS.contains(&reason) => ends.push(RunEnd::Failed(reason.into())),
                reason => known.seen_from_creation |= JOB_START_REASONS.contains(&reason),
            }
        }
    }

    /// Traces of all runs.
    pub fn into_run_traces(self) -> Vec<RunTrace> {
        self.run_traces
            .into_values()
            .map(|(trace, ends)| RunTrace { end: agreed_end(&ends), ..trace })
            .collect()
    }

    /// Outcome of one run.
    pub fn end_of(&self, uid: &str) -> RunEnd {
        self.run_traces.get(uid).map_or(RunEnd::Open, |(_, ends)| agreed_end(ends))
    }

    fn parse_trace(&self, event: &Value) -> Option<RunTrace> {
        let about = &event["involvedObject"];
        let word = |field: &str| about[field].as_str().filter(|word| word.len() <= MAX_NAME_BYTES);
        let is_job =
            word("kind") == Some("Job") && word("apiVersion").is_none_or(|v| v.starts_with("batch/"));
        let moments =
            [&event["firstTimestamp"], &event["eventTime"], &event["metadata"]["creationTimestamp"]];
        is_job.then_some(RunTrace {
            kind: self.kind,
            uid: word("uid").filter(|uid| !uid.is_empty() && uid.len() <= MAX_UID_BYTES)?.into(),
            namespace: word("namespace")?.into(),
            name: word("name").filter(|name| !name.is_empty())?.into(),
            first_seen: moments
                .iter()
                .find_map(|at| at.as_str())
                .and_then(time::parse_rfc3339)
                .map(whole_seconds),
            version: word("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(0),
            seen_from_creation: false,
            end: RunEnd::Open,
        })
    }
}

/// Contradicting reports count as no report.
fn agreed_end(ends: &[RunEnd]) -> RunEnd {
    match ends {
        [first, rest @ ..] if rest.iter().all(|end| end == first) => first.clone(),
        _ => RunEnd::Open,
    }
}

/// Truncates to whole seconds, as records have it.
fn whole_seconds(at: Time) -> Time {
    Time(at.0.div_euclid(1_000) * 1_000)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const JOB_CONTROLLER: &str = "job-controller";

    fn event(uid: &str, by: &str, reason: &str) -> Value {
        let about = json!({ "kind": "Job", "apiVersion": "batch/v1", "namespace": "shop", "name": "migrate", "uid": uid,
            "resourceVersion": reason.len().to_string() });
        json!({ "involvedObject": about, "reportingComponent": by, "reason": reason,
            "firstTimestamp": format!("2027-01-15T08:00:{:02}Z", reason.len()) })
    }

    fn heard(pages: &[Vec<Value>]) -> JobEvents {
        let mut heard = JobEvents::new(KindId(4));
        for page in pages {
            heard.read_page(&json!({ "items": page }), |_| true);
        }
        heard
    }

    #[test]
    fn only_the_job_controller_tells_how_a_job_ended_and_only_of_that_one() {
        let told = |events: &[Value]| heard(&[events.to_vec()]).end_of("a");
        assert_eq!(
            told(&[event("a", JOB_CONTROLLER, "SuccessfulCreate"), event("a", JOB_CONTROLLER, "Completed")]),
            RunEnd::Complete
        );
        assert_eq!(
            told(&[event("a", JOB_CONTROLLER, "DeadlineExceeded")]),
            RunEnd::Failed("DeadlineExceeded".into())
        );
        assert_eq!(
            told(&[event("b", JOB_CONTROLLER, "Completed"), event("a", "somebody", "Completed")]),
            RunEnd::Open
        );
        assert_eq!(
            told(&[event("a", JOB_CONTROLLER, "Completed"), event("a", JOB_CONTROLLER, "DeadlineExceeded")]),
            RunEnd::Open
        );
        assert_eq!(told(&[]), RunEnd::Open);
    }

    #[test]
    fn what_was_heard_on_several_pages_is_one_trace_from_the_earliest_on() {
        let pages = [
            vec![event("a", JOB_CONTROLLER, "BackoffLimitExceeded")],
            vec![event("a", JOB_CONTROLLER, "SuccessfulCreate"), event("b", "kubelet", "Suspended")],
        ];
        let traces = heard(&pages).into_run_traces();
        assert_eq!(traces.len(), 2);
        let (a, b) = (&traces[0], &traces[1]);
        assert_eq!(
            (a.version, a.seen_from_creation, &a.end),
            (16, true, &RunEnd::Failed("BackoffLimitExceeded".into()))
        );
        assert_eq!(a.first_seen, time::parse_rfc3339("2027-01-15T08:00:16Z"));
        assert_eq!((b.seen_from_creation, &b.end), (false, &RunEnd::Open), "somebody else says so");
    }

    #[test]
    fn what_is_about_no_job_or_cannot_be_understood_is_no_trace() {
        let mut pod = event("a", JOB_CONTROLLER, "Completed");
        pod["involvedObject"]["kind"] = json!("Pod");
        let mut other = event("a", JOB_CONTROLLER, "Completed");
        other["involvedObject"]["apiVersion"] = json!("batch.example.com/v1");
        let mut nameless = event("a", JOB_CONTROLLER, "Completed");
        nameless["involvedObject"]["name"] = json!(12);
        let long = event(&"a".repeat(1_000), JOB_CONTROLLER, "Completed");
        let garbage = vec![pod, other, nameless, long, json!(null), json!("text"), json!({})];
        assert_eq!(heard(&[garbage]).into_run_traces(), []);
        let mut none = JobEvents::new(KindId(4));
        none.read_page(&json!(null), |_| true);
        none.read_page(&json!({ "items": [event("a", JOB_CONTROLLER, "Completed")] }), |_| false);
        assert_eq!(none.into_run_traces(), []);
        let mut versionless = event("a", JOB_CONTROLLER, "Completed");
        versionless["involvedObject"]["resourceVersion"] = json!("x");
        assert_eq!(heard(&[vec![versionless]]).into_run_traces()[0].version, 0);
    }
}

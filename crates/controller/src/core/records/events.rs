//! What Events tell of Jobs: that they were, and how they ended.
//!
//! Anybody who may create Events in a namespace can make one that looks like these. They are believed only of what nobody
//! saw: never against what was.

use std::collections::BTreeMap;

use aggregator::KindId;
use readiness::Time;
use serde_json::Value;
use watcher::reflector::{End, Trace};
use watcher::status::time;

/// Reasons under which the Job controller says that a Job has failed for good.
const FAILURES: [&str; 5] = [
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
];

/// Under which the Job controller says that a Job has begun.
const BEGINNINGS: [&str; 2] = ["SuccessfulCreate", "Suspended"];

/// Longer names and uids than any the server gives are none.
const LONGEST: usize = 253;

/// What was heard, page by page.
#[derive(Clone, Debug)]
pub struct Heard {
    kind: KindId,
    of: BTreeMap<Box<str>, (Trace, Vec<End>)>,
}

impl Heard {
    /// Nothing yet, of Jobs, which have this id.
    pub fn new(kind: KindId) -> Heard {
        Heard { kind, of: BTreeMap::new() }
    }

    /// One page of core/v1 Events. Of what does not `matter` nothing is kept.
    pub fn read(&mut self, events: &Value, matters: impl Fn(&Trace) -> bool) {
        for event in events["items"].as_array().into_iter().flatten() {
            let Some(new) = self.trace(event).filter(|trace| matters(trace)) else { continue };
            let by = [&event["source"]["component"], &event["reportingComponent"]];
            let (known, ends) = self.of.entry(new.uid.clone()).or_insert_with(|| (new.clone(), Vec::new()));
            known.first = [known.first, new.first].into_iter().flatten().min();
            known.version = [known.version, new.version].into_iter().filter(|v| *v > 0).min().unwrap_or(0);
            if !by.iter().any(|by| **by == "job-controller") {
                continue;
            }
            match event["reason"].as_str().unwrap_or_default() {
                "Completed" => ends.push(End::Complete),
                reason if FAILURES.contains(&reason) => ends.push(End::Failed(reason.into())),
                reason => known.born |= BEGINNINGS.contains(&reason),
            }
        }
    }

    /// What was heard of each.
    pub fn traces(self) -> Vec<Trace> {
        self.of.into_values().map(|(trace, ends)| Trace { end: agreed(&ends), ..trace }).collect()
    }

    /// How one ended.
    pub fn end_of(&self, uid: &str) -> End {
        self.of.get(uid).map_or(End::Open, |(_, ends)| agreed(ends))
    }

    fn trace(&self, event: &Value) -> Option<Trace> {
        let about = &event["involvedObject"];
        let word = |field: &str| about[field].as_str().filter(|word| word.len() <= LONGEST);
        let is_job =
            word("kind") == Some("Job") && word("apiVersion").is_none_or(|v| v.starts_with("batch/"));
        let moments =
            [&event["firstTimestamp"], &event["eventTime"], &event["metadata"]["creationTimestamp"]];
        is_job.then_some(Trace {
            kind: self.kind,
            uid: word("uid").filter(|uid| !uid.is_empty())?.into(),
            namespace: word("namespace")?.into(),
            name: word("name").filter(|name| !name.is_empty())?.into(),
            first: moments.iter().find_map(|at| at.as_str()).and_then(time::parse).map(whole_seconds),
            version: word("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(0),
            born: false,
            end: End::Open,
        })
    }
}

/// Who is told two different things has been told nothing.
fn agreed(ends: &[End]) -> End {
    match ends {
        [first, rest @ ..] if rest.iter().all(|end| end == first) => first.clone(),
        _ => End::Open,
    }
}

/// As a record has it.
fn whole_seconds(at: Time) -> Time {
    Time(at.0.div_euclid(1_000) * 1_000)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BY: &str = "job-controller";

    fn event(uid: &str, by: &str, reason: &str) -> Value {
        let about = json!({ "kind": "Job", "apiVersion": "batch/v1", "namespace": "shop", "name": "migrate", "uid": uid,
            "resourceVersion": reason.len().to_string() });
        json!({ "involvedObject": about, "reportingComponent": by, "reason": reason,
            "firstTimestamp": format!("2027-01-15T08:00:{:02}Z", reason.len()) })
    }

    fn heard(pages: &[Vec<Value>]) -> Heard {
        let mut heard = Heard::new(KindId(4));
        for page in pages {
            heard.read(&json!({ "items": page }), |_| true);
        }
        heard
    }

    #[test]
    fn only_the_job_controller_tells_how_a_job_ended_and_only_of_that_one() {
        let told = |events: &[Value]| heard(&[events.to_vec()]).end_of("a");
        assert_eq!(told(&[event("a", BY, "SuccessfulCreate"), event("a", BY, "Completed")]), End::Complete);
        assert_eq!(told(&[event("a", BY, "DeadlineExceeded")]), End::Failed("DeadlineExceeded".into()));
        assert_eq!(told(&[event("b", BY, "Completed"), event("a", "somebody", "Completed")]), End::Open);
        assert_eq!(told(&[event("a", BY, "Completed"), event("a", BY, "DeadlineExceeded")]), End::Open);
        assert_eq!(told(&[]), End::Open);
    }

    #[test]
    fn what_was_heard_on_several_pages_is_one_trace_from_the_earliest_on() {
        let pages = [
            vec![event("a", BY, "BackoffLimitExceeded")],
            vec![event("a", BY, "SuccessfulCreate"), event("b", "kubelet", "Suspended")],
        ];
        let traces = heard(&pages).traces();
        assert_eq!(traces.len(), 2);
        let (a, b) = (&traces[0], &traces[1]);
        assert_eq!((a.version, a.born, &a.end), (16, true, &End::Failed("BackoffLimitExceeded".into())));
        assert_eq!(a.first, time::parse("2027-01-15T08:00:16Z"));
        assert_eq!((b.born, &b.end), (false, &End::Open), "somebody else says so");
    }

    #[test]
    fn what_is_about_no_job_or_cannot_be_understood_is_no_trace() {
        let mut pod = event("a", BY, "Completed");
        pod["involvedObject"]["kind"] = json!("Pod");
        let mut other = event("a", BY, "Completed");
        other["involvedObject"]["apiVersion"] = json!("batch.example.com/v1");
        let mut nameless = event("a", BY, "Completed");
        nameless["involvedObject"]["name"] = json!(12);
        let long = event(&"a".repeat(1_000), BY, "Completed");
        let garbage = vec![pod, other, nameless, long, json!(null), json!("text"), json!({})];
        assert_eq!(heard(&[garbage]).traces(), []);
        let mut none = Heard::new(KindId(4));
        none.read(&json!(null), |_| true);
        none.read(&json!({ "items": [event("a", BY, "Completed")] }), |_| false);
        assert_eq!(none.traces(), []);
        let mut versionless = event("a", BY, "Completed");
        versionless["involvedObject"]["resourceVersion"] = json!("x");
        assert_eq!(heard(&[vec![versionless]]).traces()[0].version, 0);
    }
}

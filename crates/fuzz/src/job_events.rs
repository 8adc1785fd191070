//! Events of Jobs, which who may create Events in a namespace writes.

use std::collections::BTreeMap;

use readiness::Time;
use rollcall_core::records::JobEvents;
use serde_json::Value;
use watcher::reflector::{RunEnd, RunTrace};

use crate::remembered_job::{JOB, JOBS, parent_outcomes, remembering_reflector};

pub(crate) const JOB_EVENTS_WORDS: &[&str] = &[
    "{\"items\":[",
    "{\"involvedObject\":{\"kind\":\"Job\",\"apiVersion\":\"batch/v1\",\"namespace\":\"shop\",\"name\":\"seed\",\"uid\":\"u-1\"},",
    "\"uid\":\"00000000-0000-4000-8000-000000000002\"",
    "\"name\":\"migrate\"",
    "\"resourceVersion\":\"9\"",
    "\"reportingComponent\":\"job-controller\"",
    "\"source\":{\"component\":\"job-controller\"}",
    "\"reason\":\"Completed\"",
    "\"reason\":\"DeadlineExceeded\"",
    "\"reason\":\"SuccessfulCreate\"",
    "\"firstTimestamp\":\"2027-01-15T08:00:00Z\"",
    "\"eventTime\":\"2027-01-15T08:00:00.000001Z\"",
    "null",
    "\n---\n",
];

/// What is made of the Events of one object, whatever order they come in.
type TraceFacts = BTreeMap<Box<str>, (Option<Time>, u64, bool, RunEnd)>;

/// Each part is a page of Events. Pages count in no order; an end is one that the Job controller told, of an object that
/// was named, and nothing that is told changes what was seen.
pub(crate) fn run(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let pages: Vec<Value> =
        text.split("\n---\n").filter_map(|page| serde_json::from_str(page).ok()).collect();
    let read = |pages: &mut dyn Iterator<Item = &Value>| {
        let mut events = JobEvents::new(JOBS);
        pages.for_each(|page| events.read_page(page, |_| true));
        events
    };
    let events = read(&mut pages.iter());
    let items: Vec<&Value> = pages.iter().filter_map(|page| page["items"].as_array()).flatten().collect();
    let traces = events.clone().into_run_traces();
    assert!(traces.len() <= items.len());
    for trace in &traces {
        check_trace(trace, &items);
        assert_eq!(trace.end, events.end_of(&trace.uid));
    }
    let backwards = read(&mut pages.iter().rev()).into_run_traces();
    assert_eq!(facts(&traces), facts(&backwards), "pages count in no order");
    let mut none = JobEvents::new(JOBS);
    for page in &pages {
        none.read_page(page, |_| false);
    }
    assert_eq!(none.into_run_traces(), []);
    check_beside_a_job(traces);
}

fn check_trace(trace: &RunTrace, items: &[&Value]) {
    assert!(trace.kind == JOBS && !trace.uid.is_empty() && !trace.name.is_empty());
    assert!([&trace.uid, &trace.name, &trace.namespace].iter().all(|word| word.len() <= 253));
    assert!(trace.first_seen.is_none_or(|at| at.0 % 1_000 == 0), "{:?}", trace.first_seen);
    let reason = match &trace.end {
        RunEnd::Open => return,
        RunEnd::Complete => "Completed",
        RunEnd::Failed(why) => why,
    };
    let tells = |event: &&Value| {
        let by = [&event["source"]["component"], &event["reportingComponent"]];
        event["involvedObject"]["uid"] == *trace.uid
            && event["involvedObject"]["kind"] == "Job"
            && event["reason"] == reason
            && by.iter().any(|by| **by == "job-controller")
    };
    assert!(items.iter().any(tells), "nobody told that {} ended: {reason}", trace.uid);
}

fn facts(traces: &[RunTrace]) -> TraceFacts {
    let fact = |t: &RunTrace| (t.uid.clone(), (t.first_seen, t.version, t.seen_from_creation, t.end.clone()));
    traces.iter().map(fact).collect()
}

/// A Job that is there says itself how it is.
fn check_beside_a_job(traces: Vec<RunTrace>) {
    let reflector = remembering_reflector();
    for trace in &traces {
        reflector.outcomes().apply_evidence(&trace.uid, &trace.end);
    }
    let unobserved = reflector.outcomes().unobserved_traces("shop", &traces);
    assert!(unobserved.iter().all(|trace| &*trace.uid != JOB), "it is seen");
    reflector.outcomes().supersede_runs("shop", traces);
    let known = parent_outcomes(&reflector);
    let job = known.counting().find(|outcome| &*outcome.uid == JOB);
    assert!(job.is_some_and(|job| !job.deleted && job.end == RunEnd::Complete), "{known:?}");
    assert!(reflector.find_object(JOB).is_some());
}

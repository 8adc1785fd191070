//! A test cluster of two kinds and a reflector that observes it.

use std::time::Duration;

use aggregator::{ChildSource, KindId, PolicyId};
use readiness::{Level, StuckLimits, Time};
use serde_json::{Value, json};
use watcher::plan::{
    AllowedNamespaces, AssessmentRule, ChildRule, FindChildrenBy, Interest, NamespaceScope, OutcomeRetention,
    ParentRule,
};
use watcher::reflector::{ParentOutcomes, Reflector, RememberedOutcome, RunEnd, RunTrace};
use watcher::{ParentObject, ReflectorObject};

pub(crate) const NOW: Time = Time(1_800_000_000_000);
pub(crate) const JOBS: KindId = KindId(1);
pub(crate) const WIDGETS: KindId = KindId(2);
pub(crate) const POLICY: PolicyId = PolicyId(7);
pub(crate) const WIDGET: u32 = 1_000;

pub(crate) fn jobs(after: OutcomeRetention) -> Interest {
    let find = FindChildrenBy::Owner { group: "example.com".into(), kind: "Widget".into() };
    let limits = StuckLimits { pending: Duration::from_mins(10), ..StuckLimits::default() };
    Interest {
        assessment_rules: vec![AssessmentRule {
            limits,
            rule: None,
            remembers_outcome: after != OutcomeRetention::Forget,
        }],
        child: vec![ChildRule {
            policy: POLICY,
            group: 0,
            rule_index: 0,
            find,
            allowed: AllowedNamespaces::default(),
            ignore: None,
            made_by_none_of: [].into(),
            scope: NamespaceScope::default(),
            retention: after,
        }],
        ..Interest::for_kind(JOBS, "batch", "Job")
    }
}

pub(crate) fn widgets() -> Interest {
    let rule = ParentRule::for_policy(POLICY);
    Interest { parent: vec![rule], ..Interest::for_kind(WIDGETS, "example.com", "Widget") }
}

pub(crate) fn uid(n: u32) -> String {
    format!("00000000-0000-4000-8000-{n:012}")
}

pub(crate) fn job(n: u32, name: &str, version: u32, ended: &str) -> Value {
    let conditions = if ended.is_empty() {
        json!([])
    } else {
        json!([{"type": ended, "status": "True", "reason": "BackoffLimitExceeded"}])
    };
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name, "namespace": "shop", "uid": uid(n), "resourceVersion": version.to_string(),
            "creationTimestamp": format!("2027-01-15T08:{:02}:00Z", n % 60), "generation": 1,
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": uid(WIDGET)}]},
        "spec": {"completions": 1},
        "status": {"startTime": "2027-01-15T08:00:00Z", "conditions": conditions}
    })
}

pub(crate) fn widget(version: u32, generation: u32) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "shop", "uid": uid(WIDGET), "resourceVersion": version.to_string(),
            "generation": generation},
        "spec": {"size": generation}, "status": {}
    })
}

/// A reflector, fed by a watch of Jobs and one of parents.
pub(crate) struct OutcomeMemoryHarness {
    pub(crate) reflector: Reflector,
    pub(crate) jobs: Interest,
}

impl OutcomeMemoryHarness {
    /// A reflector that has observed nothing.
    pub(crate) fn blind(after: OutcomeRetention) -> OutcomeMemoryHarness {
        let harness = OutcomeMemoryHarness { reflector: Reflector::new(|| ()), jobs: jobs(after) };
        harness.reflector.set_interest(harness.jobs.clone());
        harness
    }

    pub(crate) fn new(after: OutcomeRetention) -> OutcomeMemoryHarness {
        let harness = OutcomeMemoryHarness::blind(after);
        harness.list(&[]);
        harness.widget(1, 1);
        harness
    }

    pub(crate) fn list(&self, jobs: &[Value]) {
        let pass = self.reflector.begin_list(JOBS, None);
        for job in jobs {
            self.reflector.apply_listed(&pass, read(job).as_child(), None);
        }
        assert!(self.reflector.finish_list(&pass).is_some());
    }

    pub(crate) fn see(&self, job: &Value) {
        self.reflector.apply_object(JOBS, read(job).as_child(), None);
    }

    pub(crate) fn deleted(&self, job: &Value) {
        self.reflector.on_deleted(JOBS, read(job).as_child());
    }

    pub(crate) fn widget(&self, version: u32, generation: u32) {
        self.parent(&widget(version, generation), &widgets());
    }

    pub(crate) fn parent(&self, parent: &Value, interest: &Interest) {
        let parent = read(parent);
        self.reflector.set_interest(interest.clone());
        self.reflector.apply_object(WIDGETS, parent.as_child(), parent.raw_text());
    }

    /// Level and source of its only link that counts; `None` if it does not count.
    pub(crate) fn counts(&self, n: u32) -> Option<(Level, ChildSource)> {
        let id = self.reflector.find_object(&uid(n))?;
        self.reflector.with_view(id, NOW, |view| {
            let view = view?;
            Some((view.weights[0].level(), view.links.first()?.source()))
        })
    }

    pub(crate) fn memories(&self) -> ParentOutcomes {
        self.reflector.outcomes().parent_outcomes(&uid(WIDGET)).unwrap_or_default()
    }

    /// Returns another process with the records that this one would have written.
    pub(crate) fn restarted(&self) -> OutcomeMemoryHarness {
        let next = OutcomeMemoryHarness { reflector: Reflector::new(|| ()), jobs: self.jobs.clone() };
        next.reflector.set_interest(next.jobs.clone());
        let ParentOutcomes { parent: whose, outcomes } = self.memories();
        // A record does not contain the last observed version.
        let outcomes = outcomes.into_iter().map(|o| RememberedOutcome { version: 0, ..o }).collect();
        next.reflector.outcomes().recall_record(whose, outcomes);
        next
    }
}

pub(crate) fn read(object: &Value) -> ParentObject {
    serde_json::from_str(&object.to_string()).unwrap()
}

pub(crate) const READY: Option<(Level, ChildSource)> = Some((Level::Ready, ChildSource::Remembered));
pub(crate) const FAILED: Option<(Level, ChildSource)> = Some((Level::Failed, ChildSource::Remembered));
pub(crate) const UNSEEN: Option<(Level, ChildSource)> = Some((Level::Unknown, ChildSource::Remembered));

/// A Job whose Events include its creation.
pub(crate) fn trace(n: u32, name: &str, version: u64, end: RunEnd) -> RunTrace {
    let (kind, namespace, first) = (JOBS, "shop".into(), Some(Time(1_800_000_000_000)));
    RunTrace {
        kind,
        uid: uid(n).into(),
        namespace,
        name: name.into(),
        first_seen: first,
        version,
        seen_from_creation: true,
        end,
    }
}

/// Applies traces like the service does, for objects that no longer exist.
pub(crate) fn tell(harness: &OutcomeMemoryHarness, traces: &[RunTrace]) -> usize {
    let gone = harness.reflector.outcomes().unobserved_traces("shop", traces);
    harness.reflector.outcomes().supersede_runs("shop", gone)
}

pub(crate) fn generated(n: u32, name: &str, version: u32, ended: &str) -> Value {
    let mut run = job(n, name, version, ended);
    run["metadata"]["generateName"] = json!("backup-");
    run
}

//! Worst-case input for metrics: for tests, and to measure the cost of a scrape.

use aggregator::{EvaluationCounts, ObjectId, PolicyId};
use readiness::rollup::{ChildWeight, LevelTally, ParentReason};
use readiness::{Level, ReasonToken, Time};
use watcher::ApiFailureCause;

use super::Metrics;
use crate::kind_tasks::KindEvent;
use crate::snapshot::{NotReadyDetail, NotReadyParent, ParentName, PolicyNumbers, StatsSnapshot};
use rollcall_core::{FindingCounts, NodeToken, TopCause};

/// Number of policies.
pub(super) const HOSTILE_POLICIES: usize = 20;
/// One kind of parents, and the kinds of children.
pub(super) const HOSTILE_KINDS: [&str; 7] = [
    "Database.example.com",
    "Deployment.apps",
    "StatefulSet.apps",
    "DaemonSet.apps",
    "Job.batch",
    "CronJob.batch",
    "Pod",
];

/// Set of these names.
pub(super) fn name_set(words: &[&str]) -> std::collections::BTreeSet<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Metrics of a leader with this number of policies.
pub(super) fn planned_metrics(policies: usize) -> Metrics {
    let metrics = Metrics::new(500).expect("invariant: no two metrics have one name");
    metrics.set_leader(true);
    let policies = (0..policies).map(|at| (format!("policy-{at}"), name_set(&HOSTILE_KINDS[1..]))).collect();
    metrics.planned.set_planned(policies, name_set(&HOSTILE_KINDS));
    metrics
}

fn small_number(number: usize) -> u32 {
    u32::try_from(number).expect("invariant: far fewer parents than 2^32")
}

/// Parent of this number.
pub(super) fn not_ready(at: usize, name: &str, reason: ParentReason) -> NotReadyParent {
    NotReadyParent {
        parent: ObjectId(small_number(at)),
        policy: format!("policy-{}", at % HOSTILE_POLICIES),
        id: PolicyId(small_number(at % HOSTILE_POLICIES)),
        namespace: format!("team-{}", at % 100),
        name: name.to_owned(),
        reason,
        since: Time(1_000 * i64::from(small_number(at))),
        terminating_since: None,
    }
}

/// Worst-case snapshot: `parents` parents, none of them ready, with different free text for each.
pub(super) fn hostile_snapshot(parents: usize) -> StatsSnapshot {
    let mut snapshot = StatsSnapshot { rows: 4 * parents as u64, ..StatsSnapshot::default() };
    let reasons: Vec<_> = ParentReason::ALL.into_iter().filter(|r| r.child_level() != Level::Ready).collect();
    let mut tally = LevelTally::default();
    for _ in 0..30 {
        tally.add_child(ChildWeight::of(Level::Stuck));
    }
    for at in 0..HOSTILE_POLICIES {
        let children = HOSTILE_KINDS[1..].iter().map(|&kind| (kind.to_owned(), tally)).collect();
        // One manager for each of ten thousand parents.
        let owned = (0..500).map(|n| (format!("manager \"{n}\"\n{at}").into(), 1)).collect();
        let reasons = reasons.iter().map(|reason| (*reason, 100)).collect();
        let numbers = PolicyNumbers {
            reasons,
            children,
            findings: FindingCounts { owned, ..FindingCounts::default() },
            ..PolicyNumbers::default()
        };
        snapshot.policies.insert(format!("policy-{at}"), numbers);
    }
    snapshot.unready_count = parents as u64;
    snapshot.unready = (0..parents.min(500))
        .map(|at| not_ready(at, &format!("db-{at}\"}} 1\n\\{{"), reasons[at % reasons.len()]))
        .collect();
    let named = |at: usize| ParentName {
        policy: format!("policy-{}", at % HOSTILE_POLICIES),
        namespace: "a".to_owned(),
        name: format!("{at}\"\\\n}}"),
    };
    // Maximum number of named parents per sort of conflict.
    snapshot.yielding = (0..100.min(parents)).map(named).collect();
    snapshot.flapping.clone_from(&snapshot.yielding);
    snapshot
}

/// Details of each parent: a cause with an overlong name of its own, and children with all verdicts.
pub(super) fn hostile_detail(parent: &NotReadyParent) -> NotReadyDetail {
    let mut children = LevelTally::default();
    for level in Level::ALL {
        children.add_child(ChildWeight::of(level));
    }
    let child = format!("web-{}\"}} 1\n\\{{{}", parent.parent.0, "é".repeat(500));
    let kind = "Deployment.apps".to_owned();
    NotReadyDetail {
        cause: TopCause { kind, child, level: Level::Failed, reason: NodeToken::Object(ReasonToken::Custom) },
        children,
    }
}

/// Metrics of a service with worst-case input.
pub struct HostileMetrics {
    metrics: Metrics,
    snapshot: StatsSnapshot,
}

impl HostileMetrics {
    /// Creates metrics with this number of parents, and with ten thousand different watch failures.
    #[must_use]
    pub fn new(parents: usize) -> HostileMetrics {
        let world = HostileMetrics {
            metrics: planned_metrics(HOSTILE_POLICIES),
            snapshot: hostile_snapshot(parents),
        };
        for at in 0..10_000 {
            let trouble = KindEvent::Failure(
                ApiFailureCause::ALL[at % ApiFailureCause::ALL.len()],
                format!("reason {at}"),
            );
            world.metrics.record_kind_event("Pod", &trouble, Time(i64::from(small_number(at))));
        }
        world.record_snapshot();
        world
    }

    /// Records the snapshot, as the loop does periodically.
    pub fn record_snapshot(&self) {
        self.metrics.record_snapshot(&self.snapshot, EvaluationCounts::default(), hostile_detail);
    }

    /// Text of a scrape.
    #[must_use]
    pub fn scrape_text(&self) -> String {
        self.metrics.encode_text()
    }
}

//! What the world may bring up: for tests, and to measure what a scrape costs then.

use aggregator::{Counts, ObjectId, PolicyId};
use readiness::rollup::{ParentReason, Tally, Weight};
use readiness::{Level, Time};
use watcher::Cause;

use super::Metrics;
use crate::core::Worst;
use crate::kinds::News;
use crate::snapshot::{NotReady, ParentName, PolicyNumbers, Snapshot, Story};

/// So many policies.
pub(super) const POLICIES: usize = 20;
/// A kind of parents, and kinds of children.
pub(super) const KINDS: [&str; 7] = [
    "Database.example.com",
    "Deployment.apps",
    "StatefulSet.apps",
    "DaemonSet.apps",
    "Job.batch",
    "CronJob.batch",
    "Pod",
];

/// A set of these.
pub(super) fn names(words: &[&str]) -> std::collections::BTreeSet<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// Metrics of a service that leads and has so many policies.
pub(super) fn planned(policies: usize) -> Metrics {
    let metrics = Metrics::new(500).expect("invariant: no two metrics have one name");
    metrics.leads(true);
    let policies = (0..policies).map(|at| (format!("policy-{at}"), names(&KINDS[1..]))).collect();
    metrics.planned(policies, names(&KINDS));
    metrics
}

/// The parent of this number.
pub(super) fn not_ready(at: usize, name: &str, reason: ParentReason) -> NotReady {
    NotReady {
        parent: ObjectId(at as u32),
        policy: format!("policy-{}", at % POLICIES),
        id: PolicyId((at % POLICIES) as u16),
        namespace: format!("team-{}", at % 100),
        name: name.to_owned(),
        reason,
        since: Time(1_000 * at as i64),
    }
}

/// What the world may bring up: so many parents, none of them ready, and everything that is free text different for each.
pub(super) fn hostile(parents: usize) -> Snapshot {
    let mut snapshot = Snapshot { rows: 4 * parents as u64, ..Snapshot::default() };
    let reasons: Vec<_> = ParentReason::ALL.into_iter().filter(|r| r.level() != Level::Ready).collect();
    let mut tally = Tally::default();
    for _ in 0..30 {
        tally.add(Weight { level: Level::Stuck, terminal: false });
    }
    for at in 0..POLICIES {
        let children = KINDS[1..].iter().map(|&kind| (kind.to_owned(), tally)).collect();
        // One manager for each of ten thousand parents.
        let owned = (0..500).map(|n| (format!("manager \"{n}\"\n{at}"), 1)).collect();
        let reasons = reasons.iter().map(|reason| (*reason, 100)).collect();
        let numbers = PolicyNumbers { reasons, children, owned, ..PolicyNumbers::default() };
        snapshot.policies.insert(format!("policy-{at}"), numbers);
    }
    snapshot.unready = (0..parents)
        .map(|at| not_ready(at, &format!("db-{at}\"}} 1\n\\{{"), reasons[at % reasons.len()]))
        .collect();
    let named = |at: usize| ParentName {
        policy: format!("policy-{}", at % POLICIES),
        namespace: "a".to_owned(),
        name: format!("{at}\"\\\n}}"),
    };
    // So many are told of each.
    snapshot.yielding = (0..100.min(parents)).map(named).collect();
    snapshot.flapping.clone_from(&snapshot.yielding);
    snapshot
}

/// What is told of each: a cause with a name of its own that is far too long, and children that stand in all ways.
pub(super) fn story(parent: &NotReady) -> Story {
    let mut children = Tally::default();
    for level in Level::ALL {
        children.add(Weight { level, terminal: false });
    }
    let child = format!("web-{}\"}} 1\n\\{{{}", parent.parent.0, "é".repeat(500));
    let kind = "Deployment.apps".to_owned();
    Story { cause: Worst { kind, child, level: Level::Failed, reason: "Custom" }, children }
}

/// The numbers of a service that met all of that.
pub struct Hostile {
    metrics: Metrics,
    snapshot: Snapshot,
}

impl Hostile {
    /// So many parents, and ten thousand reasons for which watches broke.
    #[must_use]
    pub fn new(parents: usize) -> Hostile {
        let world = Hostile { metrics: planned(POLICIES), snapshot: hostile(parents) };
        for at in 0..10_000 {
            let trouble = News::Trouble(Cause::ALL[at % Cause::ALL.len()], format!("reason {at}"));
            world.metrics.news("Pod", &trouble, Time(at as i64));
        }
        world.gather();
        world
    }

    /// What the loop does of it, once a while.
    pub fn gather(&self) {
        self.metrics.gathered(&self.snapshot, Counts::default(), story);
    }

    /// What a scrape is answered.
    #[must_use]
    pub fn scrape(&self) -> String {
        self.metrics.text()
    }
}

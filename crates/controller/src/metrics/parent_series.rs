//! Series that name a parent: parents that are not ready, worst first, and parents with conflicting writers. Both are
//! capped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use prometheus::{GaugeVec, IntGauge, Result};
use readiness::Level;

use super::factory::MetricFactory;
use super::units::{gauge_value, to_seconds};
use crate::snapshot::{NotReadyDetail, NotReadyParent, ParentName, StatsSnapshot};

/// Maximum number of parents with series about their children: up to eight series each.
const MAX_PARENTS_WITH_CHILDREN: usize = 50;
/// Maximum length of a name in Kubernetes; longer label values are truncated.
const MAX_LABEL_BYTES: usize = 253;

/// Series of one metric that come and go with their parents.
struct TransientSeries<const LABELS: usize> {
    metric: GaugeVec,
    present: Mutex<BTreeSet<[String; LABELS]>>,
}

impl<const LABELS: usize> TransientSeries<LABELS> {
    fn new(metric: GaugeVec) -> Self {
        TransientSeries { metric, present: Mutex::default() }
    }

    /// Replaces all series. An old series is removed only after the new ones exist: a scrape in between that found
    /// neither would reset an alert.
    fn replace_all(&self, guests: BTreeMap<[String; LABELS], f64>) {
        for (labels, value) in &guests {
            self.metric.with_label_values(labels).set(*value);
        }
        let mut there = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let now = guests.into_keys().collect();
        for labels in there.difference(&now) {
            // It existed, and only this method removes any.
            _ = self.metric.remove_label_values(labels);
        }
        *there = now;
    }
}

/// All metrics with the name of a parent as a label.
pub(super) struct ParentSeries {
    since: TransientSeries<3>,
    terminating_since: TransientSeries<3>,
    info: TransientSeries<5>,
    cause: TransientSeries<7>,
    children: TransientSeries<4>,
    not_exported: IntGauge,
    yielding: TransientSeries<3>,
    flapping: TransientSeries<3>,
    export: usize,
}

impl ParentSeries {
    /// Creates the metrics. At most `export` parents that are not ready are named.
    pub(super) fn new(make: &MetricFactory<'_>, export: usize) -> Result<ParentSeries> {
        let name = ["policy", "namespace", "name"];
        let with = |more: &[&'static str]| [&name, more].concat();
        Ok(ParentSeries {
            since: TransientSeries::new(make.float_gauge_vec(
                "parent_not_ready_since_timestamp_seconds",
                "Time since which a parent has not been ready, in seconds since the Unix epoch.",
                &name,
            )?),
            terminating_since: TransientSeries::new(make.float_gauge_vec(
                "parent_terminating_since_timestamp_seconds",
                "Time of the deletion request of a parent that is being deleted, in seconds since the Unix epoch.",
                &name,
            )?),
            info: TransientSeries::new(make.float_gauge_vec(
                "parent_not_ready_info",
                "1 for each parent that is not ready, with its current verdict and reason.",
                &with(&["verdict", "reason"]),
            )?),
            cause: TransientSeries::new(make.float_gauge_vec(
                "parent_not_ready_cause_info",
                "1 for each parent that is not ready, with the worst cause that holds it back.",
                &with(&["kind", "child", "verdict", "reason"]),
            )?),
            children: TransientSeries::new(make.float_gauge_vec(
                "parent_not_ready_children",
                "Children of a parent that is not ready, by verdict.",
                &with(&["verdict"]),
            )?),
            not_exported: make.gauge(
                "parents_not_exported",
                "Parents that are not ready and exceed the number of those with series of their own.",
            )?,
            yielding: TransientSeries::new(make.float_gauge_vec(
                "parent_yielding_info",
                "1 for each parent on which another writer repeatedly overwrites the condition.",
                &name,
            )?),
            flapping: TransientSeries::new(make.float_gauge_vec(
                "parent_finalizers_flapping_info",
                "1 for each parent of which a finalizer, or one of a child's, is repeatedly removed and added again.",
                &name,
            )?),
            export,
        })
    }

    /// Number of parents that are not ready and have series of their own.
    pub(super) fn named_parents(&self) -> usize {
        self.export
    }

    /// Records the parents of a snapshot; `None` on a standby, where the leader exports them. `story` is called only
    /// for exported parents.
    pub(super) fn record_snapshot(
        &self,
        snapshot: Option<&StatsSnapshot>,
        story: impl Fn(&NotReadyParent) -> NotReadyDetail,
    ) {
        let unready = snapshot.map_or(&[][..], |snapshot| &snapshot.unready);
        let (mut since, mut info, mut terminating) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (mut causes, mut children) = (BTreeMap::new(), BTreeMap::new());
        for (at, parent) in unready.iter().take(self.export).enumerate() {
            let name = truncate_labels([&parent.policy, &parent.namespace, &parent.name]);
            let reason = parent.reason;
            let NotReadyDetail { cause, children: tally } = story(parent);
            info.insert(join_labels(&name, [reason.child_level().as_str(), reason.as_str()]), 1.0);
            let words = [
                truncate_label(&cause.kind),
                truncate_label(&cause.child),
                cause.level.as_str(),
                cause.reason.as_str(),
            ];
            causes.insert(join_labels(&name, words), 1.0);
            let counted = Level::ALL
                .into_iter()
                .filter(|level| at < MAX_PARENTS_WITH_CHILDREN && tally.count_at(*level) > 0);
            children.extend(
                counted.map(|level| (join_labels(&name, [level.as_str()]), f64::from(tally.count_at(level)))),
            );
            if let Some(at) = parent.terminating_since {
                terminating.insert(name.clone(), to_seconds(at));
            }
            since.insert(name, to_seconds(parent.since));
        }
        self.info.replace_all(info);
        self.since.replace_all(since);
        self.terminating_since.replace_all(terminating);
        self.cause.replace_all(causes);
        self.children.replace_all(children);
        let ones = |parents: &[ParentName]| {
            let name = |p: &ParentName| (truncate_labels([&p.policy, &p.namespace, &p.name]), 1.0);
            parents.iter().map(name).collect()
        };
        self.yielding.replace_all(snapshot.map(|snapshot| ones(&snapshot.yielding)).unwrap_or_default());
        self.flapping.replace_all(snapshot.map(|snapshot| ones(&snapshot.flapping)).unwrap_or_default());
        let count = snapshot.map_or(0, |snapshot| snapshot.unready_count);
        self.not_exported.set(gauge_value(count.saturating_sub(self.export as u64)));
    }
}

fn truncate_labels<const LABELS: usize>(words: [&String; LABELS]) -> [String; LABELS] {
    words.map(|word| truncate_label(word).to_owned())
}

fn join_labels<const MORE: usize, const ALL: usize>(name: &[String; 3], more: [&str; MORE]) -> [String; ALL] {
    let mut words = name.iter().map(String::as_str).chain(more);
    std::array::from_fn(|_| words.next().unwrap_or_default().to_owned())
}

fn truncate_label(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_LABEL_BYTES)).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

//! Series that name a parent: of those that are not ready, worst first, and of those where somebody fights. Each is capped.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use prometheus::{GaugeVec, IntGauge, Result};
use readiness::Level;

use super::make::Make;
use super::seconds;
use crate::snapshot::{NotReady, ParentName, Snapshot, Story};

/// Of so many parents it is exported how their children stand: up to eight series each.
const FAMILIES: usize = 50;
/// Names in Kubernetes are no longer; whatever is, is cut.
const NAME: usize = 253;

/// Series of one metric that come and go with what they tell of.
struct Guests<const LABELS: usize> {
    metric: GaugeVec,
    there: Mutex<BTreeSet<[String; LABELS]>>,
}

impl<const LABELS: usize> Guests<LABELS> {
    fn new(metric: GaugeVec) -> Self {
        Guests { metric, there: Mutex::default() }
    }

    /// These and no others. A series is taken away only after its successor is there: a scrape in between that saw neither
    /// would reset an alert.
    fn are(&self, guests: BTreeMap<[String; LABELS], f64>) {
        for (labels, value) in &guests {
            self.metric.with_label_values(labels).set(*value);
        }
        let mut there = self.there.lock().unwrap_or_else(PoisonError::into_inner);
        let now = guests.into_keys().collect();
        for labels in there.difference(&now) {
            // It was there, and nobody else takes any away.
            _ = self.metric.remove_label_values(labels);
        }
        *there = now;
    }
}

/// Every metric with the name of a parent in it.
pub(super) struct Named {
    since: Guests<3>,
    info: Guests<5>,
    cause: Guests<7>,
    children: Guests<4>,
    not_exported: IntGauge,
    yielding: Guests<3>,
    flapping: Guests<3>,
    export: usize,
}

impl Named {
    /// At most `export` parents that are not ready are named.
    pub(super) fn new(make: &Make<'_>, export: usize) -> Result<Named> {
        let name = ["policy", "namespace", "name"];
        let with = |more: &[&'static str]| [&name, more].concat();
        Ok(Named {
            since: Guests::new(make.times(
                "parent_not_ready_since_timestamp_seconds",
                "Since when a parent has not been ready, whatever it said meanwhile.",
                &name,
            )?),
            info: Guests::new(make.times(
                "parent_not_ready_info",
                "1 for each parent that is not ready, with its verdict and reason.",
                &with(&["verdict", "reason"]),
            )?),
            cause: Guests::new(make.times(
                "parent_not_ready_cause_info",
                "1 for each parent that is not ready, with the worst of what holds it back.",
                &with(&["kind", "child", "verdict", "reason"]),
            )?),
            children: Guests::new(make.times(
                "parent_not_ready_children",
                "Children of a parent that is not ready, by verdict.",
                &with(&["verdict"]),
            )?),
            not_exported: make.gauge(
                "parents_not_exported",
                "Parents that are not ready but have no series of their own.",
            )?,
            yielding: Guests::new(make.times(
                "parent_yielding_info",
                "1 for each parent on which another writer keeps overwriting the condition.",
                &name,
            )?),
            flapping: Guests::new(make.times(
                "parent_finalizers_flapping_info",
                "1 for each parent of which a finalizer, or one of a child's, is taken off and put back again and again.",
                &name,
            )?),
            export,
        })
    }

    /// How parents stand now; `None` where that is for another replica to say. `story` is asked of the exported ones alone.
    pub(super) fn gathered(&self, snapshot: Option<&Snapshot>, story: impl Fn(&NotReady) -> Story) {
        let unready = snapshot.map_or(&[][..], |snapshot| &snapshot.unready);
        let worst = worst(unready, self.export);
        let (mut since, mut info) = (BTreeMap::new(), BTreeMap::new());
        let (mut causes, mut children) = (BTreeMap::new(), BTreeMap::new());
        for (at, parent) in worst.into_iter().enumerate() {
            let name = labels([&parent.policy, &parent.namespace, &parent.name]);
            let reason = parent.reason;
            let Story { cause, children: tally } = story(parent);
            info.insert(joined(&name, [reason.level().word(), reason.word()]), 1.0);
            let words = [cut(&cause.kind), cut(&cause.child), cause.level.word(), cause.reason];
            causes.insert(joined(&name, words), 1.0);
            let counted = Level::ALL.into_iter().filter(|level| at < FAMILIES && tally.at(*level) > 0);
            children.extend(counted.map(|level| (joined(&name, [level.word()]), f64::from(tally.at(level)))));
            since.insert(name, seconds(parent.since));
        }
        self.info.are(info);
        self.since.are(since);
        self.cause.are(causes);
        self.children.are(children);
        let ones = |parents: &[ParentName]| {
            let name = |p: &ParentName| (labels([&p.policy, &p.namespace, &p.name]), 1.0);
            parents.iter().map(name).collect()
        };
        self.yielding.are(snapshot.map(|snapshot| ones(&snapshot.yielding)).unwrap_or_default());
        self.flapping.are(snapshot.map(|snapshot| ones(&snapshot.flapping)).unwrap_or_default());
        self.not_exported.set(unready.len().saturating_sub(self.export) as i64);
    }
}

/// The worst of them, and of equally bad ones those that have been so for longest: what is suspended on purpose for days
/// must not keep what failed a minute ago from being seen.
fn worst(unready: &[NotReady], most: usize) -> Vec<&NotReady> {
    let order = |p: &&NotReady| (p.reason.level(), p.since, p.parent, p.id);
    let mut worst: Vec<&NotReady> = unready.iter().collect();
    if worst.len() > most {
        worst.select_nth_unstable_by_key(most, order);
        worst.truncate(most);
    }
    worst.sort_unstable_by_key(order);
    worst
}

fn labels<const LABELS: usize>(words: [&String; LABELS]) -> [String; LABELS] {
    words.map(|word| cut(word).to_owned())
}

fn joined<const MORE: usize, const ALL: usize>(name: &[String; 3], more: [&str; MORE]) -> [String; ALL] {
    let mut words = name.iter().map(String::as_str).chain(more);
    std::array::from_fn(|_| words.next().unwrap_or_default().to_owned())
}

fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(NAME)).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

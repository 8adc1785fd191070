//! How long children ran that record their completion.

use std::sync::Arc;
use std::time::Duration;

use aggregator::{KindId, ObjectId};
use readiness::{Level, Time};
use watcher::reflector::Reflector;
use watcher::wire::ChildObject;
use watcher::{ApiKind, ReflectorObject};

use crate::metrics::Metrics;

/// Maximum number of completed children that are remembered until their rule has judged them.
const MAX_UNJUDGED: usize = 1_024;

/// Measures the run durations of the children of one kind.
pub(super) struct RunDurations {
    reflector: Arc<Reflector>,
    metrics: Arc<Metrics>,
    kind: KindId,
    label: String,
    /// Completed children that were not ready before, and await their rule.
    unjudged: Vec<(Box<str>, Duration)>,
}

/// Run duration of a child that recorded its completion.
fn run_duration(child: &ChildObject) -> Option<Duration> {
    let status = &child.facts.status;
    Some(status.finished? - status.started?)
}

impl RunDurations {
    pub(super) fn new(
        reflector: Arc<Reflector>,
        metrics: Arc<Metrics>,
        kind: KindId,
        api: &ApiKind,
    ) -> RunDurations {
        RunDurations { reflector, metrics, kind, label: api.to_string(), unjudged: Vec::new() }
    }

    /// Applies an object. If it was observed before it was ready, is ready now, and recorded its completion, its run duration
    /// is recorded.
    pub(super) fn apply_object<K: ReflectorObject>(&mut self, object: &K) {
        let child = object.as_child();
        let took = run_duration(child);
        let before = took.and_then(|_| self.current_level(&child.meta.uid));
        self.reflector.apply_object(self.kind, child, object.raw_text());
        let Some(took) = took.filter(|_| before.is_some_and(|level| level != Level::Ready)) else { return };
        if self.awaits_rule(&child.meta.uid) {
            if self.unjudged.len() < MAX_UNJUDGED {
                self.unjudged.push((child.meta.uid.clone(), took));
            }
        } else {
            self.record(&child.meta.uid, took);
        }
    }

    /// Records the durations of children that their rules have judged since.
    pub(super) fn record_judged(&mut self) {
        for (uid, took) in std::mem::take(&mut self.unjudged) {
            if self.awaits_rule(&uid) {
                self.unjudged.push((uid, took));
            } else {
                self.record(&uid, took);
            }
        }
    }

    fn record(&self, uid: &str, took: Duration) {
        let is_ready = self.current_level(uid) == Some(Level::Ready);
        let Some(id) = self.find(uid).filter(|_| is_ready) else { return };
        let policies = self.reflector.with_view(id, Time::default(), |view| {
            view.map(|view| view.links.iter().map(|link| link.policy).collect()).unwrap_or_default()
        });
        self.metrics.planned.observe_child_duration(&policies, &self.label, took);
    }

    fn find(&self, uid: &str) -> Option<ObjectId> {
        self.reflector.find_object(uid)
    }

    fn current_level(&self, uid: &str) -> Option<Level> {
        self.reflector.read_row(self.find(uid)?, |row| row.assessment.verdict.level)
    }

    fn awaits_rule(&self, uid: &str) -> bool {
        let awaits = |id| self.reflector.read_row(id, |row| row.awaited_since(0).is_some());
        self.find(uid).and_then(awaits) == Some(true)
    }
}

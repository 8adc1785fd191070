//! The check of drift: what the watch brings a moment later is none, and what it does not bring long after it has lost.

use std::time::Duration;

use tokio::time::sleep;
use watcher::reflector::Reflector;

use super::drift_log::{DriftExample, DriftLog};
use super::place_comparisons::PlaceComparisons;
use super::read_result::Drift;
use crate::kind_tasks::HistoryBreaks;
use crate::metrics::Metrics;

/// Time the watch may lag behind a live read before the difference is reported as drift. 5 s.
const DRIFT_GRACE_PERIOD: Duration = Duration::from_secs(5);
/// Time after that until the watch is taken to have lost what it has not delivered. 25 s: a server under load is late, and a list
/// of the kind is what it needs least then.
const LATENESS_ALLOWED: Duration = Duration::from_secs(25);

/// Checks what live reads have found before the watch brought it.
pub(super) struct DriftCheck<'r> {
    pub(super) reflector: &'r Reflector,
    pub(super) metrics: &'r Metrics,
    pub(super) drift_log: &'r DriftLog,
    /// What was compared where, which proves nothing once the server's history has gone back.
    pub(super) comparisons: &'r PlaceComparisons,
    /// Tells that the server's history has gone back.
    pub(super) breaks: &'r HistoryBreaks,
}

impl DriftCheck<'_> {
    /// Checks, after the grace period, for objects that are still known only from a live read, and reports them as
    /// drift. What the watch has not delivered long after that it has lost, and perhaps more: the kind is listed again. Where the
    /// server's history has gone back, it is at once: nobody is late there.
    pub(super) async fn run(&self, mut drifts: Vec<Drift>, found_by: &str) {
        sleep(DRIFT_GRACE_PERIOD).await;
        drifts.retain(|drift| self.reflector.is_still_awaited(&drift.lag.awaited));
        self.drift_log.report(drifts.iter().map(|Drift { followed, lag }| {
            let kind = followed.api.to_string();
            self.metrics.count_drift(&kind, found_by, 1);
            let (object, held, live) = (lag.object.clone(), lag.before, lag.live);
            DriftExample { kind, object, held, live }
        }));
        let (older, late): (Vec<_>, Vec<_>) = drifts.into_iter().partition(|drift| drift.lag.went_back());
        if !older.is_empty() {
            self.comparisons.forget_proofs();
            self.breaks.on_older_version();
        }
        self.give_up_watches(older);
        if !late.is_empty() {
            sleep(LATENESS_ALLOWED).await;
            self.give_up_watches(late);
        }
    }

    fn give_up_watches(&self, drifts: Vec<Drift>) {
        for Drift { followed, lag } in drifts {
            if self.reflector.give_up_awaiting(&lag.awaited) {
                followed.doubts.on_lost_event();
            }
        }
    }
}

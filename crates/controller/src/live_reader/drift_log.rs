//! The log of drift: one line a minute and kind, with a count and an example.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use readiness::Time;
use tokio::sync::Notify;
use tokio::time::Instant;
use tracing::warn;

use crate::failure_log::{FailureLine, FailureLog};

/// Shortest interval between two lines about one kind. 1 min.
const DRIFT_LOG_INTERVAL: Duration = Duration::from_mins(1);

/// An object whose change was found before the watch delivered it.
#[derive(Clone, Debug)]
pub(super) struct DriftExample {
    pub(super) kind: String,
    /// `namespace/name`.
    pub(super) object: String,
    /// Version held before; 0 for none.
    pub(super) held: u64,
    /// Version read; 0 if the object is gone.
    pub(super) live: u64,
}

/// Drift that was found and not logged yet, by kind.
pub(crate) struct DriftLog {
    found: Mutex<FailureLog<String, DriftExample>>,
    held_back: Notify,
    start: Instant,
}

impl Default for DriftLog {
    fn default() -> Self {
        let found = Mutex::new(FailureLog::with_interval(DRIFT_LOG_INTERVAL));
        DriftLog { found, held_back: Notify::new(), start: Instant::now() }
    }
}

impl DriftLog {
    /// Logs what was found, now or with the next line about its kind.
    pub(super) fn report(&self, drifts: impl Iterator<Item = DriftExample>) {
        self.record(drifts).iter().for_each(log_drift);
    }

    fn record(&self, drifts: impl Iterator<Item = DriftExample>) -> Vec<FailureLine<DriftExample>> {
        let mut by_kind = BTreeMap::<String, (u64, DriftExample)>::new();
        for drift in drifts {
            by_kind.entry(drift.kind.clone()).or_insert((0, drift)).0 += 1;
        }
        let now = self.now();
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = Vec::new();
        for (kind, (count, example)) in by_kind {
            match found.record_failures(now, kind, example, count) {
                Some(line) => lines.push(line),
                None => self.held_back.notify_one(),
            }
        }
        lines
    }

    /// Logs what was held back, for as long as it is polled.
    pub(super) async fn keep_flushing(&self) {
        loop {
            self.held_back.notified().await;
            tokio::time::sleep(DRIFT_LOG_INTERVAL).await;
            self.take_held_back().iter().for_each(log_drift);
        }
    }

    fn take_held_back(&self) -> Vec<FailureLine<DriftExample>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).take_due_lines(self.now())
    }

    fn now(&self) -> Time {
        Time::default() + self.start.elapsed()
    }
}

fn log_drift(line: &FailureLine<DriftExample>) {
    let FailureLine { sample: DriftExample { kind, object, held, live }, failures } = line;
    warn!(
        kind,
        objects = failures,
        example = object,
        held,
        live,
        "drift: the watch has not delivered changes that live reads observed; they were applied"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drift(kind: &str, number: u32) -> DriftExample {
        DriftExample { kind: kind.to_owned(), object: format!("shop/web-{number}"), held: 1, live: 2 }
    }

    #[tokio::test(start_paused = true)]
    async fn drift_of_many_objects_is_one_line_for_each_kind() {
        let log = DriftLog::default();
        let many: Vec<_> = (0..256).map(|n| drift("Shard.example.com", n)).chain([drift("Pod", 0)]).collect();
        let lines = log.record(many.iter().cloned());
        let said: Vec<_> = lines.iter().map(|line| (line.sample.kind.as_str(), line.failures)).collect();
        assert_eq!(said, [("Pod", 1), ("Shard.example.com", 256)]);
        for one in &many {
            assert!(log.record([one.clone()].into_iter()).is_empty(), "one by one");
        }
        tokio::time::sleep(DRIFT_LOG_INTERVAL).await;
        let counts: Vec<_> = log.take_held_back().iter().map(|line| line.failures).collect();
        assert_eq!(counts, [1, 256], "and none is uncounted");
    }
}

//! Log lines about what keeps failing, for all tasks: each cause has its [`FailureLog`], so that no outage, however long and
//! of whatever, fills the log.

use std::fmt::Display;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use readiness::Time;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::failure_log::{FailureLine, FailureLog};

/// Interval at which lines that were held back are looked through. 1 s.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// Most letters of what tells one cause from another.
const MAX_CAUSE: usize = 256;

/// Logs one failure: takes the number of failures that the line stands for.
type LogLine = Box<dyn FnOnce(u64) + Send>;

/// What fails, and what tells it from other failures of its sort: a kind, a status.
type FailureCause = (&'static str, String);

struct ReportedFailures {
    log: Mutex<FailureLog<FailureCause, LogLine>>,
    held_back: Notify,
    start: Instant,
}

/// Handle by which a task reports failures. Cheap to clone.
#[derive(Clone)]
pub(crate) struct FailureReporter(Arc<ReportedFailures>);

impl Default for FailureReporter {
    fn default() -> Self {
        let log = Mutex::new(FailureLog::default());
        FailureReporter(Arc::new(ReportedFailures { log, held_back: Notify::new(), start: Instant::now() }))
    }
}

impl FailureReporter {
    /// Reports that `what` failed, because of or for `cause`. `line` logs it: now, or later with the number of those that
    /// were held back.
    pub(crate) fn report(
        &self,
        what: &'static str,
        cause: impl Display,
        line: impl FnOnce(u64) + Send + 'static,
    ) {
        let cause = cause.to_string().chars().take(MAX_CAUSE).collect();
        let recorded = self.with_log(|log, now| log.record_failure(now, (what, cause), Box::new(line)));
        match recorded {
            Some(FailureLine { sample, failures }) => sample(failures),
            None => self.0.held_back.notify_one(),
        }
    }

    /// Logs what was held back, for as long as it is polled.
    pub(crate) async fn keep_flushing(&self) {
        loop {
            self.0.held_back.notified().await;
            while self.with_log(|log, _| log.has_pending()) {
                tokio::time::sleep(FLUSH_INTERVAL).await;
                for FailureLine { sample, failures } in self.with_log(FailureLog::take_due_lines) {
                    sample(failures);
                }
            }
        }
    }

    /// The lines themselves are logged outside, without the lock.
    fn with_log<T>(&self, act: impl FnOnce(&mut FailureLog<FailureCause, LogLine>, Time) -> T) -> T {
        let now = Time::default() + self.0.start.elapsed();
        act(&mut self.0.log.lock().unwrap_or_else(PoisonError::into_inner), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_keeps_failing_is_logged_ever_more_rarely_and_counted() {
        let (reporter, told) = (FailureReporter::default(), Arc::new(Mutex::new(Vec::new())));
        let flushing = reporter.clone();
        let flush = tokio::spawn(async move { flushing.keep_flushing().await });
        for second in 0..10 {
            for cause in ["a", "b"] {
                let told = told.clone();
                reporter.report("read", cause, move |failures| {
                    told.lock().unwrap().push((second, cause, failures));
                });
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        tokio::time::sleep(Duration::from_mins(1)).await;
        flush.abort();
        let told = told.lock().unwrap();
        for cause in ["a", "b"] {
            let lines: Vec<_> = told.iter().filter(|(_, of, _)| *of == cause).collect();
            assert!((3..=5).contains(&lines.len()), "{lines:?}");
            assert_eq!(lines.iter().map(|(_, _, failures)| failures).sum::<u64>(), 10, "{lines:?}");
        }
    }
}

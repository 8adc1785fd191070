//! Log of repeated failures: one line an interval and cause, with the number of failures that it stands for. While a cause goes
//! on its interval grows, so that an outage of any length fits a log.

use std::collections::BTreeMap;
use std::time::Duration;

use readiness::Time;

/// First interval between two lines about one cause, where nothing else was said. 1 s.
const FAILURE_LOG_INTERVAL: Duration = Duration::from_secs(1);
/// Longest one. Each is twice as long as the one before, until nothing fails for that cause for as long as this. 5 min.
const LONGEST_FAILURE_LOG_INTERVAL: Duration = Duration::from_mins(5);
/// Number of causes that are kept apart. Beyond it the one that was logged longest ago is forgotten.
const MAX_FAILURE_CAUSES: usize = 256;

/// Line to be logged: the last failure of its cause, and how many there were since the line before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FailureLine<S> {
    /// The last failure.
    pub(crate) sample: S,
    /// Number of failures since the line before, including this one.
    pub(crate) failures: u64,
}

#[derive(Clone, Debug)]
struct LoggedCause<S> {
    logged_at: Time,
    failed_at: Time,
    /// Time until which nothing more is said of it.
    interval: Duration,
    pending: Option<FailureLine<S>>,
}

impl<S> LoggedCause<S> {
    /// A line is logged now; `first` is the interval of a cause that is new, or has rested.
    fn on_line(&mut self, now: Time, first: Duration) {
        self.interval = (2 * self.interval).min(LONGEST_FAILURE_LOG_INTERVAL).max(first);
        self.logged_at = now;
    }

    /// Records a failure. After a long rest the interval starts again.
    fn on_failure(&mut self, now: Time, first: Duration) {
        if self.pending.is_none() && self.failed_at + LONGEST_FAILURE_LOG_INTERVAL <= now {
            self.interval = first / 2;
        }
        self.failed_at = now;
    }
}

/// Failures by cause, and when each cause was last logged.
#[derive(Clone, Debug)]
pub(crate) struct FailureLog<K, S> {
    causes: BTreeMap<K, LoggedCause<S>>,
    interval: Duration,
}

impl<K, S> Default for FailureLog<K, S> {
    fn default() -> Self {
        FailureLog { causes: BTreeMap::new(), interval: FAILURE_LOG_INTERVAL }
    }
}

impl<K, S> FailureLog<K, S> {
    /// A log with another interval between two lines about one cause.
    pub(crate) fn with_interval(interval: Duration) -> Self {
        FailureLog { interval, ..FailureLog::default() }
    }
}

impl<K: Ord + Clone, S> FailureLog<K, S> {
    /// Records a failure. Returns the line to log, unless one about its cause was logged a moment ago.
    pub(crate) fn record_failure(&mut self, now: Time, cause: K, sample: S) -> Option<FailureLine<S>> {
        self.record_failures(now, cause, sample, 1)
    }

    /// Records failures of one cause at once, as [`FailureLog::record_failure`] does one.
    pub(crate) fn record_failures(
        &mut self,
        now: Time,
        cause: K,
        sample: S,
        failures: u64,
    ) -> Option<FailureLine<S>> {
        if let Some(logged) = self.causes.get_mut(&cause) {
            logged.on_failure(now, self.interval);
            let before = logged.pending.take().map_or(0, |line| line.failures);
            let line = FailureLine { sample, failures: before + failures };
            if logged.logged_at + logged.interval > now {
                logged.pending = Some(line);
                return None;
            }
            logged.on_line(now, self.interval);
            return Some(line);
        }
        if self.causes.len() >= MAX_FAILURE_CAUSES {
            let oldest = self.causes.iter().min_by_key(|(_, logged)| logged.logged_at);
            if let Some(oldest) = oldest.map(|(cause, _)| cause.clone()) {
                self.causes.remove(&oldest);
            }
        }
        let begun = LoggedCause { logged_at: now, failed_at: now, interval: self.interval, pending: None };
        self.causes.insert(cause, begun);
        Some(FailureLine { sample, failures })
    }

    /// True if there are failures that no line has told of yet.
    pub(crate) fn has_pending(&self) -> bool {
        self.causes.values().any(|logged| logged.pending.is_some())
    }

    /// Takes the lines about failures that were held back and are due.
    pub(crate) fn take_due_lines(&mut self, now: Time) -> Vec<FailureLine<S>> {
        let first = self.interval;
        let due = self.causes.values_mut().filter(|logged| logged.logged_at + logged.interval <= now);
        due.filter_map(|logged| {
            let line = logged.pending.take()?;
            logged.on_line(now, first);
            Some(line)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(failures: &[(i64, &'static str)], flushed_at: i64) -> Vec<(i64, u64)> {
        let (mut log, mut lines) = (FailureLog::default(), Vec::new());
        for (at, cause) in failures {
            lines.extend(log.record_failure(Time(*at), *cause, ()).map(|line| (*at, line.failures)));
        }
        lines.extend(log.take_due_lines(Time(flushed_at)).iter().map(|line| (flushed_at, line.failures)));
        lines
    }

    #[test]
    fn repeated_failures_are_one_line_a_second_and_cause_and_none_is_uncounted() {
        /// Failures with their causes, the time of the flush, and the lines that come of it.
        type Case<'a> = (&'a [(i64, &'a str)], i64, &'a [(i64, u64)]);
        let cases: &[Case<'_>] = &[
            (&[(0, "a")], 9_000, &[(0, 1)]),
            (&[(0, "a"), (999, "a"), (1_000, "a")], 1_000, &[(0, 1), (1_000, 2)]),
            (&[(0, "a"), (1, "a"), (2, "a")], 500, &[(0, 1)]),
            (&[(0, "a"), (1, "a"), (2, "a")], 2_000, &[(0, 1), (2_000, 2)]),
            (&[(0, "a"), (1, "b"), (2, "a"), (3, "b")], 2_000, &[(0, 1), (1, 1), (2_000, 1), (2_000, 1)]),
            (&[(0, "a"), (5_000, "a")], 9_000, &[(0, 1), (5_000, 1)]),
        ];
        for (failures, flushed_at, expected) in cases {
            assert_eq!(lines(failures, *flushed_at), *expected, "{failures:?}");
        }
    }

    #[test]
    fn an_hour_of_failures_is_twenty_lines_and_after_a_rest_the_next_is_told_at_once() {
        let (mut log, mut told) = (FailureLog::default(), Vec::new());
        let mut counted = 0;
        for at in (0..3_600_000).step_by(50) {
            let line = log.record_failure(Time(at), "a", ()).into_iter();
            for line in line.chain(log.take_due_lines(Time(at))) {
                counted += line.failures;
                told.push(at);
            }
        }
        assert_eq!(told[..7], [0, 1_000, 3_000, 7_000, 15_000, 31_000, 63_000]);
        // At less than 2 KiB a line, one cause takes 40 kB of log an hour.
        assert!((15..=20).contains(&told.len()), "{} lines", told.len());
        assert!(counted > 60_000, "each line says how many: {counted}");
        let quiet = 3_600_000 + 700_000;
        log.take_due_lines(Time(quiet));
        let after = quiet + 700_000;
        assert!(log.record_failure(Time(after), "a", ()).is_some());
        assert!(log.record_failure(Time(after + 1_000), "a", ()).is_some(), "it began anew");
    }

    #[test]
    fn what_fails_rarely_and_steadily_is_told_ever_more_rarely_too() {
        let (mut log, mut told) = (FailureLog::default(), 0);
        for at in (0..3_600_000).step_by(20_000) {
            told += usize::from(log.record_failure(Time(at), "a", ()).is_some());
        }
        assert!((12..=24).contains(&told), "{told} lines of 180 failures");
    }

    #[test]
    fn many_causes_take_no_more_room_than_some() {
        let mut log = FailureLog::default();
        for cause in 0..10_000 {
            log.record_failure(Time(cause), cause, ());
        }
        assert_eq!(log.causes.len(), MAX_FAILURE_CAUSES);
    }
}

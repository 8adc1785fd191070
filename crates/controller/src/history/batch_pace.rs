//! Pace of uploads: soon after an idle period, so that a kill loses little, and yet infrequent, because every object
//! costs money and has to be opened by readers.

use std::time::Duration;

use readiness::Time;

/// Delay of the first transition after an idle period, so that others join its batch. 5 s.
pub(super) const BATCH_DELAY: Duration = Duration::from_secs(5);
/// Number of successive batches with that short delay: a rollout is usually finished by then.
pub(super) const BATCH_BURST: u32 = 12;

/// Token bucket of uploads: a batch is uploaded after [`BATCH_DELAY`] while tokens last, else once each `every`.
///
/// **Invariant:** any span has at most span / `every` + [`BATCH_BURST`] uploads; full batches do not count.
#[derive(Debug)]
pub(super) struct BatchPace {
    every: Duration,
    /// Time up to which batches are paid for, at one each `every`.
    paid_until: Time,
}

impl BatchPace {
    pub(super) fn new(every: Duration, now: Time) -> BatchPace {
        BatchPace { every, paid_until: now }
    }

    /// Upload time of waiting transitions whose oldest arrived at `oldest`.
    pub(super) fn batch_due(&self, oldest: Time) -> Time {
        let ahead = self.every.saturating_mul(BATCH_BURST - 1);
        let ahead = i64::try_from(ahead.as_millis()).unwrap_or(i64::MAX);
        (oldest + BATCH_DELAY.min(self.every)).max(Time(self.paid_until.0.saturating_sub(ahead)))
    }

    /// Records an upload.
    pub(super) fn record_batch(&mut self, now: Time) {
        self.paid_until = self.paid_until.max(now) + self.every;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_mins(1);

    /// Upload times until `end`, with a transition every `step`.
    fn batches(step: u64, end: u64) -> Vec<u64> {
        let mut pace = BatchPace::new(EVERY, Time(0));
        let (mut oldest, mut gone) = (None, Vec::new());
        for now in (0..end * 1_000).step_by(500) {
            let at = Time(now.try_into().unwrap());
            if now % (step * 1_000) == 0 {
                oldest = oldest.or(Some(at));
            }
            if oldest.is_some_and(|oldest| pace.batch_due(oldest) <= at) {
                pace.record_batch(at);
                oldest = None;
                gone.push(now / 1_000);
            }
        }
        gone
    }

    #[test]
    fn what_turns_after_quiet_waits_five_seconds() {
        assert_eq!(batches(100, 450), [5, 105, 205, 305, 405]);
    }

    #[test]
    fn what_turns_all_the_time_is_twelve_quick_batches_and_then_one_a_minute() {
        let gone = batches(1, 3_600);
        assert!(gone[10] <= 66 && gone.len() <= 60 + BATCH_BURST as usize, "{gone:?}");
        let late: Vec<_> = gone[15..].windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(late.iter().all(|gap| *gap == 60), "{late:?}");
    }

    #[test]
    fn nothing_waits_longer_than_is_asked_for() {
        for every in [Duration::ZERO, Duration::from_millis(300), EVERY, Duration::from_hours(1)] {
            let (mut pace, mut now) = (BatchPace::new(every, Time(0)), Time(0));
            for _ in 0..1_000 {
                let due = pace.batch_due(now);
                assert!(due <= now + every, "{every:?}: of {now:?} at {due:?}");
                pace.record_batch(due);
                now = due;
            }
            let idle = BatchPace::new(every, Time(0));
            assert_eq!(idle.batch_due(Time(9_000)), Time(9_000) + every.min(BATCH_DELAY));
        }
    }
}

//! When what was gathered is put away: soon after quiet, so that a kill loses little, and yet not often, because every
//! object costs money and whoever reads has to open it.

use std::time::Duration;

use readiness::Time;

/// After quiet, transitions wait so long for others that come with them.
pub(super) const GATHER: Duration = Duration::from_secs(5);
/// So many batches may go that soon one after another: a rollout is through by then.
pub(super) const BURST: u32 = 12;

/// Batches go after [`GATHER`] as long as there were few, and else one each `every`.
///
/// **Invariant:** in any span there are at most span / `every` + [`BURST`] of them; those that are full do not count.
#[derive(Debug)]
pub(super) struct Pace {
    every: Duration,
    /// Where it would stand if batches went one each `every`.
    paid_until: Time,
}

impl Pace {
    pub(super) fn new(every: Duration, now: Time) -> Pace {
        Pace { every, paid_until: now }
    }

    /// When transitions may go, the oldest of which is of `oldest`.
    pub(super) fn due(&self, oldest: Time) -> Time {
        let ahead = self.every.saturating_mul(BURST - 1);
        let ahead = i64::try_from(ahead.as_millis()).unwrap_or(i64::MAX);
        (oldest + GATHER.min(self.every)).max(Time(self.paid_until.0.saturating_sub(ahead)))
    }

    /// A batch went.
    pub(super) fn spend(&mut self, now: Time) {
        self.paid_until = self.paid_until.max(now) + self.every;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_mins(1);

    /// When batches go where something turns each `step`, until `end`.
    fn batches(step: u64, end: u64) -> Vec<u64> {
        let mut pace = Pace::new(EVERY, Time(0));
        let (mut oldest, mut gone) = (None, Vec::new());
        for now in (0..end * 1_000).step_by(500) {
            let at = Time(now.try_into().unwrap());
            if now % (step * 1_000) == 0 {
                oldest = oldest.or(Some(at));
            }
            if oldest.is_some_and(|oldest| pace.due(oldest) <= at) {
                pace.spend(at);
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
        assert!(gone[10] <= 66 && gone.len() <= 60 + BURST as usize, "{gone:?}");
        let late: Vec<_> = gone[15..].windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(late.iter().all(|gap| *gap == 60), "{late:?}");
    }

    #[test]
    fn nothing_waits_longer_than_is_asked_for() {
        for every in [Duration::ZERO, Duration::from_millis(300), EVERY, Duration::from_hours(1)] {
            let (mut pace, mut now) = (Pace::new(every, Time(0)), Time(0));
            for _ in 0..1_000 {
                let due = pace.due(now);
                assert!(due <= now + every, "{every:?}: of {now:?} at {due:?}");
                pace.spend(due);
                now = due;
            }
            let idle = Pace::new(every, Time(0));
            assert_eq!(idle.due(Time(9_000)), Time(9_000) + every.min(GATHER));
        }
    }
}

//! When the numbers for the status of policies and for metrics are published.

use std::time::Duration;

use readiness::Time;

/// Interval at which the numbers are published, if anything has changed. 2 s.
const STATS_INTERVAL: Duration = Duration::from_secs(2);
/// Interval if trees are drawn, so that their changes are visible. 100 ms.
const TREES_INTERVAL: Duration = Duration::from_millis(100);

/// When the numbers are published: some time after anything has changed.
pub(super) struct StatsSchedule {
    is_changed: bool,
    publish_at: Time,
}

impl StatsSchedule {
    /// Creates the schedule of a process, which publishes first that nothing is known.
    pub(super) fn new() -> StatsSchedule {
        StatsSchedule { is_changed: true, publish_at: Time::default() }
    }

    /// Records a change.
    pub(super) fn mark_changed(&mut self) {
        self.is_changed = true;
    }

    /// Records a change that is published at once.
    pub(super) fn publish_now(&mut self, now: Time) {
        (self.is_changed, self.publish_at) = (true, now);
    }

    /// Returns the time at which the numbers are to be published; `None` if nothing has changed.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.is_changed.then_some(self.publish_at)
    }

    pub(super) fn is_due(&self, now: Time) -> bool {
        self.next_deadline().is_some_and(|at| at <= now)
    }

    /// The numbers were published, and trees if they are drawn.
    pub(super) fn end_publish(&mut self, now: Time, draws_trees: bool) {
        let pause = if draws_trees { TREES_INTERVAL } else { STATS_INTERVAL };
        (self.is_changed, self.publish_at) = (false, now + pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_published_two_seconds_after_the_last_numbers_or_at_once_where_it_has_to_be() {
        let mut schedule = StatsSchedule::new();
        assert!(schedule.is_due(Time(0)), "first, that nothing is known");
        schedule.end_publish(Time(0), false);
        assert_eq!(schedule.next_deadline(), None);
        schedule.mark_changed();
        assert_eq!(schedule.next_deadline(), Some(Time(2_000)));
        assert!(!schedule.is_due(Time(1_999)) && schedule.is_due(Time(2_000)));
        schedule.publish_now(Time(1_000));
        assert!(schedule.is_due(Time(1_000)));
        schedule.end_publish(Time(1_000), true);
        schedule.mark_changed();
        assert_eq!(schedule.next_deadline(), Some(Time(1_100)), "trees are drawn");
    }
}

//! When the numbers for the status of policies and for metrics are published.

use std::time::Duration;

use readiness::Time;

/// Shortest interval at which the numbers are published, if anything has changed. 2 s.
const MIN_STATS_INTERVAL: Duration = Duration::from_secs(2);
/// Longest interval, whatever it costs: the status of a policy is not written more often. 10 s.
const MAX_STATS_INTERVAL: Duration = Duration::from_secs(10);
/// Interval for each parent that is counted: at least a hundred times what that takes.
const STATS_INTERVAL_PER_PARENT: Duration = Duration::from_micros(500);
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

    /// Records a change of what is followed, or of how it is seen: however many parents there are, it is soon published.
    pub(super) fn mark_kinds_changed(&mut self, now: Time) {
        (self.is_changed, self.publish_at) = (true, self.publish_at.min(now + MIN_STATS_INTERVAL));
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

    /// The numbers of so many parents were published, and trees if they are drawn.
    pub(super) fn end_publish(&mut self, now: Time, parents: u64, draws_trees: bool) {
        let pause = if draws_trees { TREES_INTERVAL } else { stats_interval(parents) };
        (self.is_changed, self.publish_at) = (false, now + pause);
    }
}

/// Returns the time after which the numbers of so many parents are published again.
fn stats_interval(parents: u64) -> Duration {
    let parents = u32::try_from(parents).unwrap_or(u32::MAX);
    STATS_INTERVAL_PER_PARENT.saturating_mul(parents).clamp(MIN_STATS_INTERVAL, MAX_STATS_INTERVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_few_parents_are_published_every_two_seconds_and_of_many_every_ten() {
        let seconds =
            [0, 100, 4_000, 10_000, 20_000, 1_000_000, u64::MAX].map(|n| stats_interval(n).as_secs());
        assert_eq!(seconds, [2, 2, 2, 5, 10, 10, 10]);
    }

    #[test]
    fn that_a_kind_was_listed_is_published_soon_however_many_parents_there_are() {
        let mut schedule = StatsSchedule::new();
        schedule.end_publish(Time(0), 1_000_000, false);
        schedule.mark_changed();
        assert_eq!(schedule.next_deadline(), Some(Time(10_000)));
        schedule.mark_kinds_changed(Time(1_000));
        assert_eq!(schedule.next_deadline(), Some(Time(3_000)));
        assert!(!schedule.is_due(Time(2_999)) && schedule.is_due(Time(3_000)));
    }
}

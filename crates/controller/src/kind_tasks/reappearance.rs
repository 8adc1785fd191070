//! A kind that lost its objects may come back within seconds, under a definition that its watch does not hear of: servers
//! keep the watches of a definition that was deleted until they end by themselves.

use std::time::Duration;

use timer::{Backoff, Seed};
use tokio::time::Instant;

/// Interval of live reads of a kind that has lost its objects. 2 s.
const REAPPEARANCE_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Time for which a kind that went, or lost its objects, is expected back. 1 min.
const EXPECTED_BACK_FOR: Duration = Duration::from_mins(1);
/// Backoff of API discovery of a kind that was not found.
const SEARCH_BACKOFF: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(15) };
/// Backoff of API discovery while a kind is expected back.
const SEARCH_BACKOFF_EXPECTED_BACK: Backoff =
    Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(2) };

/// Delay before the next API discovery of a kind after `failures` in a row. `gone_for` is the time since it was last followed.
pub(super) fn search_delay(failures: u32, gone_for: Option<Duration>, seed: Seed, key: u64) -> Duration {
    let expected = gone_for.is_some_and(|gone_for| gone_for < EXPECTED_BACK_FOR);
    let pace = if expected { SEARCH_BACKOFF_EXPECTED_BACK } else { SEARCH_BACKOFF };
    pace.delay_after(failures, seed, key)
}

/// Schedules live reads of a kind whose objects were deleted, to find objects that its watch does not deliver.
#[derive(Debug, Default)]
pub(super) struct ReappearanceCheck {
    check_at: Option<Instant>,
    until: Option<Instant>,
    /// The last live read found objects, and the watch had delivered none.
    found_before: bool,
}

impl ReappearanceCheck {
    /// An object was deleted.
    pub(super) fn on_deleted(&mut self, now: Instant) {
        self.check_at.get_or_insert(now + REAPPEARANCE_CHECK_INTERVAL);
        self.until = Some(now + EXPECTED_BACK_FOR);
    }

    /// Time of the next live read; `None` if no read is due.
    pub(super) fn next_check(&self) -> Option<Instant> {
        self.check_at
    }

    /// Records whether a live read found objects while the reflector holds none. Returns `true` if the watch is deaf: it has
    /// not delivered within one interval what was found twice.
    pub(super) fn record_check(&mut self, found: bool, now: Instant) -> bool {
        let deaf = found && self.found_before;
        self.found_before = found;
        self.check_at = self.until.filter(|until| now < *until).map(|_| now + REAPPEARANCE_CHECK_INTERVAL);
        if deaf {
            *self = ReappearanceCheck::default();
        }
        deaf
    }

    /// Ends the check, because the reflector holds objects of the kind.
    pub(super) fn stand_down(&mut self) {
        *self = ReappearanceCheck::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_that_went_a_moment_ago_is_looked_for_every_two_seconds_and_then_less() {
        let waits = |gone_for| (1..20).map(move |n| search_delay(n, gone_for, Seed(1), 7));
        assert!(waits(Some(Duration::from_secs(30))).all(|wait| wait <= Duration::from_secs(2)));
        assert!(waits(Some(Duration::from_mins(2))).next_back() > Some(Duration::from_secs(10)));
        assert!(
            waits(None).next_back() > Some(Duration::from_secs(10)),
            "one that never was is not expected"
        );
    }

    #[test]
    fn objects_that_a_watch_does_not_bring_show_within_seconds_that_it_is_deaf() {
        let (mut check, start) = (ReappearanceCheck::default(), Instant::now());
        assert_eq!(check.next_check(), None);
        (0..100).for_each(|_| check.on_deleted(start));
        let first = check.next_check().unwrap();
        assert!(!check.record_check(false, first), "nothing is there yet");
        let second = check.next_check().unwrap();
        assert!(!check.record_check(true, second), "it was created just now");
        let third = check.next_check().unwrap();
        assert!(check.record_check(true, third));
        assert!(third - start <= Duration::from_secs(6));
        assert_eq!(check.next_check(), None, "once is enough");
    }

    #[test]
    fn a_kind_that_stays_empty_is_left_in_peace_after_a_minute() {
        let (mut check, start) = (ReappearanceCheck::default(), Instant::now());
        check.on_deleted(start);
        let mut reads = 0;
        while let Some(at) = check.next_check() {
            reads += 1;
            assert!(!check.record_check(false, at));
        }
        assert!((25..=31).contains(&reads), "{reads}");
    }

    #[test]
    fn one_that_holds_objects_is_not_looked_at() {
        let mut check = ReappearanceCheck::default();
        check.on_deleted(Instant::now());
        check.stand_down();
        assert_eq!(check.next_check(), None);
    }
}

//! A kind that lost its objects may come back within seconds, under a definition that its watch does not hear of: servers
//! keep the watches of a definition that was deleted until they end by themselves.

use std::time::Duration;

use timer::{Backoff, Seed};
use tokio::time::Instant;

/// Interval at which is looked whether a kind that has lost its objects has any. 2 s.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);
/// Time for which a kind that went, or lost its objects, is expected back. 1 min.
const EXPECTED_BACK_FOR: Duration = Duration::from_mins(1);
/// Waits until a kind is looked for again.
const SEARCH: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(15) };
/// Waits while it is expected back.
const SEARCH_EXPECTED: Backoff = Backoff { base: Duration::from_millis(500), cap: Duration::from_secs(2) };

/// Time until a kind is looked for again that was not found so often. `gone_for` is how long ago it was followed last.
pub(super) fn search_delay(failures: u32, gone_for: Option<Duration>, seed: Seed, key: u64) -> Duration {
    let expected = gone_for.is_some_and(|gone_for| gone_for < EXPECTED_BACK_FOR);
    let pace = if expected { SEARCH_EXPECTED } else { SEARCH };
    pace.delay_after(failures, seed, key)
}

/// Looks at a kind whose objects were deleted: has it others, of which the watch says nothing?
#[derive(Debug, Default)]
pub(super) struct ReappearanceCheck {
    look_at: Option<Instant>,
    until: Option<Instant>,
    /// The last look found objects, and the watch had brought none.
    seen: bool,
}

impl ReappearanceCheck {
    /// An object was deleted.
    pub(super) fn on_deleted(&mut self, now: Instant) {
        self.look_at.get_or_insert(now + LOOK_INTERVAL);
        self.until = Some(now + EXPECTED_BACK_FOR);
    }

    /// When to look next; `None` if there is no reason.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.look_at
    }

    /// A look at the server, made because nothing is held, found objects or none. Whether the watch is deaf: it has not
    /// brought within one interval what was found twice.
    pub(super) fn settle_look(&mut self, found: bool, now: Instant) -> bool {
        let deaf = found && self.seen;
        self.seen = found;
        self.look_at = self.until.filter(|until| now < *until).map(|_| now + LOOK_INTERVAL);
        if deaf {
            *self = ReappearanceCheck::default();
        }
        deaf
    }

    /// Objects are held: there is nothing to look for.
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
        assert_eq!(check.next_look(), None);
        (0..100).for_each(|_| check.on_deleted(start));
        let first = check.next_look().unwrap();
        assert!(!check.settle_look(false, first), "nothing is there yet");
        let second = check.next_look().unwrap();
        assert!(!check.settle_look(true, second), "it was created just now");
        let third = check.next_look().unwrap();
        assert!(check.settle_look(true, third));
        assert!(third - start <= Duration::from_secs(6));
        assert_eq!(check.next_look(), None, "once is enough");
    }

    #[test]
    fn a_kind_that_stays_empty_is_left_in_peace_after_a_minute() {
        let (mut check, start) = (ReappearanceCheck::default(), Instant::now());
        check.on_deleted(start);
        let mut looks = 0;
        while let Some(at) = check.next_look() {
            looks += 1;
            assert!(!check.settle_look(false, at));
        }
        assert!((25..=31).contains(&looks), "{looks}");
    }

    #[test]
    fn one_that_holds_objects_is_not_looked_at() {
        let mut check = ReappearanceCheck::default();
        check.on_deleted(Instant::now());
        check.stand_down();
        assert_eq!(check.next_look(), None);
    }
}

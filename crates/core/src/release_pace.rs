//! How fast conditions leave parents that no policy chooses any more.
//!
//! A policy that is deleted by mistake is applied again within seconds or minutes; the parents that were not released by then
//! have lost nothing. But what stands on them is not judged any more, so all of them are released within the two minutes for
//! which a word may stand that nobody can confirm.

use std::time::Duration;

use readiness::Time;

/// Number of parents released at once, and the number of parents released a second where they are few.
const RELEASES_PER_SECOND: u64 = 10;
/// Time within which all parents of a policy are released, however many they are. 2 min.
const RELEASED_WITHIN: Duration = Duration::from_mins(2);
/// What one release costs. As it is a thousand, a rate a second is a gain a millisecond.
const COST: u64 = 1_000;

/// Allowance of releases: a token bucket that fills faster the more parents wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReleasePace {
    allowance: u64,
    /// Time up to which the allowance has grown.
    as_of: Time,
    /// Largest number of parents that waited at once since none did.
    most_waiting: usize,
}

impl Default for ReleasePace {
    fn default() -> Self {
        ReleasePace { allowance: RELEASES_PER_SECOND * COST, as_of: Time::default(), most_waiting: 0 }
    }
}

impl ReleasePace {
    /// Records how many parents wait.
    pub(super) fn set_waiting(&mut self, now: Time, waiting: usize) {
        self.fill(now);
        self.most_waiting = if waiting == 0 { 0 } else { self.most_waiting.max(waiting) };
    }

    /// Number of releases a second.
    pub(super) fn per_second(&self) -> u64 {
        let most = u64::try_from(self.most_waiting).unwrap_or(u64::MAX);
        most.div_ceil(RELEASED_WITHIN.as_secs()).max(RELEASES_PER_SECOND)
    }

    /// Returns `true` if one more parent may be released now.
    pub(super) fn may_release(&self, now: Time) -> bool {
        self.next_release() <= now
    }

    /// Time of the next release.
    pub(super) fn next_release(&self) -> Time {
        let missing = COST.saturating_sub(self.allowance);
        self.as_of + Duration::from_millis(missing.div_ceil(self.per_second()))
    }

    /// A parent is released.
    pub(super) fn begin_release(&mut self, now: Time) {
        self.fill(now);
        self.allowance = self.allowance.saturating_sub(COST);
    }

    fn fill(&mut self, now: Time) {
        let elapsed = u64::try_from(now.0.saturating_sub(self.as_of.0)).unwrap_or(0);
        let gained = elapsed.saturating_mul(self.per_second());
        self.allowance = self.allowance.saturating_add(gained).min(RELEASES_PER_SECOND * COST);
        self.as_of = self.as_of.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Releases as many as may be, every millisecond, and returns how many went within each second.
    fn play(waiting: usize, seconds: i64) -> Vec<usize> {
        let (mut pace, mut left) = (ReleasePace::default(), waiting);
        let begun = 1_800_000_000_000;
        pace.set_waiting(Time(begun), left);
        let second = |second: i64| {
            let before = left;
            for now in (0..1_000).map(|milli| Time(begun + second * 1_000 + milli)) {
                while left > 0 && pace.may_release(now) {
                    pace.begin_release(now);
                    left -= 1;
                    pace.set_waiting(now, left);
                }
                assert!(left == 0 || pace.next_release() > now, "it does not ask to be woken in vain");
            }
            before - left
        };
        (0..seconds).map(second).collect()
    }

    #[test]
    fn a_few_are_released_at_once_and_more_of_them_ten_a_second() {
        assert_eq!(play(3, 2), [3, 0]);
        assert_eq!(play(60, 7), [19, 10, 10, 10, 10, 1, 0]);
    }

    #[test]
    fn however_many_there_are_all_of_them_are_released_within_two_minutes() {
        for many in [1_200, 1_201, 20_000, 250_000] {
            let gone = play(many, 121);
            assert_eq!(gone.iter().sum::<usize>(), many);
            let fastest = gone.iter().max().copied().unwrap_or_default();
            assert!(fastest <= many.div_ceil(120) + 10, "{many}: {fastest} within a second");
        }
    }

    #[test]
    fn a_long_rest_saves_up_no_more_than_one_second() {
        let mut pace = ReleasePace::default();
        let now = Time(1_800_000_000_000);
        pace.set_waiting(now, 1);
        pace.begin_release(now);
        pace.set_waiting(now, 0);
        let later = now + Duration::from_hours(1);
        pace.set_waiting(later, 20_000);
        let at_once = (0..20_000).take_while(|_| {
            let may = pace.may_release(later);
            pace.begin_release(later);
            may
        });
        assert_eq!(at_once.count(), 10);
    }
}

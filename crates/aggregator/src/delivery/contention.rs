//! Writes that are bound to the version of their parent, and that others forestall.

use std::time::Duration;

use readiness::Time;

/// Number of such writes in a row, after which no types are added for a while.
const CONTENDED_WRITES: u32 = 2;
/// Time in which no types are added to a parent that others keep writing. What stands there is changed as ever. 1 min.
const CONTENTION_LASTS: Duration = Duration::from_mins(1);

/// How much others write a parent, as far as it concerns writes that are bound to its version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contention {
    /// Number of consecutive writes that others forestalled.
    forestalled: u32,
    /// Time from which on types may be added again.
    adds_types_after: Option<Time>,
}

impl Contention {
    /// Nobody else is known to write the parent.
    pub(super) const NONE: Contention = Contention { forestalled: 0, adds_types_after: None };

    /// Others forestalled a write that added types. It is repeated at once, and then without these. Returns `false` if it was
    /// sent without what it can do without.
    pub(super) fn record_forestalled(&mut self, now: Time) -> bool {
        if !self.may_add_types(now) {
            return false;
        }
        self.forestalled = self.forestalled.saturating_add(1);
        if self.forestalled >= CONTENDED_WRITES {
            self.adds_types_after = Some(now + CONTENTION_LASTS);
        }
        true
    }

    /// What is left of it once the parent says all that it was to say: nothing, unless something was left out.
    pub(super) fn after_told(self, now: Time) -> Contention {
        if self.may_add_types(now) { Contention::NONE } else { self }
    }

    /// Time from which on types may be added again, if that is not so yet.
    pub(super) fn holds_until(self, now: Time) -> Option<Time> {
        self.adds_types_after.filter(|at| *at > now)
    }

    /// Returns `true` if types may be added.
    pub(super) fn may_add_types(self, now: Time) -> bool {
        self.holds_until(now).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_forestalled_writes_are_enough_for_a_minute_and_one_after_each_minute_that_did_not_help() {
        let (mut contention, mut now) = (Contention::NONE, Time(0));
        assert!(contention.record_forestalled(now) && contention.may_add_types(now));
        assert!(contention.record_forestalled(now) && !contention.may_add_types(now));
        assert!(!contention.record_forestalled(now), "nothing could be left out");
        contention = contention.after_told(now);
        for _ in 0..3 {
            assert_eq!(contention.holds_until(now), Some(now + CONTENTION_LASTS));
            now = now + CONTENTION_LASTS;
            assert_eq!((contention.holds_until(now), contention.may_add_types(now)), (None, true));
            assert!(contention.record_forestalled(now) && !contention.may_add_types(now));
        }
        now = now + CONTENTION_LASTS;
        assert_eq!(contention.after_told(now), Contention::NONE);
    }
}

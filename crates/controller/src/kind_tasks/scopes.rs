//! What the lists and watches of one kind say together, where there is one for each namespace that is followed.

use super::KindEvent;

/// A list and watch, and whether anything was heard of it since the last word for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScopePulse {
    /// Nothing.
    Silent,
    /// A sign of life.
    Beating,
    /// That something is wrong, and no sign of life after that.
    Troubled,
}

#[derive(Clone, Copy, Debug)]
struct ScopeSight {
    listed: bool,
    pulse: ScopePulse,
}

/// One kind's lists and watches.
///
/// **Invariant:** `Synced` and `Alive` are said for all of them. One that is not listed, in trouble or silent is vouched
/// for by no other.
#[derive(Debug)]
pub(crate) struct ScopeTracker {
    scopes: Vec<ScopeSight>,
    /// `Synced` was said, and no list has begun since.
    synced: bool,
}

impl ScopeTracker {
    /// So many, none of them listed.
    pub(crate) fn new(scopes: usize) -> Self {
        let sight = ScopeSight { listed: false, pulse: ScopePulse::Silent };
        ScopeTracker { scopes: vec![sight; scopes], synced: false }
    }

    /// A list of this one begins.
    pub(crate) fn list_began(&mut self, scope: usize) -> KindEvent {
        self.set(scope, |sight| *sight = ScopeSight { listed: false, pulse: ScopePulse::Silent });
        self.synced = false;
        KindEvent::Listing
    }

    /// This one is listed; what is to be said of all.
    pub(crate) fn listed(&mut self, scope: usize) -> Option<KindEvent> {
        self.set(scope, |sight| *sight = ScopeSight { listed: true, pulse: ScopePulse::Beating });
        self.word()
    }

    /// This one gave a sign of life; what is to be said of all.
    pub(crate) fn answered(&mut self, scope: usize) -> Option<KindEvent> {
        self.set(scope, |sight| sight.pulse = ScopePulse::Beating);
        self.word()
    }

    /// Something is wrong with this one.
    pub(crate) fn troubled(&mut self, scope: usize) {
        self.set(scope, |sight| sight.pulse = ScopePulse::Troubled);
    }

    fn set(&mut self, scope: usize, change: impl FnOnce(&mut ScopeSight)) {
        if let Some(sight) = self.scopes.get_mut(scope) {
            change(sight);
        }
    }

    fn word(&mut self) -> Option<KindEvent> {
        let listed = |sight: &ScopeSight| sight.listed && sight.pulse != ScopePulse::Troubled;
        let news = if !self.synced && self.scopes.iter().all(listed) {
            self.synced = true;
            KindEvent::Synced
        } else if self.scopes.iter().all(|sight| sight.pulse == ScopePulse::Beating) {
            KindEvent::Alive
        } else {
            return None;
        };
        for sight in &mut self.scopes {
            sight.pulse = ScopePulse::Silent;
        }
        Some(news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both_listed() -> ScopeTracker {
        let mut tracker = ScopeTracker::new(2);
        assert_eq!(tracker.list_began(0), KindEvent::Listing);
        assert_eq!(tracker.list_began(1), KindEvent::Listing);
        assert_eq!(tracker.listed(0), None);
        assert_eq!(tracker.listed(1), Some(KindEvent::Synced));
        tracker
    }

    #[test]
    fn a_single_one_speaks_for_itself() {
        let mut tracker = ScopeTracker::new(1);
        tracker.list_began(0);
        assert_eq!(tracker.answered(0), Some(KindEvent::Alive), "a page was read");
        assert_eq!(tracker.listed(0), Some(KindEvent::Synced));
        assert_eq!(tracker.answered(0), Some(KindEvent::Alive));
    }

    #[test]
    fn one_that_beats_does_not_vouch_for_one_that_is_silent() {
        let mut tracker = both_listed();
        assert_eq!([0, 0, 0].map(|scope| tracker.answered(scope)), [None, None, None]);
        assert_eq!(tracker.answered(1), Some(KindEvent::Alive));
        assert_eq!(tracker.answered(1), None, "since then only one has beaten");
    }

    #[test]
    fn one_that_beat_and_then_broke_has_to_beat_again() {
        let mut tracker = both_listed();
        tracker.answered(0);
        tracker.troubled(0);
        assert_eq!(tracker.answered(1), None);
        assert_eq!(tracker.answered(0), Some(KindEvent::Alive));
    }

    #[test]
    fn all_are_listed_before_any_counts_as_seen_again() {
        let mut tracker = both_listed();
        tracker.list_began(0);
        assert_eq!(tracker.answered(1), None);
        assert_eq!(tracker.listed(0), Some(KindEvent::Synced));
    }

    #[test]
    fn one_that_was_listed_and_broke_while_another_was_listed_is_awaited() {
        let mut tracker = ScopeTracker::new(2);
        tracker.listed(0);
        tracker.troubled(0);
        assert_eq!(tracker.listed(1), None);
        assert_eq!(tracker.answered(0), Some(KindEvent::Synced));
    }
}

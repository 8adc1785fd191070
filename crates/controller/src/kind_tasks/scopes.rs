//! State of the lists and watches of one kind, where each followed namespace has its own.

use super::KindEvent;

/// Signs of life of one list and watch since the last event for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScopePulse {
    /// No sign of life.
    Silent,
    /// A sign of life.
    Beating,
    /// A failure, and no sign of life after it.
    Troubled,
}

#[derive(Clone, Copy, Debug)]
struct ScopeState {
    listed: bool,
    pulse: ScopePulse,
}

/// Lists and watches of one kind.
///
/// **Invariant:** `Synced` and `Alive` are sent only when they hold for all of them. No other scope vouches for one that is
/// not listed, in trouble or silent.
#[derive(Debug)]
pub(crate) struct ScopeTracker {
    scopes: Vec<ScopeState>,
    /// `Synced` was sent, and no list has begun since.
    synced: bool,
}

impl ScopeTracker {
    /// Makes a tracker of this number of scopes, none of them listed.
    pub(crate) fn new(scopes: usize) -> Self {
        let state = ScopeState { listed: false, pulse: ScopePulse::Silent };
        ScopeTracker { scopes: vec![state; scopes], synced: false }
    }

    /// Records that a list of this scope begins, and returns the event for the kind.
    pub(crate) fn list_began(&mut self, scope: usize) -> KindEvent {
        self.set(scope, |state| *state = ScopeState { listed: false, pulse: ScopePulse::Silent });
        self.synced = false;
        KindEvent::Listing
    }

    /// Records that this scope is listed, and returns the event for the kind, if one is due.
    pub(crate) fn scope_listed(&mut self, scope: usize) -> Option<KindEvent> {
        self.set(scope, |state| *state = ScopeState { listed: true, pulse: ScopePulse::Beating });
        self.take_due_event()
    }

    /// Records a sign of life of this scope, and returns the event for the kind, if one is due.
    pub(crate) fn scope_answered(&mut self, scope: usize) -> Option<KindEvent> {
        self.set(scope, |state| state.pulse = ScopePulse::Beating);
        self.take_due_event()
    }

    /// Records a failure of this scope.
    pub(crate) fn scope_failed(&mut self, scope: usize) {
        self.set(scope, |state| state.pulse = ScopePulse::Troubled);
    }

    fn set(&mut self, scope: usize, change: impl FnOnce(&mut ScopeState)) {
        if let Some(state) = self.scopes.get_mut(scope) {
            change(state);
        }
    }

    fn take_due_event(&mut self) -> Option<KindEvent> {
        let listed = |state: &ScopeState| state.listed && state.pulse != ScopePulse::Troubled;
        let event = if !self.synced && self.scopes.iter().all(listed) {
            self.synced = true;
            KindEvent::Synced
        } else if self.scopes.iter().all(|state| state.pulse == ScopePulse::Beating) {
            KindEvent::Alive
        } else {
            return None;
        };
        for state in &mut self.scopes {
            state.pulse = ScopePulse::Silent;
        }
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both_listed() -> ScopeTracker {
        let mut tracker = ScopeTracker::new(2);
        assert_eq!(tracker.list_began(0), KindEvent::Listing);
        assert_eq!(tracker.list_began(1), KindEvent::Listing);
        assert_eq!(tracker.scope_listed(0), None);
        assert_eq!(tracker.scope_listed(1), Some(KindEvent::Synced));
        tracker
    }

    #[test]
    fn a_single_one_speaks_for_itself() {
        let mut tracker = ScopeTracker::new(1);
        tracker.list_began(0);
        assert_eq!(tracker.scope_answered(0), Some(KindEvent::Alive), "a page was read");
        assert_eq!(tracker.scope_listed(0), Some(KindEvent::Synced));
        assert_eq!(tracker.scope_answered(0), Some(KindEvent::Alive));
    }

    #[test]
    fn one_that_beats_does_not_vouch_for_one_that_is_silent() {
        let mut tracker = both_listed();
        assert_eq!([0, 0, 0].map(|scope| tracker.scope_answered(scope)), [None, None, None]);
        assert_eq!(tracker.scope_answered(1), Some(KindEvent::Alive));
        assert_eq!(tracker.scope_answered(1), None, "since then only one has beaten");
    }

    #[test]
    fn one_that_beat_and_then_broke_has_to_beat_again() {
        let mut tracker = both_listed();
        tracker.scope_answered(0);
        tracker.scope_failed(0);
        assert_eq!(tracker.scope_answered(1), None);
        assert_eq!(tracker.scope_answered(0), Some(KindEvent::Alive));
    }

    #[test]
    fn all_are_listed_before_any_counts_as_seen_again() {
        let mut tracker = both_listed();
        tracker.list_began(0);
        assert_eq!(tracker.scope_answered(1), None);
        assert_eq!(tracker.scope_listed(0), Some(KindEvent::Synced));
    }

    #[test]
    fn one_that_was_listed_and_broke_while_another_was_listed_is_awaited() {
        let mut tracker = ScopeTracker::new(2);
        tracker.scope_listed(0);
        tracker.scope_failed(0);
        assert_eq!(tracker.scope_listed(1), None);
        assert_eq!(tracker.scope_answered(0), Some(KindEvent::Synced));
    }
}

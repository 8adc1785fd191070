//! Place of an evaluation among those that wait.

use crate::types::ChangeOrigin;

/// Place of an evaluation among those that wait because something changed, with the origin of what changed since it was
/// last evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum QueuePosition {
    /// It does not wait.
    #[default]
    Idle,
    /// It is debounced.
    Debounced(ChangeOrigin),
    /// It is due in the next poll.
    Due(ChangeOrigin),
    /// It was due, and waits for a child that is itself a parent to be evaluated first.
    Deferred(ChangeOrigin),
}

impl QueuePosition {
    /// Returns the origin of what changed since the last evaluation, together with one more change.
    pub(crate) fn origin_with(self, more: ChangeOrigin) -> ChangeOrigin {
        match self {
            QueuePosition::Idle => more,
            QueuePosition::Debounced(origin)
            | QueuePosition::Due(origin)
            | QueuePosition::Deferred(origin) => origin.max(more),
        }
    }

    /// Moves to those that are due in the next poll, because of one more change; returns the place before.
    pub(crate) fn become_due(&mut self, more: ChangeOrigin) -> QueuePosition {
        let due = QueuePosition::Due(self.origin_with(more));
        std::mem::replace(self, due)
    }

    pub(crate) fn is_due(self) -> bool {
        matches!(self, QueuePosition::Due(_))
    }

    pub(crate) fn is_debounced(self) -> bool {
        matches!(self, QueuePosition::Debounced(_))
    }

    pub(crate) fn is_deferred(self) -> bool {
        matches!(self, QueuePosition::Deferred(_))
    }
}

//! The search for a kind that is not served, as the tasks of kinds do it: its objects are forgotten once it is known to be absent.

/// Time after which a kind that is not served counts as absent although objects of it are held, in milliseconds.
const ABSENT_AFTER_MS: i64 = 120_000;
/// Time for which it is expected back and looked for often, in milliseconds.
const EXPECTED_BACK_MS: i64 = 60_000;

/// The search for one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KindSearch {
    /// How long it has been looked for.
    searched_ms: i64,
    /// For how long discovery has not had it.
    lacked_ms: i64,
    /// It is known to be absent.
    pub(super) is_absent: bool,
}

impl KindSearch {
    /// Discovery does not have it; returns `true` if it is absent, where objects of it are held or not.
    pub(super) fn judge_absence(&mut self, holds: bool) -> bool {
        self.is_absent = !holds || self.lacked_ms >= ABSENT_AFTER_MS;
        self.is_absent
    }

    /// Discovery could not be asked.
    pub(super) fn note_failure(&mut self) {
        self.lacked_ms = 0;
    }

    /// Returns the bounds of the next wait, in milliseconds.
    pub(super) fn next_wait(&self) -> std::ops::Range<i64> {
        if self.searched_ms < EXPECTED_BACK_MS { 500..2_000 } else { 1_000..15_000 }
    }

    /// Waits until discovery is asked again.
    pub(super) fn wait(&mut self, span: i64) {
        self.searched_ms += span;
        self.lacked_ms += span;
    }
}

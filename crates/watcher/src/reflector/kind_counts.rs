//! How many objects of each kind are held.

use std::sync::{Mutex, MutexGuard, PoisonError};

use aggregator::KindId;
use rustc_hash::FxHashMap;

/// Number of held objects of a kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KindCount {
    objects: usize,
    /// Number of changes so far.
    changes: u64,
}

/// Numbers of held objects by kind, without those that are gone and remembered.
#[derive(Debug, Default)]
pub(super) struct KindCounts(Mutex<FxHashMap<KindId, KindCount>>);

impl KindCounts {
    /// An object that was of one kind is of another, has come, or has gone.
    pub(super) fn note_change(&self, before: Option<KindId>, now: Option<KindId>) {
        if before == now {
            return;
        }
        let mut counts = self.lock();
        if let Some(count) = before.and_then(|kind| counts.get_mut(&kind)) {
            (count.objects, count.changes) = (count.objects.saturating_sub(1), count.changes + 1);
        }
        if let Some(kind) = now {
            let count = counts.entry(kind).or_default();
            (count.objects, count.changes) = (count.objects + 1, count.changes + 1);
        }
    }

    /// Number of objects of a kind.
    pub(super) fn count_of(&self, kind: KindId) -> usize {
        self.read(kind).objects
    }

    /// The number as it is now, before rows are counted again.
    pub(super) fn read(&self, kind: KindId) -> KindCount {
        self.lock().get(&kind).copied().unwrap_or_default()
    }

    /// So many were counted since it was `read`. Returns `true` if it was wrong, and has been put right; what has changed in the
    /// meantime is not known to be.
    pub(super) fn correct(&self, kind: KindId, read: KindCount, objects: usize) -> bool {
        let mut counts = self.lock();
        let count = counts.entry(kind).or_default();
        let is_wrong = *count == read && count.objects != objects;
        if is_wrong {
            count.objects = objects;
        }
        is_wrong
    }

    fn lock(&self) -> MutexGuard<'_, FxHashMap<KindId, KindCount>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_is_wrong_is_put_right_unless_it_has_changed_while_rows_were_counted() {
        let (counts, pod, job) = (KindCounts::default(), KindId(1), KindId(2));
        for _ in 0..3 {
            counts.note_change(None, Some(pod));
        }
        counts.note_change(Some(pod), Some(job));
        let read = counts.read(pod);
        assert!(!counts.correct(pod, read, 2));
        counts.note_change(None, Some(pod));
        assert!(!counts.correct(pod, read, 2), "one has come meanwhile");
        assert!(counts.correct(pod, counts.read(pod), 2));
        assert_eq!([pod, job].map(|kind| counts.count_of(kind)), [2, 1]);
        assert!(!counts.correct(pod, counts.read(pod), 2));
    }
}

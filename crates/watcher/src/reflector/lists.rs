//! Lists of kinds, and by which of them an object is known to be there.

use super::tombstones::ReadStart;

/// By which list of its kind a row is known to be there: the number of the last list that brought it, or after which a watch
/// did. An odd number is one less than that of the list that is under way: beside it a live read has brought a newer version, and
/// the list has not brought the object yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListEpoch(u32);

impl ListEpoch {
    /// Whether the list of this number has brought it, or the watch that follows.
    pub(super) fn is_of(self, list: u32) -> bool {
        self.0 == list
    }

    /// Whether it was read live beside this list, which has not brought it yet.
    fn is_beside(self, list: u32) -> bool {
        self.0 + 1 == list && self.0 % 2 == 1
    }

    /// Whether an earlier list than this one has brought it, and no live read beside this one.
    pub(super) fn is_before(self, list: u32) -> bool {
        !self.is_of(list) && !self.is_beside(list)
    }

    /// Whether a later list than the one of this number has brought it.
    pub(super) fn is_after(self, list: u32) -> bool {
        self.0 > list
    }

    /// The list has brought an older version than the one that is held: where that is of a live read beside it, the object is
    /// one of the list all the same.
    pub(super) fn list_beside(&mut self, list: u32) {
        if self.is_beside(list) {
            self.0 = list;
        }
    }
}

/// How far the lists of one kind in one scope are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ListProgress {
    /// The number of the list that was last begun: even.
    pub(super) begun: u32,
    /// The number of the list that was last finished.
    finished: u32,
    /// Its position among the finished lists of all kinds.
    finish_order: u64,
}

impl ListProgress {
    fn is_under_way(self) -> bool {
        self.begun != self.finished
    }

    /// Begins the next list. Returns its number.
    pub(super) fn begin(&mut self) -> u32 {
        self.begun += 2;
        self.begun
    }

    /// The list of this number is finished, at this position among the finished lists of all kinds.
    pub(super) fn finish(&mut self, number: u32, finish_order: u64) {
        (self.finished, self.finish_order) = (number, finish_order);
    }

    /// The epoch of what a list or a watch brings now.
    pub(super) fn epoch(self) -> ListEpoch {
        ListEpoch(self.begun)
    }

    /// The epoch of what a live read brings now that began then: `held` is the one it has. `None` for an object that is not held
    /// where a list tells, or has told since, whether it is there: what was deleted before that list was answered is in no event
    /// that follows it, so the read would bring back for ever what is gone. So it would where no list is begun: what no list
    /// covers, no watch tells of.
    pub(super) fn live_epoch(self, held: Option<ListEpoch>, start: ReadStart) -> Option<ListEpoch> {
        let epoch = self.epoch();
        match held {
            Some(held) if self.is_under_way() && held != epoch => Some(ListEpoch(self.begun - 1)),
            Some(held) => Some(held),
            None if self.begun == 0 || self.is_under_way() || start.lists_finished < self.finish_order => {
                None
            }
            None => Some(epoch),
        }
    }
}

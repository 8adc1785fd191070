//! How often the judges look while nothing happens.

use crate::world::SimWorld;

/// Longest time between two looks, in milliseconds.
const IDLE_LOOK_MS: i64 = 30_000;

/// Whether a look can see anything new: at night nothing moves for hours, and what only time moves is seen soon enough by one
/// that comes now and then.
#[derive(Default)]
pub(crate) struct LookPace {
    /// Something has happened since the last look.
    has_moved: bool,
    looked_at: i64,
    /// Revision of the server's store at that time.
    revision: u64,
}

impl LookPace {
    /// Something has happened.
    pub(crate) fn note_move(&mut self) {
        self.has_moved = true;
    }

    /// Returns `true` if the judges are to look now.
    pub(crate) fn begin_look(&mut self, world: &SimWorld) -> bool {
        let (now, revision) = (world.now(), world.store.revision());
        let has_moved = self.has_moved || revision != self.revision;
        let is_due = !world.faults.are_asleep || has_moved || now >= self.looked_at + IDLE_LOOK_MS;
        if is_due {
            *self = LookPace { has_moved: false, looked_at: now, revision };
        }
        is_due
    }
}

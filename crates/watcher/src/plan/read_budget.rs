//! How much of a parent templates and references may read.

use std::cell::Cell;

/// What the templates and references of one policy may read of one parent. They are rendered where the parent is taken in, so
/// neither a large parent nor many templates may hold up its kind.
#[derive(Debug)]
pub struct ReadBudget(Cell<usize>);

impl ReadBudget {
    /// Most bytes: a thousand fields of a parent of 32 kB, twenty of the largest that a server stores.
    pub const MAX_BYTES: usize = 32 << 20;

    /// Spends this number of bytes. Returns `false` if they are not left.
    pub(crate) fn spend(&self, bytes: usize) -> bool {
        let left = self.0.get().checked_sub(bytes);
        self.0.set(left.unwrap_or(0));
        left.is_some()
    }

    /// Bytes that are left.
    pub fn left_bytes(&self) -> usize {
        self.0.get()
    }
}

impl Default for ReadBudget {
    fn default() -> ReadBudget {
        ReadBudget(Cell::new(ReadBudget::MAX_BYTES))
    }
}

//! Keys that a map has twice.

use std::fmt;

/// A key that its map has already, and its position. Of equal keys the last one counts, as in kubectl.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DuplicateKey {
    /// 1-based line within the given text.
    pub line: u64,
    /// 1-based column.
    pub column: u64,
    /// The key.
    pub key: String,
}

impl fmt::Display for DuplicateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "duplicate key {:?}; the last one counts", self.key)
    }
}

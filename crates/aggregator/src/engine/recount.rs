//! What the comparison of the engine's state with what it was derived from finds.

use crate::ids::{KindId, ObjectId};

/// What a recount found, and put right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecountResult {
    /// Children of which an edge was missing or too many, with their kinds.
    pub children: Vec<(KindId, ObjectId)>,
    /// Parents of which a count was wrong.
    pub parents: Vec<ObjectId>,
}

#[cfg(test)]
mod tests;

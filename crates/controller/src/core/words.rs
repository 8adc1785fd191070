//! What the renderer has to know of a policy beyond what the engine does.

use aggregator::KindId;

/// A policy in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyWords {
    /// Its name.
    pub name: String,
    /// Its groups.
    pub groups: Vec<GroupWords>,
    /// At least so many critical children in all.
    pub min: u32,
    /// Every kind that its answers rest on.
    pub kinds: Vec<KindId>,
}

/// One of its `children`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupWords {
    /// The kind.
    pub kind: String,
    /// At least so many.
    pub min: u32,
    /// At most so many.
    pub max: Option<u32>,
}

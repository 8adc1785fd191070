//! State of the invariants between two steps.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::{KindId, PolicyId};

/// Largest lag of an answer behind the observed state, in milliseconds: the debounce's cap plus the loop's own delay.
pub(crate) const MAX_ANSWER_LAG_MS: i64 = 1_000 + 400;

/// State of the invariants for one generation of one parent under one policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckedGeneration {
    pub(crate) generation: i64,
    pub(crate) since: i64,
    /// Time of the last creation, deletion or spec change of a child.
    pub(crate) children_changed_at: i64,
    /// Time at which the last child appeared.
    pub(crate) child_appeared_at: i64,
    /// The operator has handled this generation, or was silent for long enough.
    pub(crate) handled: bool,
    /// The last answer was True.
    pub(crate) was_ready: bool,
    /// Earliest time since which the last answer has not been True.
    pub(crate) unready_at_earliest: i64,
    /// Latest time since which the last answer has not been True.
    pub(crate) unready_at_latest: i64,
    /// Time since which all children have been ready; `None` if they are not.
    pub(crate) well_since: Option<i64>,
    /// Time since which the answer has differed from the naive judge's; `None` if it agrees.
    pub(crate) differs_since: Option<i64>,
    /// A plan put the policy in force, and its first answer was not checked yet: until then nothing is known of when
    /// the engine saw it.
    pub(crate) awaits_first_check: bool,
}

/// State of all invariants.
#[derive(Default)]
pub(crate) struct InvariantWatch {
    pub(crate) revision: u64,
    /// Number of writes that the loop has sent.
    pub(crate) sent: u64,
    /// Kinds that the loop knows to be synced in this life of the process.
    pub(crate) open_kinds: BTreeSet<KindId>,
    pub(crate) phases: BTreeMap<(PolicyId, String), CheckedGeneration>,
    /// Generations of parents for which an answer was written, by policy.
    pub(crate) announced: BTreeSet<(usize, String, i64)>,
    pub(crate) turns: u64,
}

impl InvariantWatch {
    pub(crate) fn reset_for_restart(&mut self) {
        self.open_kinds.clear();
        self.phases.clear();
    }
}

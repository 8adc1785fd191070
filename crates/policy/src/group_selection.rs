//! The ReadinessGroups that a policy stands for.

use watcher::plan::{LabelMatcher, ShapeMatcher};

/// API group and kind of ReadinessGroups.
pub const GROUP_KIND: (&str, &str) = ("rollcall.dev", "ReadinessGroup");

/// Selects ReadinessGroups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSelection {
    /// What they ask for.
    pub(super) shape: ShapeMatcher,
    /// Labels by which this release is for them.
    pub(super) labels: LabelMatcher,
}

impl GroupSelection {
    /// Returns `true` if the groups cannot be judged.
    pub fn is_refused(&self) -> bool {
        self.shape.is_refused()
    }
}

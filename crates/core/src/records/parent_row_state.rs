//! What the row of an object says of it as a parent.

use watcher::plan::ShapeMatcher;
use watcher::reflector::{AnswerTarget, ObjectRow, Reflector};

/// What the row of an object says of it as a parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParentRowState {
    /// No policy chooses it.
    Other,
    /// It was read by a plan that is not in force any more, or is refused: which outcomes count is not known before it is read again.
    Outdated,
    /// It is a parent.
    Parent,
}

/// Reads what a row says of its object as a parent.
pub(super) fn row_state(reflector: &Reflector, row: &ObjectRow) -> ParentRowState {
    let Some(parent) = &row.parent else { return ParentRowState::Other };
    let interest = reflector.interest(row.kind);
    let is_planned = |target: &AnswerTarget| {
        let mut rules = interest.iter().flat_map(|interest| &interest.parent);
        // Under a rule that refuses what it asks for, nobody knows which outcomes count.
        rules.any(|rule| {
            rule.policy == target.policy && !rule.shape.as_ref().is_some_and(ShapeMatcher::is_refused)
        })
    };
    if parent.targets.iter().all(is_planned) { ParentRowState::Parent } else { ParentRowState::Outdated }
}

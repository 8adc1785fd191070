//! The entries of a policy on its parents.

use crate::scenario::PolicyDef;
use crate::world::{ModelCondition, ModelObject};

/// Returns the parent's condition that a policy writes, or the one that it has left there under the type that it had before an
/// edit.
pub(crate) fn entry_of<'a>(policy: &PolicyDef, parent: &'a ModelObject) -> Option<&'a ModelCondition> {
    let condition = condition_of(policy, parent)?;
    parent.ours.get(condition).or_else(|| parent.ours.get(policy.former_condition()?))
}

/// Returns the condition type that a policy writes.
pub(crate) fn condition_of(policy: &PolicyDef, parent: &ModelObject) -> Option<&'static str> {
    let types = [given_up_for(policy, parent), Some(policy.condition), policy.fallback];
    // In shadow mode it leaves to another release what that says.
    let is_left = |kind: &&str| policy.shadow && parent.theirs.contains_key(*kind);
    types.into_iter().flatten().find(|kind| !parent.foreign.contains(*kind) && !is_left(kind))
}

/// Returns the fallback type if it stands on the parent although no other manager has the policy's own: that one was given up,
/// because it kept being overwritten.
pub(crate) fn given_up_for(policy: &PolicyDef, parent: &ModelObject) -> Option<&'static str> {
    let vacant = !parent.foreign.contains(policy.condition) && !parent.ours.contains_key(policy.condition);
    policy.fallback.filter(|fallback| vacant && parent.ours.contains_key(*fallback))
}

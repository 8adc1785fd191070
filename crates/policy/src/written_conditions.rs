//! Which conditions policies write on which parents.

use watcher::status::written_types;

use super::compile::CompiledPolicy;
use super::plan::Released;

/// Types of conditions that these policies write, by parent kind. Not on ReadinessGroups: what is written there goes with
/// the group, and those of another release are not for this one to clean.
pub fn conditions_of<'p>(policies: impl IntoIterator<Item = &'p CompiledPolicy>) -> Released {
    let mut written = Released::new();
    for compiled in policies.into_iter().filter(|compiled| compiled.shape.is_none()) {
        let key = (compiled.parent.group.clone(), compiled.parent.kind.clone());
        let types = written_types(&compiled.condition, compiled.fallback.as_deref());
        written.entry(key).or_default().extend(types.map(str::to_owned));
    }
    written
}

/// Adds types of conditions to others.
pub fn add_conditions(to: &mut Released, types: Released) {
    for (key, types) in types {
        to.entry(key).or_default().extend(types);
    }
}

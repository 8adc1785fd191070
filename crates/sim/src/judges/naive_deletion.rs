//! The naive judge of what is said of a deletion: which children it waits for is put together from all objects.
//!
//! It shares no code with the product's renderer, and keeps nothing: only what is said of the parent's own finalizers is read
//! from the reflector.

use std::collections::BTreeMap;
use std::rc::Rc;

use readiness::rollup::ParentReason;

use super::judged_moment::JudgedMoment;
use super::naive_judge::is_child;
use crate::scenario::PolicyDef;
use crate::world::ModelObject;

/// Number of children that are named.
const MAX_NAMED: usize = 3;

/// Returns the message that a parent in deletion is to carry under a policy, with an answer of this reason; `None` where it is not
/// known how two of its children are told apart, or the parent is held as it was before.
pub(super) fn naive_deletion_message(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    models: &[Rc<ModelObject>],
    reason: ParentReason,
) -> Option<String> {
    let id = at.core.reflector.find_object(&parent.uid)?;
    let own = at.core.reflector.read_row(id, |row| {
        let deletion = row.parent.as_ref()?.deletion()?;
        (row.version == parent.version).then(|| deletion.text.to_string())
    });
    let own = own.flatten()?;
    let limit = match reason {
        ParentReason::Terminating => "",
        ParentReason::DeletionStuck => "; longer than limits.terminating of the policy allows",
        _ => return None,
    };
    let is_in_foreground = parent.finalizers.iter().any(|name| name == "foregroundDeletion");
    let children = if is_in_foreground && at.core.engine.is_accepted(policy.id) {
        children_text(at, policy, parent, models)?
    } else {
        String::new()
    };
    Some(format!("{own}{limit}{children}"))
}

fn children_text(
    at: &JudgedMoment<'_>,
    policy: &PolicyDef,
    parent: &ModelObject,
    models: &[Rc<ModelObject>],
) -> Option<String> {
    let (mut waits, mut left) = (BTreeMap::new(), 0);
    for group in &policy.groups {
        let children = models.iter().filter(|model| is_child(at.scenario, policy, group, parent, model));
        for child in children {
            if child.deleted.is_none() {
                left += usize::from(!group.by_label);
            } else if child.blocked.contains(&parent.uid) {
                let near = child.namespace == parent.namespace || child.namespace.is_empty();
                let name =
                    if near { child.name.clone() } else { format!("{}/{}", child.namespace, child.name) };
                let text = format!("{} {name}", at.scenario.kind_name(child.kind));
                let place = (child.finalizers.is_empty(), text);
                // An object whose end was missed, beside its successor.
                if waits.insert(place, child).is_some_and(|other| other.uid != child.uid) {
                    return None;
                }
            }
        }
    }
    let named = waits.iter().take(MAX_NAMED).map(|((_, text), child)| match child.finalizers.as_slice() {
        [] => text.clone(),
        [one] => format!("{text} (finalizer {one})"),
        [first, others @ ..] => format!("{text} (finalizers {first} and {} more)", others.len()),
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let unnamed = match waits.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let waited_for = match waits.len() {
        0 => String::new(),
        1 => format!("; waits for 1 child: {named}"),
        count => format!("; waits for {count} children: {named}{unnamed}"),
    };
    let more = if waits.is_empty() { "" } else { "more " };
    Some(match left {
        0 => waited_for,
        1 => format!("{waited_for}; 1 {more}child is not deleted yet"),
        left => format!("{waited_for}; {left} {more}children are not deleted yet"),
    })
}

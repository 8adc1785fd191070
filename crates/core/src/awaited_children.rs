//! The children that the deletion of a parent in the foreground waits for, as text.
//!
//! **Invariant:** it is made of what the API server shows of the children, and of nothing that this process has seen before: the
//! next process says the same.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::{GroupRole, ObjectId, PolicyId, UnreadyChild};
use watcher::reflector::ObjectRow;

use super::causes::{CauseFinder, name_beside};

/// What is said of a child that a deletion in the foreground has not reached.
pub const NOT_DELETED_YET: &str = "not deleted yet";
/// Maximum number of children that are named.
const MAX_NAMED_CHILDREN: usize = 3;

/// Where a child stands among those that are waited for: what a finalizer holds comes first, because it may not go by itself.
type ChildPlace<'k> = (bool, &'k str, String);

/// Children that are being deleted.
#[derive(Default)]
struct LeavingChildren<'k> {
    /// The first of those that block the deletion of the parent, with the finalizers that hold them.
    first: BTreeMap<ChildPlace<'k>, Option<String>>,
    /// Those that block it.
    blocking: BTreeSet<ObjectId>,
    /// How often any is counted as a child that the parent owns.
    owned_count: u32,
}

/// Returns what the deletion of a parent waits for beside its own finalizers; empty unless it goes on in the foreground.
pub(super) fn awaited_children_text(causes: &CauseFinder<'_>, parent: ObjectId, policy: PolicyId) -> String {
    let in_foreground = |row: &ObjectRow| {
        let of = row.parent.as_ref().filter(|of| of.deletion().is_some_and(|held| held.is_in_foreground))?;
        Some((of.uid.to_string(), row.namespace.clone()))
    };
    let Some((uid, namespace)) = causes.reflector.read_row(parent, in_foreground).flatten() else {
        return String::new();
    };
    // What a refused policy counts are the children of a predecessor.
    if !causes.engine.is_accepted(policy) {
        return String::new();
    }
    let leaving = find_leaving(causes, (parent, policy), &uid, &namespace);
    // Those that are ready are known by their number alone.
    let left = count_owned(causes, parent, policy).saturating_sub(leaving.owned_count);
    let waits = waits_text(&leaving);
    let more = if waits.is_empty() { "" } else { "more " };
    match left {
        0 => waits,
        1 => format!("{waits}; 1 {more}child is {NOT_DELETED_YET}"),
        left => format!("{waits}; {left} {more}children are {NOT_DELETED_YET}"),
    }
}

fn waits_text(leaving: &LeavingChildren<'_>) -> String {
    let count = leaving.blocking.len();
    if count == 0 {
        return String::new();
    }
    let named = leaving.first.iter().map(|((_, kind, name), hold)| match hold {
        Some(hold) => format!("{kind} {name} ({hold})"),
        None => format!("{kind} {name}"),
    });
    let named = named.collect::<Vec<_>>().join(", ");
    let more = count.saturating_sub(leaving.first.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let word = if count == 1 { "child" } else { "children" };
    format!("; waits for {count} {word}: {named}{more}")
}

/// Finds the children of a parent that are being deleted. One that is, is not ready.
fn find_leaving<'k>(
    causes: &CauseFinder<'k>,
    (parent, policy): (ObjectId, PolicyId),
    uid: &str,
    namespace: &str,
) -> LeavingChildren<'k> {
    let mut leaving = LeavingChildren::default();
    let unready = [GroupRole::Critical, GroupRole::Optional]
        .into_iter()
        .flat_map(|role| causes.engine.unready_children(parent, policy, role));
    for UnreadyChild { child, kind, group, .. } in unready {
        let read = |row: &ObjectRow| {
            row.is_deleting().then(|| {
                let hold = row.finalizer_hold().map(|hold| hold.brief().to_owned());
                row.blocks_deletion_of(uid).then(|| (name_beside(row, namespace), hold))
            })
        };
        let Some(blocking) = causes.reflector.read_row(child, read).flatten() else { continue };
        leaving.owned_count += u32::from(counts_dependents(causes, policy, group));
        if let Some((name, hold)) = blocking
            && leaving.blocking.insert(child)
        {
            leaving.first.insert((hold.is_none(), causes.kinds.name(kind), name), hold);
            if leaving.first.len() > MAX_NAMED_CHILDREN {
                leaving.first.pop_last();
            }
        }
    }
    leaving
}

/// Number of children that the parent owns.
fn count_owned(causes: &CauseFinder<'_>, parent: ObjectId, policy: PolicyId) -> u32 {
    let groups = causes.policies.get(&policy).map_or(0, |words| words.groups.len());
    let owned = (0..=u8::MAX).take(groups).filter(|group| counts_dependents(causes, policy, *group));
    owned.map(|group| causes.engine.group_tally(parent, policy, group).total_count()).sum()
}

fn counts_dependents(causes: &CauseFinder<'_>, policy: PolicyId, group: u8) -> bool {
    let summary = causes.policies.get(&policy).and_then(|words| words.groups.get(usize::from(group)));
    summary.is_some_and(|group| group.counts_dependents)
}

//! Views of objects for the engine.

use aggregator::{ChildLink, LinkTarget, ObjectId, ObjectView};
use readiness::Time;
use readiness::rollup::ChildWeight;
use rustc_hash::FxHashSet;

use super::interim::weigh_by_rule;
use super::links::{OwnerReach, owner_reach};
use super::memory::is_outdated_link;
use super::rows::Rows;
use super::selector_interner::name_hash;

/// Passes the view of an object at `now` to `show`; `None` if the object is gone.
pub(super) fn with_view<R>(
    rows: &Rows,
    id: ObjectId,
    now: Time,
    show: impl FnOnce(Option<&ObjectView<'_>>) -> R,
) -> R {
    let links = counted_links(rows, id);
    let mut show = Some(show);
    let shown = rows.with_slot(id, |slot| {
        let row = slot.row.as_ref()?;
        let weigh = |(rule_index, assessment)| weigh_by_rule(row, rule_index, assessment, now);
        let weights: Vec<ChildWeight> = row.all_assessments().enumerate().map(weigh).collect();
        let view = ObjectView {
            kind: row.kind,
            weights: &weights,
            spec_mark: row.spec_version.mark(),
            created: row.created_at(),
            name: name_hash(&row.name),
            links: &links,
            recheck: row.next_recheck(now),
            lent_selectors: row.extras.as_ref().map_or(&[], |aside| &aside.lent_selectors),
            parent: row.parent.as_ref().map(|p| &p.view),
        };
        Some(show.take()?(Some(&view)))
    });
    match (shown.flatten(), show) {
        (Some(shown), _) => shown,
        (None, Some(show)) => show(None),
        (None, None) => unreachable!("a view is shown once"),
    }
}

/// Returns its links, without those to owners out of its reach or to other generations of a parent.
fn counted_links(rows: &Rows, id: ObjectId) -> Vec<ChildLink> {
    let read = rows.read(id, |row| {
        let only = row.remembered_links().map(|remembered| remembered.only.clone()).unwrap_or_default();
        (row.links.as_slice().to_vec(), row.namespace.clone(), only)
    });
    let Some((mut links, namespace, only)) = read else { return Vec::new() };
    links.retain(|link| only.is_empty() || !is_outdated_link(rows, *link, &only));
    links.retain(|link| match link.target() {
        LinkTarget::Object(owner) => owner_reach(rows, *link, owner, &namespace) == OwnerReach::Counts,
        LinkTarget::Selector(_) => true,
    });
    links
}

/// An object that does not count for an owner that it names, because of their namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UncountedChild {
    /// Its namespace and name.
    pub child: String,
    /// Namespace, if it has one, and name of the owner.
    pub owner: String,
    /// The owner is cluster-scoped, and its policy does not name the child's namespace; else it lives in another namespace.
    pub is_owner_cluster_scoped: bool,
}

/// Returns objects that count for no parent because of the namespaces of their owners.
pub(super) fn uncounted_children(rows: &Rows, most: usize) -> Vec<UncountedChild> {
    // There are hardly ever such owners, and their slots tell.
    let suspects: FxHashSet<ObjectId> = rows.owners_with_strangers().into_iter().collect();
    if suspects.is_empty() {
        return Vec::new();
    }
    let mut refers = Vec::new();
    rows.for_each_row(|_, row| {
        for link in row.links.as_slice() {
            let LinkTarget::Object(owner) = link.target() else { continue };
            if suspects.contains(&owner) {
                refers.push((format!("{}/{}", row.namespace, row.name), row.namespace.clone(), *link, owner));
            }
        }
    });
    let uncounted = refers.into_iter().filter_map(|(child, namespace, link, owner)| {
        let reach = owner_reach(rows, link, owner, &namespace);
        let is_owner_cluster_scoped = reach == OwnerReach::NamespaceNotAllowed;
        let name = |row: &super::ObjectRow| match &*row.namespace {
            "" => row.name.to_string(),
            namespace => format!("{namespace}/{}", row.name),
        };
        let owner = rows.read(owner, name).filter(|_| reach != OwnerReach::Counts)?;
        Some(UncountedChild { child, owner, is_owner_cluster_scoped })
    });
    uncounted.take(most).collect()
}

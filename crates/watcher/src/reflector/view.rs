//! Views of objects for the engine.

use aggregator::{ChildLink, LinkTarget, ObjectId, ObjectView};
use readiness::Time;
use readiness::rollup::ChildWeight;

use super::links::is_cross_namespace;
use super::memory::is_outdated_link;
use super::rows::Rows;
use super::selector_interner::name_hash;
use super::standing::weigh_by_rule;

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
            generation: row.generation,
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

/// Returns its links, without those to owners in another namespace or to other generations of a parent.
fn counted_links(rows: &Rows, id: ObjectId) -> Vec<ChildLink> {
    let read = rows.read(id, |row| {
        let only = row.remembered_links().map(|remembered| remembered.only.clone()).unwrap_or_default();
        (row.links.as_slice().to_vec(), row.namespace.clone(), only)
    });
    let Some((mut links, namespace, only)) = read else { return Vec::new() };
    links.retain(|link| only.is_empty() || !is_outdated_link(rows, *link, &only));
    links.retain(|link| match link.target() {
        LinkTarget::Object(owner) => !is_cross_namespace(rows, owner, &namespace),
        LinkTarget::Selector(_) => true,
    });
    links
}

/// Returns objects whose owner lives in another namespace and that therefore count for no parent: name and owner's
/// name.
pub(super) fn cross_namespace_children(rows: &Rows, most: usize) -> Vec<(String, String)> {
    let mut refers = Vec::new();
    rows.for_each_row(|_, row| {
        for link in row.links.as_slice() {
            if let LinkTarget::Object(owner) = link.target() {
                refers.push((format!("{}/{}", row.namespace, row.name), row.namespace.clone(), owner));
            }
        }
    });
    let strange =
        refers.into_iter().filter(|(_, namespace, owner)| is_cross_namespace(rows, *owner, namespace));
    let named = strange.filter_map(|(child, _, owner)| {
        Some((child, rows.read(owner, |row| format!("{}/{}", row.namespace, row.name))?))
    });
    named.take(most).collect()
}

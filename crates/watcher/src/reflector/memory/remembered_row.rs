//! Rows that stand for deleted objects.

use aggregator::{ChildLink, LinkTarget};
use readiness::Assessment;

use super::super::links::add_owner_links;
use super::super::planned::BroughtBy;
use super::super::row::{ObjectRow, RememberedLinks};
use super::super::row_store::{RowStore, rules_used_by};
use super::super::rows::Rows;
use super::super::uid_key::UidKey;
use super::memory_state::MemoryState;
use super::outcome::{OutcomeParent, RememberedOutcome};
use super::remembering::remembering_rules;
use crate::plan::{Interest, OutcomeRetention};
use crate::wire::WireMeta;

/// Projects the rows of several objects.
pub(super) fn project_rows(store: &RowStore, memory: &MemoryState, uids: impl IntoIterator<Item = UidKey>) {
    for uid in uids {
        project_row(store, memory, uid);
    }
}

/// Stores the row of a deleted object from its remembered outcomes, or removes it if it counts for no parent.
/// Returns `true` if there is a row now.
pub(super) fn project_row(store: &RowStore, memory: &MemoryState, uid: UidKey) -> bool {
    let parents = memory.parents_of.get(&uid).map_or(&[][..], Vec::as_slice);
    let known = parents.iter().filter_map(|p| memory.parents.get(p));
    let known: Vec<(&OutcomeParent, &RememberedOutcome)> = known
        .filter_map(|m| Some((&m.parent, m.counting().find(|run| run.key() == uid)?)))
        .filter(|(_, outcome)| outcome.deleted)
        .collect();
    let row = known.first().and_then(|(_, first)| {
        let interest = memory.interests.get(&first.kind)?;
        remembered_row(store, memory, interest, (first, uid), &known)
    });
    let remembered = row.is_some();
    match row {
        Some(row) => _ = store.store_row(uid, row, None, BroughtBy::Watch),
        None => drop_remembered_row(store, uid),
    }
    remembered
}

fn remembered_row(
    store: &RowStore,
    memory: &MemoryState,
    interest: &Interest,
    (outcome, uid): (&RememberedOutcome, UidKey),
    known: &[(&OutcomeParent, &RememberedOutcome)],
) -> Option<ObjectRow> {
    let meta = WireMeta {
        name: outcome.name.clone(),
        namespace: outcome.namespace.clone(),
        uid: outcome.uid.clone(),
        resource_version: outcome.version,
        created: outcome.created,
        labels: outcome.labels.clone(),
        owners: known.iter().map(|(whose, _)| whose.to_owner_ref()).collect(),
        ..WireMeta::default()
    };
    let (mut links, mut only) = (Vec::new(), Vec::new());
    for rule in remembering_rules(interest, &meta) {
        let Some((group, kind)) = rule.find.parent_kind() else { continue };
        let from = links.len();
        if rule.find.selecting_kind().is_some() {
            // It counts for those that remember it, and not for whoever selects the like later.
            let selecting = memory.selections.parents_of(store.link_tables(), rule, &meta);
            let knows = |whose: &OutcomeParent| selecting.iter().any(|parent| parent.uid == whose.uid);
            let of = known.iter().filter(|(whose, _)| knows(whose)).map(|(whose, _)| whose.to_owner_ref());
            let selected =
                WireMeta { owners: of.collect(), namespace: meta.namespace.clone(), ..WireMeta::default() };
            add_owner_links(&store.rows, rule, group, kind, &selected, &mut links);
        } else {
            add_owner_links(&store.rows, rule, group, kind, &meta, &mut links);
        }
        for link in &mut links[from..] {
            *link = link.with_other_source();
            if rule.retention == OutcomeRetention::RememberGeneration {
                only.extend(link_generation(&store.rows, *link, known).map(|generation| (*link, generation)));
            }
        }
    }
    if links.is_empty() {
        return None;
    }
    let assessment = Assessment::from(outcome.to_verdict());
    let assessed = vec![assessment; rules_used_by(&links)];
    let mut row = store.build_row(interest, &meta, assessed, links, None);
    let held = store.rows.find_key(uid);
    row.spec_version = held.and_then(|id| store.rows.read(id, |row| row.spec_version)).unwrap_or_default();
    row.extras.get_or_insert_default().remembered = Some(RememberedLinks { only: only.into() });
    Some(row)
}

fn link_generation(
    rows: &Rows,
    link: ChildLink,
    known: &[(&OutcomeParent, &RememberedOutcome)],
) -> Option<u64> {
    let for_whom =
        known.iter().find(|(whose, _)| rows.find(&whose.uid).map(LinkTarget::Object) == Some(link.target()));
    for_whom.and_then(|(_, outcome)| outcome.generation)
}

fn drop_remembered_row(store: &RowStore, uid: UidKey) {
    if let Some(id) = store.rows.find_key(uid) {
        store.drop_row(id, ObjectRow::is_remembered);
    }
}

/// Returns `true` if the link counts for another generation than the parent's current one.
pub(in crate::reflector) fn is_outdated_link(
    rows: &Rows,
    link: ChildLink,
    only: &[(ChildLink, u64)],
) -> bool {
    let Some((_, generation)) = only.iter().find(|(l, _)| *l == link) else { return false };
    let LinkTarget::Object(parent) = link.target() else { return false };
    let now = rows.parent_generation(parent);
    now.is_some_and(|now| now != *generation)
}

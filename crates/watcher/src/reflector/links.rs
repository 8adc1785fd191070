//! Links from an object to the parents for which it counts.

use aggregator::{ChildLink, LinkTarget, ObjectId, PolicyId, SelectorId};

use super::row::ObjectRow;
use super::rows::Rows;
use super::selector_interner::Selectors;
use super::uid_key::UidKey;
use crate::plan::{ChildRule, FindChildrenBy, Interest};
use crate::wire::{ChildObject, WireMeta, may_be_claim_name};

/// What links refer to: slots of owners, and interned selections.
#[derive(Clone, Copy)]
pub(super) struct LinkTables<'a> {
    pub(super) rows: &'a Rows,
    pub(super) selectors: &'a Selectors,
}

/// Resolves the links of an object. Their targets are held until [`release_links`].
pub(super) fn resolve_links(tables: LinkTables<'_>, interest: &Interest, meta: &WireMeta) -> Vec<ChildLink> {
    let mut links = Vec::new();
    for rule in &interest.child {
        if rule.passes_over(meta) {
            continue;
        }
        match &rule.find {
            FindChildrenBy::Owner { group, kind } => {
                add_owner_links(tables.rows, rule, group, kind, meta, &mut links);
            }
            _ => add_selected_links(tables.selectors, rule, meta, &mut links),
        }
    }
    links
}

/// The selections to which an object belongs under a rule that finds children otherwise than by ownerReference.
pub(super) fn selected_by_rule(tables: LinkTables<'_>, rule: &ChildRule, meta: &WireMeta) -> Vec<SelectorId> {
    let mut links = Vec::new();
    add_selected_links(tables.selectors, rule, meta, &mut links);
    let selection = |link: &ChildLink| match link.target() {
        LinkTarget::Selector(id) => Some(id),
        LinkTarget::Object(_) => None,
    };
    let ids = links.iter().filter_map(selection).collect();
    release_links(tables, &links);
    ids
}

fn add_selected_links(selectors: &Selectors, rule: &ChildRule, meta: &WireMeta, links: &mut Vec<ChildLink>) {
    match &rule.find {
        FindChildrenBy::Owner { .. } => {}
        FindChildrenBy::Claims if !may_be_claim_name(&meta.name) => {}
        FindChildrenBy::References { .. } | FindChildrenBy::Claims => {
            let name = std::iter::once(&*meta.name);
            let id = selectors.lock().intern_selection(rule.policy, rule.group, &meta.namespace, name);
            links.push(make_link(rule, LinkTarget::Selector(id)).with_other_source());
        }
        FindChildrenBy::Labels { keys, of } => add_label_links(selectors, rule, keys, of, meta, links),
    }
}

/// Returns the selectors that the object lends to its owner because it claims volumes.
pub(super) fn lent_selectors(
    selectors: &Selectors,
    interest: &Interest,
    child: &ChildObject,
) -> Box<[(PolicyId, SelectorId)]> {
    let Some(claims) = child.claims.as_ref().filter(|_| !interest.claims.is_empty()) else {
        return Box::default();
    };
    let mut selectors = selectors.lock();
    let mut lends = Vec::new();
    for name in claims.claim_names(&child.meta.name, child.facts.spec.replicas) {
        for (policy, group) in &interest.claims {
            let name = std::iter::once(&*name);
            lends.push((*policy, selectors.intern_selection(*policy, *group, &child.meta.namespace, name)));
        }
    }
    lends.into()
}

fn add_label_links(
    selectors: &Selectors,
    rule: &ChildRule,
    keys: &[Box<str>],
    (group, kind): &(Box<str>, Box<str>),
    meta: &WireMeta,
    links: &mut Vec<ChildLink>,
) {
    let value = |key: &str| meta.labels.iter().find(|(l, _)| **l == *key).map(|(_, v)| &**v);
    let Some(values) = keys.iter().map(|k| value(k)).collect::<Option<Vec<_>>>() else { return };
    let owners = meta.owners.iter().filter(|o| *o.kind == **kind && api_group_of(&o.api_version) == &**group);
    let mut uids: Vec<&str> = owners.map(|o| &*o.uid).collect();
    if uids.is_empty() {
        uids.push("");
    }
    let mut selectors = selectors.lock();
    for uid in uids {
        let values = values.iter().copied().chain([uid]);
        let id = selectors.intern_selection(rule.policy, rule.group, &meta.namespace, values);
        links.push(make_link(rule, LinkTarget::Selector(id)));
    }
}

/// Adds the links to owners of this kind. The slot of each is held.
pub(super) fn add_owner_links(
    rows: &Rows,
    rule: &ChildRule,
    group: &str,
    kind: &str,
    meta: &WireMeta,
    links: &mut Vec<ChildLink>,
) {
    for owner in meta.owners.iter().filter(|o| *o.kind == *kind && api_group_of(&o.api_version) == group) {
        let uid = UidKey::from_text(&owner.uid);
        let is_within = !meta.namespace.is_empty() && !rule.allowed.allows(&meta.namespace);
        let link_to = |id| {
            let link = make_link(rule, LinkTarget::Object(id));
            if is_within { link.within_own_namespace() } else { link }
        };
        if rows.find(&owner.uid).is_some_and(|id| links.contains(&link_to(id))) {
            continue;
        }
        let (id, ()) = rows.with_slot_of(uid, |slot| {
            slot.add_reference(&meta.namespace, is_within);
        });
        links.push(link_to(id));
    }
}

/// Releases everything that a removed row referred to.
pub(super) fn release_row(tables: LinkTables<'_>, row: &ObjectRow) {
    release_links(tables, row.links.as_slice());
    let lent = row.extras.iter().flat_map(|aside| &aside.lent_selectors).map(|(_, id)| *id);
    let answers = row.parent.iter().flat_map(|parent| &parent.view.answers);
    let mut others = lent.chain(answers.flat_map(|answer| answer.selects().iter().copied())).peekable();
    if others.peek().is_some() {
        let mut selectors = tables.selectors.lock();
        others.for_each(|id| selectors.release_selection(id));
    }
}

/// Releases the owners and selections that the links referred to.
pub(super) fn release_links(tables: LinkTables<'_>, links: &[ChildLink]) {
    for link in links {
        match link.target() {
            LinkTarget::Selector(id) => tables.selectors.lock().release_selection(id),
            LinkTarget::Object(id) => {
                let last = tables.rows.with_slot(id, |slot| {
                    slot.refs = slot.refs.saturating_sub(1);
                    slot.refs == 0 && slot.row.is_none()
                });
                if last == Some(true) {
                    // The driver removes it from the engine and then recycles its slot.
                    tables.rows.mark_dirty(id);
                }
            }
        }
    }
}

/// Whether an object counts for an owner, by their namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerReach {
    /// It counts; also where nothing is known of the owner yet.
    Counts,
    /// The owner lives in another namespace: a namespaced object cannot own one elsewhere. The API treats such an owner as
    /// absent, and so does Rollcall.
    OtherNamespace,
    /// The owner is cluster-scoped, and its policy does not name the object's namespace.
    NamespaceNotAllowed,
}

/// Returns whether an object in this namespace counts for the owner that the link names.
pub(super) fn owner_reach(rows: &Rows, link: ChildLink, owner: ObjectId, namespace: &str) -> OwnerReach {
    match rows.read(owner, |row| row.namespace.clone()) {
        Some(lives_in) if lives_in.is_empty() && link.is_within_own_namespace() => {
            OwnerReach::NamespaceNotAllowed
        }
        Some(lives_in) if !lives_in.is_empty() && *lives_in != *namespace => OwnerReach::OtherNamespace,
        _ => OwnerReach::Counts,
    }
}

fn make_link(rule: &ChildRule, target: LinkTarget) -> ChildLink {
    ChildLink::new(rule.policy, rule.group, rule.rule_index, target)
}

pub(super) fn api_group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

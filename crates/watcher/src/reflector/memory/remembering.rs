//! For whom, and by which rules, the outcome of an object is remembered.

use super::super::links::{LinkTables, api_group_of};
use super::super::rows::Rows;
use super::outcome::OutcomeParent;
use super::parent_selections::ParentSelections;
use crate::plan::{ChildRule, FindChildrenBy, Interest, OutcomeRetention};
use crate::wire::{OwnerRef, WireMeta};

/// Returns the rules under which the outcome of an object with this metadata is remembered. Jobs of a CronJob are
/// excluded: the CronJob decides about them.
pub(super) fn remembering_rules<'i>(
    interest: &'i Interest,
    meta: &WireMeta,
) -> impl Iterator<Item = &'i ChildRule> {
    let scheduled = meta.owners.iter().any(|o| &*o.kind == "CronJob" && o.api_version.starts_with("batch/"));
    let passed_over: Vec<bool> = interest.child.iter().map(|rule| rule.passes_over(meta)).collect();
    interest
        .child
        .iter()
        .zip(passed_over)
        .filter(move |(rule, passed_over)| {
            !scheduled && !passed_over && rule.retention != OutcomeRetention::Forget
        })
        .map(|(rule, _)| rule)
}

/// Returns the parents that have to remember an object.
pub(super) fn remembering_parents(
    selections: &ParentSelections,
    tables: LinkTables<'_>,
    interest: &Interest,
    meta: &WireMeta,
) -> Vec<OutcomeParent> {
    let mut found: Vec<OutcomeParent> = Vec::new();
    for rule in remembering_rules(interest, meta) {
        let FindChildrenBy::Owner { group, kind } = &rule.find else {
            for parent in selections.parents_of(tables, rule, meta) {
                if found.iter().all(|known| known.uid != parent.uid) {
                    found.push(parent);
                }
            }
            continue;
        };
        let is_owner = |o: &&OwnerRef| {
            o.kind == *kind && api_group_of(&o.api_version) == &**group && o.is_of_valid_length()
        };
        for owner in meta.owners.iter().filter(is_owner) {
            let is_known = found.iter().any(|known| known.uid == owner.uid);
            if !is_known && may_count_for(tables.rows, rule, &owner.uid, &meta.namespace) {
                found.push(OutcomeParent {
                    group: group.clone(),
                    kind: kind.clone(),
                    namespace: meta.namespace.clone(),
                    name: owner.name.clone(),
                    uid: owner.uid.clone(),
                });
            }
        }
    }
    found
}

/// Returns `false` if an object in this namespace counts for no owner with this uid, as far as is known: an owner's uid is no
/// secret, and whoever names it elsewhere must not take the room of what it remembers.
fn may_count_for(rows: &Rows, rule: &ChildRule, owner: &str, namespace: &str) -> bool {
    let lives_in = rows.find(owner).and_then(|id| rows.read(id, |row| row.namespace.clone()));
    lives_in.is_none_or(|lives_in| match &*lives_in {
        "" => rule.allowed.allows(namespace),
        own => own == namespace,
    })
}

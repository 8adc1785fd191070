//! Which parents select what by labels or by name, as far as they remember outcomes of it: no ownerReference says for whom such
//! an object counts.

use aggregator::SelectorId;
use rustc_hash::FxHashMap;

use super::super::links::{LinkTables, selected_by_rule};
use super::super::row::ObjectRow;
use super::super::rows::Rows;
use super::super::uid_key::UidKey;
use super::outcome::OutcomeParent;
use crate::plan::ChildRule;
use crate::wire::WireMeta;

/// A parent, and what it selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SelectingParent {
    namespace: Box<str>,
    name: Box<str>,
    uid: Box<str>,
    selects: Vec<SelectorId>,
}

impl SelectingParent {
    /// Reads what a parent selects; `None` if that is nothing.
    pub(super) fn read(rows: &Rows, uid: &str) -> Option<SelectingParent> {
        let read = |row: &ObjectRow| {
            let parent = row.parent.as_ref()?;
            let selects: Vec<_> =
                parent.view.answers.iter().flat_map(|answer| answer.selects().iter().copied()).collect();
            (!selects.is_empty()).then(|| SelectingParent {
                namespace: (*row.namespace).into(),
                name: row.name.clone(),
                uid: uid.into(),
                selects,
            })
        };
        rows.read(rows.find(uid)?, read).flatten()
    }

    fn to_outcome_parent(&self, (group, kind): (&str, &str)) -> OutcomeParent {
        OutcomeParent {
            group: group.into(),
            kind: kind.into(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
        }
    }
}

/// Parents by what they select.
#[derive(Default)]
pub(super) struct ParentSelections {
    parents: FxHashMap<UidKey, SelectingParent>,
    selected_by: FxHashMap<SelectorId, Vec<UidKey>>,
}

impl ParentSelections {
    /// Sets what a parent selects; returns `true` if that is news.
    pub(super) fn set_parent(&mut self, parent: UidKey, now: Option<SelectingParent>) -> bool {
        if self.parents.get(&parent) == now.as_ref() {
            return false;
        }
        for id in self.parents.remove(&parent).into_iter().flat_map(|before| before.selects) {
            if let Some(parents) = self.selected_by.get_mut(&id) {
                parents.retain(|other| *other != parent);
                if parents.is_empty() {
                    self.selected_by.remove(&id);
                }
            }
        }
        if let Some(now) = now {
            for id in &now.selects {
                self.selected_by.entry(*id).or_default().push(parent);
            }
            self.parents.insert(parent, now);
        }
        true
    }

    /// The parents that select an object with this metadata under a rule by which they are found otherwise than by
    /// ownerReference.
    pub(super) fn parents_of(
        &self,
        tables: LinkTables<'_>,
        rule: &ChildRule,
        meta: &WireMeta,
    ) -> Vec<OutcomeParent> {
        let Some(of) = rule.find.selecting_kind() else { return Vec::new() };
        let ids = selected_by_rule(tables, rule, meta);
        let parents = ids.iter().filter_map(|id| self.selected_by.get(id)).flatten();
        parents.filter_map(|parent| Some(self.parents.get(parent)?.to_outcome_parent(of))).collect()
    }
}

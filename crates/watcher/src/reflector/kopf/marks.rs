//! Policies whose operators leave Kopf's mark, learned from the parents that carry one.
//!
//! Kopf stores its mark once a change handler has succeeded. During the first attempt of the first handler the parent
//! shows nothing, and its children may well be ready. That the operator leaves marks is known from other parents that
//! it has handled: only those in the same namespace count, because a mark in another namespace could be forged by
//! anyone who may write there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{PoisonError, RwLock};

use aggregator::{HandledEvidence, ObjectId, PolicyId};

use super::super::row::{NamespaceName, ObjectRow};
use super::super::row_place::RowPlace;
use super::super::row_store::RowStore;
use super::super::rows::Rows;
use super::super::slots::RowSlot;
use crate::plan::{KopfMarkRule, ParentRule};

/// Namespaces in which the operator of a policy leaves Kopf's mark.
#[derive(Default)]
pub(in crate::reflector) struct KopfMarks(RwLock<BTreeMap<PolicyId, BTreeSet<NamespaceName>>>);

impl KopfMarks {
    /// Returns `true` if a parent that one of these policies selects in this namespace would carry a mark once its
    /// operator has handled it.
    pub(in crate::reflector) fn expects_mark(&self, rules: &[&ParentRule], namespace: &str) -> bool {
        rules.iter().any(|rule| match rule.kopf_marks {
            KopfMarkRule::Expected => true,
            KopfMarkRule::Learned => self.has_learned_marks(rule.policy, namespace),
            KopfMarkRule::Optional => false,
        })
    }

    fn has_learned_marks(&self, policy: PolicyId, namespace: &str) -> bool {
        let marking = self.0.read().unwrap_or_else(PoisonError::into_inner);
        marking.get(&policy).is_some_and(|namespaces| namespaces.contains(namespace))
    }

    /// Forgets the marks of policies that are not among these: a policy that was edited has another number.
    pub(in crate::reflector) fn retain_policies(&self, ruling: &BTreeSet<PolicyId>) {
        let mut marking = self.0.write().unwrap_or_else(PoisonError::into_inner);
        marking.retain(|policy, _| ruling.contains(policy));
    }

    /// Learns from this parent, which was just stored, with a mark or without any evidence of handling. Must be called after
    /// the parent is stored: the call that learns the first mark visits all stored parents of the kind in the namespace, and
    /// one that was read before the mark was known, and stored after that, is visited by its own call.
    pub(in crate::reflector) fn learn(
        &self,
        store: &RowStore,
        rules: &[&ParentRule],
        (id, place): (ObjectId, RowPlace<'_>),
        (marked, silent): (bool, bool),
    ) {
        let namespace = place.namespace.unwrap_or_default();
        for rule in rules.iter().filter(|rule| rule.kopf_marks == KopfMarkRule::Learned) {
            let known = self.has_learned_marks(rule.policy, namespace);
            if marked && !known {
                let name = store.namespaces.intern(namespace);
                let mut marking = self.0.write().unwrap_or_else(PoisonError::into_inner);
                marking.entry(rule.policy).or_default().insert(name);
                drop(marking);
                expect_marks(&store.rows, rule.policy, place);
            } else if silent && known {
                let expects =
                    |slot: &mut RowSlot| slot.row.as_mut().is_some_and(|row| expect_mark(row, rule.policy));
                if store.rows.with_slot(id, expects) == Some(true) {
                    store.rows.mark_dirty(id);
                }
            }
        }
    }
}

/// Takes the silence on this parent for no answer, if this policy rules it. Returns `true` if that changes anything.
fn expect_mark(row: &mut ObjectRow, policy: PolicyId) -> bool {
    let parent = row.parent.as_mut().filter(|parent| parent.has_no_evidence());
    let Some(parent) = parent.filter(|parent| parent.targets.iter().any(|t| t.policy == policy)) else {
        return false;
    };
    parent.view.evidence = HandledEvidence::Unmarked;
    true
}

fn expect_marks(rows: &Rows, policy: PolicyId, place: RowPlace<'_>) {
    let mut unmarked = Vec::new();
    rows.for_each_row_in(place, |id, row| {
        if expect_mark(row, policy) {
            unmarked.push(id);
        }
    });
    for id in unmarked {
        rows.mark_dirty(id);
    }
}

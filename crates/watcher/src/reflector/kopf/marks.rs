//! Policies whose operators leave Kopf's mark, learned from the parents that carry one.
//!
//! Kopf stores its mark once a change handler has succeeded. During the first attempt of the first handler the parent
//! shows nothing, and its children may well be ready. That the operator leaves marks is known from other parents that
//! it has handled: only those in the same namespace count, because a mark in another namespace could be forged by
//! anyone who may write there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{PoisonError, RwLock};

use aggregator::{HandledEvidence, PolicyId};

use super::super::row::NamespaceName;
use super::super::row_store::RowStore;
use super::super::rows::Rows;
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

    /// Learns from a parent that was just stored, with a mark or without any evidence of handling. Must be called after
    /// the parent is stored: the call that learns the first mark visits all stored parents, and parents stored later
    /// see that the mark is known.
    pub(in crate::reflector) fn learn(
        &self,
        store: &RowStore,
        rules: &[&ParentRule],
        namespace: &str,
        (marked, silent): (bool, bool),
    ) {
        for rule in rules.iter().filter(|rule| rule.kopf_marks == KopfMarkRule::Learned) {
            let known = self.has_learned_marks(rule.policy, namespace);
            if marked && !known {
                let name = store.namespaces.intern(namespace);
                let mut marking = self.0.write().unwrap_or_else(PoisonError::into_inner);
                marking.entry(rule.policy).or_default().insert(name);
            }
            if (marked && !known) || (silent && self.has_learned_marks(rule.policy, namespace)) {
                expect_marks(&store.rows, rule.policy, namespace);
            }
        }
    }
}

fn expect_marks(rows: &Rows, policy: PolicyId, namespace: &str) {
    let mut unmarked = Vec::new();
    rows.for_each_slot(|id, slot| {
        let row = slot.row.as_mut().filter(|row| *row.namespace == *namespace);
        let parent = row.and_then(|row| row.parent.as_mut()).filter(|parent| parent.has_no_evidence());
        if let Some(parent) = parent
            && parent.targets.iter().any(|target| target.policy == policy)
        {
            parent.view.evidence = HandledEvidence::Unmarked;
            unmarked.push(id);
        }
    });
    for id in unmarked {
        rows.mark_dirty(id);
    }
}

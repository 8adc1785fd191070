//! Policies whose operators leave Kopf's mark, learned from the parents that carry one.
//!
//! Kopf stores its mark once a change handler has succeeded. During the first attempt of the first handler the parent
//! shows nothing, and its children may well be ready. That the operator leaves marks is known from other parents that
//! it has handled: only those in the same namespace count, because a mark in another namespace could be forged by
//! anyone who may write there.

use std::sync::PoisonError;

use aggregator::{HandledEvidence, PolicyId};

use super::Reflector;
use crate::plan::{KopfMarkRule, ParentRule};

impl Reflector {
    /// Returns `true` if a parent that one of these policies selects in this namespace would carry a mark once its
    /// operator has handled it.
    pub(super) fn expects_mark(&self, rules: &[&ParentRule], namespace: &str) -> bool {
        rules.iter().any(|rule| match rule.kopf_marks {
            KopfMarkRule::Expected => true,
            KopfMarkRule::Learned => self.has_learned_marks(rule.policy, namespace),
            KopfMarkRule::Optional => false,
        })
    }

    fn has_learned_marks(&self, policy: PolicyId, namespace: &str) -> bool {
        let marking = self.marking_namespaces.read().unwrap_or_else(PoisonError::into_inner);
        marking.get(&policy).is_some_and(|namespaces| namespaces.contains(namespace))
    }

    /// Learns from a parent that was just stored, with a mark or without any evidence of handling. Must be called after
    /// the parent is stored: the call that learns the first mark visits all stored parents, and parents stored later
    /// see that the mark is known.
    pub(super) fn learn_marks(&self, rules: &[&ParentRule], namespace: &str, marked: bool, silent: bool) {
        for rule in rules.iter().filter(|rule| rule.kopf_marks == KopfMarkRule::Learned) {
            let known = self.has_learned_marks(rule.policy, namespace);
            if marked && !known {
                let mut marking = self.marking_namespaces.write().unwrap_or_else(PoisonError::into_inner);
                marking.entry(rule.policy).or_default().insert(self.intern_namespace(namespace));
            }
            if (marked && !known) || (silent && self.has_learned_marks(rule.policy, namespace)) {
                self.expect_marks(rule.policy, namespace);
            }
        }
    }

    fn expect_marks(&self, policy: PolicyId, namespace: &str) {
        let mut unmarked = Vec::new();
        self.slots.for_each_slot(|id, slot| {
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
            self.mark_dirty(id);
        }
    }
}

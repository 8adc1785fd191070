//! Which policies' operators leave Kopf's mark, learned from the parents that carry one.
//!
//! Kopf notes what it has handled once a handler for changes has succeeded. While the first try of the first handler is
//! under way there is nothing to be seen on a parent, and its children may well be ready. That its operator leaves marks
//! is known from the other parents that it has handled: those in the same namespace, since whoever may write elsewhere could
//! put a mark there.

use std::sync::PoisonError;

use aggregator::{Evidence, PolicyId};

use super::Reflector;
use crate::plan::{Marks, ParentRule};

impl Reflector {
    /// Where one of these policies chooses a parent in this namespace, an operator that has handled it has left a mark.
    pub(super) fn expects_mark(&self, rules: &[&ParentRule], namespace: &str) -> bool {
        rules.iter().any(|rule| match rule.marks {
            Marks::Expected => true,
            Marks::Learned => self.is_marking(rule.policy, namespace),
            Marks::Optional => false,
        })
    }

    fn is_marking(&self, policy: PolicyId, namespace: &str) -> bool {
        let marking = self.marking.read().unwrap_or_else(PoisonError::into_inner);
        marking.get(&policy).is_some_and(|namespaces| namespaces.contains(namespace))
    }

    /// A parent was put in its place, with a mark, or with nothing that tells whether it was handled. To be told after
    /// that: whoever learns of the first mark looks at all that are in their places, whoever comes later knows of it.
    pub(super) fn learn_marks(&self, rules: &[&ParentRule], namespace: &str, marked: bool, silent: bool) {
        for rule in rules.iter().filter(|rule| rule.marks == Marks::Learned) {
            let known = self.is_marking(rule.policy, namespace);
            if marked && !known {
                let mut marking = self.marking.write().unwrap_or_else(PoisonError::into_inner);
                marking.entry(rule.policy).or_default().insert(self.namespace(namespace));
            }
            if (marked && !known) || (silent && self.is_marking(rule.policy, namespace)) {
                self.expect_marks(rule.policy, namespace);
            }
        }
    }

    fn expect_marks(&self, policy: PolicyId, namespace: &str) {
        let mut unmarked = Vec::new();
        self.slots.each(|id, slot| {
            let row = slot.row.as_mut().filter(|row| *row.namespace == *namespace);
            let parent = row.and_then(|row| row.parent.as_mut()).filter(|parent| parent.is_silent());
            if let Some(parent) = parent
                && parent.targets.iter().any(|target| target.policy == policy)
            {
                parent.view.evidence = Evidence::Unmarked;
                unmarked.push(id);
            }
        });
        for id in unmarked {
            self.mark(id);
        }
    }
}

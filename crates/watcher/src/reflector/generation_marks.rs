//! Kinds whose operator keeps `status.observedGeneration`, learned from the parents on which it does.
//!
//! Its silence about a generation of any other parent of the kind is then no answer. An operator is one for its kind, and
//! whoever may write the status of a parent speaks for it, so that what one parent carries counts for all of them.

use std::sync::PoisonError;

use aggregator::KindId;

use super::Reflector;
use super::generation_practice::{SeenPractice, concludes};
use crate::plan::ParentRule;

impl Reflector {
    /// Returns `true` if an operator was seen to keep `status.observedGeneration` on a parent of this kind, and these policies
    /// conclude from one parent to another.
    pub(super) fn expects_generation(&self, kind: KindId, rules: &[&ParentRule]) -> bool {
        concludes(rules) && self.is_generation_kept(kind)
    }

    fn is_generation_kept(&self, kind: KindId) -> bool {
        self.keeping_kinds.read().unwrap_or_else(PoisonError::into_inner).contains(&kind)
    }

    /// Learns from a parent that was just stored whether the operator of its kind keeps `status.observedGeneration`. Must be
    /// called after the parent is stored: the call that learns it visits all stored parents, and parents stored later see that
    /// it is known.
    pub(super) fn learn_generation(&self, kind: KindId, seen: Option<SeenPractice>) {
        let Some(seen) = seen else { return };
        let known = self.is_generation_kept(kind);
        if seen == SeenPractice::Keeps && !known {
            self.keeping_kinds.write().unwrap_or_else(PoisonError::into_inner).insert(kind);
        }
        if (seen == SeenPractice::Keeps && !known) || (known && seen == SeenPractice::Unaware) {
            self.await_generations(kind);
        }
    }

    fn await_generations(&self, kind: KindId) {
        let mut changed = Vec::new();
        self.slots.for_each_slot(|id, slot| {
            let parent = slot.row.as_mut().filter(|row| row.kind == kind).and_then(|row| row.parent.as_mut());
            if parent.is_some_and(|parent| parent.await_generation()) {
                changed.push(id);
            }
        });
        for id in changed {
            self.mark_dirty(id);
        }
    }
}

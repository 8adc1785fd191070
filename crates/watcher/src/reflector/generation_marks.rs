//! Kinds whose operator keeps `status.observedGeneration`, learned from the parents on which it does.
//!
//! Its silence about a generation of any other parent of the kind is then no answer. An operator is one for its kind, and
//! whoever may write the status of a parent speaks for it, so that what one parent carries counts for all of them.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

use aggregator::KindId;

use super::generation_practice::{SeenPractice, concludes};
use super::rows::Rows;
use crate::plan::ParentRule;

/// Kinds whose operator keeps `status.observedGeneration` on some parent.
#[derive(Default)]
pub(super) struct GenerationMarks(RwLock<BTreeSet<KindId>>);

impl GenerationMarks {
    /// Returns `true` if an operator was seen to keep `status.observedGeneration` on a parent of this kind, and these policies
    /// conclude from one parent to another.
    pub(super) fn expects_generation(&self, kind: KindId, rules: &[&ParentRule]) -> bool {
        concludes(rules) && self.is_generation_kept(kind)
    }

    fn is_generation_kept(&self, kind: KindId) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(&kind)
    }

    /// Learns from a parent that was just stored whether the operator of its kind keeps `status.observedGeneration`. Must be
    /// called after the parent is stored: the call that learns it visits all stored parents, and parents stored later see that
    /// it is known.
    pub(super) fn learn(&self, rows: &Rows, kind: KindId, seen: Option<SeenPractice>) {
        let Some(seen) = seen else { return };
        let known = self.is_generation_kept(kind);
        if seen == SeenPractice::Keeps && !known {
            self.0.write().unwrap_or_else(PoisonError::into_inner).insert(kind);
        }
        if (seen == SeenPractice::Keeps && !known) || (known && seen == SeenPractice::Unaware) {
            await_generations(rows, kind);
        }
    }
}

fn await_generations(rows: &Rows, kind: KindId) {
    let mut changed = Vec::new();
    rows.for_each_slot(|id, slot| {
        let parent = slot.row.as_mut().filter(|row| row.kind == kind).and_then(|row| row.parent.as_mut());
        if parent.is_some_and(|parent| parent.await_generation()) {
            changed.push(id);
        }
    });
    for id in changed {
        rows.mark_dirty(id);
    }
}

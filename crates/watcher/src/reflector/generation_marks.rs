//! Kinds whose operator keeps `status.observedGeneration`, learned from the parents on which it does.
//!
//! Its silence about a generation of any other parent of the kind is then no answer. An operator is one for its kind, and
//! whoever may write the status of a parent speaks for it, so that what one parent carries counts for all of them.

use std::collections::BTreeSet;
use std::sync::{PoisonError, RwLock};

use aggregator::{KindId, ObjectId};

use super::generation_practice::{SeenPractice, concludes};
use super::row::ObjectRow;
use super::row_place::RowPlace;
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

    /// Learns from this parent, which was just stored, whether the operator of its kind keeps `status.observedGeneration`.
    /// Must be called after the parent is stored: the call that learns it visits all stored parents of the kind, and one that
    /// was read before it was known, and stored after that, is visited by its own call.
    pub(super) fn learn(&self, rows: &Rows, kind: KindId, id: ObjectId, seen: Option<SeenPractice>) {
        match seen {
            Some(SeenPractice::Keeps) if !self.is_generation_kept(kind) => {
                self.0.write().unwrap_or_else(PoisonError::into_inner).insert(kind);
                await_generations(rows, kind);
            }
            Some(SeenPractice::Unaware) if self.is_generation_kept(kind) => {
                let awaits = rows.with_slot(id, |slot| slot.row.as_mut().is_some_and(await_generation));
                if awaits == Some(true) {
                    rows.mark_dirty(id);
                }
            }
            _ => {}
        }
    }
}

fn await_generation(row: &mut ObjectRow) -> bool {
    row.parent.as_mut().is_some_and(|parent| parent.await_generation())
}

fn await_generations(rows: &Rows, kind: KindId) {
    let mut changed = Vec::new();
    rows.for_each_row_in(RowPlace::of_kind(kind), |id, row| {
        if await_generation(row) {
            changed.push(id);
        }
    });
    for id in changed {
        rows.mark_dirty(id);
    }
}

//! Accounting of the memory held by rows: the rows and their heap data, without the spare capacity of allocator and
//! tables.
//!
//! **Invariant:** every change of a row's heap data goes through [`Rows::change_slot`](super::rows::Rows::change_slot), so that the account is
//! right.

use std::mem::size_of_val;
use std::sync::atomic::{AtomicI64, Ordering};

use aggregator::AnswerView;
use readiness::{Assessment, Time, Verdict};

use super::parent::{ParentExtras, ParentRow, TargetExtras};
use super::row::{ObjectExcerpt, ObjectRow, RowExtras, RowLinks};
use super::slots::RowSlot;
use crate::status::OwnedCondition;

/// Bytes per object with a slot: the slot, and its index entry with one control byte of the hash table.
const SLOT_BYTES: usize = size_of::<RowSlot>() + size_of::<u32>() + 1;

/// Account of the rows' heap data.
#[derive(Debug, Default)]
pub(super) struct MemoryAccount(AtomicI64);

impl MemoryAccount {
    /// Adds what a slot's row holds more than before.
    pub(super) fn add_bytes(&self, more: i64) {
        if more != 0 {
            self.0.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Approximate memory held by the rows of this number of objects, in bytes.
    pub(super) fn held_bytes(&self, objects: usize) -> usize {
        let rows = usize::try_from(self.0.load(Ordering::Relaxed)).unwrap_or(0);
        rows + objects * SLOT_BYTES
    }
}

/// Bytes that a slot's row holds.
pub(super) fn slot_row_bytes(slot: &RowSlot) -> i64 {
    slot.row.as_ref().map_or(0, |row| i64::try_from(row_bytes(row)).unwrap_or(i64::MAX))
}

fn row_bytes(row: &ObjectRow) -> usize {
    let links = match &row.links {
        RowLinks::Many(many) => size_of_val(&**many) + size_of_val(&***many),
        RowLinks::None | RowLinks::One(_) => 0,
    };
    row.name.len()
        + links
        + assessment_bytes(&row.assessment)
        + row.extras.as_deref().map_or(0, extras_bytes)
        + row.parent.as_deref().map_or(0, parent_row_bytes)
}

fn assessment_bytes(assessment: &Assessment) -> usize {
    let then =
        assessment.then.as_ref().map_or(0, |then| size_of::<(Time, Verdict)>() + then.1.reason.heap_size());
    assessment.verdict.reason.heap_size() + then
}

fn assessment_list_bytes(assessments: &[Assessment]) -> usize {
    size_of_val(assessments) + assessments.iter().map(assessment_bytes).sum::<usize>()
}

fn extras_bytes(aside: &RowExtras) -> usize {
    let below = aside.refined.as_ref().map_or(0, |(found, without)| {
        let words = found.iter().flatten().map(|f| f.name.len() + assessment_bytes(&f.assessment));
        size_of_val(found.as_slice()) + words.sum::<usize>() + assessment_list_bytes(without)
    });
    size_of::<RowExtras>()
        + assessment_list_bytes(&aside.further_assessments)
        + below
        + size_of_val(&*aside.lent_selectors)
        + size_of_val(aside.since.as_slice())
        + size_of_val(aside.awaited.as_slice())
        + aside.excerpt.as_ref().map_or(0, ObjectExcerpt::held_bytes)
        + aside.blocked_owners.as_deref().map_or(0, size_of_val)
}

fn parent_row_bytes(parent: &ParentRow) -> usize {
    let answers = &*parent.view.answers;
    let of_answer = |answer: &AnswerView| {
        answer.extras.as_deref().map_or(0, |extras| {
            size_of_val(extras)
                + size_of_val(extras.selects.as_slice())
                + size_of_val(extras.expects.as_slice())
                + size_of_val(extras.counts.as_slice())
        })
    };
    let ours = &*parent.status.ours;
    let foreign = &parent.status.foreign;
    size_of::<ParentRow>()
        + parent.uid.heap_size()
        + size_of_val(answers)
        + answers.iter().map(of_answer).sum::<usize>()
        + size_of_val(ours)
        + ours.iter().map(OwnedCondition::heap_size).sum::<usize>()
        + foreign.heap_size()
        + foreign.iter().map(|(kind, owners, _)| kind.len() + owners.len()).sum::<usize>()
        + size_of_val(&*parent.targets)
        + parent
            .targets
            .iter()
            .filter_map(|target| target.extras.as_deref())
            .map(TargetExtras::held_bytes)
            .sum::<usize>()
        + parent.extras.as_deref().map_or(0, ParentExtras::held_bytes)
}

//! How much memory rows take: what is in them and what hangs on them, not what the allocator and tables keep free beside.
//!
//! **Invariant:** whatever may change what hangs on a row goes through [`Reflector::change`], so that the account is right.

use std::mem::size_of_val;
use std::sync::atomic::{AtomicI64, Ordering};

use aggregator::{AnswerView, ObjectId};
use readiness::{Assessment, Time, Verdict};

use super::Reflector;
use super::parent::ParentRow;
use super::row::{Aside, Links, Row};
use super::slots::{Slot, Uid};

/// Of each object that has a place: the place, and its entry in the index with one byte of the table's own.
const PLACE: usize = size_of::<Slot>() + size_of::<(Uid, ObjectId)>() + 1;

/// The account of what hangs on rows.
#[derive(Debug, Default)]
pub(super) struct Account(AtomicI64);

impl Reflector {
    /// So many bytes are taken by what is held, about. Costs nothing to ask.
    pub fn bytes(&self) -> usize {
        let rows = usize::try_from(self.account.0.load(Ordering::Relaxed)).unwrap_or(0);
        rows + self.len() * PLACE
    }

    /// Does something to a place whose row may become another by it.
    pub(super) fn change<R>(&self, id: ObjectId, f: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        self.slots.with(id, |slot| {
            let before = weight(slot);
            let done = f(slot);
            let more = weight(slot) - before;
            if more != 0 {
                self.account.0.fetch_add(more, Ordering::Relaxed);
            }
            done
        })
    }
}

fn weight(slot: &Slot) -> i64 {
    slot.row.as_ref().map_or(0, |row| of_row(row) as i64)
}

fn of_row(row: &Row) -> usize {
    let links = match &row.links {
        Links::Many(many) => size_of_val(&**many) + size_of_val(&***many),
        Links::None | Links::One(_) => 0,
    };
    row.name.len()
        + links
        + of_assessment(&row.assessment)
        + row.aside.as_deref().map_or(0, of_aside)
        + row.parent.as_deref().map_or(0, of_parent)
}

fn of_assessment(assessment: &Assessment) -> usize {
    let then =
        assessment.then.as_ref().map_or(0, |then| size_of::<(Time, Verdict)>() + then.1.reason.weight());
    assessment.verdict.reason.weight() + then
}

fn of_all(assessments: &[Assessment]) -> usize {
    size_of_val(assessments) + assessments.iter().map(of_assessment).sum::<usize>()
}

fn of_aside(aside: &Aside) -> usize {
    let below = aside.refined.as_ref().map_or(0, |(found, without)| {
        let words = found.iter().flatten().map(|f| f.name.len() + of_assessment(&f.assessment));
        size_of_val(found.as_slice()) + words.sum::<usize>() + of_all(without)
    });
    size_of::<Aside>()
        + of_all(&aside.beside)
        + below
        + size_of_val(&*aside.lends)
        + size_of_val(aside.since.as_slice())
}

fn of_parent(parent: &ParentRow) -> usize {
    let answers = parent.view.answers.as_slice();
    let of_answer = |answer: &AnswerView| {
        size_of_val(answer.selects.as_slice())
            + size_of_val(answer.expects.as_slice())
            + size_of_val(&*answer.counts)
    };
    let words = |entry: &crate::status::Entry| entry.reason.len() + entry.message.len();
    let ours = parent.status.ours.as_slice();
    let names = parent.targets.iter().flat_map(|target| &target.names).map(|(_, name)| name.len());
    size_of::<ParentRow>()
        + parent.uid.len()
        + size_of_val(answers)
        + answers.iter().map(of_answer).sum::<usize>()
        + size_of_val(ours)
        + ours.iter().map(|owned| owned.text.get().len() + words(&owned.entry)).sum::<usize>()
        + size_of_val(parent.targets.as_slice())
        + names.sum::<usize>()
}

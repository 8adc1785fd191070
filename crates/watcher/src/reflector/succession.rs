//! Policies that follow others while the parents of a kind cannot be read: what those said on a parent is theirs to take back.

use aggregator::KindId;
use arcstr::ArcStr;

use super::planned::PlannedInterest;
use super::row::ObjectRow;
use super::row_place::RowPlace;
use super::row_store::RowStore;
use super::slots::RowSlot;
use crate::plan::{Interest, ParentRule};

/// Lets the policies that hold follow those of older plans on the parents of a kind that cannot be listed. Each is known by the
/// type of the condition that stands there. Returns on how many parents one does.
///
/// A row says by which policies an object is a parent, and a list of the kind would say it anew. Where none comes, nobody else
/// would speak for what stands on the parent. Whether the policy still chooses it, only the parent itself tells; the answer to the
/// write that takes a word back brings it.
pub(super) fn succeed_policies(store: &RowStore, kind: KindId) -> usize {
    let Some(plan) = store.plans.planned(kind).filter(|plan| plan.begin_succession()) else { return 0 };
    let is_older =
        |row: &ObjectRow| row.parent.as_ref().is_some_and(|of| of.is_of_others(&plan.interest.parent));
    let older = store.rows.find_rows_in(RowPlace::of_kind(kind), is_older);
    let succeeds = |slot: &mut RowSlot| slot.row.as_mut().is_some_and(|row| succeed_on(row, &plan));
    let succeeded = older.into_iter().filter(|id| store.rows.change_slot(*id, succeeds) == Some(true));
    succeeded.map(|id| store.rows.mark_dirty(id)).count()
}

fn succeed_on(row: &mut ObjectRow, plan: &PlannedInterest) -> bool {
    let (kind, namespace) = (row.kind, row.namespace.clone());
    if kind != plan.interest.id || !plan.holds() {
        return false;
    }
    let find = |condition: &ArcStr| find_successor(&plan.interest, condition, &namespace);
    row.parent.as_mut().is_some_and(|parent| parent.succeed_policies(&plan.interest.parent, find))
}

/// Finds the policy that speaks for a condition from now on. What another release may have taken over is left to it.
fn find_successor<'i>(interest: &'i Interest, condition: &str, namespace: &str) -> Option<&'i ParentRule> {
    if interest.elsewhere.iter().any(|other| other.types.iter().any(|of| **of == *condition)) {
        return None;
    }
    let is_of = |rule: &&ParentRule| {
        rule.writes(condition) || rule.former.iter().any(|former| **former == *condition)
    };
    // It may give way to an older one of another release: which parents that chooses by labels is not known here.
    let gives_way = |rule: &ParentRule| {
        interest
            .elsewhere
            .iter()
            .any(|other| other.outranks.contains(&rule.policy) && other.may_be_in(namespace))
    };
    let speaks = |rule: &&ParentRule| rule.is_over(namespace) && is_of(rule) && !gives_way(rule);
    // One in shadow mode says nothing: where another may, the word is its own.
    interest.parent.iter().filter(speaks).min_by_key(|rule| rule.is_shadow)
}

//! Evidence of the outcome of a deleted object.

use super::super::row_store::RowStore;
use super::super::uid_key::UidKey;
use super::OutcomeMemory;
use super::memory_state::MemoryState;
use super::outcome::{RememberedOutcome, RunEnd};
use super::remembered_row::{project_row, project_rows};
use super::remembering::remembering_parents;
use crate::plan::Interest;
use crate::wire::ChildObject;

/// Uses a late event of a deleted object, which may still show its outcome and, for an object known from Events
/// alone, its owner.
pub(in crate::reflector) fn observe_late_object(
    memory: &OutcomeMemory,
    store: &RowStore,
    interest: &Interest,
    child: &ChildObject,
) {
    if !interest.remembers_outcomes() {
        return;
    }
    let uid = UidKey::from_text(&child.meta.uid);
    let mut state = memory.lock();
    let owners = remembering_parents(&state.selections, store.link_tables(), interest, &child.meta);
    let owners: Vec<_> = owners.iter().map(|whose| UidKey::from_text(&whose.uid)).collect();
    if state.parents_of.contains_key(&uid) && !state.is_confirmed(uid) {
        retain_parents(store, &mut state, uid, &owners);
        state.for_each_outcome(uid, |outcome| std::mem::take(&mut outcome.known_from_events));
        let touched = state.reenter_run(uid);
        project_row(store, &state, uid);
        project_rows(store, &state, touched);
        memory.wake_if_needed(&state);
    }
    drop(state);
    let end = RunEnd::from_verdict(readiness::final_outcome(interest.judge, &child.facts).as_ref());
    record_end(memory, store, &child.meta.uid, &end, RememberedOutcome::is_unseen);
}

/// Applies evidence of the outcome of a deleted object whose owner was observed; returns `true` if it was new.
pub(in crate::reflector) fn apply_evidence(
    memory: &OutcomeMemory,
    store: &RowStore,
    uid: &str,
    end: &RunEnd,
) -> bool {
    record_end(memory, store, uid, end, RememberedOutcome::is_unseen)
}

/// Retains these parents of an object and no others. For the others, the run before it counts again.
pub(super) fn retain_parents(store: &RowStore, state: &mut MemoryState, uid: UidKey, parents: &[UidKey]) {
    let touched = state.unlink_other_parents(uid, parents);
    project_rows(store, state, touched);
}

/// Records an outcome where `whether` it may be; returns `true` if it was new.
pub(super) fn record_end(
    memory: &OutcomeMemory,
    store: &RowStore,
    uid: &str,
    end: &RunEnd,
    whether: impl Fn(&RememberedOutcome) -> bool,
) -> bool {
    let uid = UidKey::from_text(uid);
    let mut state = memory.lock();
    let mut changed = false;
    state.for_each_outcome(uid, |outcome| {
        let open = whether(outcome) && *end != RunEnd::Open;
        if open {
            outcome.end = end.clone();
            outcome.known_from_events = false;
        }
        changed |= open;
        open
    });
    if changed {
        let touched = state.reenter_run(uid);
        project_row(store, &state, uid);
        project_rows(store, &state, touched);
        memory.wake_if_needed(&state);
    }
    changed
}

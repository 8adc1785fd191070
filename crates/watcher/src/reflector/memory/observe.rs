//! Observation of objects whose outcomes are remembered, and of their records.

use std::sync::{Arc, MutexGuard};

use aggregator::KindId;

use super::super::planned::PlannedInterest;
use super::super::row_store::RowStore;
use super::super::rows::Rows;
use super::super::uid_key::UidKey;
use super::OutcomeMemory;
use super::evidence::{record_end, retain_parents};
use super::expected::{mark_missing_blind, read_expecting_parent};
use super::memory_state::MemoryState;
use super::outcome::{OutcomeParent, RememberedOutcome, RunEnd};
use super::parent_selections::SelectingParent;
use super::remembered_row::{project_row, project_rows};
use super::remembering::remembering_parents;
use super::trace::mark_blind;
use crate::plan::Interest;
use crate::wire::{ChildObject, WireMeta};

/// Most bytes of `generateName` that the API server makes a name from; its suffix has five more
/// (`k8s.io/apiserver/pkg/storage/names`).
const MAX_GENERATED_STEM: usize = 58;

/// Sets the interest in a kind; its remembered outcomes count accordingly.
pub(in crate::reflector) fn set_memory_interest(
    memory: &OutcomeMemory,
    store: &RowStore,
    interest: &Arc<Interest>,
) {
    let mut state = memory.lock();
    if interest.remembers_outcomes() {
        state.interests.insert(interest.id, interest.clone());
    } else if state.interests.remove(&interest.id).is_none() {
        return;
    }
    reproject_kind(memory, store, state, interest.id);
}

/// Removes the interest in a kind that is no longer followed; its outcomes are no longer remembered.
pub(in crate::reflector) fn drop_memory_interest(memory: &OutcomeMemory, store: &RowStore, kind: KindId) {
    let mut state = memory.lock();
    if state.interests.remove(&kind).is_some() {
        reproject_kind(memory, store, state, kind);
    }
}

/// Projects the rows of a kind again: its outcomes may count for other parents than before, and records may have to
/// be deleted.
fn reproject_kind(
    memory: &OutcomeMemory,
    store: &RowStore,
    mut state: MutexGuard<'_, MemoryState>,
    kind: KindId,
) {
    for uid in state.uids_of_kind(kind, |o| o.deleted).into_values() {
        project_row(store, &state, uid);
    }
    let MemoryState { parents, dirty, .. } = &mut *state;
    let of_kind = parents.values().filter(|m| m.outcomes.iter().any(|o| o.kind == kind));
    dirty.extend(of_kind.map(|m| m.parent.uid.clone()));
    memory.wake_if_needed(&state);
}

/// Observes an existing object. A new object starts a new run and supersedes the remembered one.
pub(in crate::reflector) fn observe_run(
    memory: &OutcomeMemory,
    store: &RowStore,
    plan: &PlannedInterest,
    child: &ChildObject,
) {
    let (interest, meta, uid) = (&*plan.interest, &child.meta, UidKey::from_text(&child.meta.uid));
    let mut state = memory.lock();
    if !plan.holds() {
        // A superseding plan waits here to read all that is remembered of the kind.
        return;
    }
    let parents = remembering_parents(&state.selections, store.link_tables(), interest, meta);
    let mut uids: Vec<_> = parents.iter().map(|whose| UidKey::from_text(&whose.uid)).collect();
    uids.extend(unread_selecting_parents(&state, store, interest, uid));
    retain_parents(store, &mut state, uid, &uids);
    let end = RunEnd::from_verdict(readiness::final_outcome(interest.judge, &child.facts).as_ref());
    let met = store.rows.find(&meta.uid).and_then(|id| store.rows.read(id, |_| ())).is_some();
    for whose in parents {
        let outcome = RememberedOutcome {
            kind: interest.id,
            uid: meta.uid.clone(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            slot: run_slot(meta),
            labels: meta.labels.clone(),
            created: meta.created,
            generation: parent_generation(&store.rows, &whose.uid),
            end: end.clone(),
            deleted: false,
            version: meta.resource_version,
            first_version: meta.resource_version,
            ..RememberedOutcome::default()
        };
        let touched = state.enter_run(whose, outcome, met);
        project_rows(store, &state, touched);
    }
    memory.wake_if_needed(&state);
}

/// The parents that remember an object, select it by labels or by name, and were not read yet: whether they still do is not
/// known.
fn unread_selecting_parents(
    state: &MemoryState,
    store: &RowStore,
    interest: &Interest,
    uid: UidKey,
) -> Vec<UidKey> {
    let selects = |parent: &OutcomeParent| {
        let mut kinds = interest.child.iter().filter_map(|rule| rule.find.selecting_kind());
        kinds.any(|(group, kind)| (group, kind) == (&*parent.group, &*parent.kind))
    };
    let is_unread = |key: &&UidKey| {
        let known = state.parents.get(key).map(|memories| &memories.parent);
        known.is_some_and(|parent| selects(parent) && !store.rows.is_there(&parent.uid))
    };
    state.parents_of.get(&uid).into_iter().flatten().filter(is_unread).copied().collect()
}

/// Records the final state, which overrides Events. An object that had not finished by then never did, so it has no
/// outcome to remember.
fn record_final_state(memory: &OutcomeMemory, store: &RowStore, uid: UidKey, version: u64, end: &RunEnd) {
    let mut state = memory.lock();
    state.for_each_outcome(uid, |outcome| {
        outcome.version = outcome.version.max(version);
        outcome.end = end.clone();
        true
    });
    if *end == RunEnd::Open {
        let touched = state.remove_unfinished(uid);
        project_row(store, &state, uid);
        project_rows(store, &state, touched);
    }
}

/// Marks an object as no longer existing. Returns `true` if a row of its remembered outcome replaces it.
pub(in crate::reflector) fn mark_run_deleted(memory: &OutcomeMemory, store: &RowStore, uid: UidKey) -> bool {
    let mut state = memory.lock();
    if !state.parents_of.contains_key(&uid) {
        return false;
    }
    let mut unseen = None;
    state.for_each_outcome(uid, |outcome| {
        if outcome.end == RunEnd::Open && !outcome.deleted {
            unseen = Some(outcome.to_unseen_run());
        }
        !std::mem::replace(&mut outcome.deleted, true)
    });
    state.unseen.extend(unseen);
    state.drop_if_superseded(uid);
    memory.wake_if_needed(&state);
    project_row(store, &state, uid)
}

/// Handles a complete list of this kind, in one namespace or in all: a remembered object that was not in it is
/// gone. Objects that came and went since the previous watch was lost appear in neither.
pub(in crate::reflector) fn on_list_finished(
    memory: &OutcomeMemory,
    store: &RowStore,
    kind: KindId,
    scope: Option<&str>,
) {
    let mut state = memory.lock();
    if state.listed.insert(kind) || state.interests.contains_key(&kind) {
        mark_missing_blind(&mut state);
    }
    let within = |o: &RememberedOutcome| o.kind == kind && scope.is_none_or(|scope| *o.namespace == *scope);
    for uid in state.uids_of_kind(kind, |o| within(o) && !store.rows.is_there(&o.uid)).into_values() {
        let mut unseen = None;
        state.for_each_outcome(uid, |outcome| {
            if outcome.end == RunEnd::Open && !outcome.known_from_events {
                unseen = Some(outcome.to_unseen_run());
            }
            outcome.unlisted = false;
            !std::mem::replace(&mut outcome.deleted, true)
        });
        state.unseen.extend(unseen);
        state.drop_if_superseded(uid);
        project_row(store, &state, uid);
    }
    // Among generated names, a newer object may be gone next to an older one that exists.
    mark_blind(&mut state, |o| within(o) && (o.deleted || o.slot != o.name));
    memory.wake_if_needed(&state);
}

/// Believes the record of one parent unless something better is known. What an earlier version of it alone told of is
/// forgotten where this one does not: whoever wrote it had seen more.
pub(in crate::reflector) fn recall_record(
    memory: &OutcomeMemory,
    store: &RowStore,
    whose: OutcomeParent,
    outcomes: Vec<RememberedOutcome>,
) {
    let mut state = memory.lock();
    forget_unrecorded(store, &mut state, UidKey::from_text(&whose.uid), &outcomes);
    state.blind_namespaces.extend(outcomes.iter().map(|o| o.namespace.clone()));
    for outcome in outcomes {
        recall_run(store, &mut state, &whose, outcome);
    }
    state.dirty.insert(whose.uid);
    memory.wake_if_needed(&state);
}

/// Handles a record that its leader has deleted: what it alone told of is forgotten.
pub(in crate::reflector) fn forget_recorded(memory: &OutcomeMemory, store: &RowStore, parent: &str) {
    forget_unrecorded(store, &mut memory.lock(), UidKey::from_text(parent), &[]);
}

/// Forgets the runs of a parent that are known from its record alone, and that the record does not have any more.
fn forget_unrecorded(
    store: &RowStore,
    state: &mut MemoryState,
    parent: UidKey,
    recorded: &[RememberedOutcome],
) {
    let Some(memories) = state.parents.get_mut(&parent) else { return };
    let is_there = |run: &RememberedOutcome| recorded.iter().any(|o| o.uid == run.uid);
    let gone: Vec<_> =
        memories.outcomes.extract_if(.., |run| run.is_from_record_alone() && !is_there(run)).collect();
    for run in gone {
        state.unlink_parent(run.key(), parent);
        project_row(store, state, run.key());
    }
}

/// Takes a record that another client edited as evidence alone, of outcomes that nobody saw.
pub(in crate::reflector) fn consider_edit(
    memory: &OutcomeMemory,
    store: &RowStore,
    outcomes: &[RememberedOutcome],
) {
    for outcome in outcomes {
        record_end(memory, store, &outcome.uid, &outcome.end, |o| o.deleted && o.end == RunEnd::Open);
    }
}

fn recall_run(store: &RowStore, state: &mut MemoryState, whose: &OutcomeParent, outcome: RememberedOutcome) {
    let (parent, uid) = (UidKey::from_text(&whose.uid), outcome.key());
    let known = state.parents.get_mut(&parent);
    let known = known.and_then(|m| m.outcomes.iter_mut().find(|o| o.uid == outcome.uid));
    if let Some(known) = known {
        known.first_version =
            if outcome.first_version == 0 { known.first_version } else { outcome.first_version };
        known.generation = outcome.generation.or(known.generation);
        for uid in outcome.discarded {
            known.add_discarded(uid);
        }
        if known.end == RunEnd::Open {
            known.end = outcome.end;
        }
        if !outcome.known_from_events && std::mem::take(&mut known.known_from_events) {
            let touched = state.reenter_run(uid);
            project_rows(store, state, touched);
        }
    } else if store.rows.is_there(&outcome.uid) {
        // Who it belongs to by now, and which run is newer, was seen.
        return;
    } else {
        let unlisted = !state.listed.contains(&outcome.kind);
        let unseen = !unlisted && outcome.end == RunEnd::Open && !outcome.known_from_events;
        state.unseen.extend(unseen.then(|| outcome.to_unseen_run()));
        let generation = outcome.generation.or_else(|| parent_generation(&store.rows, &whose.uid));
        let outcome = RememberedOutcome { deleted: true, unlisted, version: 0, generation, ..outcome };
        let touched = state.enter_run(whose.clone(), outcome, true);
        project_rows(store, state, touched);
    }
    project_row(store, state, uid);
}

/// Handles a parent that was observed for the first time or in a new generation: other outcomes may count for it.
pub(in crate::reflector) fn on_parent_observed(memory: &OutcomeMemory, store: &RowStore, uid: &str) {
    let mut state = memory.lock();
    let parent = UidKey::from_text(uid);
    match read_expecting_parent(&store.rows, uid) {
        Some(expectant) => _ = state.expected.insert(parent, expectant),
        None => _ = state.expected.remove(&parent),
    }
    let generation = parent_generation(&store.rows, uid);
    let Some(memories) = state.parents.get_mut(&UidKey::from_text(uid)) else { return };
    let mut moved = false;
    for outcome in &mut memories.outcomes {
        moved |= outcome.generation.is_none();
        outcome.generation = outcome.generation.or(generation);
    }
    let outcomes = memories.outcomes.clone();
    for outcome in outcomes.iter().filter(|o| o.deleted) {
        if moved {
            project_row(store, &state, outcome.key());
        }
        if let Some(id) = store.rows.find(&outcome.uid) {
            store.rows.mark_dirty(id);
        }
    }
    state.dirty.insert(uid.into());
    memory.wake_if_needed(&state);
}

/// Handles a parent that may select other objects than before, by labels or by name: what it remembers of such counts.
pub(in crate::reflector) fn on_selection_observed(memory: &OutcomeMemory, store: &RowStore, uid: &str) {
    let mut state = memory.lock();
    let parent = UidKey::from_text(uid);
    if !state.selections.set_parent(parent, SelectingParent::read(&store.rows, uid)) {
        return;
    }
    let Some(memories) = state.parents.get(&parent) else { return };
    let deleted: Vec<_> =
        memories.outcomes.iter().filter(|o| o.deleted).map(RememberedOutcome::key).collect();
    project_rows(store, &state, deleted);
}

/// Handles a parent whose row was removed.
pub(in crate::reflector) fn on_parent_removed(memory: &OutcomeMemory, uid: UidKey) {
    let mut state = memory.lock();
    state.expected.remove(&uid);
    state.selections.set_parent(uid, None);
    if let Some(whose) = state.parents.get(&uid).map(|m| m.parent.uid.clone()) {
        state.dirty.insert(whose);
        memory.wake_if_needed(&state);
    }
}

/// Removes a deleted parent and everything remembered for it.
pub(in crate::reflector) fn forget_parent(memory: &OutcomeMemory, store: &RowStore, uid: &str) {
    let parent = UidKey::from_text(uid);
    let mut state = memory.lock();
    let Some(memories) = state.parents.remove(&parent) else { return };
    for outcome in memories.outcomes {
        let uid = outcome.key();
        let left: Vec<_> = state.parents_of.remove(&uid).unwrap_or_default();
        let left: Vec<_> = left.into_iter().filter(|p| *p != parent).collect();
        if !left.is_empty() {
            state.parents_of.insert(uid, left);
        }
        project_row(store, &state, uid);
    }
}

/// The generation of the parent with this uid, as last read.
fn parent_generation(rows: &Rows, parent: &str) -> Option<u64> {
    rows.parent_generation(rows.find(parent)?)
}

/// Observes the final state of an object in a DELETE event, which may be the only observation of it.
pub(in crate::reflector) fn observe_final_state(
    memory: &OutcomeMemory,
    store: &RowStore,
    plan: &PlannedInterest,
    child: &ChildObject,
) {
    let (interest, uid) = (&plan.interest, UidKey::from_text(&child.meta.uid));
    let end = RunEnd::from_verdict(readiness::final_outcome(interest.judge, &child.facts).as_ref());
    let (known, sure) = {
        let state = memory.lock();
        (state.parents_of.contains_key(&uid), state.is_confirmed(uid))
    };
    if known && !sure || !known && end != RunEnd::Open {
        observe_run(memory, store, plan, child);
    }
    record_final_state(memory, store, uid, child.meta.resource_version, &end);
}

/// Returns the identity of a run: its name without the suffix that the server generated.
fn run_slot(meta: &WireMeta) -> Box<str> {
    let stem = &meta.generate_name[..meta.generate_name.floor_char_boundary(MAX_GENERATED_STEM)];
    let generated = !stem.is_empty() && meta.name.starts_with(stem);
    if generated { stem.into() } else { meta.name.clone() }
}

//! Outcomes that outlive their objects: remembered outcomes of Jobs, by the parent for which they count.

mod evidence;
mod expected;
mod expecting_parent;
mod memory_state;
mod observe;
mod outcome;
mod parent_selections;
mod remembered_row;
mod remembering;
mod run_order;
mod run_trace;
mod trace;

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use aggregator::KindId;

use super::row::ObjectRow;
use super::rows::Rows;
use super::uid_key::UidKey;
use crate::plan::OutcomeRetention;
use memory_state::MemoryState;

pub(super) use evidence::{apply_evidence, observe_late_object};
pub(super) use observe::{
    consider_edit, drop_memory_interest, forget_parent, forget_recorded, mark_run_deleted,
    observe_final_state, observe_run, on_list_finished, on_parent_observed, on_parent_removed,
    on_selection_observed, recall_record, set_memory_interest,
};
pub use outcome::{
    DroppedOutcomes, MAX_DISCARDED_RUNS, MAX_PARENT_OUTCOMES, OutcomeParent, RememberedOutcome, RunEnd,
    UnseenRun,
};
pub(super) use remembered_row::is_outdated_link;
pub use run_order::ParentOutcomes;
pub use run_trace::RunTrace;
pub use trace::NamespaceRuns;
pub(super) use trace::{runs_in_namespace, supersede_runs, unobserved_traces};

/// The memory of outcomes, under one lock, which is taken before everything else that the reflector locks.
#[derive(Default)]
pub(super) struct OutcomeMemory {
    state: Mutex<MemoryState>,
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl OutcomeMemory {
    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the function to call when outcomes have changed that a record should contain.
    pub(super) fn set_waker(&self, wake: impl Fn() + Send + Sync + 'static) {
        _ = self.wake.set(Box::new(wake));
    }

    fn wake_if_needed(&self, state: &MemoryState) {
        if let Some(wake) = self.wake.get().filter(|_| state.needs_attention()) {
            wake();
        }
    }

    /// Takes the uids of parents whose records may have to change.
    pub(super) fn take_dirty_parents(&self) -> Vec<Box<str>> {
        std::mem::take(&mut self.lock().dirty).into_iter().collect()
    }

    /// Takes the objects that are gone without an observed outcome.
    pub(super) fn take_unseen_runs(&self) -> Vec<UnseenRun> {
        std::mem::take(&mut self.lock().unseen).into_iter().collect()
    }

    /// Takes the outcomes that were dropped.
    pub(super) fn take_dropped_outcomes(&self) -> DroppedOutcomes {
        std::mem::take(&mut self.lock().dropped)
    }

    /// Takes the namespaces in which a run may have come and gone while the watch was down.
    pub(super) fn take_blind_namespaces(&self) -> Vec<Box<str>> {
        std::mem::take(&mut self.lock().blind_namespaces).into_iter().collect()
    }

    /// Returns `true` if a policy that selects this parent remembers the outcomes of its children.
    pub(super) fn remembers_for_parent(&self, rows: &Rows, parent: &str) -> bool {
        let state = self.lock();
        let chosen = |row: &ObjectRow| {
            let targets = row.parent.iter().flat_map(|parent| &parent.targets);
            targets.map(|target| target.policy).collect::<Vec<_>>()
        };
        let chosen = rows.find(parent).and_then(|id| rows.read(id, chosen)).unwrap_or_default();
        let rules = state.interests.values().flat_map(|interest| &interest.child);
        rules
            .filter(|rule| rule.retention != OutcomeRetention::Forget)
            .any(|rule| chosen.contains(&rule.policy))
    }

    /// Returns the outcomes remembered for a parent.
    pub(super) fn parent_outcomes(&self, parent: &str) -> Option<ParentOutcomes> {
        self.lock().parents.get(&UidKey::from_text(parent)).cloned()
    }

    /// Returns the uids of the parents for which outcomes are remembered.
    pub(super) fn parents_with_outcomes(&self) -> Vec<Box<str>> {
        let state = self.lock();
        let with_outcomes = state.parents.values().filter(|memories| !memories.outcomes.is_empty());
        with_outcomes.map(|memories| memories.parent.uid.clone()).collect()
    }

    /// Returns `true` if the kind has been listed since it is followed.
    pub(super) fn was_listed(&self, kind: KindId) -> bool {
        self.lock().listed.contains(&kind)
    }

    /// Returns `true` if the object is gone without an observed outcome.
    pub(super) fn is_unseen(&self, uid: &str) -> bool {
        let unseen = |o: &RememberedOutcome| &*o.uid == uid && o.is_unseen();
        let state = self.lock();
        let parents = state.parents_of.get(&UidKey::from_text(uid)).map_or(&[][..], Vec::as_slice);
        parents.iter().filter_map(|p| state.parents.get(p)).flat_map(|m| &m.outcomes).any(unseen)
    }
}

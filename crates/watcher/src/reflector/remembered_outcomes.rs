//! The outcomes that are remembered, for the store of records.

use aggregator::KindId;

use super::memory::{
    self, DroppedOutcomes, NamespaceRuns, OutcomeParent, ParentOutcomes, RememberedOutcome, RunEnd, RunTrace,
    UnseenRun,
};
use super::parts::ReflectorParts;

/// The outcomes of objects that policies remember, by the parent for which they count.
#[derive(Clone, Copy)]
pub struct RememberedOutcomes<'r>(&'r ReflectorParts);

impl<'r> RememberedOutcomes<'r> {
    pub(super) fn new(parts: &'r ReflectorParts) -> RememberedOutcomes<'r> {
        RememberedOutcomes(parts)
    }

    /// Sets the function to call when outcomes have changed that a record should contain.
    pub fn set_waker(self, wake: impl Fn() + Send + Sync + 'static) {
        self.0.memory.set_waker(wake);
    }

    /// Takes the uids of parents whose records may have to change.
    pub fn take_dirty_parents(self) -> Vec<Box<str>> {
        self.0.memory.take_dirty_parents()
    }

    /// Takes the objects that are gone without an observed outcome.
    pub fn take_unseen_runs(self) -> Vec<UnseenRun> {
        self.0.memory.take_unseen_runs()
    }

    /// Takes the outcomes that were dropped.
    pub fn take_dropped_outcomes(self) -> DroppedOutcomes {
        self.0.memory.take_dropped_outcomes()
    }

    /// Takes the namespaces in which a run may have come and gone while the watch was down.
    pub fn take_blind_namespaces(self) -> Vec<Box<str>> {
        self.0.memory.take_blind_namespaces()
    }

    /// Returns `true` if a policy that selects this parent remembers the outcomes of its children.
    pub fn remembers_for_parent(self, parent: &str) -> bool {
        self.0.memory.remembers_for_parent(&self.0.store.rows, parent)
    }

    /// Returns the outcomes remembered for a parent.
    pub fn parent_outcomes(self, parent: &str) -> Option<ParentOutcomes> {
        self.0.memory.parent_outcomes(parent)
    }

    /// Returns the uids of the parents for which outcomes are remembered.
    pub fn parents_with_outcomes(self) -> Vec<Box<str>> {
        self.0.memory.parents_with_outcomes()
    }

    /// Returns `true` if the kind has been listed since it is followed.
    pub fn was_listed(self, kind: KindId) -> bool {
        self.0.memory.was_listed(kind)
    }

    /// Returns `true` if the object is gone without an observed outcome.
    pub fn is_unseen(self, uid: &str) -> bool {
        self.0.memory.is_unseen(uid)
    }

    /// Believes the record of one parent unless something better is known.
    pub fn recall_record(self, whose: OutcomeParent, outcomes: Vec<RememberedOutcome>) {
        memory::recall_record(&self.0.memory, &self.0.store, whose, outcomes);
    }

    /// Forgets what is known of a parent's children from its record alone.
    pub fn forget_recorded(self, parent: &str) {
        memory::forget_recorded(&self.0.memory, &self.0.store, parent);
    }

    /// Takes a record that another client edited as evidence alone, of outcomes that nobody saw.
    pub fn consider_edit(self, outcomes: &[RememberedOutcome]) {
        memory::consider_edit(&self.0.memory, &self.0.store, outcomes);
    }

    /// Removes a deleted parent and everything remembered for it.
    pub fn forget_parent(self, uid: &str) {
        memory::forget_parent(&self.0.memory, &self.0.store, uid);
    }

    /// Applies evidence of the outcome of a deleted object whose owner was observed; returns `true` if it was new.
    pub fn apply_evidence(self, uid: &str, end: &RunEnd) -> bool {
        memory::apply_evidence(&self.0.memory, &self.0.store, uid, end)
    }

    /// Returns the remembered runs in a namespace.
    pub fn runs_in_namespace(self, namespace: &str) -> NamespaceRuns {
        memory::runs_in_namespace(&self.0.memory, namespace)
    }

    /// Traces in a namespace that were not observed and are later than the remembered runs.
    pub fn unobserved_traces(self, namespace: &str, traces: &[RunTrace]) -> Vec<RunTrace> {
        memory::unobserved_traces(&self.0.memory, &self.0.store.rows, namespace, traces)
    }

    /// Marks outcomes as unseen where one of these traces is a newer run. Returns how many were marked.
    pub fn supersede_runs(self, namespace: &str, traces: Vec<RunTrace>) -> usize {
        memory::supersede_runs(&self.0.memory, &self.0.store, namespace, traces)
    }
}

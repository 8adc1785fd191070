//! All that is remembered of the runs of all parents. Changed under one lock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aggregator::KindId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::super::uid_key::UidKey;
use super::expecting_parent::ExpectingParent;
use super::outcome::{DroppedOutcomes, OutcomeParent, RememberedOutcome, UnseenRun};
use super::parent_selections::ParentSelections;
use super::run_order::ParentOutcomes;
use crate::plan::Interest;

/// Largest number of such unrelated objects that is kept.
const MAX_UNRELATED_RUNS: usize = 1_024;

/// All remembered outcomes.
#[derive(Default)]
pub(super) struct MemoryState {
    pub(super) parents: FxHashMap<UidKey, ParentOutcomes>,
    /// Parents for which an object is remembered.
    pub(super) parents_of: FxHashMap<UidKey, Vec<UidKey>>,
    /// Interests in the kinds whose outcomes are remembered.
    pub(super) interests: FxHashMap<KindId, Arc<Interest>>,
    /// Kinds that have been listed.
    pub(super) listed: FxHashSet<KindId>,
    /// Parents whose remembered outcomes changed.
    pub(super) dirty: BTreeSet<Box<str>>,
    /// Objects that are gone without an observed outcome.
    pub(super) unseen: BTreeSet<UnseenRun>,
    /// Namespaces in which a run may have come and gone while the watch was down.
    pub(super) blind_namespaces: BTreeSet<Box<str>>,
    /// Parents that select children by labels or by name, and remember them.
    pub(super) selections: ParentSelections,
    /// Parents that expect children by name.
    pub(super) expected: FxHashMap<UidKey, ExpectingParent>,
    /// Outcomes dropped because a parent has too many.
    pub(super) dropped: DroppedOutcomes,
    /// Objects that were taken for the next run because of Events, and then observed to belong to another owner.
    pub(super) unrelated_runs: FxHashSet<UidKey>,
}

impl MemoryState {
    /// Calls `f` on the outcomes of one object, by parent.
    pub(super) fn for_each_outcome(
        &mut self,
        uid: UidKey,
        mut f: impl FnMut(&mut RememberedOutcome) -> bool,
    ) {
        for parent in self.parents_of.get(&uid).cloned().unwrap_or_default() {
            let Some(memories) = self.parents.get_mut(&parent) else { continue };
            let mut moved = false;
            for outcome in memories.outcomes.iter_mut().filter(|o| o.key() == uid) {
                moved |= f(outcome);
            }
            if moved {
                self.dirty.insert(memories.parent.uid.clone());
            }
        }
    }

    /// Enters a run for one parent; `met` if the run was observed before. Returns the other runs that may count, or not,
    /// because of it.
    pub(super) fn enter_run(
        &mut self,
        whose: OutcomeParent,
        mut new: RememberedOutcome,
        met: bool,
    ) -> BTreeSet<UidKey> {
        let (parent, uid) = (UidKey::from_text(&whose.uid), new.key());
        let memories = self.parents.entry(parent).or_default();
        let before = memories.clone();
        memories.parent = whose;
        if let Some(known) = memories.outcomes.iter().find(|run| run.key() == uid) {
            new.learn_from(known.clone());
        }
        let mut touched: BTreeSet<_> = memories.runs_of_slot(&new).map(RememberedOutcome::key).collect();
        memories.insert_run(new);
        let departed = memories.drop_superseded();
        for outcome in &departed.without_room {
            // Each run is reported once.
            if outcome.key() != uid || !met {
                self.dropped.add_outcome(&memories.parent, outcome);
            }
        }
        if before != *memories {
            self.dirty.insert(memories.parent.uid.clone());
        }
        let of = self.parents_of.entry(uid).or_default();
        if !of.contains(&parent) {
            of.push(parent);
        }
        for gone in departed.superseded.iter().chain(&departed.without_room).map(RememberedOutcome::key) {
            self.unlink_parent(gone, parent);
            touched.insert(gone);
        }
        touched.remove(&uid);
        touched
    }

    /// Drops a run that is gone by now from the memory of the parents that observed a newer one of its slot.
    pub(super) fn drop_if_superseded(&mut self, uid: UidKey) {
        for parent in self.parents_of.get(&uid).cloned().unwrap_or_default() {
            let Some(memories) = self.parents.get_mut(&parent) else { continue };
            let departed = memories.drop_superseded();
            // Its record has it, whether or not anything else of the run has changed.
            if !departed.superseded.is_empty() {
                self.dirty.insert(memories.parent.uid.clone());
            }
            for gone in departed.superseded.iter().map(RememberedOutcome::key) {
                self.unlink_parent(gone, parent);
            }
        }
    }

    /// Enters a run again, for each of its parents, because something is known of it that decides which runs count.
    pub(super) fn reenter_run(&mut self, uid: UidKey) -> BTreeSet<UidKey> {
        let mut touched = BTreeSet::new();
        for parent in self.parents_of.get(&uid).cloned().unwrap_or_default() {
            let Some(memories) = self.parents.get(&parent) else { continue };
            if let Some(run) = memories.outcomes.iter().find(|run| run.key() == uid).cloned() {
                touched.extend(self.enter_run(memories.parent.clone(), run, true));
            }
        }
        touched
    }

    /// Removes the link of an object to this parent.
    pub(super) fn unlink_parent(&mut self, uid: UidKey, parent: UidKey) {
        if let Some(of) = self.parents_of.get_mut(&uid) {
            of.retain(|p| *p != parent);
            if of.is_empty() {
                self.parents_of.remove(&uid);
            }
        }
    }

    /// Removes a run that was deleted before it finished. What else exists of its slot remembers that. Returns the runs of
    /// its slots.
    pub(super) fn remove_unfinished(&mut self, uid: UidKey) -> BTreeSet<UidKey> {
        for parent in self.parents_of.get(&uid).cloned().unwrap_or_default() {
            let Some(memories) = self.parents.get_mut(&parent) else { continue };
            if let Some(run) = memories.outcomes.iter().find(|run| run.key() == uid).cloned() {
                memories.discard_for_older(&run);
            }
        }
        self.unlink_other_parents(uid, &[])
    }

    /// Removes an object from the memory of all parents except these. Returns the runs of its slots there: the one before
    /// it counts again.
    pub(super) fn unlink_other_parents(&mut self, uid: UidKey, parents: &[UidKey]) -> BTreeSet<UidKey> {
        let mut touched = BTreeSet::new();
        for parent in self.parents_of.get(&uid).cloned().unwrap_or_default() {
            if parents.contains(&parent) {
                continue;
            }
            self.unlink_parent(uid, parent);
            let Some(memories) = self.parents.get_mut(&parent) else { continue };
            let Some(at) = memories.outcomes.iter().position(|run| run.key() == uid) else { continue };
            let outcome = memories.outcomes.remove(at);
            touched.extend(memories.runs_of_slot(&outcome).map(RememberedOutcome::key));
            self.dirty.insert(memories.parent.uid.clone());
            if outcome.known_from_events {
                if self.unrelated_runs.len() >= MAX_UNRELATED_RUNS {
                    self.unrelated_runs.clear();
                }
                self.unrelated_runs.insert(uid);
            }
        }
        touched
    }

    /// Returns `true` if the object is remembered, and not on the basis of Events alone.
    pub(super) fn is_confirmed(&self, uid: UidKey) -> bool {
        let parents = self.parents_of.get(&uid).map_or(&[][..], Vec::as_slice);
        let outcomes = parents.iter().filter_map(|p| self.parents.get(p)).flat_map(|m| &m.outcomes);
        let mut here = outcomes.filter(|o| o.key() == uid).peekable();
        here.peek().is_some() && here.all(|o| !o.known_from_events)
    }

    /// Returns `true` if the memory has changes for the driver to take.
    pub(super) fn needs_attention(&self) -> bool {
        !self.dirty.is_empty()
            || !self.unseen.is_empty()
            || !self.blind_namespaces.is_empty()
            || self.dropped.count > 0
    }

    /// Returns the objects of a kind, each once.
    pub(super) fn uids_of_kind(
        &self,
        kind: KindId,
        mut which: impl FnMut(&RememberedOutcome) -> bool,
    ) -> BTreeMap<Box<str>, UidKey> {
        let outcomes = self.parents.values().flat_map(|m| &m.outcomes);
        let of_kind = outcomes.filter(|o| o.kind == kind && which(o));
        of_kind.map(|o| (o.uid.clone(), o.key())).collect()
    }
}

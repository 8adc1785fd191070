//! Outcomes that outlive their objects: remembered outcomes of Jobs, by the parent for which they count.

mod evidence;
mod expected;
mod observe;
mod outcome;
mod remembered_row;
mod run_order;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aggregator::KindId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Reflector, lock_mutex, slots};
use crate::plan::{Interest, OutcomeRetention};

pub use outcome::{
    DroppedOutcomes, MAX_PARENT_OUTCOMES, OutcomeParent, ParentOutcomes, RememberedOutcome, RunEnd, UnseenRun,
};
pub(super) use remembered_row::RememberedLinks;
pub use trace::{NamespaceRuns, RunTrace};

/// All remembered outcomes.
#[derive(Default)]
pub(super) struct OutcomeMemory {
    parents: FxHashMap<slots::UidKey, ParentOutcomes>,
    /// Parents for which an object is remembered.
    parents_of: FxHashMap<slots::UidKey, Vec<slots::UidKey>>,
    /// Interests in the kinds whose outcomes are remembered.
    interests: FxHashMap<KindId, Arc<Interest>>,
    /// Kinds that have been listed.
    listed: FxHashSet<KindId>,
    /// Parents whose record has been read.
    recalled: FxHashSet<slots::UidKey>,
    /// Parents whose remembered outcomes changed.
    dirty: BTreeSet<Box<str>>,
    /// Objects that are gone without an observed outcome.
    unseen: BTreeSet<UnseenRun>,
    /// Namespaces in which a run may have come and gone while the watch was down.
    blind_namespaces: BTreeSet<Box<str>>,
    /// Parents that expect children by name.
    expected: FxHashMap<slots::UidKey, expected::ExpectingParent>,
    /// Outcomes dropped because a parent has too many.
    dropped: DroppedOutcomes,
    /// Objects that were taken for the next run because of Events, and then observed to belong to another owner.
    unrelated_runs: FxHashSet<slots::UidKey>,
}

/// Largest number of such unrelated objects that is kept.
const MAX_UNRELATED_RUNS: usize = 1_024;

impl RememberedOutcome {
    fn key(&self) -> slots::UidKey {
        slots::UidKey::from_text(&self.uid)
    }
}

impl OutcomeMemory {
    /// Calls `f` on the outcomes of one object, by parent.
    fn for_each_outcome(&mut self, uid: slots::UidKey, mut f: impl FnMut(&mut RememberedOutcome) -> bool) {
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
    fn enter_run(
        &mut self,
        whose: OutcomeParent,
        mut new: RememberedOutcome,
        met: bool,
    ) -> BTreeSet<slots::UidKey> {
        let (parent, uid) = (slots::UidKey::from_text(&whose.uid), new.key());
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

    /// Enters a run again, for each of its parents, because something is known of it that decides which runs count.
    fn reenter_run(&mut self, uid: slots::UidKey) -> BTreeSet<slots::UidKey> {
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
    fn unlink_parent(&mut self, uid: slots::UidKey, parent: slots::UidKey) {
        if let Some(of) = self.parents_of.get_mut(&uid) {
            of.retain(|p| *p != parent);
            if of.is_empty() {
                self.parents_of.remove(&uid);
            }
        }
    }

    /// Removes an object from the memory of all parents except these. Returns the runs of its slots there: the one before
    /// it counts again.
    fn unlink_other_parents(
        &mut self,
        uid: slots::UidKey,
        parents: &[slots::UidKey],
    ) -> BTreeSet<slots::UidKey> {
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
    fn is_confirmed(&self, uid: slots::UidKey) -> bool {
        let parents = self.parents_of.get(&uid).map_or(&[][..], Vec::as_slice);
        let outcomes = parents.iter().filter_map(|p| self.parents.get(p)).flat_map(|m| &m.outcomes);
        let mut here = outcomes.filter(|o| o.key() == uid).peekable();
        here.peek().is_some() && here.all(|o| !o.known_from_events)
    }

    /// Returns `true` if the memory has changes for the driver to take.
    fn needs_attention(&self) -> bool {
        !self.dirty.is_empty()
            || !self.unseen.is_empty()
            || !self.blind_namespaces.is_empty()
            || self.dropped.count > 0
    }

    /// Returns the objects of a kind, each once.
    fn uids_of_kind(
        &self,
        kind: KindId,
        mut which: impl FnMut(&RememberedOutcome) -> bool,
    ) -> BTreeMap<Box<str>, slots::UidKey> {
        let outcomes = self.parents.values().flat_map(|m| &m.outcomes);
        let of_kind = outcomes.filter(|o| o.kind == kind && which(o));
        of_kind.map(|o| (o.uid.clone(), o.key())).collect()
    }
}

impl Reflector {
    /// Sets the function to call when outcomes have changed that a record should contain.
    pub fn set_memory_waker(&self, wake: impl Fn() + Send + Sync + 'static) {
        _ = self.wake_memory.set(Box::new(wake));
    }

    /// Takes the uids of parents whose records may have to change.
    pub fn take_dirty_parents(&self) -> Vec<Box<str>> {
        std::mem::take(&mut lock_mutex(&self.memory).dirty).into_iter().collect()
    }

    /// Takes the objects that are gone without an observed outcome.
    pub fn take_unseen_runs(&self) -> Vec<UnseenRun> {
        std::mem::take(&mut lock_mutex(&self.memory).unseen).into_iter().collect()
    }

    /// Takes the outcomes that were dropped.
    pub fn take_dropped_outcomes(&self) -> DroppedOutcomes {
        std::mem::take(&mut lock_mutex(&self.memory).dropped)
    }

    /// Returns `true` if a policy that selects this parent remembers the outcomes of its children.
    pub fn remembers_for_parent(&self, parent: &str) -> bool {
        let memory = lock_mutex(&self.memory);
        let chosen = |row: &super::ObjectRow| {
            let targets = row.parent.iter().flat_map(|parent| &parent.targets);
            targets.map(|target| target.policy).collect::<Vec<_>>()
        };
        let chosen = self.find_object(parent).and_then(|id| self.read_row(id, chosen)).unwrap_or_default();
        let rules = memory.interests.values().flat_map(|interest| &interest.child);
        rules
            .filter(|rule| rule.retention != OutcomeRetention::Forget)
            .any(|rule| chosen.contains(&rule.policy))
    }

    /// Returns the outcomes remembered for a parent.
    pub fn parent_outcomes(&self, parent: &str) -> Option<ParentOutcomes> {
        lock_mutex(&self.memory).parents.get(&slots::UidKey::from_text(parent)).cloned()
    }

    /// Returns `true` if the kind has been listed since it is followed.
    pub fn was_listed(&self, kind: KindId) -> bool {
        lock_mutex(&self.memory).listed.contains(&kind)
    }

    /// Returns `true` if the object is gone without an observed outcome.
    pub fn is_unseen(&self, uid: &str) -> bool {
        let unseen = |o: &RememberedOutcome| &*o.uid == uid && o.is_unseen();
        let memory = lock_mutex(&self.memory);
        let parents = memory.parents_of.get(&slots::UidKey::from_text(uid)).map_or(&[][..], Vec::as_slice);
        parents.iter().filter_map(|p| memory.parents.get(p)).flat_map(|m| &m.outcomes).any(unseen)
    }

    fn wake_memory_if_needed(&self, memory: &OutcomeMemory) {
        if let Some(wake) = self.wake_memory.get().filter(|_| memory.needs_attention()) {
            wake();
        }
    }
}

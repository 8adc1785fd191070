//! Observation of objects whose outcomes are remembered, and of their records.

use std::sync::{Arc, MutexGuard};

use aggregator::KindId;

use super::super::links::api_group_of;
use super::super::planned::PlannedInterest;
use super::super::{Reflector, lock_mutex, slots};
use super::remembered_row::remembering_rules;
use super::{OutcomeMemory, OutcomeParent, RememberedOutcome, RunEnd};
use crate::plan::{FindChildrenBy, Interest};
use crate::wire::{ChildObject, WireMeta};

impl Reflector {
    /// Sets the interest in a kind; its remembered outcomes count accordingly.
    pub(in crate::reflector) fn set_memory_interest(&self, interest: &Arc<Interest>) {
        let mut memory = lock_mutex(&self.memory);
        if interest.remembers_outcomes() {
            memory.interests.insert(interest.id, interest.clone());
        } else if memory.interests.remove(&interest.id).is_none() {
            return;
        }
        self.reproject_kind(memory, interest.id);
    }

    /// Removes the interest in a kind that is no longer followed; its outcomes are no longer remembered.
    pub(in crate::reflector) fn drop_memory_interest(&self, kind: KindId) {
        let mut memory = lock_mutex(&self.memory);
        if memory.interests.remove(&kind).is_some() {
            self.reproject_kind(memory, kind);
        }
    }

    /// Projects the rows of a kind again: its outcomes may count for other parents than before, and records may have to
    /// be deleted.
    fn reproject_kind(&self, mut memory: MutexGuard<'_, OutcomeMemory>, kind: KindId) {
        for uid in memory.uids_of_kind(kind, |o| o.deleted).into_values() {
            self.project_row(&memory, uid);
        }
        let OutcomeMemory { parents, dirty, .. } = &mut *memory;
        let of_kind = parents.values().filter(|m| m.outcomes.iter().any(|o| o.kind == kind));
        dirty.extend(of_kind.map(|m| m.parent.uid.clone()));
        self.wake_memory_if_needed(&memory);
    }

    /// Observes an existing object. A new object starts a new run and supersedes the remembered one.
    pub(in crate::reflector) fn observe_run(&self, plan: &PlannedInterest, child: &ChildObject) {
        let (interest, meta, uid) = (&*plan.interest, &child.meta, slots::UidKey::from_text(&child.meta.uid));
        let parents = remembering_parents(interest, meta);
        let mut memory = lock_mutex(&self.memory);
        if !plan.holds() {
            // Whoever supersedes it waits here to look at all that is remembered of the kind.
            return;
        }
        let uids: Vec<_> = parents.iter().map(|whose| slots::UidKey::from_text(&whose.uid)).collect();
        self.retain_parents(&mut memory, uid, &uids);
        let end = RunEnd::from_verdict(readiness::final_outcome(interest.judge, &child.facts).as_ref());
        let met = self.find_object(&meta.uid).and_then(|id| self.read_row(id, |_| ())).is_some();
        for whose in parents {
            let outcome = RememberedOutcome {
                kind: interest.id,
                uid: meta.uid.clone(),
                namespace: meta.namespace.clone(),
                name: meta.name.clone(),
                slot: run_slot(meta),
                labels: meta.labels.clone(),
                created: meta.created,
                generation: self.parent_generation(&whose.uid),
                end: end.clone(),
                deleted: false,
                version: meta.resource_version,
                first_version: meta.resource_version,
                ..RememberedOutcome::default()
            };
            let touched = memory.enter_run(whose, outcome, met);
            self.project_rows(&memory, touched);
        }
        self.wake_memory_if_needed(&memory);
    }

    /// Handles a DELETE event, which contains the final state and may be the only observation of the object.
    pub fn on_deleted(&self, kind: KindId, child: &ChildObject) {
        let (meta, uid) = (&child.meta, slots::UidKey::from_text(&child.meta.uid));
        let plan = self.planned(kind).filter(|plan| plan.interest.remembers_outcomes());
        if let Some(plan) = &plan {
            let interest = &plan.interest;
            let end = RunEnd::from_verdict(readiness::final_outcome(interest.judge, &child.facts).as_ref());
            let (known, sure) = {
                let memory = lock_mutex(&self.memory);
                (memory.parents_of.contains_key(&uid), memory.is_confirmed(uid))
            };
            if known && !sure || !known && end != RunEnd::Open {
                self.observe_run(plan, child);
            }
            self.record_final_state(uid, meta.resource_version, &end);
        }
        self.delete_object(&meta.uid, meta.resource_version);
        if plan.is_some() {
            self.mark_run_deleted(uid);
        }
    }

    /// Records the final state, which overrides Events. An object that had not finished by then never did, so it has no
    /// outcome to remember.
    fn record_final_state(&self, uid: slots::UidKey, version: u64, end: &RunEnd) {
        let mut memory = lock_mutex(&self.memory);
        memory.for_each_outcome(uid, |outcome| {
            outcome.version = outcome.version.max(version);
            outcome.end = end.clone();
            true
        });
        if *end == RunEnd::Open {
            let touched = memory.unlink_other_parents(uid, &[]);
            self.project_row(&memory, uid);
            self.project_rows(&memory, touched);
        }
    }

    /// Marks an object as no longer existing. Returns `true` if a row of its remembered outcome replaces it.
    pub(in crate::reflector) fn mark_run_deleted(&self, uid: slots::UidKey) -> bool {
        let mut memory = lock_mutex(&self.memory);
        if !memory.parents_of.contains_key(&uid) {
            return false;
        }
        let mut unseen = None;
        memory.for_each_outcome(uid, |outcome| {
            if outcome.end == RunEnd::Open && !outcome.deleted {
                unseen = Some(outcome.to_unseen_run());
            }
            !std::mem::replace(&mut outcome.deleted, true)
        });
        memory.unseen.extend(unseen);
        self.wake_memory_if_needed(&memory);
        self.project_row(&memory, uid)
    }

    /// Handles a complete list of this kind, in one namespace or in all: a remembered object that was not in it is
    /// gone. Objects that came and went since the previous watch was lost appear in neither.
    pub(in crate::reflector) fn on_list_finished(&self, kind: KindId, scope: Option<&str>) {
        let mut memory = lock_mutex(&self.memory);
        if memory.listed.insert(kind) || memory.interests.contains_key(&kind) {
            memory.mark_missing_blind();
        }
        let within =
            |o: &RememberedOutcome| o.kind == kind && scope.is_none_or(|scope| *o.namespace == *scope);
        for uid in memory.uids_of_kind(kind, |o| within(o) && !self.is_there(&o.uid)).into_values() {
            let mut unseen = None;
            memory.for_each_outcome(uid, |outcome| {
                if outcome.end == RunEnd::Open && !outcome.known_from_events {
                    unseen = Some(outcome.to_unseen_run());
                }
                !std::mem::replace(&mut outcome.deleted, true)
            });
            memory.unseen.extend(unseen);
            self.project_row(&memory, uid);
        }
        // Among generated names, a newer object may be gone next to an older one that exists.
        memory.mark_blind(|o| within(o) && (o.deleted || o.slot != o.name));
        self.wake_memory_if_needed(&memory);
    }

    /// Applies the record of one parent. The first time it is believed unless something better is known; later it is
    /// only taken as evidence, provided by a person who edited it.
    pub fn recall_record(&self, whose: OutcomeParent, outcomes: Vec<RememberedOutcome>) {
        let parent = slots::UidKey::from_text(&whose.uid);
        let first = lock_mutex(&self.memory).recalled.insert(parent);
        if !first {
            for outcome in outcomes {
                self.record_end(&outcome.uid, &outcome.end, |o| o.deleted && o.end == RunEnd::Open);
            }
            return;
        }
        let mut memory = lock_mutex(&self.memory);
        memory.blind_namespaces.extend(outcomes.iter().map(|o| o.namespace.clone()));
        for outcome in outcomes {
            self.recall_run(&mut memory, &whose, outcome);
        }
        memory.dirty.insert(whose.uid);
        self.wake_memory_if_needed(&memory);
    }

    fn recall_run(&self, memory: &mut OutcomeMemory, whose: &OutcomeParent, outcome: RememberedOutcome) {
        let (parent, uid) = (slots::UidKey::from_text(&whose.uid), outcome.key());
        let known = memory.parents.get_mut(&parent);
        let known = known.and_then(|m| m.outcomes.iter_mut().find(|o| o.uid == outcome.uid));
        if let Some(known) = known {
            known.first_version =
                if outcome.first_version == 0 { known.first_version } else { outcome.first_version };
            known.generation = outcome.generation.or(known.generation);
            if known.end == RunEnd::Open {
                known.end = outcome.end;
            }
        } else if self.is_there(&outcome.uid) {
            // Who it belongs to by now, and which run is newer, was seen.
            return;
        } else {
            let unseen = memory.listed.contains(&outcome.kind)
                && outcome.end == RunEnd::Open
                && !outcome.known_from_events;
            memory.unseen.extend(unseen.then(|| outcome.to_unseen_run()));
            let generation = outcome.generation.or_else(|| self.parent_generation(&whose.uid));
            let outcome = RememberedOutcome { deleted: true, version: 0, generation, ..outcome };
            let touched = memory.enter_run(whose.clone(), outcome, true);
            self.project_rows(memory, touched);
        }
        self.project_row(memory, uid);
    }

    /// Remembers that the record of this parent has the content that was sent: nothing in it is news.
    pub fn acknowledge_record(&self, parent: &str) {
        lock_mutex(&self.memory).recalled.insert(slots::UidKey::from_text(parent));
    }

    /// Returns `true` if the object is held as one that exists.
    fn is_there(&self, uid: &str) -> bool {
        self.find_object(uid).and_then(|id| self.read_row(id, |row| !row.is_remembered())) == Some(true)
    }

    /// Handles a parent that was observed for the first time or in a new generation: other outcomes may count for it.
    pub(in crate::reflector) fn on_parent_observed(&self, uid: &str) {
        let mut memory = lock_mutex(&self.memory);
        let parent = slots::UidKey::from_text(uid);
        match self.read_expecting_parent(uid) {
            Some(expectant) => _ = memory.expected.insert(parent, expectant),
            None => _ = memory.expected.remove(&parent),
        }
        let generation = self.parent_generation(uid);
        let Some(memories) = memory.parents.get_mut(&slots::UidKey::from_text(uid)) else { return };
        let mut moved = false;
        for outcome in &mut memories.outcomes {
            moved |= outcome.generation.is_none();
            outcome.generation = outcome.generation.or(generation);
        }
        let outcomes = memories.outcomes.clone();
        for outcome in outcomes.iter().filter(|o| o.deleted) {
            if moved {
                self.project_row(&memory, outcome.key());
            }
            if let Some(id) = self.find_object(&outcome.uid) {
                self.mark_dirty(id);
            }
        }
        memory.dirty.insert(uid.into());
        self.wake_memory_if_needed(&memory);
    }

    /// Handles a parent whose row was removed.
    pub(in crate::reflector) fn on_parent_removed(&self, uid: slots::UidKey) {
        let mut memory = lock_mutex(&self.memory);
        memory.expected.remove(&uid);
        if let Some(whose) = memory.parents.get(&uid).map(|m| m.parent.uid.clone()) {
            memory.dirty.insert(whose);
            self.wake_memory_if_needed(&memory);
        }
    }

    /// Removes a deleted parent and everything remembered for it.
    pub fn forget_parent(&self, uid: &str) {
        let parent = slots::UidKey::from_text(uid);
        let mut memory = lock_mutex(&self.memory);
        let Some(memories) = memory.parents.remove(&parent) else { return };
        for outcome in memories.outcomes {
            let uid = outcome.key();
            let left: Vec<_> = memory.parents_of.remove(&uid).unwrap_or_default();
            let left: Vec<_> = left.into_iter().filter(|p| *p != parent).collect();
            if !left.is_empty() {
                memory.parents_of.insert(uid, left);
            }
            self.project_row(&memory, uid);
        }
    }

    pub(super) fn parent_generation(&self, parent: &str) -> Option<u64> {
        let id = self.find_object(parent)?;
        self.read_row(id, |row| row.parent.as_ref().map(|p| p.view.generation)).flatten()
    }
}

/// Returns the identity of a run: its name without the suffix that the server generated.
fn run_slot(meta: &WireMeta) -> Box<str> {
    let generated = !meta.generate_name.is_empty() && meta.name.starts_with(&*meta.generate_name);
    if generated { meta.generate_name.clone() } else { meta.name.clone() }
}

/// Returns the parents that have to remember an object.
pub(super) fn remembering_parents(interest: &Interest, meta: &WireMeta) -> Vec<OutcomeParent> {
    let mut found: Vec<OutcomeParent> = Vec::new();
    for rule in remembering_rules(interest, meta) {
        let FindChildrenBy::Owner { group, kind } = &rule.find else { continue };
        for owner in
            meta.owners.iter().filter(|o| o.kind == *kind && api_group_of(&o.api_version) == &**group)
        {
            if found.iter().all(|known| known.uid != owner.uid) {
                found.push(OutcomeParent {
                    group: group.clone(),
                    kind: kind.clone(),
                    namespace: meta.namespace.clone(),
                    name: owner.name.clone(),
                    uid: owner.uid.clone(),
                });
            }
        }
    }
    found
}

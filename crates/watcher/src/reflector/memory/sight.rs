//! What is seen of objects that are to be remembered, and what records say of them.

use std::sync::{Arc, MutexGuard};

use aggregator::KindId;

use super::super::links::group_of;
use super::super::{Reflector, lock, slots};
use super::row::remembering;
use super::{End, Memory, Outcome, Whose};
use crate::plan::{Find, Interest};
use crate::wire::{Child, Meta};

impl Reflector {
    /// Objects of this kind are followed from now on for these reasons; what is remembered of it counts accordingly.
    pub fn recollect(&self, interest: &Interest) {
        let mut memory = lock(&self.memory);
        if interest.remembers() {
            memory.interests.insert(interest.id, Arc::new(interest.clone()));
        } else if memory.interests.remove(&interest.id).is_none() {
            return;
        }
        self.reinterpret(memory, interest.id);
    }

    /// Objects of this kind are not followed any more: nothing of it is remembered.
    pub(in crate::reflector) fn disregard(&self, kind: KindId) {
        let mut memory = lock(&self.memory);
        if memory.interests.remove(&kind).is_some() {
            self.reinterpret(memory, kind);
        }
    }

    /// What is remembered of a kind may count for others than before, and records may have to go.
    fn reinterpret(&self, mut memory: MutexGuard<'_, Memory>, kind: KindId) {
        for uid in memory.uids(kind, |o| o.gone).into_values() {
            self.project(&memory, uid);
        }
        let Memory { parents, dirty, .. } = &mut *memory;
        let of_kind = parents.values().filter(|m| m.outcomes.iter().any(|o| o.kind == kind));
        dirty.extend(of_kind.map(|m| m.whose.uid.clone()));
        self.memory_moved(&memory);
    }

    /// An object is there. What it is a run of begins anew with it, where it is another one than before.
    pub(in crate::reflector) fn note(&self, interest: &Interest, child: &Child) {
        let (meta, uid) = (&child.meta, slots::Uid::of(&child.meta.uid));
        let parents = whose(interest, meta);
        let mut memory = lock(&self.memory);
        let uids: Vec<_> = parents.iter().map(|whose| slots::Uid::of(&whose.uid)).collect();
        self.keep_for(&mut memory, uid, &uids);
        let end = End::of(readiness::outcome(interest.judge, &child.facts).as_ref());
        let met = self.find(&meta.uid).and_then(|id| self.read(id, |_| ())).is_some();
        for whose in parents {
            let outcome = Outcome {
                kind: interest.id,
                uid: meta.uid.clone(),
                namespace: meta.namespace.clone(),
                name: meta.name.clone(),
                slot: slot(meta),
                labels: meta.labels.clone(),
                created: meta.created,
                generation: self.generation_of(&whose.uid),
                end: end.clone(),
                gone: false,
                version: meta.resource_version,
                first: meta.resource_version,
                ..Outcome::default()
            };
            for superseded in memory.enter(whose, outcome, met) {
                self.project(&memory, superseded);
            }
        }
        self.memory_moved(&memory);
    }

    /// An object is gone, as a DELETE event says; that brings how it was in the end, which may be the only sight of it.
    pub fn deleted(&self, interest: &Interest, child: &Child) {
        let (meta, uid) = (&child.meta, slots::Uid::of(&child.meta.uid));
        let remembers = interest.remembers();
        if remembers {
            let end = End::of(readiness::outcome(interest.judge, &child.facts).as_ref());
            let (known, sure) = {
                let memory = lock(&self.memory);
                (memory.of.contains_key(&uid), memory.is_sure_of(uid))
            };
            if known && !sure || !known && end != End::Open {
                self.note(interest, child);
            }
            self.ended(uid, meta.resource_version, &end);
        }
        self.delete(&meta.uid, meta.resource_version);
        if remembers {
            self.depart(uid);
        }
    }

    /// How it was in the end, whatever was heard of it: one that had not ended by then never did, and there is nothing to
    /// remember of it.
    fn ended(&self, uid: slots::Uid, version: u64, end: &End) {
        let mut memory = lock(&self.memory);
        memory.each_of(uid, |outcome| {
            outcome.version = outcome.version.max(version);
            outcome.end = end.clone();
            true
        });
        if *end == End::Open {
            memory.leave_all_but(uid, &[]);
            self.project(&memory, uid);
        }
    }

    /// An object does not exist any more. Whether a row that remembers it is in its place.
    pub(in crate::reflector) fn depart(&self, uid: slots::Uid) -> bool {
        let mut memory = lock(&self.memory);
        if !memory.of.contains_key(&uid) {
            return false;
        }
        let mut unseen = None;
        memory.each_of(uid, |outcome| {
            if outcome.end == End::Open && !outcome.gone {
                unseen = Some(outcome.unseen());
            }
            !std::mem::replace(&mut outcome.gone, true)
        });
        memory.unseen.extend(unseen);
        self.memory_moved(&memory);
        self.project(&memory, uid)
    }

    /// A list of this kind is through, in one namespace or in all: what is remembered of it and was not in there is gone. What
    /// came and went since the watch before it was lost is in neither.
    pub(in crate::reflector) fn listed(&self, kind: KindId, scope: Option<&str>) {
        let mut memory = lock(&self.memory);
        if memory.listed.insert(kind) || memory.interests.contains_key(&kind) {
            memory.wonder();
        }
        let within = |o: &Outcome| o.kind == kind && scope.is_none_or(|scope| *o.namespace == *scope);
        let there = |uid: &str| {
            let row = self.find(uid).and_then(|id| self.read(id, |row| !row.is_remembered()));
            row == Some(true)
        };
        for uid in memory.uids(kind, |o| within(o) && !there(&o.uid)).into_values() {
            let mut unseen = None;
            memory.each_of(uid, |outcome| {
                if outcome.end == End::Open && !outcome.heard {
                    unseen = Some(outcome.unseen());
                }
                !std::mem::replace(&mut outcome.gone, true)
            });
            memory.unseen.extend(unseen);
            self.project(&memory, uid);
        }
        // Of generated names there may be a newer one that is gone, beside an older one that is there.
        memory.doubt(|o| within(o) && (o.gone || o.slot != o.name));
        self.memory_moved(&memory);
    }

    /// What a record says of one parent. The first time it is believed where nothing better is known; later it is only
    /// taken as evidence, which a person gives who knows.
    pub fn recall(&self, whose: Whose, outcomes: Vec<Outcome>) {
        let parent = slots::Uid::of(&whose.uid);
        let first = lock(&self.memory).recalled.insert(parent);
        if !first {
            for outcome in outcomes {
                self.tell_end(&outcome.uid, &outcome.end, |o| o.gone && o.end == End::Open);
            }
            return;
        }
        let mut memory = lock(&self.memory);
        memory.blind.extend(outcomes.iter().map(|o| o.namespace.clone()));
        for outcome in outcomes {
            let uid = slots::Uid::of(&outcome.uid);
            let known = memory.parents.get_mut(&parent);
            let known = known.and_then(|m| m.outcomes.iter_mut().find(|o| o.uid == outcome.uid));
            if let Some(known) = known {
                known.first = if outcome.first == 0 { known.first } else { outcome.first };
                known.generation = outcome.generation.or(known.generation);
                if known.end == End::Open {
                    known.end = outcome.end;
                }
            } else {
                let listed = memory.listed.contains(&outcome.kind);
                let unseen = (listed && outcome.end == End::Open && !outcome.heard).then(|| outcome.unseen());
                memory.unseen.extend(unseen);
                for superseded in
                    memory.enter(whose.clone(), Outcome { gone: true, version: 0, ..outcome }, true)
                {
                    self.project(&memory, superseded);
                }
            }
            self.project(&memory, uid);
        }
        memory.dirty.insert(whose.uid);
        self.memory_moved(&memory);
    }

    /// A parent was seen for the first time, or in another generation than before: what counts for it may be another.
    pub(in crate::reflector) fn parent_seen(&self, uid: &str) {
        let mut memory = lock(&self.memory);
        let parent = slots::Uid::of(uid);
        match self.expectant(uid) {
            Some(expectant) => _ = memory.expected.insert(parent, expectant),
            None => _ = memory.expected.remove(&parent),
        }
        let generation = self.generation_of(uid);
        let Some(memories) = memory.parents.get_mut(&slots::Uid::of(uid)) else { return };
        let mut moved = false;
        for outcome in &mut memories.outcomes {
            moved |= outcome.generation.is_none();
            outcome.generation = outcome.generation.or(generation);
        }
        let outcomes = memories.outcomes.clone();
        for outcome in outcomes.iter().filter(|o| o.gone) {
            if moved {
                self.project(&memory, slots::Uid::of(&outcome.uid));
            }
            if let Some(id) = self.find(&outcome.uid) {
                self.mark(id);
            }
        }
        memory.dirty.insert(uid.into());
        self.memory_moved(&memory);
    }

    /// A parent has no row any more.
    pub(in crate::reflector) fn parent_unseen(&self, uid: slots::Uid) {
        let mut memory = lock(&self.memory);
        memory.expected.remove(&uid);
        if let Some(whose) = memory.parents.get(&uid).map(|m| m.whose.uid.clone()) {
            memory.dirty.insert(whose);
            self.memory_moved(&memory);
        }
    }

    /// A parent is gone, and with it everything that is remembered for it.
    pub fn forget_parent(&self, uid: &str) {
        let parent = slots::Uid::of(uid);
        let mut memory = lock(&self.memory);
        let Some(memories) = memory.parents.remove(&parent) else { return };
        for outcome in memories.outcomes {
            let uid = slots::Uid::of(&outcome.uid);
            let left: Vec<_> = memory.of.remove(&uid).unwrap_or_default();
            let left: Vec<_> = left.into_iter().filter(|p| *p != parent).collect();
            if !left.is_empty() {
                memory.of.insert(uid, left);
            }
            self.project(&memory, uid);
        }
    }

    pub(super) fn generation_of(&self, parent: &str) -> Option<u64> {
        let id = self.find(parent)?;
        self.read(id, |row| row.parent.as_ref().map(|p| p.view.generation)).flatten()
    }
}

/// What an object is a run of: what came before the part of its name that the server made up.
fn slot(meta: &Meta) -> Box<str> {
    let generated = !meta.generate_name.is_empty() && meta.name.starts_with(&*meta.generate_name);
    if generated { meta.generate_name.clone() } else { meta.name.clone() }
}

/// The parents that are to remember an object.
pub(super) fn whose(interest: &Interest, meta: &Meta) -> Vec<Whose> {
    let mut found: Vec<Whose> = Vec::new();
    for rule in remembering(interest, meta) {
        let Find::Owner { group, kind } = &rule.find else { continue };
        for owner in meta.owners.iter().filter(|o| o.kind == *kind && group_of(&o.api_version) == &**group) {
            if found.iter().all(|known| known.uid != owner.uid) {
                found.push(Whose {
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

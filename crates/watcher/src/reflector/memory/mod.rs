//! Outcomes that outlive their objects: what is known of Jobs that are to be remembered, by the parent for which they count.

mod evidence;
mod expected;
mod outcome;
mod row;
mod sight;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aggregator::KindId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Reflector, lock, slots};
use crate::plan::{After, Interest};

pub use outcome::{Beyond, End, MOST_OUTCOMES, Memories, Outcome, Unseen, Whose};
pub(super) use row::Remembered;
pub use trace::{Runs, Trace};

/// All that is remembered.
#[derive(Default)]
pub(super) struct Memory {
    parents: FxHashMap<slots::Uid, Memories>,
    /// For whom an object is remembered.
    of: FxHashMap<slots::Uid, Vec<slots::Uid>>,
    /// Why kinds are followed of which outcomes are remembered.
    interests: FxHashMap<KindId, Arc<Interest>>,
    /// Kinds that were listed.
    listed: FxHashSet<KindId>,
    /// Parents of which a record was read.
    recalled: FxHashSet<slots::Uid>,
    /// Parents of which something moved.
    dirty: BTreeSet<Box<str>>,
    /// Objects that are gone and of which nobody saw the end.
    unseen: BTreeSet<Unseen>,
    /// Namespaces in which something may have been run again while nobody looked.
    blind: BTreeSet<Box<str>>,
    /// Parents that expect children by name.
    expected: FxHashMap<slots::Uid, expected::Expectant>,
    /// What there was no room for.
    beyond: Beyond,
    /// Objects that were heard of as the next run of something, and seen to be somebody else's.
    strangers: FxHashSet<slots::Uid>,
}

/// So many strangers are known at a time.
const MOST_STRANGERS: usize = 1_024;

impl Memory {
    /// The outcomes of one object, by parent.
    fn each_of(&mut self, uid: slots::Uid, mut f: impl FnMut(&mut Outcome) -> bool) {
        for parent in self.of.get(&uid).cloned().unwrap_or_default() {
            let Some(memories) = self.parents.get_mut(&parent) else { continue };
            let mut moved = false;
            for outcome in memories.outcomes.iter_mut().filter(|o| slots::Uid::of(&o.uid) == uid) {
                moved |= f(outcome);
            }
            if moved {
                self.dirty.insert(memories.whose.uid.clone());
            }
        }
    }

    /// One run of something for one parent, which was `met` before or not; those that it supersedes, or that there is no room
    /// for.
    fn enter(&mut self, whose: Whose, mut new: Outcome, met: bool) -> Vec<slots::Uid> {
        let (parent, uid) = (slots::Uid::of(&whose.uid), slots::Uid::of(&new.uid));
        let memories = self.parents.entry(parent).or_default();
        let before = memories.clone();
        memories.whose = whose;
        let mut out = Vec::new();
        if let Some(at) = memories.outcomes.iter().position(|o| o.uid == new.uid) {
            let known = memories.outcomes.remove(at);
            new.generation = known.generation.or(new.generation);
            new.first = if known.first == 0 { new.first } else { known.first };
            // What it says itself is better than what was heard of it.
            new.end = if new.end == End::Open { known.end } else { new.end };
        } else if let Some(at) = memories.outcomes.iter().position(|o| o.is_run_of(&new)) {
            if !new.is_newer(&memories.outcomes[at]) {
                return Vec::new();
            }
            out.push(slots::Uid::of(&memories.outcomes.remove(at).uid));
        }
        memories.outcomes.push(new);
        memories.outcomes.sort_by_cached_key(Outcome::rank);
        let beyond = memories.outcomes.len().min(MOST_OUTCOMES);
        for outcome in memories.outcomes.drain(beyond..) {
            let id = slots::Uid::of(&outcome.uid);
            // Each is told of once.
            if id != uid || !met {
                self.beyond.add(&memories.whose, &outcome);
            }
            out.push(id);
        }
        let (moved, whose) = (before != *memories, memories.whose.uid.clone());
        let of = self.of.entry(uid).or_default();
        if !of.contains(&parent) {
            of.push(parent);
        }
        for gone in &out {
            self.unlink(*gone, parent);
        }
        if moved {
            self.dirty.insert(whose);
        }
        out
    }

    /// An object counts for this parent no more.
    fn unlink(&mut self, uid: slots::Uid, parent: slots::Uid) {
        if let Some(of) = self.of.get_mut(&uid) {
            of.retain(|p| *p != parent);
            if of.is_empty() {
                self.of.remove(&uid);
            }
        }
    }

    /// An object counts for no others than these parents. Those whose place it had taken by hearsay, which count again.
    fn leave_all_but(&mut self, uid: slots::Uid, parents: &[slots::Uid]) -> Vec<slots::Uid> {
        let Some(of) = self.of.get_mut(&uid) else { return Vec::new() };
        let left: Vec<_> = of.iter().copied().filter(|p| !parents.contains(p)).collect();
        of.retain(|p| parents.contains(p));
        if of.is_empty() {
            self.of.remove(&uid);
        }
        let mut back = Vec::new();
        for parent in left {
            let Some(memories) = self.parents.get_mut(&parent) else { continue };
            let here = |o: &mut Outcome| slots::Uid::of(&o.uid) == uid;
            for outcome in memories.outcomes.extract_if(.., here).collect::<Vec<_>>() {
                if outcome.heard {
                    if self.strangers.len() >= MOST_STRANGERS {
                        self.strangers.clear();
                    }
                    self.strangers.insert(uid);
                }
                if let Some(before) = outcome.before {
                    back.push(slots::Uid::of(&before.uid));
                    self.of.entry(slots::Uid::of(&before.uid)).or_default().push(parent);
                    memories.outcomes.push(*before);
                }
            }
            memories.outcomes.sort_by_cached_key(Outcome::rank);
            self.dirty.insert(memories.whose.uid.clone());
        }
        back
    }

    /// Is it remembered for anybody, and not by hearsay alone?
    fn is_sure_of(&self, uid: slots::Uid) -> bool {
        let parents = self.of.get(&uid).map_or(&[][..], Vec::as_slice);
        let outcomes = parents.iter().filter_map(|p| self.parents.get(p)).flat_map(|m| &m.outcomes);
        let mut here = outcomes.filter(|o| slots::Uid::of(&o.uid) == uid).peekable();
        here.peek().is_some() && here.all(|o| !o.heard)
    }

    /// Is there something for others to look at?
    fn calls(&self) -> bool {
        !self.dirty.is_empty() || !self.unseen.is_empty() || !self.blind.is_empty() || self.beyond.count > 0
    }

    /// Those of a kind, each once.
    fn uids(&self, kind: KindId, mut which: impl FnMut(&Outcome) -> bool) -> BTreeMap<Box<str>, slots::Uid> {
        let outcomes = self.parents.values().flat_map(|m| &m.outcomes);
        let of_kind = outcomes.filter(|o| o.kind == kind && which(o));
        of_kind.map(|o| (o.uid.clone(), slots::Uid::of(&o.uid))).collect()
    }
}

impl Reflector {
    /// `wake` is called when something moved that a record should say.
    pub fn on_memory(&self, wake: impl Fn() + Send + Sync + 'static) {
        _ = self.wake_memory.set(Box::new(wake));
    }

    /// The uids of parents whose records may have to say something else.
    pub fn take_remembered(&self) -> Vec<Box<str>> {
        std::mem::take(&mut lock(&self.memory).dirty).into_iter().collect()
    }

    /// Objects that are gone, and of which nobody saw the end.
    pub fn take_unseen(&self) -> Vec<Unseen> {
        std::mem::take(&mut lock(&self.memory).unseen).into_iter().collect()
    }

    /// Outcomes that there was no room for.
    pub fn take_beyond(&self) -> Beyond {
        std::mem::take(&mut lock(&self.memory).beyond)
    }

    /// Does a policy that chooses this parent remember what its children came to?
    pub fn remembers_for(&self, parent: &str) -> bool {
        let memory = lock(&self.memory);
        let chosen = |row: &super::Row| {
            let targets = row.parent.iter().flat_map(|parent| &parent.targets);
            targets.map(|target| target.policy).collect::<Vec<_>>()
        };
        let chosen = self.find(parent).and_then(|id| self.read(id, chosen)).unwrap_or_default();
        let rules = memory.interests.values().flat_map(|interest| &interest.child);
        rules.filter(|rule| rule.after != After::Forget).any(|rule| chosen.contains(&rule.policy))
    }

    /// What is remembered for a parent.
    pub fn memories(&self, parent: &str) -> Option<Memories> {
        lock(&self.memory).parents.get(&slots::Uid::of(parent)).cloned()
    }

    /// Was this kind listed since it is followed?
    pub fn was_listed(&self, kind: KindId) -> bool {
        lock(&self.memory).listed.contains(&kind)
    }

    /// Is it gone, and did nobody see how it ended?
    pub fn is_unseen(&self, uid: &str) -> bool {
        let unseen = |o: &Outcome| &*o.uid == uid && o.is_unseen();
        let memory = lock(&self.memory);
        let parents = memory.of.get(&slots::Uid::of(uid)).map_or(&[][..], Vec::as_slice);
        parents.iter().filter_map(|p| memory.parents.get(p)).flat_map(|m| &m.outcomes).any(unseen)
    }

    fn memory_moved(&self, memory: &Memory) {
        if let Some(wake) = self.wake_memory.get().filter(|_| memory.calls()) {
            wake();
        }
    }
}

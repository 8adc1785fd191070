//! Outcomes that outlive their objects: what is known of Jobs that are to be remembered, by the parent for which they count.

mod row;
mod sight;
mod trace;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aggregator::KindId;
use readiness::{Level, Reason, Text, Time, Verdict};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Reflector, lock, slots};
use crate::plan::Interest;
use crate::wire::OwnerRef;

pub(super) use row::Remembered;
pub use trace::{Runs, Trace};

/// So many outcomes are remembered for one parent.
pub const MOST_OUTCOMES: usize = 16;

/// How something that runs to an end has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum End {
    /// Not yet; or, of one that is gone, nobody saw.
    #[default]
    Open,
    /// Well.
    Complete,
    /// For good, for this reason.
    Failed(Box<str>),
}

impl End {
    /// The end that a verdict speaks of.
    pub fn of(outcome: Option<&Verdict>) -> End {
        match outcome {
            Some(verdict) if verdict.level == Level::Ready => End::Complete,
            Some(verdict) => End::Failed(verdict.reason.to_string().into()),
            None => End::Open,
        }
    }

    /// What it means once the object is gone.
    pub fn verdict(&self) -> Verdict {
        let (level, reason) = match self {
            End::Open => (Level::Unknown, Reason::OutcomeUnseen),
            End::Complete => (Level::Ready, Reason::Complete),
            End::Failed(why) => (Level::Failed, Reason::JobFailed(Text::new(why))),
        };
        Verdict { level, reason }
    }
}

/// One object whose outcome is remembered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Its kind.
    pub kind: KindId,
    /// Its uid.
    pub uid: Box<str>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// What it is a run of: its name, or the prefix of one that was generated.
    pub slot: Box<str>,
    /// Its labels, for policies that pass over some.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// When it was created.
    pub created: Option<Time>,
    /// The generation of the parent that it was first seen under.
    pub generation: Option<u64>,
    /// How it ended.
    pub end: End,
    /// It does not exist any more.
    pub gone: bool,
    /// Its version when it was last seen; 0 where it is known from a record alone.
    pub version: u64,
    /// Its version when it was first seen or told of; 0 where that is not known.
    pub first: u64,
}

impl Outcome {
    fn is_run_of(&self, other: &Outcome) -> bool {
        (self.kind, &self.namespace, &self.slot) == (other.kind, &other.namespace, &other.slot)
    }

    /// Of two runs of the same thing; of the same name there is only ever one at a time.
    fn is_newer(&self, than: &Outcome) -> bool {
        let tie = |o: &Outcome, other: &Outcome| {
            if o.name == other.name { (o.version, "".into()) } else { (0, o.uid.clone()) }
        };
        (self.created, tie(self, than)) > (than.created, tie(than, self))
    }

    /// What must not be forgotten comes first: what failed, what nobody saw, what still runs.
    fn rank(&self) -> (u8, std::cmp::Reverse<Option<Time>>, Box<str>) {
        let rank = match (&self.end, self.gone) {
            (End::Failed(_), _) => 0,
            (End::Open, true) => 1,
            (End::Open, false) => 2,
            (End::Complete, _) => 3,
        };
        (rank, std::cmp::Reverse(self.created), self.uid.clone())
    }
}

/// Whose outcomes they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Whose {
    /// Its API group.
    pub group: Box<str>,
    /// Its kind.
    pub kind: Box<str>,
    /// Its namespace; empty where it has none.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its uid.
    pub uid: Box<str>,
}

impl Whose {
    fn reference(&self) -> OwnerRef {
        OwnerRef {
            api_version: format!("{}/-", self.group).into(),
            kind: self.kind.clone(),
            name: self.name.clone(),
            uid: self.uid.clone(),
            controller: true,
        }
    }
}

/// What is remembered for one parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memories {
    /// The parent.
    pub whose: Whose,
    /// The outcomes.
    pub outcomes: Vec<Outcome>,
}

/// An object that is gone, and nobody saw how it ended: there may be evidence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unseen {
    /// Its uid.
    pub uid: Box<str>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

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
}

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

    /// One run of something for one parent; those that it supersedes, or that there is no room for.
    fn enter(&mut self, whose: Whose, mut new: Outcome) -> Vec<slots::Uid> {
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
        out.extend(memories.outcomes.drain(beyond..).map(|o| slots::Uid::of(&o.uid)));
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

    /// An object counts for no others than these parents.
    fn leave_all_but(&mut self, uid: slots::Uid, parents: &[slots::Uid]) {
        let Some(of) = self.of.get_mut(&uid) else { return };
        let left: Vec<_> = of.iter().copied().filter(|p| !parents.contains(p)).collect();
        of.retain(|p| parents.contains(p));
        if of.is_empty() {
            self.of.remove(&uid);
        }
        for parent in left {
            if let Some(memories) = self.parents.get_mut(&parent) {
                memories.outcomes.retain(|o| slots::Uid::of(&o.uid) != uid);
                self.dirty.insert(memories.whose.uid.clone());
            }
        }
    }

    /// Is there something for others to look at?
    fn calls(&self) -> bool {
        !self.dirty.is_empty() || !self.unseen.is_empty() || !self.blind.is_empty()
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
        let unseen = |o: &Outcome| &*o.uid == uid && o.gone && o.end == End::Open;
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

//! What others tell of objects that came and went while nobody looked: that they were, and how they ended.
//!
//! Such a trace names an object and not whose it was. One under the name of something that is remembered, and of after what is
//! remembered of it, may be the next run of that, or somebody else's: how that stands is not known from then on. It never is the
//! other way round, that what somebody else ran is taken for an outcome.

use std::collections::BTreeSet;
use std::time::Duration;

use aggregator::KindId;
use readiness::Time;
use rustc_hash::FxHashMap;

use super::super::{Reflector, lock, slots};
use super::{End, Memories, Memory, Outcome, Whose};

/// The server makes up so many letters of a name,
const MADE_UP: usize = 5;
/// of these.
const LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";

/// One object, by what others tell of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Its kind.
    pub kind: KindId,
    /// Its uid.
    pub uid: Box<str>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// When it was first told of.
    pub first: Option<Time>,
    /// The least version of it that was told of; 0 where none was.
    pub version: u64,
    /// It was told of from its beginning on.
    pub born: bool,
    /// How it ended.
    pub end: End,
}

impl Trace {
    /// Is it, by its name, a run of the same thing?
    fn is_run_of(&self, outcome: &Outcome) -> bool {
        let by_name = || {
            if outcome.slot == outcome.name {
                return self.name == outcome.slot;
            }
            let made_up = self.name.strip_prefix(&*outcome.slot);
            made_up.is_some_and(|rest| rest.len() == MADE_UP && rest.chars().all(|c| LETTERS.contains(c)))
        };
        (self.kind, &self.namespace) == (outcome.kind, &outcome.namespace) && by_name()
    }

    /// Was it there only after this one was? Versions of one kind only ever grow. Of one name there is only one at a time, so
    /// any version of the later is beyond any of the earlier; of generated names, the beginnings have to be compared.
    fn is_after(&self, outcome: &Outcome) -> bool {
        let same_name = self.name == outcome.name;
        let known = if same_name { outcome.first.max(outcome.version) } else { outcome.first };
        match (known, outcome.created, self.first) {
            _ if self.version == 0 || !(same_name || self.born) => false,
            (1.., ..) => self.version > known,
            (0, Some(created), Some(first)) => first.0 / 1_000 > created.0 / 1_000,
            _ => false,
        }
    }
}

/// What is remembered in one namespace, by what it is a run of.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    of: FxHashMap<Box<str>, Vec<slots::Uid>>,
    /// What is expected by name, and of which nothing is remembered.
    expected: FxHashMap<Box<str>, Vec<slots::Uid>>,
}

/// For whom a trace counts.
enum Claim {
    /// For one that remembers this run before it.
    Next(slots::Uid, Outcome),
    /// For one that expects it, as its first.
    First(Whose, Outcome),
}

impl Runs {
    /// May something of this name be a run of something that is remembered?
    pub fn may_have(&self, name: &str) -> bool {
        self.expected.contains_key(name) || self.parents(name).next().is_some()
    }

    fn parents(&self, name: &str) -> impl Iterator<Item = slots::Uid> {
        let generated = name.len().checked_sub(MADE_UP).and_then(|at| name.get(..at));
        let of = |slot: &str| self.of.get(slot).into_iter().flatten().copied();
        of(name).chain(generated.into_iter().flat_map(of))
    }
}

impl Trace {
    /// As what may be the run after another one.
    fn after(&self, before: &Outcome) -> Outcome {
        // It came later, also where the clocks say otherwise.
        let created = self.first.max(before.created.map(|at| at + Duration::from_secs(1)));
        Outcome {
            uid: self.uid.clone(),
            name: self.name.clone(),
            created,
            end: End::Open,
            gone: true,
            version: 0,
            first: self.version,
            heard: true,
            before: if before.heard { before.before.clone() } else { Some(Box::new(before.clone())) },
            ..before.clone()
        }
    }
}

impl Memory {
    fn runs(&self, namespace: &str) -> Runs {
        let mut runs = Runs { expected: self.expectants(namespace), ..Runs::default() };
        for (parent, memories) in &self.parents {
            for outcome in memories.outcomes.iter().filter(|o| *o.namespace == *namespace) {
                runs.of.entry(outcome.slot.clone()).or_default().push(*parent);
            }
        }
        runs
    }

    /// The parents for which this may be the next run of something.
    fn claims(&self, runs: &Runs, trace: &Trace) -> Vec<Claim> {
        let mut next = Vec::new();
        let uid = slots::Uid::of(&trace.uid);
        if self.strangers.contains(&uid) || self.is_sure_of(uid) {
            return next;
        }
        let expecting = runs.expected.get(&trace.name).into_iter().flatten().copied();
        for parent in runs.parents(&trace.name).chain(expecting) {
            let outcomes = self.parents.get(&parent).map_or(&[][..], |m| &m.outcomes);
            if let Some(outcome) = outcomes.iter().find(|o| trace.is_run_of(o)) {
                let there = !outcome.gone && outcome.name == trace.name;
                let later = outcome.uid != trace.uid && !there && trace.is_after(outcome);
                next.extend(later.then(|| Claim::Next(parent, outcome.clone())));
            } else if let Some(expectant) = self.expected.get(&parent) {
                let rule = self.expects(expectant, &trace.name);
                let first = rule.and_then(|rule| expectant.first(trace, rule));
                next.extend(first.map(|(whose, outcome)| Claim::First(whose, outcome)));
            }
        }
        next
    }

    /// Puts a run in the place of the one before it.
    fn succeed(&mut self, parent: slots::Uid, before: &Outcome, new: Outcome) {
        let Some(Memories { whose, outcomes }) = self.parents.get_mut(&parent) else { return };
        outcomes.retain(|o| o.uid != before.uid);
        self.of.entry(slots::Uid::of(&new.uid)).or_default().push(parent);
        outcomes.push(new);
        outcomes.sort_by_cached_key(Outcome::rank);
        self.dirty.insert(whose.uid.clone());
        self.unlink(slots::Uid::of(&before.uid), parent);
    }

    /// In the namespaces of these, something may have come and gone.
    pub(super) fn doubt(&mut self, which: impl Fn(&Outcome) -> bool) {
        let outcomes = self.parents.values().flat_map(|m| &m.outcomes).filter(|o| which(o));
        let doubted: BTreeSet<Box<str>> = outcomes.map(|o| o.namespace.clone()).collect();
        self.blind.extend(doubted);
    }
}

impl Reflector {
    /// Namespaces in which something that is remembered may have been run again while nobody looked.
    pub fn take_blind(&self) -> Vec<Box<str>> {
        std::mem::take(&mut lock(&self.memory).blind).into_iter().collect()
    }

    /// What is remembered in a namespace.
    pub fn runs(&self, namespace: &str) -> Runs {
        lock(&self.memory).runs(namespace)
    }

    /// Those of a namespace that nobody saw, and that came after what is remembered. Whoever asks makes sure that they are
    /// gone.
    pub fn unheard(&self, namespace: &str, traces: &[Trace]) -> Vec<Trace> {
        let memory = lock(&self.memory);
        let runs = memory.runs(namespace);
        let there = |uid: &str| {
            let row = self.find(uid).and_then(|id| self.read(id, |row| !row.is_remembered()));
            row == Some(true)
        };
        let news = |trace: &&Trace| !memory.claims(&runs, trace).is_empty() && !there(&trace.uid);
        traces.iter().filter(|trace| *trace.namespace == *namespace).filter(news).cloned().collect()
    }

    /// These of a namespace were, and are gone: how what they may be the next runs of has ended is not known any more. How many
    /// there are of that.
    pub fn supersede(&self, namespace: &str, mut traces: Vec<Trace>) -> usize {
        traces.sort_by(|a, b| (a.version, &a.uid).cmp(&(b.version, &b.uid)));
        let mut superseded = 0;
        let mut memory = lock(&self.memory);
        let runs = memory.runs(namespace);
        for trace in traces {
            let next = memory.claims(&runs, &trace);
            superseded += next.len();
            for claim in next {
                match claim {
                    Claim::Next(parent, before) => {
                        memory.succeed(parent, &before, trace.after(&before));
                        self.project(&memory, slots::Uid::of(&before.uid));
                    }
                    Claim::First(whose, first) => _ = memory.enter(whose, first, true),
                }
            }
            self.project(&memory, slots::Uid::of(&trace.uid));
        }
        self.memory_moved(&memory);
        superseded
    }
}

//! Traces in Events of objects that came and went while the watch was down: their existence and their outcome.
//!
//! A trace names an object but not its owner. A later trace under the name of a remembered object may be its next run
//! or belong to another owner, so the outcome is unknown from then on. A run of another owner is never taken for an
//! outcome.

use std::collections::BTreeSet;
use std::time::Duration;

use aggregator::KindId;
use readiness::Time;
use rustc_hash::FxHashMap;

use super::super::{Reflector, lock_mutex, slots};
use super::{OutcomeMemory, OutcomeParent, RememberedOutcome, RunEnd};

/// Length of the suffix that the server appends to `generateName`, in characters.
const GENERATED_SUFFIX_LEN: usize = 5;
/// Characters of that suffix.
const GENERATED_SUFFIX_LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";

/// One object, as described by Events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunTrace {
    /// Its kind.
    pub kind: KindId,
    /// Its uid.
    pub uid: Box<str>,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Time of its first Event.
    pub first_seen: Option<Time>,
    /// Lowest resourceVersion in its Events; 0 if there is none.
    pub version: u64,
    /// Its Events include its creation.
    pub seen_from_creation: bool,
    /// Its outcome.
    pub end: RunEnd,
}

impl RunTrace {
    /// Returns `true` if the trace is, by its name, another run of the same identity.
    fn is_run_of(&self, outcome: &RememberedOutcome) -> bool {
        let by_name = || {
            if outcome.slot == outcome.name {
                return self.name == outcome.slot;
            }
            let made_up = self.name.strip_prefix(&*outcome.slot);
            made_up.is_some_and(|rest| {
                rest.len() == GENERATED_SUFFIX_LEN
                    && rest.chars().all(|c| GENERATED_SUFFIX_LETTERS.contains(c))
            })
        };
        (self.kind, &self.namespace) == (outcome.kind, &outcome.namespace) && by_name()
    }

    /// Returns `true` if the object existed only after the remembered one. Versions of a kind only grow, and only one
    /// object of a name exists at a time, so any version of the later one exceeds every version of the earlier one; for
    /// generated names, the first versions have to be compared.
    fn is_after(&self, outcome: &RememberedOutcome) -> bool {
        let same_name = self.name == outcome.name;
        let known =
            if same_name { outcome.first_version.max(outcome.version) } else { outcome.first_version };
        match (known, outcome.created, self.first_seen) {
            _ if self.version == 0 || !(same_name || self.seen_from_creation) => false,
            (1.., ..) => self.version > known,
            (0, Some(created), Some(first)) => first.0 / 1_000 > created.0 / 1_000,
            _ => false,
        }
    }
}

/// Remembered runs in one namespace, by identity.
#[derive(Clone, Debug, Default)]
pub struct NamespaceRuns {
    parents_by_slot: FxHashMap<Box<str>, Vec<slots::UidKey>>,
    /// Expected names without a remembered outcome.
    expected: FxHashMap<Box<str>, Vec<slots::UidKey>>,
}

/// A run of which a trace tells, and the parent for which it may count.
struct RunClaim {
    whose: OutcomeParent,
    run: RememberedOutcome,
}

impl NamespaceRuns {
    /// Returns `true` if an object of this name may be a run of a remembered or expected object.
    pub fn may_have_run(&self, name: &str) -> bool {
        self.expected.contains_key(name) || self.parents_by_name(name).next().is_some()
    }

    fn parents_by_name(&self, name: &str) -> impl Iterator<Item = slots::UidKey> {
        let generated = name.len().checked_sub(GENERATED_SUFFIX_LEN).and_then(|at| name.get(..at));
        let of = |slot: &str| self.parents_by_slot.get(slot).into_iter().flatten().copied();
        of(name).chain(generated.into_iter().flat_map(of))
    }
}

impl RunTrace {
    /// Returns the trace as a possible run after another one.
    fn as_run_after(&self, before: &RememberedOutcome) -> RememberedOutcome {
        // It ran later, even if the clocks disagree.
        let created = self.first_seen.max(before.created.map(|at| at + Duration::from_secs(1)));
        RememberedOutcome {
            uid: self.uid.clone(),
            name: self.name.clone(),
            created,
            end: RunEnd::Open,
            deleted: true,
            version: 0,
            first_version: self.version,
            known_from_events: true,
            ..before.clone()
        }
    }
}

impl OutcomeMemory {
    fn runs_in_namespace(&self, namespace: &str) -> NamespaceRuns {
        let mut runs =
            NamespaceRuns { expected: self.expecting_parents(namespace), ..NamespaceRuns::default() };
        for (parent, memories) in &self.parents {
            for outcome in memories.outcomes.iter().filter(|o| *o.namespace == *namespace) {
                let parents = runs.parents_by_slot.entry(outcome.slot.clone()).or_default();
                if !parents.contains(parent) {
                    parents.push(*parent);
                }
            }
        }
        runs
    }

    /// Returns the runs that the trace may be.
    fn find_claims(&self, runs: &NamespaceRuns, trace: &RunTrace) -> Vec<RunClaim> {
        let uid = slots::UidKey::from_text(&trace.uid);
        if self.unrelated_runs.contains(&uid) || self.is_confirmed(uid) {
            return Vec::new();
        }
        let expecting = runs.expected.get(&trace.name).into_iter().flatten().copied();
        let parents = runs.parents_by_name(&trace.name).chain(expecting);
        parents.filter_map(|parent| self.find_claim(parent, trace)).collect()
    }

    /// The next run for a parent that remembers one of the same slot, or the first for a parent that expects one.
    fn find_claim(&self, parent: slots::UidKey, trace: &RunTrace) -> Option<RunClaim> {
        let memories = self.parents.get(&parent);
        let of_slot = memories.and_then(|m| Some((m, m.outcomes.iter().find(|o| trace.is_run_of(o))?)));
        let Some((memories, of_slot)) = of_slot else {
            let expectant = self.expected.get(&parent)?;
            let rule = self.expecting_rule(expectant, &trace.name)?;
            let (whose, run) = expectant.first_run(trace, rule)?;
            return Some(RunClaim { whose, run });
        };
        let runs: Vec<_> = memories.runs_of_slot(of_slot).collect();
        if runs.iter().any(|o| o.uid == trace.uid || (!o.deleted && o.name == trace.name)) {
            return None;
        }
        // Those that are known from Events alone may all be of others: it is enough to be later than what was observed.
        let before = runs.iter().find(|o| !o.known_from_events).or(runs.last())?;
        let run = trace.as_run_after(before);
        let later = trace.is_after(before) && !memories.has_no_room_for(&run);
        later.then(|| RunClaim { whose: memories.parent.clone(), run })
    }

    /// Marks the namespaces of these outcomes as blind: runs may have come and gone there.
    pub(super) fn mark_blind(&mut self, which: impl Fn(&RememberedOutcome) -> bool) {
        let outcomes = self.parents.values().flat_map(|m| &m.outcomes).filter(|o| which(o));
        let doubted: BTreeSet<Box<str>> = outcomes.map(|o| o.namespace.clone()).collect();
        self.blind_namespaces.extend(doubted);
    }
}

impl Reflector {
    /// Takes the namespaces in which a run may have come and gone while the watch was down.
    pub fn take_blind_namespaces(&self) -> Vec<Box<str>> {
        std::mem::take(&mut lock_mutex(&self.memory).blind_namespaces).into_iter().collect()
    }

    /// Returns the remembered runs in a namespace.
    pub fn runs_in_namespace(&self, namespace: &str) -> NamespaceRuns {
        lock_mutex(&self.memory).runs_in_namespace(namespace)
    }

    /// Returns the traces in a namespace that were not observed and are later than the remembered runs. The caller has
    /// to make sure that their objects are gone.
    pub fn unheard_traces(&self, namespace: &str, traces: &[RunTrace]) -> Vec<RunTrace> {
        let memory = lock_mutex(&self.memory);
        let runs = memory.runs_in_namespace(namespace);
        let there = |uid: &str| {
            let row = self.find_object(uid).and_then(|id| self.read_row(id, |row| !row.is_remembered()));
            row == Some(true)
        };
        let news = |trace: &&RunTrace| !memory.find_claims(&runs, trace).is_empty() && !there(&trace.uid);
        traces.iter().filter(|trace| *trace.namespace == *namespace).filter(news).cloned().collect()
    }

    /// Marks outcomes as unseen when Events show a newer run under the same name whose object is gone. Returns how many
    /// were marked.
    pub fn supersede_runs(&self, namespace: &str, mut traces: Vec<RunTrace>) -> usize {
        traces.sort_by(|a, b| (a.version, &a.uid).cmp(&(b.version, &b.uid)));
        let mut superseded = 0;
        let mut memory = lock_mutex(&self.memory);
        let runs = memory.runs_in_namespace(namespace);
        for trace in traces {
            let next = memory.find_claims(&runs, &trace);
            superseded += next.len();
            for RunClaim { whose, run } in next {
                let touched = memory.enter_run(whose, run, true);
                self.project_rows(&memory, touched);
            }
            self.project_row(&memory, slots::UidKey::from_text(&trace.uid));
        }
        self.wake_memory_if_needed(&memory);
        superseded
    }
}

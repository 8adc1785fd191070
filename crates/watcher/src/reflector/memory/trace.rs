//! Traces in Events of objects that came and went while the watch was down: their existence and their outcome.
//!
//! A trace names an object but not its owner. A later trace under the name of a remembered object may be its next run
//! or belong to another owner, so the outcome is unknown from then on. A run of another owner is never taken for an
//! outcome.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::super::row_store::RowStore;
use super::super::rows::Rows;
use super::super::uid_key::UidKey;
use super::OutcomeMemory;
use super::expected::{expecting_parents, expecting_rule};
use super::memory_state::MemoryState;
use super::outcome::{OutcomeParent, RememberedOutcome};
use super::remembered_row::{project_row, project_rows};
use super::run_trace::{GENERATED_SUFFIX_LEN, RunTrace};

/// Remembered runs in one namespace, by identity.
#[derive(Clone, Debug, Default)]
pub struct NamespaceRuns {
    parents_by_slot: FxHashMap<Box<str>, Vec<UidKey>>,
    /// Expected names without a remembered outcome.
    expected: FxHashMap<Box<str>, Vec<UidKey>>,
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

    fn parents_by_name(&self, name: &str) -> impl Iterator<Item = UidKey> {
        let generated = name.len().checked_sub(GENERATED_SUFFIX_LEN).and_then(|at| name.get(..at));
        let of = |slot: &str| self.parents_by_slot.get(slot).into_iter().flatten().copied();
        of(name).chain(generated.into_iter().flat_map(of))
    }
}

fn namespace_runs(state: &MemoryState, namespace: &str) -> NamespaceRuns {
    let mut runs =
        NamespaceRuns { expected: expecting_parents(state, namespace), ..NamespaceRuns::default() };
    for (parent, memories) in &state.parents {
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
fn find_claims(state: &MemoryState, runs: &NamespaceRuns, trace: &RunTrace) -> Vec<RunClaim> {
    let uid = UidKey::from_text(&trace.uid);
    if state.unrelated_runs.contains(&uid) || state.is_confirmed(uid) {
        return Vec::new();
    }
    let expecting = runs.expected.get(&trace.name).into_iter().flatten().copied();
    let parents = runs.parents_by_name(&trace.name).chain(expecting);
    parents.filter_map(|parent| find_claim(state, parent, trace)).collect()
}

/// The next run for a parent that remembers one of the same slot, or the first for a parent that expects one.
fn find_claim(state: &MemoryState, parent: UidKey, trace: &RunTrace) -> Option<RunClaim> {
    let memories = state.parents.get(&parent);
    let of_slot = memories.and_then(|m| Some((m, m.outcomes.iter().find(|o| trace.is_run_of(o))?)));
    let Some((memories, of_slot)) = of_slot else {
        let expectant = state.expected.get(&parent)?;
        let rule = expecting_rule(state, expectant, &trace.name)?;
        let (whose, run) = expectant.first_run(trace, rule)?;
        return Some(RunClaim { whose, run });
    };
    let runs: Vec<_> = memories.runs_of_slot(of_slot).collect();
    let is_known = |o: &&RememberedOutcome| {
        o.uid == trace.uid || o.discarded.contains(&trace.uid) || (!o.deleted && o.name == trace.name)
    };
    if runs.iter().any(is_known) {
        return None;
    }
    // Those that are known from Events alone may all be of others: it is enough to be later than what was observed.
    let before = runs.iter().rfind(|o| !o.known_from_events).or(runs.last())?;
    let run = trace.as_run_after(before);
    let later = trace.is_after(before) && !memories.has_no_room_for(&run);
    later.then(|| RunClaim { whose: memories.parent.clone(), run })
}

/// Marks the namespaces of these outcomes as blind: runs may have come and gone there.
pub(super) fn mark_blind(state: &mut MemoryState, which: impl Fn(&RememberedOutcome) -> bool) {
    let outcomes = state.parents.values().flat_map(|m| &m.outcomes).filter(|o| which(o));
    let doubted: BTreeSet<Box<str>> = outcomes.map(|o| o.namespace.clone()).collect();
    state.blind_namespaces.extend(doubted);
}

/// Returns the remembered runs in a namespace.
pub(in crate::reflector) fn runs_in_namespace(memory: &OutcomeMemory, namespace: &str) -> NamespaceRuns {
    namespace_runs(&memory.lock(), namespace)
}

/// Returns the traces in a namespace that were not observed and are later than the remembered runs. The caller has
/// to make sure that their objects are gone.
pub(in crate::reflector) fn unobserved_traces(
    memory: &OutcomeMemory,
    rows: &Rows,
    namespace: &str,
    traces: &[RunTrace],
) -> Vec<RunTrace> {
    let state = memory.lock();
    let runs = namespace_runs(&state, namespace);
    let unobserved =
        |trace: &&RunTrace| !find_claims(&state, &runs, trace).is_empty() && !rows.is_there(&trace.uid);
    traces.iter().filter(|trace| *trace.namespace == *namespace).filter(unobserved).cloned().collect()
}

/// Marks outcomes as unseen when Events show a newer run under the same name whose object is gone. Returns how many
/// were marked.
pub(in crate::reflector) fn supersede_runs(
    memory: &OutcomeMemory,
    store: &RowStore,
    namespace: &str,
    mut traces: Vec<RunTrace>,
) -> usize {
    traces.sort_by(|a, b| (a.version, &a.uid).cmp(&(b.version, &b.uid)));
    let mut superseded = 0;
    let mut state = memory.lock();
    let runs = namespace_runs(&state, namespace);
    for trace in traces {
        let next = find_claims(&state, &runs, &trace);
        superseded += next.len();
        for RunClaim { whose, run } in next {
            let touched = state.enter_run(whose, run, true);
            project_rows(store, &state, touched);
        }
        project_row(store, &state, UidKey::from_text(&trace.uid));
    }
    memory.wake_if_needed(&state);
    superseded
}

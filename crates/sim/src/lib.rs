//! A simulator: seed → faults → virtual time → invariants.
//!
//! It drives `rollcall_core`, the very code that the service's loop runs, and the reflector, against the sandbox's
//! store, over a simulated wire that lags, drops, repeats and breaks. Everything is derived from one seed, and no clock
//! is read, so a failing seed replays exactly.
//!
//! The product's answers are judged by code that shares nothing with it but the terms: a second cache of everything
//! that was shown to it, and a naive judge that counts from scratch. Checked after each step:
//!
//! - **no false ready**: an answer becomes True, and a True is written, only if the naive judge agrees over the state
//!   that the loop has observed, for the generation that the operator has handled (or was silent about for `settle`);
//! - every other answer equals the naive judge's within the debounce's cap;
//! - no answer is written before every kind was listed in this life of the process, and no True while a kind is blind;
//! - only our own entries change in the store, on the object that was meant, and never to the value that they already
//!   have;
//! - what stands on a parent is what a message put together from all objects says, quotes at every depth included, or was so
//!   within the interval of message-only writes;
//! - no parent that was told `Ready` reads Current to kstatus, Flux or Helm while it is not ready, or cannot be seen: what the loop
//!   knows shows within the way of a write, and so does what the server's objects show once every kind was listed or audited since;
//! - nothing is written for a policy in shadow mode, whose answers, read from the engine, are judged like all others; what those
//!   above count of them rests on no limit in time, because nothing records when it began;
//! - tallies equal a recount, messages are bounded, the loop comes to rest.
//!
//! Remembered Jobs are simulated in a cluster of their own for each seed: no remembered outcome is ever wrong, and the
//! last run counts of which any evidence is left.
//!
//! A seed has a second history, with policies that are edited, refused, deleted and created again. Where a rule changes, no
//! answer is written before its kind was listed again; no entry leaves a parent whose policy exists; no True rests on a changed
//! rule for longer than two minutes; and what is in force at the end is what the server has. With some edits the right to read the
//! parents goes for minutes: once their kind is known not to be seen, no True of the policy before the edit stands.
//!
//! In its third history policies are resolved by labels of namespaces and by scripts of a ConfigMap, which change too, behind
//! lists that break off: no plan rests on anything that the server never had.
//!
//! Reference workloads are histories of which nothing is drawn: each of their points can be disturbed, by a test that does so with
//! all of them.
//!
//! Policies turn to shadow mode and back, and plans reach the loop a moment after the kinds that are read by them.
//!
//! In some histories another process takes over while the former one goes on for a while, frozen at first, by what it held:
//! its writes overwrite nothing that it did not know, a True of it that has become wrong does not stand, and the two do not
//! write one parent without end.
//!
//! In some histories people delete the definitions of kinds of children or of parents, and with them all of their objects, and
//! mostly put them back: a kind that is not served is looked for, counts as one without objects once it is known to be
//! absent, and makes nothing True before it was listed again.
//!
//! In drawn histories PodDisruptionBudgets come and go behind lists that break off, and pods are drained within them and beyond: each
//! workload is judged by what the service was told of them in whole when it was last read.
//!
//! In its fourth history another release of Rollcall has policies over the same parents, and policies move between the two by their
//! labels. What that release says by a policy that it has, and that is the older one, is never taken away; to the product it looks
//! like its own words.
//!
//! In some histories nights and weekends pass, in which nobody changes anything and mostly nothing breaks: the deadlines, resyncs
//! and audits of hours.
//!
//! At the end faults stop; after a quiet span the conditions of every parent, and every answer that is not written, equal the result
//! of an oracle that reads nothing but the store, and a restart writes nothing.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

mod actors;
mod histories;
mod judges;
mod memory;
mod perturbation;
mod scenario;
mod service;
mod sim;
mod timeline;
mod wires;
mod world;

pub use memory::MemoryCounts;
pub use perturbation::{Disturbance, Perturbation, PointKind};
use scenario::{HistoryKind, SeedStreams};
pub use scenario::{ReferenceWorkload, Sabotage, SabotagedPart, StreamLayout};
pub use timeline::{InvariantFailure, SimulationCounts};

/// Result of a seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationRun {
    /// The seed.
    pub seed: u64,
    /// Log of the run, one line per event.
    pub log: Vec<String>,
    /// The first violated invariant.
    pub failure: Option<InvariantFailure>,
    /// Counts of what happened.
    pub counts: SimulationCounts,
}

impl SimulationRun {
    fn new(seed: u64) -> SimulationRun {
        SimulationRun { seed, log: Vec::new(), failure: None, counts: SimulationCounts::default() }
    }
}

/// Plays one seed to its end, or to the first violated invariant.
pub fn play_seed(seed: u64, layout: StreamLayout, sabotage: Option<Sabotage>) -> SimulationRun {
    let mut run = SimulationRun::new(seed);
    let part = sabotage.map(Sabotage::part);
    if part.is_none_or(|part| part == SabotagedPart::Cluster) {
        play_cluster(&mut run, layout, sabotage, HistoryKind::Still);
    }
    if part == Some(SabotagedPart::Policies) {
        play_cluster(&mut run, layout, sabotage, HistoryKind::ChangingPolicies);
    }
    if part == Some(SabotagedPart::Resolution) {
        play_cluster(&mut run, layout, sabotage, HistoryKind::ChangingResolution);
    }
    if part == Some(SabotagedPart::SharedCluster) {
        play_cluster(&mut run, layout, sabotage, HistoryKind::SharedCluster);
    }
    if run.failure.is_none()
        && part.is_none_or(|part| matches!(part, SabotagedPart::Cluster | SabotagedPart::Memory))
    {
        play_memory(&mut run, sabotage);
    }
    run
}

/// Result of a reference workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadRun {
    /// Log of the run, one line per event.
    pub log: Vec<String>,
    /// The first violated invariant.
    pub failure: Option<InvariantFailure>,
    /// Number of points that can be disturbed, of each kind.
    pub points: BTreeMap<PointKind, u32>,
    /// What is said of each parent at the end.
    pub said: Vec<String>,
}

/// Plays a reference workload to its end, or to the first violated invariant; disturbed at these points.
pub fn play_workload(
    workload: ReferenceWorkload,
    perturbations: &[Perturbation],
    sabotage: Option<Sabotage>,
) -> WorkloadRun {
    let mut sim = histories::history_of_workload(workload, sabotage, perturbations);
    if catch_unwind(AssertUnwindSafe(|| sim.play_history())).is_err() {
        sim.fail_by_panic();
    }
    let (points, said) = sim.describe_end();
    let (log, _, failure) = sim.into_report();
    WorkloadRun { log, failure, points, said }
}

/// Plays the history of one seed in which policies change to its end, or to the first violated invariant.
pub fn play_changing_policies(seed: u64, layout: StreamLayout) -> SimulationRun {
    let mut run = SimulationRun::new(seed);
    play_cluster(&mut run, layout, None, HistoryKind::ChangingPolicies);
    run
}

/// Plays the history of one seed in which policies change, and what they are resolved by, to its end, or to the first violated
/// invariant.
pub fn play_changing_resolution(seed: u64, layout: StreamLayout) -> SimulationRun {
    let mut run = SimulationRun::new(seed);
    play_cluster(&mut run, layout, None, HistoryKind::ChangingResolution);
    run
}

/// Plays the history of one seed in which another release has policies, too, and policies move between the two, to its end, or to
/// the first violated invariant.
pub fn play_shared_cluster(seed: u64, layout: StreamLayout) -> SimulationRun {
    let mut run = SimulationRun::new(seed);
    play_cluster(&mut run, layout, None, HistoryKind::SharedCluster);
    run
}

/// Plays one of the seed's histories of the cluster.
fn play_cluster(
    run: &mut SimulationRun,
    layout: StreamLayout,
    sabotage: Option<Sabotage>,
    kind: HistoryKind,
) {
    let mut sim = histories::history_of_seed(SeedStreams { seed: run.seed, layout }, sabotage, kind);
    if catch_unwind(AssertUnwindSafe(|| sim.play_history())).is_err() {
        sim.fail_by_panic();
    }
    let (log, counts, failure) = sim.into_report();
    run.log.extend(log);
    run.counts += counts;
    run.failure = failure;
}

/// Plays the same seed's history of remembered Jobs.
fn play_memory(run: &mut SimulationRun, sabotage: Option<Sabotage>) {
    let seed = run.seed;
    match catch_unwind(|| memory::play_history(seed, sabotage)) {
        Ok((log, failure, remembered)) => {
            run.log.extend(log);
            run.counts.remembered = remembered;
            run.failure = failure;
        }
        Err(_) => {
            run.failure =
                Some(InvariantFailure { invariant: "nothing panics", detail: "see above".to_owned() });
        }
    }
}

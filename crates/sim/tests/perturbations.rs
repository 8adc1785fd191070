//! Every single disturbance of the reference workloads: each notification and each write is lost, late, repeated, refused, or the
//! end of the process. None makes a word false on the way, and the end is that of the undisturbed history.
//!
//! Of two disturbances in one history some are played, drawn from a seed: `ROLLCALL_SIM_PAIRS=N` plays N of them, and
//! `ROLLCALL_SIM_PAIR_SEED=S` draws others. `ROLLCALL_SIM_PLAN=Rollout/Write/3/Refused` plays one plan and prints its log (a
//! second one follows a `+`), and `ROLLCALL_SIM_PLAN=Rollout` plays the workload undisturbed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sim::{Perturbation, ReferenceWorkload, Sabotage, SabotagedPart, WorkloadRun, play_workload};
use timer::Seed;

/// Number of pairs of disturbances that are played by default, and of all of `tests/run --full`.
const PAIRS: (usize, usize) = (1_000, 40_000);

/// A workload, and where it is disturbed.
#[derive(Clone)]
struct DisturbedWorkload {
    workload: ReferenceWorkload,
    plans: Vec<Perturbation>,
}

impl fmt::Display for DisturbedWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plans: Vec<String> = self.plans.iter().map(ToString::to_string).collect();
        write!(f, "{:?}/{}", self.workload, plans.join("+"))
    }
}

impl DisturbedWorkload {
    fn parse(text: &str) -> DisturbedWorkload {
        let (name, plans) = text.split_once('/').unwrap_or((text, ""));
        let workload =
            ReferenceWorkload::ALL.into_iter().find(|workload| format!("{workload:?}") == name).unwrap();
        let plans = plans.split('+').filter(|plan| !plan.is_empty());
        DisturbedWorkload { workload, plans: plans.map(|plan| plan.parse().unwrap()).collect() }
    }

    fn play(&self, sabotage: Option<Sabotage>) -> WorkloadRun {
        play_workload(self.workload, &self.plans, sabotage)
    }
}

/// A workload undisturbed, and every single disturbance of it.
struct ReferenceHistory {
    workload: ReferenceWorkload,
    undisturbed: WorkloadRun,
}

impl ReferenceHistory {
    fn all(sabotage: Option<Sabotage>) -> Vec<ReferenceHistory> {
        let play =
            |workload| ReferenceHistory { workload, undisturbed: play_workload(workload, &[], sabotage) };
        ReferenceWorkload::ALL.map(play).into()
    }

    fn perturbations(&self) -> Vec<Perturbation> {
        let points = self.undisturbed.points.iter();
        points.flat_map(|(point, count)| Perturbation::all_of(*point, *count)).collect()
    }

    fn singles(&self) -> impl Iterator<Item = DisturbedWorkload> {
        let of = |plan| DisturbedWorkload { workload: self.workload, plans: vec![plan] };
        self.perturbations().into_iter().map(of)
    }

    /// Returns what is wrong with a disturbed run.
    fn find_fault(&self, run: WorkloadRun) -> Option<String> {
        let expected = &self.undisturbed.said;
        match run.failure {
            Some(failure) => Some(format!("{}: {}", failure.invariant, failure.detail)),
            None if run.said != *expected => Some(format!("it ends with {:?}, to be {expected:?}", run.said)),
            None => None,
        }
    }
}

/// Plays all plans concurrently; returns what is wrong with each that fails, and how to play it.
fn failures(histories: &[ReferenceHistory], plans: &[DisturbedWorkload]) -> Vec<String> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let history = histories.iter().find(|history| history.workload == plan.workload).unwrap();
                    if let Some(fault) = history.find_fault(plan.play(None)) {
                        let command = "cargo test -p sim --test perturbations every_single -- --nocapture";
                        failed.lock().unwrap().push(format!("{fault}\n  ROLLCALL_SIM_PLAN={plan} {command}"));
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap()
}

#[test]
fn every_single_disturbance_ends_as_the_undisturbed_history_and_says_nothing_false() {
    if let Ok(asked) = std::env::var("ROLLCALL_SIM_PLAN") {
        let run = DisturbedWorkload::parse(&asked).play(None);
        run.log.iter().chain(&run.said).for_each(|line| println!("{line}"));
        println!("{:?}", run.points);
        return assert_eq!(run.failure, None, "{asked}");
    }
    let histories = ReferenceHistory::all(None);
    for ReferenceHistory { workload, undisturbed } in &histories {
        assert_eq!(undisturbed.failure, None, "{workload:?} undisturbed:\n{}", undisturbed.log.join("\n"));
        assert!(undisturbed.points.values().sum::<u32>() >= 20, "{workload:?}: {:?}", undisturbed.points);
    }
    let plans: Vec<_> = histories.iter().flat_map(ReferenceHistory::singles).collect();
    println!("{} disturbances of {} workloads", plans.len(), histories.len());
    let failed = failures(&histories, &plans);
    assert!(failed.is_empty(), "{} of {} plans:\n{}", failed.len(), plans.len(), failed.join("\n"));
}

#[test]
fn two_disturbances_of_a_history_end_as_the_undisturbed_one_and_say_nothing_false() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let is_full = number("ROLLCALL_FULL") == Some(1);
    let default = if is_full { PAIRS.1 } else { PAIRS.0 };
    let pairs = number("ROLLCALL_SIM_PAIRS").map_or(default, |pairs| usize::try_from(pairs).unwrap());
    let seed = number("ROLLCALL_SIM_PAIR_SEED").unwrap_or(1);
    let histories = ReferenceHistory::all(None);
    let all: Vec<_> = histories.iter().map(ReferenceHistory::perturbations).collect();
    let seed = Seed(seed);
    let below = |end: usize, key: usize| {
        let end = u64::try_from(end).unwrap();
        usize::try_from(seed.number_for(u64::try_from(key).unwrap()) % end).unwrap()
    };
    let pair = |number| {
        let at = below(histories.len(), 3 * number);
        let plans = [1, 2].map(|of| all[at][below(all[at].len(), 3 * number + of)]);
        DisturbedWorkload { workload: histories[at].workload, plans: plans.into() }
    };
    let plans: Vec<_> = (0..pairs).map(pair).collect();
    println!("{pairs} pairs of disturbances from {}", seed.0);
    let failed = failures(&histories, &plans);
    assert!(failed.is_empty(), "{} of {pairs} pairs:\n{}", failed.len(), failed.join("\n"));
}

/// Returns the first history in which this sabotage is noticed as what it is: an undisturbed one, or one that is disturbed once.
fn caught(sabotage: Sabotage) -> Option<String> {
    let violates = |run: &WorkloadRun| {
        run.failure.as_ref().is_some_and(|failure| failure.invariant == sabotage.violated_invariant())
    };
    let mut histories = ReferenceHistory::all(Some(sabotage));
    // What alters policies needs a history in which they change.
    let is_of_policies = sabotage.part() == SabotagedPart::Policies;
    histories.retain(|history| !is_of_policies || history.workload == ReferenceWorkload::PolicyEdits);
    if let Some(history) = histories.iter().find(|history| violates(&history.undisturbed)) {
        return Some(format!("{:?} undisturbed", history.workload));
    }
    let mut plans = histories.iter().flat_map(ReferenceHistory::singles);
    plans.find(|plan| violates(&plan.play(Some(sabotage)))).map(|plan| plan.to_string())
}

#[test]
fn what_is_broken_on_purpose_is_noticed_by_some_disturbance() {
    // The workloads have no part of the others, no former leader that goes on, and no budgets.
    const ABSENT: [Sabotage; 2] = [Sabotage::LostLeaseUnguarded, Sabotage::HalfBudgetsUsed];
    let parts = [SabotagedPart::Cluster, SabotagedPart::Policies];
    let is_played = |sabotage: &Sabotage| parts.contains(&sabotage.part()) && !ABSENT.contains(sabotage);
    for sabotage in Sabotage::ALL.into_iter().filter(is_played) {
        let found = caught(sabotage);
        println!("{sabotage:?}: {found:?}");
        assert!(found.is_some(), "{sabotage:?} is not noticed: {}", sabotage.violated_invariant());
    }
}

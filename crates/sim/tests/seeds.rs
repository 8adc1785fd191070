//! Two hundred seeds, each with a history of its own.
//!
//! `ROLLCALL_SIM_SEEDS=N` plays N of them, from `ROLLCALL_SIM_START`; `ROLLCALL_SIM_SEED=S` plays one and prints its
//! log.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use sim::{MemoryCounts, Sabotage, SimulationCounts, SimulationRun, play_seed};

/// Default number of seeds.
const SEEDS: u64 = 200;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Plays seeds concurrently, until one fails; all of them if `all` is set.
fn play_all(from: u64, count: u64, done: impl Fn(SimulationRun) -> bool + Sync) {
    let next = AtomicU64::new(from);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= from + count || !done(play_seed(seed, None)) {
                        return;
                    }
                }
            });
        }
    });
}

#[test]
fn every_invariant_holds_for_every_seed() {
    if let Some(seed) = number("ROLLCALL_SIM_SEED") {
        let run = play_seed(seed, None);
        run.log.iter().for_each(|line| println!("{line}"));
        println!("{:?}", run.counts);
        assert_eq!(run.failure, None, "seed {seed}");
        return;
    }
    let full = std::env::var("ROLLCALL_FULL").is_ok_and(|full| full == "1");
    let count = number("ROLLCALL_SIM_SEEDS").unwrap_or(if full { 10 * SEEDS } else { SEEDS });
    let from = number("ROLLCALL_SIM_START").unwrap_or(0);
    let (failed, sum) = (Mutex::new(Vec::new()), Mutex::new(SimulationCounts::default()));
    play_all(from, count, |run| {
        add(&mut sum.lock().unwrap(), &run.counts);
        if let Some(failure) = run.failure {
            failed.lock().unwrap().push((run.seed, failure));
        }
        failed.lock().unwrap().len() < 10
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort_by_key(|(seed, _)| *seed);
    let words = failed.iter().map(|(seed, failure)| {
        format!(
            "seed {seed}: {}: {}\n  ROLLCALL_SIM_SEED={seed} cargo test -p sim --test seeds every_ -- --nocapture",
            failure.invariant, failure.detail
        )
    });
    let words: Vec<String> = words.collect();
    let sum = sum.into_inner().unwrap();
    println!("{count} seeds from {from}: {sum:?}");
    assert!(words.is_empty(), "\n{}", words.join("\n"));
    let MemoryCounts { restarts, outages, right, unseen, strangers, superseded: told } = sum.remembered;
    let happened = restarts > 4 * count && outages > 2 * count && told > 4 * count && strangers > 0;
    assert!(
        happened && unseen > strangers && right > unseen,
        "histories in which too little is remembered show nothing: {:?}",
        sum.remembered
    );
}

fn add(sum: &mut SimulationCounts, run: &SimulationCounts) {
    sum.events += run.events;
    sum.writes += run.writes;
    sum.trues += run.trues;
    sum.refused += run.refused;
    sum.restarts += run.restarts;
    sum.lost += run.lost;
    sum.drift += run.drift;
    sum.parents += run.parents;
    sum.remembered += run.remembered;
}

#[test]
fn the_same_seed_gives_the_same_log() {
    for seed in [1, 7, 42] {
        assert_eq!(play_seed(seed, None), play_seed(seed, None), "seed {seed}");
    }
}

/// Returns the first seed that reports a violation of this invariant under this sabotage.
fn caught(sabotage: Sabotage, invariant: &str) -> Option<u64> {
    let says =
        |seed: &u64| play_seed(*seed, Some(sabotage)).failure.is_some_and(|f| f.invariant == invariant);
    (0..SEEDS).find(says)
}

#[test]
fn what_is_broken_on_purpose_is_noticed() {
    for (sabotage, invariant) in [
        (Sabotage::NoSettle, "no false ready"),
        (Sabotage::NoEvidence, "no false ready"),
        (Sabotage::StaleLooksNew, "answers follow what was shown"),
        (Sabotage::SyncedEarly, "nothing is said before everything was seen"),
        (Sabotage::BlindnessForgiven, "blindness is not readiness"),
        (Sabotage::NoSweep, "answers follow what was shown"),
        (Sabotage::NoGuards, "identity is the uid"),
        (Sabotage::ForeignTouched, "only our own entries"),
        (Sabotage::DeletesLost, "eventually exact"),
        (Sabotage::OutagesForgotten, "a finished job stays finished"),
        (Sabotage::HearsayBelieved, "a finished job stays finished"),
    ] {
        let seed = caught(sabotage, invariant);
        println!("{sabotage:?}: seed {seed:?}");
        assert!(seed.is_some(), "{sabotage:?} is not noticed: {invariant}");
    }
}

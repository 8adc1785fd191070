//! Three hundred seeds, each with a history of its own, and those that once found something.
//!
//! `ROLLCALL_SIM_SEEDS=N` plays N of them, from `ROLLCALL_SIM_START`; `ROLLCALL_SIM_SEED=S` plays one and prints its
//! log. A third of them are played with policies that change, too, or all of them with `ROLLCALL_SIM_POLICIES=1`;
//! `ROLLCALL_SIM_POLICY_SEED=S` plays one of those. As many are played with labels of namespaces, scripts of a ConfigMap and
//! ReadinessGroups that change, too; `ROLLCALL_SIM_RESOLUTION_SEED=S` plays one of those; and as many with another release that has
//! policies, too: `ROLLCALL_SIM_SHARED_CLUSTER_SEED=S`.
//!
//! Each concern draws from a stream of its own. When the seeds that are remembered as shared were found, all faults and delays
//! drew from one, and they are played so: `ROLLCALL_SIM_SHARED=1` plays others so too. Those that were found before there were more
//! streams are played without what was added since: `ROLLCALL_SIM_STREAMS=N` plays others with the first N alone.
//!
//! A range that never moves is a table of examples to which the program is fitted. So the range walks on: whoever changes
//! the engine, the core, the reflector, the timer or this simulator runs `crates/sim/next-seeds`, which moves
//! [`FIRST_SEED`], and commits that with the change. A seed that fails, in this range or any other, is mended and joins
//! [`REMEMBERED_SEEDS`].

#![allow(clippy::unwrap_used, clippy::panic, reason = "what fails here is a failed test")]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sim::{
    MemoryCounts, Sabotage, SimulationCounts, SimulationRun, StreamLayout, play_changing_policies,
    play_changing_resolution, play_seed, play_shared_cluster,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Default number of seeds.
const SEEDS: u64 = 300;
/// First seed of the range.
const FIRST_SEED: u64 = 33_500;
/// Seeds that found a fault of the product or of its judge: each is played every time, with the streams it was found with.
const REMEMBERED_SEEDS: [SeedToPlay; 14] = [
    (920_154, BEFORE_SHADOW_MODE),
    (921_506, BEFORE_SHADOW_MODE),
    (921_520, BEFORE_SHADOW_MODE),
    (31_380, WITH_LATE_LISTS),
    (36_163, WITH_CHURN),
    (37_029, WITH_CHURN),
    (24_920, WITH_DEFINITIONS),
    (25_512, WITH_DEFINITIONS),
    (212_173, WITH_DEFINITIONS),
    (212_657, WITH_DEFINITIONS),
    (212_842, WITH_DEFINITIONS),
    (214_100, WITH_DEFINITIONS),
    (217_904, WITH_BLIND_EDITS),
    (33_170, WITH_FOREGROUND_DELETIONS),
];
/// The same of histories in which policies change.
const REMEMBERED_CHANGING_SEEDS: [SeedToPlay; 18] = [
    (900_574, BEFORE_SHADOW_MODE),
    (20_974, BEFORE_SHADOW_MODE),
    (30_054, WITH_LATE_LISTS),
    (30_301, WITH_LATE_LISTS),
    (24_867, WITH_CHURN),
    (25_134, WITH_OVERLAPS),
    (40_063, WITH_OVERLAPS),
    (26_626, WITH_DEFINITIONS),
    (212_073, WITH_DEFINITIONS),
    (212_641, WITH_DEFINITIONS),
    (27_223, WITH_BLIND_EDITS),
    (400_824, WITH_TYPE_EDITS),
    (29_090, WITH_BUDGETS),
    (300_182, WITH_BUDGETS),
    (330_071, WITH_CLAIMS),
    (360_119, WITH_FAILURES),
    (31_251, WITH_FAILURES),
    (31_747, WITH_FOREGROUND_DELETIONS),
];
/// The same of histories in which labels of namespaces and scripts change, too.
const REMEMBERED_RESOLUTION_SEEDS: [SeedToPlay; 16] = [
    (22_728, WITH_SHADOW_MODE),
    (22_771, WITH_LATE_LISTS),
    (30_026, WITH_LATE_LISTS),
    (30_054, WITH_LATE_LISTS),
    (30_187, WITH_LATE_LISTS),
    (31_374, WITH_LATE_LISTS),
    (24_867, WITH_CHURN),
    (40_071, WITH_OVERLAPS),
    (40_260, WITH_OVERLAPS),
    (40_068, WITH_DEFINITIONS),
    (200_451, WITH_DEFINITIONS),
    (212_489, WITH_DEFINITIONS),
    (212_774, WITH_DEFINITIONS),
    (330_138, WITH_BUDGETS),
    (330_016, WITH_CLAIMS),
    (31_251, WITH_FAILURES),
];
/// The streams that there were before shadow mode.
const BEFORE_SHADOW_MODE: StreamLayout = StreamLayout::Split { last: 22 };
/// Those before lists waited for their answers.
const WITH_SHADOW_MODE: StreamLayout = StreamLayout::Split { last: 25 };
/// Those that there are since.
const WITH_LATE_LISTS: StreamLayout = StreamLayout::Split { last: 26 };
/// Those that there are since autoscalers and drains.
const WITH_CHURN: StreamLayout = StreamLayout::Split { last: 30 };
/// Those that there are since two leaders overlap.
const WITH_OVERLAPS: StreamLayout = StreamLayout::Split { last: 31 };
/// Those that there are since definitions are deleted.
const WITH_DEFINITIONS: StreamLayout = StreamLayout::Split { last: 33 };
/// Those that there are since policies are edited while their parents may not be read.
const WITH_BLIND_EDITS: StreamLayout = StreamLayout::Split { last: 34 };
/// Those that there are since types of conditions are edited.
const WITH_TYPE_EDITS: StreamLayout = StreamLayout::Split { last: 35 };
/// Those that there are since PodDisruptionBudgets and drains of whole sets.
const WITH_BUDGETS: StreamLayout = StreamLayout::Split { last: 41 };
/// Those that there are since another release has policies.
const WITH_CLAIMS: StreamLayout = StreamLayout::Split { last: 44 };
/// Those that there are since parents report failures.
const WITH_FAILURES: StreamLayout = StreamLayout::Split { last: 45 };
/// Those that there are since parents are deleted in the foreground.
const WITH_FOREGROUND_DELETIONS: StreamLayout = StreamLayout::Split { last: 46 };
/// Seeds that were found when concerns shared streams.
const SHARED_SEEDS: [u64; 22] = [
    522, 932, 961, 1344, 1923, 2078, 2265, 2884, 3400, 4426, 4877, 7310, 7957, 8335, 32321, 62204, 70878,
    64_896, 73_048, 711_401, 712_146, 712_714,
];
/// The same of histories in which policies change.
const SHARED_CHANGING_SEEDS: [u64; 58] = [
    94, 9203, 9219, 9329, 9452, 9834, 9885, 9950, 10039, 12468, 20091, 20256, 20271, 40009, 40071, 40103,
    40116, 40294, 40349, 40776, 40786, 40842, 40854, 40991, 41030, 41108, 43258, 43861, 61518, 62004, 62532,
    62621, 70125, 132_614, 132_805, 135_583, 135_598, 140_362, 150_031, 161_397, 161_788, 162_484, 163_915,
    164_065, 164_782, 166_464, 170_684, 181_250, 15_549, 192_339, 202_750, 218_586, 16_494, 400_474, 402_584,
    410_771, 500_959, 563_626,
];
/// Number of seeds among which each sabotage is to be noticed.
const SABOTAGED_SEEDS: u64 = 400;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// A seed, and how its history shares streams.
type SeedToPlay = (u64, StreamLayout);
/// Plays the history of a seed.
type PlaySeed = fn(u64, StreamLayout) -> SimulationRun;

/// The layout that is asked for.
fn asked_layout() -> StreamLayout {
    if number("ROLLCALL_SIM_SHARED") == Some(1) {
        return StreamLayout::Shared;
    }
    number("ROLLCALL_SIM_STREAMS").map_or(StreamLayout::ALL, |last| StreamLayout::Split { last })
}

/// These seeds, and those that are remembered.
fn with_remembered(
    range: std::ops::Range<u64>,
    remembered: &[SeedToPlay],
    shared: &[u64],
) -> Vec<SeedToPlay> {
    let shared = shared.iter().map(|seed| (*seed, StreamLayout::Shared));
    remembered.iter().copied().chain(shared).chain(range.map(|seed| (seed, asked_layout()))).collect()
}

/// Plays seeds concurrently, until `done` has enough.
fn play_all(seeds: &[SeedToPlay], play: PlaySeed, done: impl Fn(SimulationRun) -> bool + Sync) {
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = seeds.get(next.fetch_add(1, Ordering::Relaxed));
                    if seed.is_none_or(|(seed, layout)| !done(play(*seed, *layout))) {
                        return;
                    }
                }
            });
        }
    });
}

/// Plays seeds; returns their counts, and how to play each that failed.
fn failures(seeds: &[SeedToPlay], play: PlaySeed, command: &str) -> (SimulationCounts, Vec<String>) {
    let (failed, sum) = (Mutex::new(Vec::new()), Mutex::new(SimulationCounts::default()));
    play_all(seeds, play, |run| {
        *sum.lock().unwrap() += run.counts;
        if let Some(failure) = run.failure {
            failed.lock().unwrap().push((run.seed, failure));
        }
        failed.lock().unwrap().len() < 10
    });
    let mut failed = failed.into_inner().unwrap();
    failed.sort_by_key(|(seed, _)| *seed);
    let words = failed.iter().map(|(seed, failure)| {
        let (invariant, detail) = (&failure.invariant, &failure.detail);
        let layout = match seeds.iter().find(|(played, _)| played == seed) {
            Some((_, StreamLayout::Shared)) => "ROLLCALL_SIM_SHARED=1 ".to_owned(),
            Some((_, layout @ StreamLayout::Split { last })) if *layout != StreamLayout::ALL => {
                format!("ROLLCALL_SIM_STREAMS={last} ")
            }
            _ => String::new(),
        };
        format!(
            "seed {seed}: {invariant}: {detail}\n  {layout}ROLLCALL_SIM_SEED={seed} {command} -- --nocapture"
        )
    });
    (sum.into_inner().unwrap(), words.collect())
}

/// Plays one seed, and prints its log.
#[expect(clippy::print_stdout, reason = "the log of this seed is what is asked for")]
fn play_aloud(seed: u64, play: PlaySeed) {
    let run = play(seed, asked_layout());
    run.log.iter().for_each(|line| println!("{line}"));
    println!("{:?}", run.counts);
    assert_eq!(run.failure, None, "seed {seed}");
}

/// The range that is asked for, or else the one that walks on.
fn seed_range() -> std::ops::Range<u64> {
    let full = std::env::var("ROLLCALL_FULL").is_ok_and(|full| full == "1");
    let count = number("ROLLCALL_SIM_SEEDS").unwrap_or(if full { 10 * SEEDS } else { SEEDS });
    let from = number("ROLLCALL_SIM_START").unwrap_or(FIRST_SEED);
    from..from + count
}

#[test]
fn every_invariant_holds_for_every_seed() {
    let play: PlaySeed = |seed, layout| play_seed(seed, layout, None);
    if let Some(seed) = number("ROLLCALL_SIM_SEED") {
        return play_aloud(seed, play);
    }
    let range = seed_range();
    let (count, from) = (range.end - range.start, range.start);
    let shared = if number("ROLLCALL_SIM_SEEDS").is_none() { &SHARED_SEEDS[..] } else { &[] };
    let seeds = with_remembered(range, &REMEMBERED_SEEDS, shared);
    let (sum, failed) = failures(&seeds, play, "cargo test -p sim --test seeds for_every");
    println!("{count} seeds from {from}, {} in all: {sum:?}", seeds.len());
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
    assert!(
        sum.overlaps > count && sum.ghost_writes > count,
        "histories in which no former process writes show nothing: {sum:?}"
    );
    assert!(
        sum.vanished > count / 2 && sum.returned > count / 4,
        "histories in which no definition is deleted show nothing: {sum:?}"
    );
    let MemoryCounts { restarts, outages, takeovers, half_lists, right, unseen, strangers, superseded } =
        sum.remembered;
    let happened = restarts > 4 * count
        && outages > 2 * count
        && takeovers > count
        && half_lists > count
        && superseded > 4 * count
        && strangers > 0;
    assert!(
        happened && unseen > strangers && right > unseen,
        "histories in which too little is remembered show nothing: {:?}",
        sum.remembered
    );
}

/// Histories of one kind, of which a third as many are played.
struct HistorySeeds {
    /// Environment variable that names the one seed to play.
    variable: &'static str,
    /// What selects the test.
    test: &'static str,
    play: PlaySeed,
    remembered: &'static [SeedToPlay],
    shared: &'static [u64],
}

impl HistorySeeds {
    /// Plays them, or the one that is asked for, and prints a summary; returns what happened in those of the range, and their number.
    #[expect(clippy::print_stdout, reason = "the summary of a run, with --nocapture")]
    fn check_all(&self) -> Option<(SimulationCounts, u64)> {
        if let Some(seed) = number(self.variable) {
            play_aloud(seed, self.play);
            return None;
        }
        let range = seed_range();
        let all = range.end - range.start;
        let count = if number("ROLLCALL_SIM_POLICIES").is_some() { all } else { all.div_ceil(3) };
        let seeds = with_remembered(range.start..range.start + count, self.remembered, self.shared);
        let command = format!("cargo test -p sim --test seeds {}", self.test);
        let (sum, failed) = failures(&seeds, self.play, &command);
        println!("{count} seeds from {}, {} in all: {sum:?}", range.start, seeds.len());
        let failed: Vec<String> =
            failed.iter().map(|f| f.replace("ROLLCALL_SIM_SEED", self.variable)).collect();
        assert!(failed.is_empty(), "\n{}", failed.join("\n"));
        Some((sum, u64::try_from(seeds.len()).unwrap()))
    }

    /// The same of histories that show nothing if policies do not change in them.
    fn check_changing(&self) {
        let Some((SimulationCounts { plans, .. }, played)) = self.check_all() else { return };
        assert!(
            plans > 4 * played,
            "histories in which policies do not change show nothing: {plans} plans in {played}"
        );
    }
}

#[test]
fn every_invariant_holds_while_policies_change() {
    let histories = HistorySeeds {
        variable: "ROLLCALL_SIM_POLICY_SEED",
        test: "policies_change",
        play: play_changing_policies,
        remembered: &REMEMBERED_CHANGING_SEEDS,
        shared: &SHARED_CHANGING_SEEDS,
    };
    histories.check_changing();
}

#[test]
fn every_invariant_holds_while_labels_and_scripts_change() {
    let histories = HistorySeeds {
        variable: "ROLLCALL_SIM_RESOLUTION_SEED",
        test: "labels_and_scripts",
        play: play_changing_resolution,
        remembered: &REMEMBERED_RESOLUTION_SEEDS,
        shared: &[],
    };
    histories.check_changing();
}

#[test]
fn every_invariant_holds_beside_another_release() {
    let histories = HistorySeeds {
        variable: "ROLLCALL_SIM_SHARED_CLUSTER_SEED",
        test: "another_release",
        play: play_shared_cluster,
        remembered: &[(360_168, WITH_FAILURES), (31_337, WITH_FAILURES), (32_034, WITH_FOREGROUND_DELETIONS)],
        shared: &[],
    };
    histories.check_changing();
}

#[test]
fn the_same_seed_gives_the_same_log() {
    for seed in [1, 7, 42] {
        for layout in [StreamLayout::ALL, StreamLayout::Shared] {
            assert_eq!(play_seed(seed, layout, None), play_seed(seed, layout, None), "seed {seed}");
        }
    }
}

/// Returns the first seed in whose history this sabotage is noticed as what it is.
fn caught(sabotage: Sabotage) -> Option<u64> {
    let says = |seed: &u64| {
        play_seed(*seed, StreamLayout::ALL, Some(sabotage))
            .failure
            .is_some_and(|failure| failure.invariant == sabotage.violated_invariant())
    };
    (0..SABOTAGED_SEEDS).find(says)
}

#[test]
fn what_is_broken_on_purpose_is_noticed() {
    for sabotage in Sabotage::ALL {
        let seed = caught(sabotage);
        println!("{sabotage:?}: seed {seed:?}");
        assert!(seed.is_some(), "{sabotage:?} is not noticed: {}", sabotage.violated_invariant());
    }
}

//! Plays as many histories as are asked for, all of one seed after the other, and says how far it is and how fast:
//! `cargo run -p sim -- --seeds 100000 --from 40000`.
//!
//! Of each seed all kinds of histories are played, or only those that `--only` names. A failure is printed at once, with the command
//! that plays it again; the exit code is 1 if there was one, 2 for a mistyped command.

#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "it prints, and tells how long it has taken"
)]

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use sim::{
    SimulationRun, StreamLayout, play_changing_policies, play_changing_resolution, play_seed,
    play_shared_cluster,
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Width of the bar.
const BAR_WIDTH: u64 = 24;
/// How often a terminal is told how far it is, and anything else.
const TERMINAL_INTERVAL: Duration = Duration::from_secs(1);
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Plays histories of the simulator
#[derive(Parser)]
#[command(name = "sim")]
struct HistoriesArgs {
    /// Number of seeds.
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    seeds: u64,
    /// First seed.
    #[arg(long, default_value_t = 100_000, value_name = "SEED", value_parser = clap::value_parser!(u64).range(..1 << 60))]
    from: u64,
    /// Kinds of histories. All by default.
    #[arg(long, value_delimiter = ',', value_enum, value_name = "KIND")]
    only: Vec<HistoryChoice>,
    /// Threads. One for each core by default.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum HistoryChoice {
    /// Policies stay as they are.
    Still,
    /// Policies change.
    Policies,
    /// Labels of namespaces, scripts and groups change.
    Resolution,
    /// Another release has policies.
    Shared,
}

impl HistoryChoice {
    fn play(self, seed: u64) -> SimulationRun {
        match self {
            HistoryChoice::Still => play_seed(seed, StreamLayout::ALL, None),
            HistoryChoice::Policies => play_changing_policies(seed, StreamLayout::ALL),
            HistoryChoice::Resolution => play_changing_resolution(seed, StreamLayout::ALL),
            HistoryChoice::Shared => play_shared_cluster(seed, StreamLayout::ALL),
        }
    }

    /// How one is played again, with its log.
    fn command(self, seed: u64) -> String {
        let (variable, test) = match self {
            HistoryChoice::Still => ("ROLLCALL_SIM_SEED", "for_every"),
            HistoryChoice::Policies => ("ROLLCALL_SIM_POLICY_SEED", "policies_change"),
            HistoryChoice::Resolution => ("ROLLCALL_SIM_RESOLUTION_SEED", "labels_and_scripts"),
            HistoryChoice::Shared => ("ROLLCALL_SIM_SHARED_CLUSTER_SEED", "another_release"),
        };
        format!("{variable}={seed} cargo test -p sim --test seeds {test} -- --nocapture")
    }
}

/// What was played so far.
#[derive(Default)]
struct PlayedSum {
    histories: u64,
    failed: u64,
    simulated_ms: u64,
}

/// What is played, and how far it is.
struct HistoryRun {
    begun: Instant,
    all: u64,
    threads: usize,
    sum: Mutex<PlayedSum>,
    /// Nobody plays any more.
    is_over: AtomicBool,
}

impl HistoryRun {
    /// Counts a history, and prints how it failed.
    fn count(&self, choice: HistoryChoice, run: &SimulationRun) {
        let Ok(mut sum) = self.sum.lock() else { return };
        sum.histories += 1;
        sum.simulated_ms += run.counts.simulated_ms;
        if let Some(failure) = &run.failure {
            sum.failed += 1;
            let again = choice.command(run.seed);
            println!("seed {}: {}: {}\n  {again}", run.seed, failure.invariant, failure.detail);
        }
    }

    /// How far it is, and how fast: hours that are simulated in a minute of one core.
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    fn describe(&self) -> String {
        let Ok(sum) = self.sum.lock() else { return String::new() };
        let took = self.begun.elapsed().as_secs_f64().max(0.001);
        let (full, left) = (BAR_WIDTH * sum.histories / self.all, self.all - sum.histories);
        let bar = (0..BAR_WIDTH).map(|at| if at < full { '#' } else { '.' }).collect::<String>();
        let minutes_of_cores = took / 60.0 * self.threads as f64;
        let hours = sum.simulated_ms as f64 / 3_600_000.0 / minutes_of_cores;
        let rate = sum.histories as f64 / took;
        let estimate = match sum.histories {
            0 => "no estimate yet".to_owned(),
            _ => format!("about {:.0} min left", left as f64 / rate / 60.0),
        };
        format!(
            "[{bar}] {}/{} histories, {estimate}: {} failed, {rate:.1} a second, {hours:.0} simulated hours a minute of a core",
            sum.histories, self.all, sum.failed
        )
    }

    /// Says how far it is until it is over.
    fn show_progress(&self) {
        let is_terminal = std::io::stderr().is_terminal();
        let interval = if is_terminal { TERMINAL_INTERVAL } else { LOG_INTERVAL };
        while !self.is_over.load(Ordering::Acquire) {
            thread::park_timeout(interval);
            let mut stderr = std::io::stderr().lock();
            let (before, after) = if is_terminal { ("\r\x1b[2K", "") } else { ("", "\n") };
            // A terminal that is gone is no reason to stop.
            let _ = write!(stderr, "{before}{}{after}", self.describe()).and_then(|()| stderr.flush());
        }
        if is_terminal {
            let _ = std::io::stderr().write_all(b"\r\x1b[2K");
        }
    }
}

fn main() -> ExitCode {
    let args = HistoriesArgs::parse();
    let all_kinds = HistoryChoice::value_variants();
    let kinds = if args.only.is_empty() { all_kinds } else { &args.only };
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = args.threads.unwrap_or(cores).max(1);
    let count = u64::try_from(kinds.len()).unwrap_or(u64::MAX);
    let run = HistoryRun {
        begun: Instant::now(),
        all: args.seeds * count,
        threads,
        sum: Mutex::default(),
        is_over: AtomicBool::new(false),
    };
    let next = AtomicU64::new(args.from);
    thread::scope(|scope| {
        let shown = scope.spawn(|| run.show_progress());
        let played = (0..threads).map(|_| {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= args.from + args.seeds {
                        return;
                    }
                    for kind in kinds {
                        run.count(*kind, &kind.play(seed));
                    }
                }
            })
        });
        // What one has not played is missing from the sum.
        played.collect::<Vec<_>>().into_iter().for_each(|thread| _ = thread.join());
        run.is_over.store(true, Ordering::Release);
        shown.thread().unpark();
    });
    println!("seeds {} to {}: {}", args.from, args.from + args.seeds - 1, run.describe());
    let is_well = run.sum.lock().is_ok_and(|sum| sum.failed == 0 && sum.histories == run.all);
    if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

//! Runs one path that every event or scrape takes, a given number of times, so that an instruction counter can be put around it:
//! `valgrind --tool=callgrind target/debug/costs flip-depth-1 1000`. The difference of two numbers is the path's cost alone.
//!
//! The test beside it does so for all of them, and holds each to its budget in `budgets.txt`.

mod cluster;
mod objects;

use std::hint::black_box;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use controller::HostileMetrics;
use readiness::{RuleKind, StuckLimits, assess};
use watcher::wire::ChildObject;

use cluster::CostCluster;
use objects::{CUSTOM, POD, is_ready, read_child};

#[derive(Parser)]
#[command(name = "costs", about = "Runs one path a number of times, for an instruction counter.")]
struct CostsCli {
    /// The path.
    case: CostCase,
    /// How many times.
    turns: u32,
}

/// A path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CostCase {
    /// A pod of 7.8 kB, from bytes to the fields that rules read.
    DecodePod,
    /// The same of a custom resource of 1 kB.
    DecodeCustom,
    /// The rule of pods.
    JudgePod,
    /// The rule of kinds that nobody knows.
    JudgeCustom,
    /// A new version of a child, in which nothing changed that a parent could show.
    IgnoredEvent,
    /// A child changes, and its parent's answer with it.
    FlipDepth1,
    /// The same under four levels of parents.
    FlipDepth4,
    /// The same beside a thousand other children.
    FlipAmongThousand,
    /// The message of a parent that is not ready, with its causes.
    Render,
    /// A turn of the loop over a thousand parents, while nothing happens.
    IdleTurn,
    /// A scrape over two hundred parents that are not ready.
    Scrape,
}

fn main() -> anyhow::Result<ExitCode> {
    let cli = CostsCli::parse();
    run_case(cli.case, cli.turns)?;
    Ok(ExitCode::SUCCESS)
}

fn run_case(case: CostCase, turns: u32) -> anyhow::Result<()> {
    let limits = StuckLimits::default();
    match case {
        CostCase::DecodePod => repeat(turns, || read_child(POD)),
        CostCase::DecodeCustom => repeat(turns, || read_child(CUSTOM)),
        CostCase::JudgePod => judge(&read_child(POD)?, RuleKind::Pod, &limits, turns),
        CostCase::JudgeCustom => judge(&read_child(CUSTOM)?, RuleKind::Other, &limits, turns),
        CostCase::IgnoredEvent => CostCluster::build(1, 1, 10)?.ignore_events(turns),
        CostCase::FlipDepth1 => CostCluster::build(1, 1, 10)?.flip(turns),
        CostCase::FlipDepth4 => CostCluster::build(1, 4, 10)?.flip(turns),
        CostCase::FlipAmongThousand => CostCluster::build(1, 1, 1_000)?.flip(turns),
        CostCase::Render => CostCluster::build(1, 1, 10)?.render(turns),
        CostCase::IdleTurn => CostCluster::build(1_000, 1, 1)?.idle(turns),
        CostCase::Scrape => {
            let world = HostileMetrics::new(200);
            repeat(turns, || anyhow::Ok(world.scrape_text().len()))
        }
    }
}

fn repeat<T>(turns: u32, mut turn: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<()> {
    for _ in 0..turns {
        black_box(turn()?);
    }
    Ok(())
}

fn judge(child: &ChildObject, kind: RuleKind, limits: &StuckLimits, turns: u32) -> anyhow::Result<()> {
    anyhow::ensure!(is_ready(&assess(kind, &child.facts, limits)), "the object is not ready");
    repeat(turns, || Ok(assess(black_box(kind), black_box(&child.facts), limits)))
}

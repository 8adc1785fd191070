//! What the service costs in processor time and memory: the built binary, over an API server in memory.
//!
//! `cargo run --profile dist -p bench -- --help`. Answers are checked before a figure is printed: a run in which one parent
//! does not say what it should has no figures.
//!
//! `growth` is what to run after a change that may cost something: every workload at several sizes, and it fails where a figure
//! grows faster than its law. `compare` sets the same work by other controllers beside it. `edits`, `flips`, `groups` and
//! `starts` look closer at one thing each.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "reads the clock and prints: it measures"
)]

mod compare;
mod edits;
mod families;
mod flips;
mod groups;
mod growth;
mod phase;
mod service;
mod starts;
mod subject;

use clap::{Parser, Subcommand};

use crate::subject::SubjectArgs;

#[derive(Parser)]
#[command(
    name = "bench",
    about = "Measures what the service costs, with the built binary over an API server in memory."
)]
struct BenchCli {
    #[command(flatten)]
    subject: SubjectArgs,
    #[command(subcommand)]
    workload: Workload,
}

#[derive(Subcommand)]
enum Workload {
    /// The same work done by controllers that one would write instead, and by Rollcall: figures side by side.
    Compare(compare::CompareArgs),
    /// Memory: a first start, then edits of the rule of the children, no answer of which moves.
    Edits(edits::EditArgs),
    /// Processor time per flip of a child, at several numbers of parents.
    Flips(flips::FlipArgs),
    /// ReadinessGroups beside ordinary parents: memory, processor time, writes, latency and requests.
    Groups(groups::GroupArgs),
    /// Ten workloads at growing sizes: what each costs, with which exponent it grows, and whether that keeps its law.
    Growth(growth::GrowthArgs),
    /// Memory and processor time of a first start and a later one, with owners as parents and with groups.
    Starts(starts::StartArgs),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let cli = BenchCli::parse();
    match cli.workload {
        Workload::Compare(args) => compare::run(&cli.subject, &args).await,
        Workload::Edits(args) => edits::run(&cli.subject, &args).await,
        Workload::Flips(args) => flips::run(&cli.subject, &args).await,
        Workload::Groups(args) => groups::run(&cli.subject, &args).await,
        Workload::Growth(args) => growth::run(&cli.subject, &args).await,
        Workload::Starts(args) => starts::run(&cli.subject, &args).await,
    }
}

//! ReadinessGroups beside ordinary parents with as many children: memory, processor time, writes, latency and requests.

mod cluster;
mod session;

use std::time::Duration;

use clap::Args;

use self::cluster::MemberSearch;
use self::session::{GroupFigures, GroupPlan, measure};
use crate::compare::progress::RunProgress;
use crate::subject::SubjectArgs;

#[derive(Args)]
pub(crate) struct GroupArgs {
    /// Numbers of groups, and of ordinary parents.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000], value_name = "N")]
    groups: Vec<usize>,
    /// Numbers of members of each, and of children.
    #[arg(long, value_delimiter = ',', default_values_t = [20], value_name = "N")]
    members: Vec<usize>,
    /// How members are found. Ratios are to `owners` of the same size.
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [MemberSearch::Owners, MemberSearch::Labels])]
    by: Vec<MemberSearch>,
    /// Flips of a member.
    #[arg(long, default_value_t = 500, value_name = "N")]
    flips: u32,
    /// Flips a second.
    #[arg(long, default_value_t = 40, value_name = "N")]
    rate: u32,
    /// Seconds in which nothing happens and requests are counted.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    rest_seconds: u64,
    /// Longest time that answers are waited for.
    #[arg(long, default_value_t = 300, value_name = "SECONDS")]
    patience: u64,
}

/// Prints a line for each size and each way, with ratios to ordinary parents. A wrong answer ends the run.
pub(crate) async fn run(subject: &SubjectArgs, args: &GroupArgs) -> anyhow::Result<()> {
    let plan = |parents, children| GroupPlan {
        parents,
        children,
        flips: args.flips,
        rate: args.rate,
        rest: Duration::from_secs(args.rest_seconds),
        patience: Duration::from_secs(args.patience),
    };
    let mut progress = RunProgress::begin(1 + args.groups.len() * args.members.len() * args.by.len());
    progress.show("no parents");
    let empty = measure(subject, MemberSearch::Owners, &plan(0, 0)).await?;
    progress.step();
    progress.end();
    println!("memory over nothing: {:.1} MB; below, what is above it\n", empty.rest_mb);
    println!("{}", GroupFigures::head());
    for (groups, members) in
        args.groups.iter().flat_map(|groups| args.members.iter().map(move |members| (*groups, *members)))
    {
        let mut owners = None;
        for by in &args.by {
            progress.show(&format!("{groups} x {members} by {by:?}"));
            let figures = measure(subject, *by, &plan(groups, members)).await?.above(&empty);
            progress.step();
            progress.end();
            println!("{}", figures.row(&format!("{by:?}, {groups} × {members}"), owners.as_ref()));
            if *by == MemberSearch::Owners {
                owners = Some(figures);
            }
        }
    }
    Ok(())
}

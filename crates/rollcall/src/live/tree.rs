//! `rollcall tree`: parents and their children, with verdicts and reasons.

use std::process::ExitCode;

use clap::Args;
use controller::args::ClusterArgs;
use rollcall_core::TreeNode;

use super::open_cluster;
use super::pick::missing_targets;
use super::scope_args::ScopeArgs;
use super::survey::ClusterSurvey;
use super::tree_selection::{TreeSelection, node_age};
use super::tree_watch::watch_tree;
use super::uncounted::{PolicyAnswers, UncountedFindings};
use super::uncounted_search::{SearchDepth, add_uncounted};
use crate::eval::{OutputFormat, current_time};
use crate::text::print_error_line;
use crate::tree_table;

/// `rollcall tree`.
#[derive(Args, Debug)]
#[command(
    after_help = "What a named object owns is shown to the last kind that the cluster serves, and the members of its ApplySet. What no \
                  policy counts is judged by the built-in rules, marked `not counted` (role `uncounted` in JSON), and decides \
                  nothing: neither the condition nor the exit code. That includes what workloads own, without the ReplicaSets of \
                  earlier rollouts. An object that no policy has is ready once what it owns is, unless it says of itself that it \
                  is not. With --watch what is owned is searched again after changes, and every 10 s otherwise.\n\nExit codes: 0 every parent that is shown is ready; 1 at least one is not; 2 there was none, or it could not be read. With --watch: by the last state."
)]
pub(crate) struct TreeArgs {
    /// A kind, or objects as KIND/NAME or KIND NAME [default: every parent of every policy].
    #[arg(value_name = "KIND[/NAME]")]
    what: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Keep running and show changes: redrawn on a terminal, otherwise one tree after the other. Ends with Ctrl-C.
    #[arg(short = 'w', long)]
    watch: bool,
    /// Maximum depth to show.
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// Maximum number of children to show per object: the worst first.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// Output format.
    #[arg(short = 'o', long, value_enum, default_value_t, value_name = "FORMAT")]
    output: OutputFormat,
}

pub(crate) async fn print_tree(cluster: &ClusterArgs, args: &TreeArgs) -> anyhow::Result<ExitCode> {
    let (mut cluster, targets) = open_cluster(cluster, &args.scope, &args.what).await?;
    let depth = args.depth.unwrap_or(usize::MAX);
    let namespace = cluster.namespace().map(str::to_owned);
    let selection = TreeSelection { targets: &targets, namespace, depth, limit: args.limit };
    if args.watch {
        return watch_tree(&mut cluster, &selection, args.output).await;
    }
    let now = current_time();
    let mut survey = ClusterSurvey::read(&mut cluster, &targets, now).await?;
    let mut trees = std::mem::take(&mut survey.trees);
    let mut uncounted = UncountedFindings::default();
    if targets.is_empty() {
        trees = selection.pick(trees);
    } else {
        let answers = PolicyAnswers::collect(&trees);
        trees = selection.pick(trees);
        uncounted = add_uncounted(&mut cluster, &mut trees, &answers, SearchDepth::Everything, now).await;
    }
    cluster.report_unread();
    let counted_times = survey.node_times();
    let moments = |node: &TreeNode| uncounted.node_times(node).unwrap_or_else(|| counted_times(node));
    selection.prune(&mut trees, &moments);
    for missing in missing_targets(&trees, &targets) {
        print_error_line(&cluster.missing_target_text(missing, survey.has_object(missing)));
    }
    let code = tree_table::print_trees(&trees, args.output, &|node| node_age(&moments(node), now))?;
    if targets.is_empty() {
        tree_table::report_no_parents(&trees);
    }
    Ok(ExitCode::from(cluster.exit_code(code)))
}

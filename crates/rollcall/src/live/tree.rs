//! `rollcall tree`: parents and their children, with verdicts and reasons.

use std::process::ExitCode;

use clap::Args;
use controller::args::ClusterArgs;
use readiness::Time;
use rollcall_core::TreeNode;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::follow::ClusterFollower;
use super::open_cluster;
use super::pick::{NodeTimes, TreeObjectIndex, missing_targets, pick_targets};
use super::policy_cluster::PolicyCluster;
use super::scope_args::ScopeArgs;
use super::survey::ClusterSurvey;
use super::target::ObjectTarget;
use super::uncounted::{PolicyAnswers, UncountedFindings, add_uncounted};
use crate::eval::{OutputFormat, current_time};
use crate::terminal::TerminalCapabilities;
use crate::text::{print_error_line, write_stdout};
use crate::tree_table;

/// Moves to the top of the screen and clears it, scrollback included.
const CLEAR_SCREEN: &str = "\x1b[H\x1b[2J\x1b[3J";
/// Drawing a large tree takes at most one n-th of the time, with n this number.
const DRAW_TIME_SHARE: u32 = 4;

/// `rollcall tree`.
#[derive(Args, Debug)]
#[command(
    after_help = "What a named object owns is shown to the last kind that the cluster serves. What no policy counts is judged by the \
                  built-in rules, marked `not counted` (role `uncounted` in JSON), and decides nothing: neither the condition nor \
                  the exit code. Below workloads it is not searched, nor with --watch.\n\nExit codes: 0 every parent that is shown is ready; 1 at least one is not; 2 there was none, or it could not be read. With --watch: by the last state."
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
    if args.watch {
        return watch_tree(&mut cluster, &targets, args).await;
    }
    let now = current_time();
    let mut survey = ClusterSurvey::read(&mut cluster, now).await;
    let mut trees = std::mem::take(&mut survey.trees);
    let mut uncounted = UncountedFindings::default();
    if !targets.is_empty() {
        let answers = PolicyAnswers::collect(&trees);
        trees = pick_targets(trees, &targets);
        uncounted = add_uncounted(&mut cluster, &mut trees, &answers, now).await;
    }
    cluster.report_unread();
    let counted_times = survey.node_times();
    let moments = |node: &TreeNode| uncounted.node_times(node).unwrap_or_else(|| counted_times(node));
    let shown = select_trees(trees, &targets, args, &moments);
    for missing in missing_targets(&shown, &targets) {
        print_error_line(&format!("there is no {missing}"));
    }
    tree_table::print_trees(&shown, args.output, &|node| node_age(&moments(node), now))
}

/// Selects the targets, prunes the trees and adds times.
fn select_trees(
    trees: Vec<TreeNode>,
    targets: &[ObjectTarget],
    args: &TreeArgs,
    moments: &dyn Fn(&TreeNode) -> NodeTimes,
) -> Vec<TreeNode> {
    let mut shown = if targets.is_empty() { trees } else { pick_targets(trees, targets) };
    for tree in &mut shown {
        prune_tree(tree, args.depth.unwrap_or(usize::MAX), args.limit);
        add_dates(tree, moments);
    }
    shown
}

/// Returns the creation time and the current time.
fn node_age(moments: &NodeTimes, now: Time) -> Option<(i64, i64)> {
    Some((moments.created?.0, now.0))
}

async fn watch_tree(
    cluster: &mut PolicyCluster,
    targets: &[ObjectTarget],
    args: &TreeArgs,
) -> anyhow::Result<ExitCode> {
    let live = TerminalCapabilities::detect_stdout(false).live && args.output == OutputFormat::Table;
    let mut following = ClusterFollower::new(cluster).await;
    let (mut printed, mut code, mut lost) = (None, 2, String::new());
    let mut resized = signal(SignalKind::window_change())?;
    // One stream for all of the time: what arrives while the tree is drawn is not lost.
    let mut interrupted = signal(SignalKind::interrupt())?;
    loop {
        tokio::select! { biased;
            _ = interrupted.recv() => return Ok(ExitCode::from(code)),
            // Before the first drawing there is nothing to redraw.
            _ = resized.recv(), if printed.is_some() => {}
            () = following.wait_for_change(cluster) => {}
        }
        cluster.report_unread();
        let (began, now) = (Instant::now(), current_time());
        let objects = following.known_objects();
        let index = TreeObjectIndex::new(&objects);
        let moments = |node: &TreeNode| index.node_times(node);
        let shown = select_trees(cluster.build_trees(&objects, now), targets, args, &moments);
        code = tree_table::exit_code(&shown);
        // Ages advance on a terminal only; a file receives changes.
        let undated = tree_table::render_trees(&shown, args.output, &|_| None)?;
        let trouble = following.trouble_text().map_or(String::new(), |trouble| {
            let room = TerminalCapabilities::stdout_width().unwrap_or(usize::MAX);
            crate::text::wrap_text(&trouble, room, 3).join("\n") + "\n"
        });
        if !live && trouble != lost {
            print_error_line(if trouble.is_empty() {
                "the cluster responds again"
            } else {
                trouble.trim_end()
            });
        }
        lost.clone_from(&trouble);
        if live || printed.as_ref() != Some(&undated) {
            let before = if live {
                CLEAR_SCREEN
            } else if printed.is_some() && args.output == OutputFormat::Table {
                "\n"
            } else {
                ""
            };
            let text = tree_table::render_trees(&shown, args.output, &|node| node_age(&moments(node), now))?;
            let text = if live {
                fit_height(&(trouble + &text), TerminalCapabilities::stdout_height())
            } else {
                text
            };
            if !write_stdout(&(before.to_owned() + &text))? {
                return Ok(ExitCode::from(code));
            }
        }
        printed = Some(undated);
        tokio::select! { biased;
            _ = interrupted.recv() => return Ok(ExitCode::from(code)),
            () = tokio::time::sleep(began.elapsed() * (DRAW_TIME_SHARE - 1)) => {}
        }
    }
}

/// Returns as many lines as fit: the worst of a tree come first.
fn fit_height(text: &str, height: Option<usize>) -> String {
    let (all, room) = (text.lines().count(), height.unwrap_or(usize::MAX).saturating_sub(1));
    if all <= room {
        return text.to_owned();
    }
    let shown = room.saturating_sub(1);
    let kept: String = text.split_inclusive('\n').take(shown).collect();
    let more = format!("… {} more lines: use --limit, --depth or a taller terminal", all - shown);
    kept + &crate::text::truncate_text(&more, TerminalCapabilities::stdout_width().unwrap_or(usize::MAX))
        + "\n"
}

/// Adds to each node the time since which it has its state, and the field it comes from; 0 if unknown.
fn add_dates(node: &mut TreeNode, moments: &dyn Fn(&TreeNode) -> NodeTimes) {
    let since = moments(node).since;
    node.since_from = since.as_ref().map(|since| since.from.to_string()).unwrap_or_default();
    node.since = since.map_or(0, |since| since.at.0);
    for child in &mut node.children {
        add_dates(child, moments);
    }
}

/// Prunes nodes beyond the depth or the limit and counts them.
fn prune_tree(node: &mut TreeNode, depth: usize, limit: usize) {
    let keep = if depth == 0 { 0 } else { limit };
    node.more += node.children.len().saturating_sub(keep);
    node.children.truncate(keep);
    for child in &mut node.children {
        prune_tree(child, depth.saturating_sub(1), limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(kind: &str, name: &str, children: Vec<TreeNode>) -> TreeNode {
        TreeNode {
            kind: kind.to_owned(),
            name: name.to_owned(),
            verdict: "Ready",
            children,
            ..TreeNode::default()
        }
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let mut wide = node("Shop", "books", (0..5).map(|n| node("Pod", &n.to_string(), vec![])).collect());
        prune_tree(&mut wide, 9, 2);
        assert_eq!((wide.children.len(), wide.more), (2, 3));
        let mut deep = node("A", "a", vec![node("B", "b", vec![node("C", "c", vec![])])]);
        prune_tree(&mut deep, 1, 9);
        assert_eq!(deep.children[0].more, 1);
    }

    #[test]
    fn of_a_hundred_thousand_children_the_first_are_shown_and_the_rest_is_counted() {
        let pods = (0..100_000).map(|n| node("Pod", &format!("web-{n}"), vec![])).collect();
        let mut wide = node("Shop", "books", pods);
        prune_tree(&mut wide, usize::MAX, 100);
        let text = tree_table::render_trees(&[wide], OutputFormat::Table, &|_| None).unwrap();
        assert_eq!(text.lines().count(), 103, "a heading, the parent, a hundred, and how many more");
        assert!(text.contains("and 99900 more"));
    }
}

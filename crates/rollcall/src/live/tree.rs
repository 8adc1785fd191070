//! `rollcall tree`: parents and what belongs to them, with verdicts and reasons.

use std::process::ExitCode;

use clap::Args;
use controller::args::ClusterArgs;
use controller::core::TreeNode;
use readiness::Time;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::follow::Following;
use super::gather::Cluster;
use super::pick::{Index, Moments, lacking, pick};
use super::target::Target;
use super::{ScopeArgs, open};
use crate::eval::{Output, now};
use crate::forest;
use crate::look::Look;
use crate::text::{put, say};

/// From the top of the screen, and nothing of what was there before.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";
/// Of the time, drawing a large tree takes at most one part of so many.
const SHARE: u32 = 4;

/// `rollcall tree`.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 every parent that is shown is ready; 1 at least one is not; 2 there was none, or it could not be told. With --watch: of the last state."
)]
pub(crate) struct TreeArgs {
    /// A kind, or objects as KIND/NAME or KIND NAME; left out, every parent of every policy.
    #[arg(value_name = "KIND[/NAME]")]
    what: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Stay, and show what changes: drawn anew on a terminal, elsewhere one tree after the other. Ends by Ctrl-C.
    #[arg(short = 'w', long)]
    watch: bool,
    /// No deeper than this.
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// Of each object's children only the first so many: the worst.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    /// What is printed.
    #[arg(short = 'o', long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Output,
}

pub(crate) async fn tree(cluster: &ClusterArgs, args: &TreeArgs) -> anyhow::Result<ExitCode> {
    let (mut cluster, targets) = open(cluster, &args.scope, &args.what).await?;
    if args.watch {
        return watch(&mut cluster, &targets, args).await;
    }
    let now = now();
    let mut survey = cluster.survey(now).await;
    cluster.complain();
    let trees = std::mem::take(&mut survey.trees);
    let moments = survey.moments();
    let shown = shown(trees, &targets, args, &moments);
    for missing in lacking(&shown, &targets) {
        say(&format!("there is no {missing}"));
    }
    forest::print(&shown, args.output, &|node| age(&moments(node), now))
}

/// What was asked for, within bounds, and dated.
fn shown(
    trees: Vec<TreeNode>,
    targets: &[Target],
    args: &TreeArgs,
    moments: &dyn Fn(&TreeNode) -> Moments,
) -> Vec<TreeNode> {
    let mut shown = if targets.is_empty() { trees } else { pick(trees, targets) };
    for tree in &mut shown {
        cut(tree, args.depth.unwrap_or(usize::MAX), args.limit);
        date(tree, moments);
    }
    shown
}

/// When it was created, and now.
fn age(moments: &Moments, now: Time) -> Option<(i64, i64)> {
    Some((moments.created?.0, now.0))
}

async fn watch(cluster: &mut Cluster, targets: &[Target], args: &TreeArgs) -> anyhow::Result<ExitCode> {
    let live = Look::of_this_process(false).live && args.output == Output::Table;
    let mut following = Following::new(cluster).await;
    let (mut told, mut code, mut lost) = (None, 2, String::new());
    let mut resized = signal(SignalKind::window_change())?;
    loop {
        tokio::select! { biased;
            _ = tokio::signal::ctrl_c() => return Ok(ExitCode::from(code)),
            // Before the first picture there is nothing to draw anew.
            _ = resized.recv(), if told.is_some() => {}
            () = following.moved(cluster) => {}
        }
        cluster.complain();
        let (began, now) = (Instant::now(), now());
        let objects = following.objects();
        let index = Index::new(&objects);
        let moments = |node: &TreeNode| index.moments(node);
        let shown = shown(cluster.trees(&objects, now), targets, args, &moments);
        code = forest::code(&shown);
        // Ages tick on a terminal; a file is told what changed.
        let undated = forest::text(&shown, args.output, &|_| None)?;
        let trouble = following.trouble().map_or(String::new(), |trouble| {
            let room = Look::width().unwrap_or(usize::MAX);
            crate::text::wrap(&trouble, room, 3).join("\n") + "\n"
        });
        if !live && trouble != lost {
            say(if trouble.is_empty() { "the cluster answers again" } else { trouble.trim_end() });
        }
        lost.clone_from(&trouble);
        if live || told.as_ref() != Some(&undated) {
            let before = if live {
                CLEAR
            } else if told.is_some() && args.output == Output::Table {
                "\n"
            } else {
                ""
            };
            let text = forest::text(&shown, args.output, &|node| age(&moments(node), now))?;
            let text = if live { within(&(trouble + &text), Look::height()) } else { text };
            if !put(&(before.to_owned() + &text))? {
                return Ok(ExitCode::from(code));
            }
        }
        told = Some(undated);
        tokio::select! { biased;
            _ = tokio::signal::ctrl_c() => return Ok(ExitCode::from(code)),
            () = tokio::time::sleep(began.elapsed() * (SHARE - 1)) => {}
        }
    }
}

/// As many lines as there is room for: of a tree, the worst come first.
fn within(text: &str, height: Option<usize>) -> String {
    let (all, room) = (text.lines().count(), height.unwrap_or(usize::MAX).saturating_sub(1));
    if all <= room {
        return text.to_owned();
    }
    let shown = room.saturating_sub(1);
    let kept: String = text.split_inclusive('\n').take(shown).collect();
    let more = format!("… {} more lines: --limit, --depth or a higher terminal", all - shown);
    kept + &crate::text::cut(&more, Look::width().unwrap_or(usize::MAX)) + "\n"
}

/// Since when each has been as it is, and which field says so; 0 where nobody knows.
fn date(node: &mut TreeNode, moments: &dyn Fn(&TreeNode) -> Moments) {
    let since = moments(node).since;
    node.since_from = since.as_ref().map(|since| since.from.to_string()).unwrap_or_default();
    node.since = since.map_or(0, |since| since.at.0);
    for child in &mut node.children {
        date(child, moments);
    }
}

/// Leaves out what is too deep or too much, and counts it.
fn cut(node: &mut TreeNode, depth: usize, limit: usize) {
    let keep = if depth == 0 { 0 } else { limit };
    node.more += node.children.len().saturating_sub(keep);
    node.children.truncate(keep);
    for child in &mut node.children {
        cut(child, depth.saturating_sub(1), limit);
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
        cut(&mut wide, 9, 2);
        assert_eq!((wide.children.len(), wide.more), (2, 3));
        let mut deep = node("A", "a", vec![node("B", "b", vec![node("C", "c", vec![])])]);
        cut(&mut deep, 1, 9);
        assert_eq!(deep.children[0].more, 1);
    }

    #[test]
    fn of_a_hundred_thousand_children_the_first_are_shown_and_the_rest_is_counted() {
        let pods = (0..100_000).map(|n| node("Pod", &format!("web-{n}"), vec![])).collect();
        let mut wide = node("Shop", "books", pods);
        cut(&mut wide, usize::MAX, 100);
        let text = forest::text(&[wide], Output::Table, &|_| None).unwrap();
        assert_eq!(text.lines().count(), 103, "a heading, the parent, a hundred, and how many more");
        assert!(text.contains("and 99900 more"));
    }
}

//! `rollcall tree`: parents and what belongs to them, with verdicts and reasons.

use std::process::ExitCode;

use clap::Args;
use controller::args::ClusterArgs;
use controller::core::TreeNode;

use super::ScopeArgs;
use super::gather::Cluster;
use super::target::{Target, find};
use crate::eval::Output;

/// `rollcall tree`.
#[derive(Args, Debug)]
#[command(
    after_help = "Exit codes: 0 every parent that is shown is ready; 1 at least one is not; 2 there was none, or it could not be told."
)]
pub(crate) struct TreeArgs {
    /// A kind, or objects as KIND/NAME or KIND NAME; left out, every parent of every policy.
    #[arg(value_name = "KIND[/NAME]")]
    what: Vec<String>,
    #[command(flatten)]
    scope: ScopeArgs,
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
    let config = cluster.config().await?;
    let namespace = config.default_namespace.clone();
    let client = watcher::client(config)?;
    let targets = find(&client, &args.what).await?;
    let kinds: Vec<_> = targets.iter().map(|target| target.kind.clone()).collect();
    let mut cluster = Cluster::new(client, &args.scope, &namespace, &kinds).await?;
    let trees = cluster.trees(crate::eval::now()).await;
    let mut shown = if targets.is_empty() { trees } else { pick(&trees, &targets) };
    for (what, why) in &cluster.unread {
        eprintln!("rollcall: not read: {what}: {why}");
    }
    for tree in &mut shown {
        cut(tree, args.depth.unwrap_or(usize::MAX), args.limit);
    }
    crate::eval::print_trees(&shown, args.output)
}

/// The nodes that are meant, wherever they stand.
pub(super) fn pick(trees: &[TreeNode], targets: &[Target]) -> Vec<TreeNode> {
    let mut found: Vec<TreeNode> = Vec::new();
    let mut open: Vec<&TreeNode> = trees.iter().rev().collect();
    while let Some(node) = open.pop() {
        let meant = |target: &Target| {
            target.kind.kind == node.kind && target.name.as_ref().is_none_or(|name| *name == node.name)
        };
        if targets.iter().any(meant) {
            let known = |other: &TreeNode| {
                (&other.kind, &other.namespace, &other.name) == (&node.kind, &node.namespace, &node.name)
            };
            if !found.iter().any(known) {
                found.push(node.clone());
            }
        } else {
            open.extend(node.children.iter().rev());
        }
    }
    found
}

/// Leaves out what is too deep or too much, and says how much that is.
fn cut(node: &mut TreeNode, depth: usize, limit: usize) {
    let keep = if depth == 0 { 0 } else { limit };
    let left_out = node.children.len().saturating_sub(keep);
    node.children.truncate(keep);
    if left_out > 0 {
        let unready = format!("{left_out} more below");
        node.detail = if node.detail.is_empty() { unready } else { format!("{} (+{unready})", node.detail) };
    }
    for child in &mut node.children {
        cut(child, depth.saturating_sub(1), limit);
    }
}

#[cfg(test)]
mod tests {
    use super::super::target::KindName;
    use super::*;

    fn node(kind: &str, name: &str, children: Vec<TreeNode>) -> TreeNode {
        TreeNode {
            kind: kind.to_owned(),
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            verdict: "Ready",
            role: "critical",
            children,
            ..TreeNode::default()
        }
    }

    #[test]
    fn an_object_is_found_wherever_it_stands() {
        let forest = [node("Shop", "books", vec![node("Database", "db", vec![node("Pod", "a", vec![])])])];
        let kind = |kind: &str| KindName { group: String::new(), kind: kind.to_owned() };
        let target = |k: &str, name: Option<&str>| Target { kind: kind(k), name: name.map(str::to_owned) };
        assert_eq!(pick(&forest, &[target("Database", Some("db"))])[0].children.len(), 1);
        assert!(pick(&forest, &[target("Database", Some("other"))]).is_empty());
        assert_eq!(pick(&forest, &[target("Shop", None)]).len(), 1);
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let mut wide = node("Shop", "books", (0..5).map(|n| node("Pod", &n.to_string(), vec![])).collect());
        cut(&mut wide, 9, 2);
        assert_eq!((wide.children.len(), wide.detail.as_str()), (2, "3 more below"));
        let mut deep = node("A", "a", vec![node("B", "b", vec![node("C", "c", vec![])])]);
        cut(&mut deep, 1, 9);
        assert_eq!(deep.children[0].detail, "1 more below");
    }
}

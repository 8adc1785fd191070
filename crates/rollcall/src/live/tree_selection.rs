//! Which part of the trees is shown: the targets, to a depth and a number of children, with times.

use readiness::Time;
use rollcall_core::TreeNode;

use super::pick::{NodeTimes, node_key, pick_targets};
use super::target::ObjectTarget;

/// Which part of the trees is shown.
pub(super) struct TreeSelection<'a> {
    /// All trees of the namespace if there are none.
    pub(super) targets: &'a [ObjectTarget],
    /// Only trees of this namespace, and of cluster-scoped objects; `None` for all. What these count may be elsewhere.
    pub(super) namespace: Option<String>,
    /// Maximum depth to show.
    pub(super) depth: usize,
    /// Maximum number of children to show per object.
    pub(super) limit: usize,
}

impl TreeSelection<'_> {
    /// Selects the targets, or all trees of the namespace.
    pub(super) fn pick(&self, trees: Vec<TreeNode>) -> Vec<TreeNode> {
        if !self.targets.is_empty() {
            return pick_targets(trees, self.targets);
        }
        let Some(namespace) = &self.namespace else { return trees };
        let mut within = Vec::new();
        for tree in trees {
            if tree.namespace.is_empty() || tree.namespace == *namespace {
                add_once(&mut within, tree);
            } else {
                add_parents_below(&mut within, tree, namespace);
            }
        }
        within
    }

    /// Prunes the trees and adds times.
    pub(super) fn prune(&self, trees: &mut [TreeNode], moments: &dyn Fn(&TreeNode) -> NodeTimes) {
        for tree in trees {
            prune_tree(tree, self.depth, self.limit);
            add_dates(tree, moments);
        }
    }
}

/// Adds the parents of a namespace that others elsewhere count.
fn add_parents_below(within: &mut Vec<TreeNode>, node: TreeNode, namespace: &str) {
    for child in node.children {
        if child.namespace == *namespace && !child.policy.is_empty() {
            add_once(within, child);
        } else {
            add_parents_below(within, child, namespace);
        }
    }
}

fn add_once(within: &mut Vec<TreeNode>, node: TreeNode) {
    if within.iter().all(|known| node_key(known) != node_key(&node) || known.policy != node.policy) {
        within.push(node);
    }
}

/// Returns the creation time and the current time.
pub(super) fn node_age(moments: &NodeTimes, now: Time) -> Option<(i64, i64)> {
    Some((moments.created?.0, now.0))
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
    use crate::eval::OutputFormat;
    use crate::tree_table;

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
    fn a_parent_that_counts_elsewhere_is_shown_in_its_own_namespace() {
        let of = |namespace: &str, policy: &str, node: TreeNode| TreeNode {
            namespace: namespace.to_owned(),
            policy: policy.to_owned(),
            ..node
        };
        let backup = || of("store", "backups", node("Backup", "b1", vec![]));
        let pod = of("store", "", node("Pod", "p", vec![]));
        let trees = vec![
            of("vault", "databases", node("Database", "db", vec![backup(), pod])),
            of("vault", "databases", node("Database", "other", vec![backup()])),
            of("store", "backups", node("Backup", "b2", vec![])),
            of("", "tenants", node("Tenant", "t", vec![])),
        ];
        let selection =
            TreeSelection { targets: &[], namespace: Some("store".to_owned()), depth: 9, limit: 9 };
        let names: Vec<_> = selection.pick(trees).into_iter().map(|tree| tree.name).collect();
        assert_eq!(names, ["b1", "b2", "t"]);
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

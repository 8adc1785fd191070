//! Finds the root causes in a tree.

use std::collections::BTreeSet;

use readiness::Level;
use rollcall_core::TreeNode;

use super::super::node_reason::{is_own_cause, node_level};
use super::super::pick::node_key;
use super::super::target::ObjectTarget;

/// An object in a tree and its ancestors, the root first.
#[derive(Clone, Debug)]
pub(super) struct TreeNodePath<'t> {
    pub(super) above: Vec<&'t TreeNode>,
    pub(super) node: &'t TreeNode,
}

/// Finds the target objects at any depth, each once.
pub(super) fn find_target_nodes<'t>(
    trees: &'t [TreeNode],
    targets: &[ObjectTarget],
) -> Vec<TreeNodePath<'t>> {
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    let mut open: Vec<TreeNodePath<'t>> =
        trees.iter().map(|node| TreeNodePath { above: Vec::new(), node }).collect();
    open.reverse();
    while let Some(lead) = open.pop() {
        open.extend(lead.child_paths().rev());
        if targets.iter().any(|target| target.matches_node(lead.node)) && known.insert(node_key(lead.node)) {
            found.push(lead);
        }
    }
    found
}

/// Returns the root causes, worst first: unready leaves, and parents that are unready for a reason of their own.
pub(super) fn find_root_causes<'t>(lead: &TreeNodePath<'t>) -> Vec<TreeNodePath<'t>> {
    let mut found = Vec::new();
    collect_causes(lead, &mut found);
    found.sort_by(|a, b| (node_level(a.node), node_key(a.node)).cmp(&(node_level(b.node), node_key(b.node))));
    found.dedup_by(|a, b| node_key(a.node) == node_key(b.node));
    found
}

fn collect_causes<'t>(lead: &TreeNodePath<'t>, found: &mut Vec<TreeNodePath<'t>>) {
    let node = lead.node;
    let child = !lead.above.is_empty();
    let level = node_level(node);
    if level == Some(Level::Ready) || (child && level == Some(Level::Suspended)) {
        return;
    }
    let before = found.len();
    for below in lead.child_paths().filter(|below| below.node.role != "optional") {
        collect_causes(&below, found);
    }
    if node.policy.is_empty() || is_own_cause(node.reason.token()) || found.len() == before {
        found.push(lead.clone());
    }
}

impl<'t> TreeNodePath<'t> {
    fn child_paths(&self) -> impl DoubleEndedIterator<Item = TreeNodePath<'t>> {
        let above: Vec<_> = self.above.iter().copied().chain([self.node]).collect();
        self.node.children.iter().map(move |node| TreeNodePath { above: above.clone(), node })
    }
}

#[cfg(test)]
mod tests {
    use readiness::rollup::ParentReason;
    use readiness::{BoundedText, CountedUnit, Reason};
    use rollcall_core::NodeReason;

    use super::*;

    fn waiting() -> NodeReason {
        NodeReason::Object(Reason::Waiting(BoundedText::new("CrashLoopBackOff")))
    }

    fn unready() -> NodeReason {
        NodeReason::Object(Reason::Count(CountedUnit::Ready, 1, 2))
    }

    fn node(name: &str, verdict: &'static str, reason: NodeReason, children: Vec<TreeNode>) -> TreeNode {
        TreeNode {
            kind: "Thing".to_owned(),
            name: name.to_owned(),
            verdict,
            reason,
            policy: if children.is_empty() { String::new() } else { "p".to_owned() },
            role: "critical",
            children,
            ..TreeNode::default()
        }
    }

    fn names(tree: &TreeNode) -> Vec<String> {
        let lead = TreeNodePath { above: Vec::new(), node: tree };
        find_root_causes(&lead)
            .iter()
            .map(|cause| format!("{}^{}", cause.node.name, cause.above.len()))
            .collect()
    }

    #[test]
    fn the_causes_are_the_deepest_that_are_not_ready_and_the_worst_comes_first() {
        let db = node(
            "db",
            "Failed",
            NodeReason::Parent(ParentReason::ChildrenFailed),
            vec![node("pod", "Failed", waiting(), vec![])],
        );
        let web = node("web", "Progressing", unready(), vec![]);
        let well = node("well", "Ready", NodeReason::Object(Reason::Ready), vec![]);
        assert_eq!(
            names(&node(
                "shop",
                "Failed",
                NodeReason::Parent(ParentReason::ChildrenFailed),
                vec![web, well, db]
            )),
            ["pod^2", "web^1"]
        );
    }

    #[test]
    fn a_parent_that_lacks_children_is_a_cause_itself() {
        let web = node("web", "Progressing", unready(), vec![]);
        assert_eq!(
            names(&node("shop", "Progressing", NodeReason::Parent(ParentReason::ChildrenMissing), vec![web])),
            ["shop^0", "web^1"]
        );
        let quiet = TreeNode {
            policy: "p".to_owned(),
            ..node("shop", "Unknown", NodeReason::Parent(ParentReason::ChildrenPending), vec![])
        };
        assert_eq!(names(&quiet), ["shop^0"]);
    }

    #[test]
    fn what_is_optional_paused_or_ready_holds_nothing_back() {
        let beside = TreeNode {
            role: "optional",
            ..node("beside", "Failed", NodeReason::Object(Reason::JobFailed(BoundedText::new("x"))), vec![])
        };
        let paused = node("paused", "Suspended", NodeReason::Object(Reason::Suspended), vec![]);
        assert!(
            names(&node(
                "shop",
                "Ready",
                NodeReason::Parent(ParentReason::AllChildrenReady),
                vec![beside, paused]
            ))
            .is_empty()
        );
    }
}

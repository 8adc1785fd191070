//! Finds the root causes in a tree.

use std::collections::BTreeSet;

use readiness::Level;
use rollcall_core::{NodeReason, TreeNode};

use super::super::node_reason::{is_own_cause, node_level};
use super::super::pick::node_key;
use super::super::target::ObjectTarget;
use super::super::uncounted::UNCOUNTED_ROLE;

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

/// Returns the root causes, worst first: unready leaves, and parents that are unready for a reason of their own. What is not
/// ready and not counted comes after them, also where nothing that counts is unready.
pub(super) fn find_root_causes<'t>(lead: &TreeNodePath<'t>) -> Vec<TreeNodePath<'t>> {
    let (mut counted, mut beside) = (Vec::new(), Vec::new());
    if lead.node.role != UNCOUNTED_ROLE {
        collect_uncounted(lead, &mut beside);
    }
    // What an object owns explains it best where no policy says what counts.
    if beside.is_empty() || !lead.node.policy.is_empty() {
        collect_causes(lead, &mut counted);
    }
    for found in [&mut counted, &mut beside] {
        let order = |cause: &TreeNodePath<'t>| (node_level(cause.node), node_key(cause.node));
        found.sort_by(|a, b| order(a).cmp(&order(b)));
        found.dedup_by(|a, b| node_key(a.node) == node_key(b.node));
    }
    counted.append(&mut beside);
    counted
}

/// Collects what holds an object back. Of an object that no policy counts, that is what it owns.
fn collect_causes<'t>(lead: &TreeNodePath<'t>, found: &mut Vec<TreeNodePath<'t>>) {
    let node = lead.node;
    let child = !lead.above.is_empty();
    let level = node_level(node);
    if level == Some(Level::Ready) || (child && level == Some(Level::Suspended)) {
        return;
    }
    let before = found.len();
    let counts =
        |below: &TreeNodePath<'_>| below.node.role != "optional" && below.node.role != UNCOUNTED_ROLE;
    for below in lead.child_paths().filter(|below| node.role == UNCOUNTED_ROLE || counts(below)) {
        collect_causes(&below, found);
    }
    if is_own_cause(node.reason.token()) || found.len() == before {
        found.push(lead.clone());
    }
}

/// Collects the causes of what is not ready below this object, at any depth, and not counted.
fn collect_uncounted<'t>(lead: &TreeNodePath<'t>, found: &mut Vec<TreeNodePath<'t>>) {
    for below in lead.child_paths() {
        let before = found.len();
        if below.node.role == UNCOUNTED_ROLE && was_read(below.node) {
            collect_causes(&below, found);
        }
        if found.len() == before {
            collect_uncounted(&below, found);
        }
    }
}

/// What could not be read is named elsewhere.
fn was_read(node: &TreeNode) -> bool {
    node_level(node) != Some(Level::Unknown) || node.reason != NodeReason::default()
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
    fn what_no_policy_counts_is_named_after_what_does_and_hides_no_cause() {
        let uncounted = |node: TreeNode| TreeNode { role: UNCOUNTED_ROLE, ..node };
        let order = uncounted(node("order", "Failed", waiting(), vec![]));
        let request = |verdict, reason| uncounted(node("request", verdict, reason, vec![order.clone()]));
        let ready = NodeReason::Object(Reason::Ready);
        let all_ready = NodeReason::Parent(ParentReason::AllChildrenReady);
        let pending = NodeReason::Parent(ParentReason::ChildrenProgressing);
        // Below a parent that is ready, whatever stands between.
        for between in [request("Ready", ready.clone()), request("Failed", waiting())] {
            let last = names(&node("shop", "Ready", all_ready.clone(), vec![between])).pop();
            assert_eq!(last.as_deref(), Some("order^2"));
        }
        let web = node("web", "Ready", ready, vec![order.clone()]);
        assert_eq!(names(&node("shop", "Ready", all_ready, vec![web])), ["order^2"]);
        // Where no counted child explains a parent, it is a cause itself.
        let shop = node("shop", "Progressing", pending, vec![order]);
        assert_eq!(names(&shop), ["shop^0", "order^1"]);
        assert_eq!(
            names(&TreeNode { policy: String::new(), ..shop }),
            ["order^1"],
            "no policy says what counts"
        );
        let unread = uncounted(node("unread", "Unknown", NodeReason::default(), vec![]));
        let all_ready = NodeReason::Parent(ParentReason::AllChildrenReady);
        assert!(names(&node("shop", "Ready", all_ready, vec![unread])).is_empty());
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

//! From a tree to the objects that hold it back.

use std::collections::BTreeSet;

use controller::core::TreeNode;
use readiness::Level;

use super::super::pick::key;
use super::super::target::Target;

/// An object in a tree, and those above it, the root first.
#[derive(Clone, Debug)]
pub(super) struct Lead<'t> {
    pub(super) above: Vec<&'t TreeNode>,
    pub(super) node: &'t TreeNode,
}

/// The objects that are meant, wherever they stand, each once.
pub(super) fn seek<'t>(trees: &'t [TreeNode], targets: &[Target]) -> Vec<Lead<'t>> {
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    let mut open: Vec<Lead<'t>> = trees.iter().map(|node| Lead { above: Vec::new(), node }).collect();
    open.reverse();
    while let Some(lead) = open.pop() {
        open.extend(lead.below().rev());
        if targets.iter().any(|target| target.is(lead.node)) && known.insert(key(lead.node)) {
            found.push(lead);
        }
    }
    found
}

/// What holds it back, worst first: leaves that are not ready, and parents that are not ready for a reason of their own.
pub(super) fn causes<'t>(lead: &Lead<'t>) -> Vec<Lead<'t>> {
    let mut found = Vec::new();
    collect(lead, &mut found);
    let severity = |node: &TreeNode| Level::ALL.iter().position(|level| level.word() == node.verdict);
    found.sort_by(|a, b| (severity(a.node), key(a.node)).cmp(&(severity(b.node), key(b.node))));
    found.dedup_by(|a, b| key(a.node) == key(b.node));
    found
}

fn collect<'t>(lead: &Lead<'t>, found: &mut Vec<Lead<'t>>) {
    let node = lead.node;
    let child = !lead.above.is_empty();
    if node.verdict == "Ready" || (child && node.verdict == "Suspended") {
        return;
    }
    let before = found.len();
    for below in lead.below().filter(|below| below.node.role != "optional") {
        collect(&below, found);
    }
    if node.policy.is_empty() || is_its_own(&node.reason) || found.len() == before {
        found.push(lead.clone());
    }
}

/// A parent that is not ready for this reason is a cause itself, whatever its children are.
fn is_its_own(reason: &str) -> bool {
    matches!(
        reason,
        "ChildrenPending"
            | "ChildrenMissing"
            | "TooManyChildren"
            | "OperatorSilent"
            | "KindNotVisible"
            | "TemplateFailed"
            | "Terminating"
            | "DeadlineExceeded"
    )
}

impl<'t> Lead<'t> {
    fn below(&self) -> impl DoubleEndedIterator<Item = Lead<'t>> {
        let above: Vec<_> = self.above.iter().copied().chain([self.node]).collect();
        self.node.children.iter().map(move |node| Lead { above: above.clone(), node })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, verdict: &'static str, reason: &str, children: Vec<TreeNode>) -> TreeNode {
        TreeNode {
            kind: "Thing".to_owned(),
            name: name.to_owned(),
            verdict,
            reason: reason.to_owned(),
            policy: if children.is_empty() { String::new() } else { "p".to_owned() },
            role: "critical",
            children,
            ..TreeNode::default()
        }
    }

    fn names(tree: &TreeNode) -> Vec<String> {
        let lead = Lead { above: Vec::new(), node: tree };
        causes(&lead).iter().map(|cause| format!("{}^{}", cause.node.name, cause.above.len())).collect()
    }

    #[test]
    fn the_causes_are_the_deepest_that_are_not_ready_and_the_worst_comes_first() {
        let db =
            node("db", "Failed", "ChildrenFailed", vec![node("pod", "Failed", "ContainerWaiting", vec![])]);
        let web = node("web", "Progressing", "ReplicasNotReady", vec![]);
        let well = node("well", "Ready", "", vec![]);
        assert_eq!(names(&node("shop", "Failed", "ChildrenFailed", vec![web, well, db])), ["pod^2", "web^1"]);
    }

    #[test]
    fn a_parent_that_lacks_children_is_a_cause_itself() {
        let web = node("web", "Progressing", "ReplicasNotReady", vec![]);
        assert_eq!(names(&node("shop", "Progressing", "ChildrenMissing", vec![web])), ["shop^0", "web^1"]);
        let quiet = TreeNode { policy: "p".to_owned(), ..node("shop", "Unknown", "ChildrenPending", vec![]) };
        assert_eq!(names(&quiet), ["shop^0"]);
    }

    #[test]
    fn what_is_optional_paused_or_ready_holds_nothing_back() {
        let beside = TreeNode { role: "optional", ..node("beside", "Failed", "JobFailed", vec![]) };
        let paused = node("paused", "Suspended", "Suspended", vec![]);
        assert!(names(&node("shop", "Ready", "AllChildrenReady", vec![beside, paused])).is_empty());
    }
}

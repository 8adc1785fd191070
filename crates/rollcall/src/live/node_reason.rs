//! What the reason and the verdict of a node say about it.

use readiness::Level;
use readiness::rollup::ParentReason;
use rollcall_core::{NodeToken, TreeNode};

/// Returns `true` for a reason that makes a parent a cause itself, independently of its children.
pub(super) const fn is_own_cause(reason: NodeToken) -> bool {
    let NodeToken::Parent(reason) = reason else { return false };
    match reason {
        ParentReason::ChildrenPending
        | ParentReason::ChildrenMissing
        | ParentReason::TooManyChildren
        | ParentReason::OperatorFailed
        | ParentReason::OperatorSilent
        | ParentReason::KindNotVisible
        | ParentReason::PolicyRefused
        | ParentReason::TemplateFailed
        | ParentReason::Terminating
        | ParentReason::DeletionStuck
        | ParentReason::DeadlineExceeded => true,
        ParentReason::AllChildrenReady
        | ParentReason::ChildrenSettling
        | ParentReason::ChildrenProgressing
        | ParentReason::ChildrenTerminating
        | ParentReason::ChildrenFailed
        | ParentReason::ChildrenStuck
        | ParentReason::ChildrenUnknown
        | ParentReason::ChildrenSuspended
        | ParentReason::WatchStale
        | ParentReason::RuleChanged => false,
    }
}

/// Level of a node; `None` for text that is no level.
pub(super) fn node_level(node: &TreeNode) -> Option<Level> {
    Level::ALL.into_iter().find(|level| level.as_str() == node.verdict)
}

/// Returns `true` if the node is ready.
pub(super) fn is_node_ready(node: &TreeNode) -> bool {
    node_level(node) == Some(Level::Ready)
}

/// Returns the object of which it cannot be known what its policy asks for, because a kind may not be read or the policy is
/// refused: this one, or a child that it waits for.
pub(super) fn find_undetermined(node: &TreeNode) -> Option<&TreeNode> {
    match node.reason.token() {
        NodeToken::Parent(ParentReason::KindNotVisible | ParentReason::PolicyRefused) => Some(node),
        NodeToken::Parent(ParentReason::ChildrenUnknown) => {
            node.children.iter().filter(|child| child.role == "critical").find_map(find_undetermined)
        }
        _ => None,
    }
}

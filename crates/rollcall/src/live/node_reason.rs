//! What a node of a tree says, read back into the closed sets that it is from.

use readiness::rollup::ParentReason;
use readiness::{Level, ReasonToken};
use rollcall_core::TreeNode;

/// Reason of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeReason {
    /// Of a parent, under its policy.
    Parent(ParentReason),
    /// Of an object by itself.
    Object(ReasonToken),
}

impl NodeReason {
    pub(super) fn of_node(node: &TreeNode) -> NodeReason {
        let parent = Some(&*node.reason).filter(|_| !node.policy.is_empty());
        parent
            .and_then(ParentReason::parse_reason)
            .map_or_else(|| NodeReason::Object(ReasonToken::parse_token(&node.reason)), NodeReason::Parent)
    }

    /// Returns `true` for a reason that makes a parent a cause itself, independently of its children.
    pub(super) const fn is_own_cause(self) -> bool {
        match self {
            NodeReason::Parent(reason) => match reason {
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
            },
            NodeReason::Object(_) => false,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(policy: &str, reason: &str) -> NodeReason {
        let (policy, reason) = (policy.to_owned(), reason.to_owned());
        NodeReason::of_node(&TreeNode { policy, reason, ..TreeNode::default() })
    }

    #[test]
    fn a_word_that_parents_and_objects_share_is_told_apart_by_the_policy() {
        assert_eq!(reason("shops", "Terminating"), NodeReason::Parent(ParentReason::Terminating));
        assert_eq!(reason("", "Terminating"), NodeReason::Object(ReasonToken::Terminating));
        assert_eq!(reason("", "TooHot"), NodeReason::Object(ReasonToken::Custom));
    }
}

//! Advice about ReadinessGroups where it is not that about other parents: a group has members, and no operator.

use inspect::kubectl::KubectlObject;
use policy::GROUP_KIND;
use readiness::rollup::ParentReason;
use rollcall_core::{NodeToken, TreeNode};

/// What a message says of children that are not counted because a parent is below itself.
pub(super) const IN_A_CYCLE: &str = "in a cycle of owners or references";

/// Returns the reason of a ReadinessGroup that is judged as such; `None` for other objects.
pub(super) fn group_reason(node: &TreeNode) -> Option<ParentReason> {
    let is_group = (&*node.group, &*node.kind) == GROUP_KIND;
    match node.reason.token() {
        NodeToken::Parent(reason) if is_group => Some(reason),
        _ => None,
    }
}

/// Describes the rule that decided about a group, where it has words of its own.
pub(super) fn describe_group_branch(reason: ParentReason) -> Option<&'static str> {
    Some(match reason {
        ParentReason::ChildrenMissing => "there are fewer members than the group expects",
        ParentReason::TooManyChildren => "there are more members than the group allows",
        ParentReason::ChildrenPending | ParentReason::OperatorSilent => {
            "its members have not settled for its current generation"
        }
        ParentReason::TemplateFailed | ParentReason::PolicyRefused => {
            "its spec asks for what cannot be judged"
        }
        ParentReason::KindNotVisible => "a kind of its members may not be listed",
        ParentReason::WatchStale => "a kind of its members could not be listed or watched for two minutes",
        _ => return None,
    })
}

/// Describes the event that would change the verdict about a group with this message, where it has words of its own.
pub(super) fn describe_group_changes(reason: ParentReason, message: &str) -> Option<&'static str> {
    Some(match reason {
        ParentReason::ChildrenMissing if message.contains(IN_A_CYCLE) => {
            "take one of the groups out of the spec.members of another: those in a cycle do not count"
        }
        ParentReason::ChildrenMissing => "create the missing members, or change spec.members",
        ParentReason::TooManyChildren => "delete the surplus members, or change spec.members",
        ParentReason::ChildrenPending | ParentReason::OperatorSilent => "wait: its members must settle",
        ParentReason::TemplateFailed | ParentReason::PolicyRefused => "correct its spec as its message says",
        _ => return None,
    })
}

/// Returns commands to try, where a group has its own.
pub(super) fn suggest_group_commands(
    reason: ParentReason,
    object: &KubectlObject<'_>,
) -> Option<Vec<String>> {
    match reason {
        ParentReason::TemplateFailed | ParentReason::PolicyRefused => {
            Some(vec!["rollcall check -f GROUP".to_owned()])
        }
        ParentReason::ChildrenPending | ParentReason::OperatorSilent => {
            Some(vec![object.command_for("describe")])
        }
        _ => None,
    }
}

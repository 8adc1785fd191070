//! Objects that are judged by themselves.

use inspect::api_group;
use readiness::{Level, RuleKind, StuckLimits, Time, assess};
use rollcall_core::{NodeReason, TreeNode};
use watcher::ParentObject;
use watcher::status::ParentStatus;

use super::node_reason::node_level;
use crate::limits::STUCK_AFTER;

/// Evaluates an object by itself.
pub(super) fn leaf_node(object: &ParentObject, now: Time) -> TreeNode {
    let meta = &object.child.meta;
    let limits = StuckLimits { pending: STUCK_AFTER, progress: STUCK_AFTER, terminating: STUCK_AFTER };
    let assessment =
        assess(RuleKind::from_group_kind(api_group(object), &meta.kind), &object.child.facts, &limits);
    let verdict = assessment.verdict_at(now);
    TreeNode {
        group: api_group(object).to_owned(),
        kind: meta.kind.to_string(),
        namespace: meta.namespace.to_string(),
        name: meta.name.to_string(),
        verdict: verdict.level.as_str(),
        reason: NodeReason::Object(verdict.reason.clone()),
        detail: verdict.reason.to_string(),
        since: now.0,
        stalled: verdict.is_terminal() || verdict.level == Level::Stuck,
        ..TreeNode::default()
    }
}

/// What an object says of itself, where it speaks and is not ready by that. `None`, too, where Rollcall's own word stands on it: that
/// is what would be read.
pub(super) fn unready_word(object: &ParentObject, status: &ParentStatus, now: Time) -> Option<TreeNode> {
    if status.written().next().is_some() {
        return None;
    }
    let node = leaf_node(object, now);
    let is_unready = !matches!(node_level(&node), Some(Level::Unknown | Level::Ready));
    is_unready.then_some(node)
}

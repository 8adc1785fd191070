//! Objects that are judged by themselves.

use inspect::api_group;
use readiness::{Level, RuleKind, StuckLimits, Time, assess};
use rollcall_core::{NodeReason, TreeNode};
use watcher::ParentObject;

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

//! Objects that are judged by themselves.

use inspect::api_group;
use readiness::{Level, RuleKind, StuckLimits, Time, Verdict, assess};
use rollcall_core::{NodeReason, TreeNode};
use watcher::ParentObject;
use watcher::status::{ParentStatus, judge_own_status};

use crate::limits::STUCK_AFTER;

/// Evaluates an object by itself.
pub(super) fn leaf_node(object: &ParentObject, now: Time) -> TreeNode {
    let limits = StuckLimits { pending: STUCK_AFTER, progress: STUCK_AFTER, terminating: STUCK_AFTER };
    let assessment = assess(rule_kind(object), &object.child.facts, &limits);
    verdict_node(object, assessment.verdict_at(now), now)
}

/// What an object says of itself, without what Rollcall wrote there, where it speaks and is not ready by that. That it is being
/// deleted is nothing that it says.
pub(super) fn unready_word(object: &ParentObject, status: &ParentStatus) -> Option<Verdict> {
    let verdict = judge_own_status(rule_kind(object), &object.child.facts, status);
    (!matches!(verdict.level, Level::Unknown | Level::Ready)).then_some(verdict)
}

/// The node of an object with this verdict and no children.
pub(super) fn verdict_node(object: &ParentObject, verdict: &Verdict, now: Time) -> TreeNode {
    let meta = &object.child.meta;
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

fn rule_kind(object: &ParentObject) -> RuleKind {
    RuleKind::from_group_kind(api_group(object), &object.child.meta.kind)
}

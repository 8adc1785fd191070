//! Determines since when an object has its current state, as far as its own fields tell.

use inspect::api_group;
use readiness::{
    BoundedText, ConditionFacts, Level, RuleKind, SinceSource, StuckLimits, TruthValue, UnreadySince, assess,
};
use rollcall_core::TreeNode;
use watcher::ParentObject;

use super::node_reason::is_node_ready;

/// Returns the time, and the field it comes from.
pub(super) fn state_since(object: &ParentObject, node: &TreeNode) -> Option<UnreadySince> {
    let facts = &object.child.facts;
    let conditions = &facts.status.conditions;
    if !node.policy.is_empty() && facts.deleted.is_none() {
        // The parent's condition already has this reason.
        return conditions.iter().find(|c| *c.reason == *node.reason.as_str()).and_then(since_condition);
    }
    since_from_facts(object, is_node_ready(node))
}

/// Like [`state_since`], for a leaf that no policy rule evaluates.
pub(super) fn leaf_since(object: &ParentObject) -> Option<UnreadySince> {
    let kind = RuleKind::from_group_kind(api_group(object), &object.child.meta.kind);
    since_from_facts(
        object,
        assess(kind, &object.child.facts, &StuckLimits::default()).verdict.level == Level::Ready,
    )
}

fn since_from_facts(object: &ParentObject, ready: bool) -> Option<UnreadySince> {
    let facts = &object.child.facts;
    let kind = RuleKind::from_group_kind(api_group(object), &object.child.meta.kind);
    let verdict = assess(kind, facts, &StuckLimits::default()).verdict;
    if !ready {
        // A user's rule may disagree with the object's fields; deletion does not depend on rules.
        let agrees = verdict.level != Level::Ready || facts.deleted.is_some();
        return agrees.then(|| readiness::unready_since(kind, facts, &verdict)).flatten();
    }
    let says = |c: &&ConditionFacts| {
        matches!(&*c.name, "Ready" | "Available" | "Complete") && c.status == TruthValue::True
    };
    let finished = facts.status.finished.map(|at| UnreadySince { at, from: SinceSource::End });
    facts.status.conditions.iter().find(says).and_then(since_condition).or(finished)
}

fn since_condition(condition: &ConditionFacts) -> Option<UnreadySince> {
    Some(UnreadySince {
        at: condition.since?,
        from: SinceSource::Condition(BoundedText::new(&condition.name)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use readiness::rollup::ParentReason;
    use rollcall_core::NodeReason;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};
    use watcher::wire::ChildObject;

    fn told(kind: &str, metadata: &Value, status: &Value, node: &TreeNode) -> Option<String> {
        let api_version = if kind == "Pod" { "v1" } else { "apps/v1" };
        let value =
            json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "status": status });
        let text = RawValue::from_string(value.to_string()).unwrap();
        state_since(&ParentObject { child: ChildObject::from_raw(&text), text }, node)
            .map(|since| since.at.to_string())
    }

    #[test]
    fn what_decided_says_since_when() {
        let at = |hour: u8| format!("2026-01-01T0{hour}:00:00Z");
        let leaf = TreeNode { verdict: "Failed", ..TreeNode::default() };
        let unready = json!({ "phase": "Running", "conditions": [
            { "type": "PodScheduled", "status": "True", "lastTransitionTime": at(1) },
            { "type": "Ready", "status": "False", "lastTransitionTime": at(2) },
        ] });
        assert_eq!(told("Pod", &json!({}), &unready, &leaf), Some(at(2)));
        let leaving = json!({ "deletionTimestamp": at(3) });
        assert_eq!(told("Pod", &leaving, &unready, &leaf), Some(at(3)));
        assert_eq!(told("Pod", &json!({}), &json!({}), &leaf), None, "nobody knows");
        let well = TreeNode { verdict: "Ready", ..TreeNode::default() };
        let ready = json!({ "phase": "Running", "conditions": [
            { "type": "Ready", "status": "True", "lastTransitionTime": at(5) },
        ] });
        assert_eq!(told("Pod", &json!({}), &ready, &well), Some(at(5)));
        assert_eq!(
            told("Pod", &json!({}), &ready, &leaf),
            None,
            "a rule of a user sees more than its fields say"
        );
        let reason = NodeReason::Parent(ParentReason::ChildrenFailed);
        let parent = TreeNode { policy: "p".to_owned(), reason, ..TreeNode::default() };
        let own = json!({ "conditions": [
            { "type": "Ready", "status": "False", "reason": "ChildrenFailed", "lastTransitionTime": at(4) },
        ] });
        assert_eq!(told("Deployment", &json!({}), &own, &parent), Some(at(4)));
    }
}

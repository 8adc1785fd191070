//! Since when an object has been as it is, as far as it says so itself: nobody was looking before.

use controller::core::TreeNode;
use readiness::{Branch, Condition, Kind, Level, Limits, Time, Truth, why};
use watcher::Parent;

use super::gather::group;

/// The moment, where the object tells.
pub(super) fn since(object: &Parent, node: &TreeNode) -> Option<Time> {
    let facts = &object.child.facts;
    if facts.deleted.is_some() {
        return facts.deleted;
    }
    let conditions = &facts.status.conditions;
    if !node.policy.is_empty() {
        // A verdict of ours that the parent says already.
        return conditions.iter().find(|c| *c.reason == *node.reason).and_then(|c| c.since);
    }
    let (assessment, branch) =
        why(Kind::of(group(object), &object.child.meta.kind), facts, &Limits::default());
    let decided = match branch {
        Branch::Condition(condition) => condition.since,
        _ => None,
    };
    let ready = assessment.verdict.level == Level::Ready;
    let says = |c: &&Condition| {
        let main = matches!(&*c.name, "Ready" | "Available" | "Complete" | "PodScheduled");
        main && (c.status == Truth::True) == ready
    };
    decided.or_else(|| conditions.iter().find(says).and_then(|c| c.since)).or(facts.status.finished)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};
    use watcher::wire::Child;

    fn told(kind: &str, metadata: &Value, status: &Value, node: &TreeNode) -> Option<String> {
        let api_version = if kind == "Pod" { "v1" } else { "apps/v1" };
        let value =
            json!({ "apiVersion": api_version, "kind": kind, "metadata": metadata, "status": status });
        let text = RawValue::from_string(value.to_string()).unwrap();
        since(&Parent { child: Child::read(&text), text }, node).map(|time| time.to_string())
    }

    #[test]
    fn what_decided_says_since_when() {
        let at = |hour: u8| format!("2026-01-01T0{hour}:00:00Z");
        let leaf = TreeNode::default();
        let unready = json!({ "phase": "Running", "conditions": [
            { "type": "PodScheduled", "status": "True", "lastTransitionTime": at(1) },
            { "type": "Ready", "status": "False", "lastTransitionTime": at(2) },
        ] });
        assert_eq!(told("Pod", &json!({}), &unready, &leaf), Some(at(2)));
        let leaving = json!({ "deletionTimestamp": at(3) });
        assert_eq!(told("Pod", &leaving, &unready, &leaf), Some(at(3)));
        assert_eq!(told("Pod", &json!({}), &json!({}), &leaf), None, "nobody knows");
        let parent =
            TreeNode { policy: "p".to_owned(), reason: "ChildrenFailed".to_owned(), ..TreeNode::default() };
        let own = json!({ "conditions": [
            { "type": "Ready", "status": "False", "reason": "ChildrenFailed", "lastTransitionTime": at(4) },
        ] });
        assert_eq!(told("Deployment", &json!({}), &own, &parent), Some(at(4)));
    }
}

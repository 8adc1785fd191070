//! Since when an object has been as it is, as far as it says so itself: nobody was looking before.

use controller::core::TreeNode;
use readiness::{Condition, Kind, Level, Limits, Moment, Since, Text, Truth, assess};
use watcher::Parent;

use super::gather::group;

/// The moment, and which of its fields tells it.
pub(super) fn since(object: &Parent, node: &TreeNode) -> Option<Since> {
    let facts = &object.child.facts;
    let conditions = &facts.status.conditions;
    if !node.policy.is_empty() && facts.deleted.is_none() {
        // A verdict of ours that the parent says already.
        return conditions.iter().find(|c| *c.reason == *node.reason).and_then(turned);
    }
    told(object, node.verdict == "Ready")
}

/// The same of one that is nobody's parent and that no rule of a policy judges.
pub(super) fn of_leaf(object: &Parent) -> Option<Since> {
    let kind = Kind::of(group(object), &object.child.meta.kind);
    told(object, assess(kind, &object.child.facts, &Limits::default()).verdict.level == Level::Ready)
}

fn told(object: &Parent, ready: bool) -> Option<Since> {
    let facts = &object.child.facts;
    let kind = Kind::of(group(object), &object.child.meta.kind);
    let verdict = assess(kind, facts, &Limits::default()).verdict;
    if !ready {
        // A rule of a user may see it otherwise than its fields do; that it is being deleted is no matter of rules.
        let agrees = verdict.level != Level::Ready || facts.deleted.is_some();
        return agrees.then(|| readiness::since(kind, facts, &verdict)).flatten();
    }
    let says =
        |c: &&Condition| matches!(&*c.name, "Ready" | "Available" | "Complete") && c.status == Truth::True;
    let finished = facts.status.finished.map(|at| Since { at, from: Moment::End });
    facts.status.conditions.iter().find(says).and_then(turned).or(finished)
}

fn turned(condition: &Condition) -> Option<Since> {
    Some(Since { at: condition.since?, from: Moment::Condition(Text::new(&condition.name)) })
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
        since(&Parent { child: Child::read(&text), text }, node).map(|since| since.at.to_string())
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
        let parent =
            TreeNode { policy: "p".to_owned(), reason: "ChildrenFailed".to_owned(), ..TreeNode::default() };
        let own = json!({ "conditions": [
            { "type": "Ready", "status": "False", "reason": "ChildrenFailed", "lastTransitionTime": at(4) },
        ] });
        assert_eq!(told("Deployment", &json!({}), &own, &parent), Some(at(4)));
    }
}

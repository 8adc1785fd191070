//! What the deletion of an object waits for.

use inspect::client::InspectClient;
use inspect::finalizer_holders::{LikelyHolder, finalizer_holders};
use inspect::holder_signs::{HolderState, LifeSigns};
use inspect::kubectl::KubectlObject;
use readiness::{Level, Time};
use rollcall_core::{NOT_DELETED_YET, TreeNode};
use serde_json::Value;
use tokio::sync::OnceCell;
use watcher::ParentObject;

use super::super::node_reason::node_level;
use super::object_explanation::ExplainedCause;
use crate::eval::decode_json;

/// Finalizer by which the garbage collector deletes the dependents first.
const FOREGROUND_FINALIZER: &str = "foregroundDeletion";
/// Maximum number of children and of conditions that are listed.
const MAX_LISTED: usize = 10;

/// Adds what the deletion waits for: finalizers with their holders and signs of life, children, the namespace.
pub(super) async fn explain_deletion(
    ask: &mut InspectClient,
    (signs, now): (&OnceCell<LifeSigns>, Time),
    node: &TreeNode,
    found: &ParentObject,
    object: &KubectlObject<'_>,
    cause: &mut ExplainedCause,
) {
    let Some(value) = decode_json(found.text.get()) else { return };
    cause.holders = finalizer_holders(&value, object);
    if !cause.holders.is_empty() {
        let signs = signs.get_or_init(|| LifeSigns::read(ask)).await;
        for holder in &mut cause.holders {
            holder.signs = Some(signs.find_signs(&holder.names(), now));
        }
        cause.changes = describe_release(&cause.holders);
    }
    if cause.holders.iter().any(|holder| holder.finalizer == FOREGROUND_FINALIZER) {
        cause.waits_for_children = describe_children(node);
    }
    if !object.namespace.is_empty() {
        let path = format!("/api/v1/namespaces/{}", object.namespace);
        let namespace = ask.get("the Namespace", &path).await;
        cause.namespace_says = namespace.as_ref().map(remaining_in_namespace).unwrap_or_default();
    }
}

/// Describes who has to act: the holders, or a person where one of them is gone.
fn describe_release(holders: &[LikelyHolder]) -> String {
    let gone = |holder: &&LikelyHolder| {
        holder.signs.as_ref().is_some_and(|signs| signs.state == HolderState::Ownerless)
    };
    match holders.iter().find(gone) {
        Some(holder) => format!(
            "no running component seems to remove finalizer {}: start its operator again, or remove the finalizer yourself",
            holder.finalizer
        ),
        None => "the controllers of its finalizers must remove them".to_owned(),
    }
}

/// Describes the children that still exist.
fn describe_children(node: &TreeNode) -> Vec<String> {
    let leaving = |child: &TreeNode| matches!(node_level(child), Some(Level::Terminating | Level::Stuck));
    let describe = |child: &TreeNode| {
        let state = if leaving(child) { child.detail.as_str() } else { NOT_DELETED_YET };
        format!("{} {}: {state}", child.kind, child.name)
    };
    let mut lines: Vec<String> = node.children.iter().take(MAX_LISTED).map(describe).collect();
    if node.children.len() > MAX_LISTED {
        lines.push(format!("and {} more children", node.children.len() - MAX_LISTED));
    }
    lines
}

/// What a namespace that is being deleted says of what remains in it; nothing for any other.
fn remaining_in_namespace(namespace: &Value) -> Vec<String> {
    if namespace["metadata"]["deletionTimestamp"].is_null() {
        return Vec::new();
    }
    let conditions = namespace["status"]["conditions"].as_array().into_iter().flatten();
    let remaining = conditions.filter(|condition| condition["status"] == "True");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut lines: Vec<String> = remaining
        .take(MAX_LISTED)
        .map(|condition| format!("{}: {}", text(&condition["type"]), text(&condition["message"])))
        .collect();
    if lines.is_empty() {
        lines.push("it is being deleted, and does not say yet what remains in it".to_owned());
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_namespace_in_deletion_says_what_remains_and_another_says_nothing() {
        let condition =
            |kind: &str, status: &str| json!({ "type": kind, "status": status, "message": "why" });
        let conditions = json!([
            condition("NamespaceContentRemaining", "True"),
            condition("NamespaceDeletionDiscoveryFailure", "False")
        ]);
        let mut namespace = json!({ "metadata": {}, "status": { "conditions": conditions } });
        assert!(remaining_in_namespace(&namespace).is_empty());
        namespace["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert_eq!(remaining_in_namespace(&namespace), ["NamespaceContentRemaining: why"]);
    }

    #[test]
    fn the_children_that_a_deletion_waits_for_are_named_with_their_states() {
        let child = |name: &str, verdict: &'static str, detail: &str| TreeNode {
            kind: "Job".to_owned(),
            name: name.to_owned(),
            verdict,
            detail: detail.to_owned(),
            ..TreeNode::default()
        };
        let children = vec![child("a", "Stuck", "finalizer x.io/y"), child("b", "Ready", "complete")];
        let node = TreeNode { children, ..TreeNode::default() };
        assert_eq!(describe_children(&node), ["Job a: finalizer x.io/y", "Job b: not deleted yet"]);
    }
}

//! All that is known about the state of one object, as it is printed.

use inspect::finalizer_holders::LikelyHolder;
use inspect::owned::OwnedObject;
use inspect::recent_events::RecentEvent;
use rollcall_core::{NodeReason, TreeNode};
use serde::Serialize;

use super::ruling::ExplainedField;

/// Kind, namespace and name of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct ExplainedObjectName {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

impl ExplainedObjectName {
    pub(super) fn of_node(node: &TreeNode) -> ExplainedObjectName {
        ExplainedObjectName {
            group: node.group.clone(),
            kind: node.kind.clone(),
            namespace: node.namespace.clone(),
            name: node.name.clone(),
        }
    }
}

/// Explanation of one object's state.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectExplanation {
    pub(super) object: ExplainedObjectName,
    pub(super) verdict: &'static str,
    pub(super) reason: NodeReason,
    pub(super) message: String,
    /// The policy that makes it a parent; empty if it is none.
    pub(super) policy: String,
    /// Reason why this is not written on the parent, or the condition type it is written under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) written: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<String>,
    pub(super) causes: Vec<ExplainedCause>,
    /// Number of causes that were left out.
    pub(super) more: usize,
    /// Anything that could not be read, with the error.
    pub(super) not_read: Vec<String>,
}

/// A root cause, or something that is not ready and decides nothing.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExplainedCause {
    pub(super) object: ExplainedObjectName,
    /// Path from the requested object down to this one.
    pub(super) path: Vec<String>,
    pub(super) verdict: &'static str,
    pub(super) reason: NodeReason,
    pub(super) message: String,
    /// `false` if no policy counts it: it decides nothing.
    pub(super) counts: bool,
    pub(super) rule: String,
    pub(super) branch: String,
    pub(super) values: Vec<ExplainedField>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<String>,
    /// Event that would change the verdict.
    pub(super) changes: String,
    pub(super) tries: Vec<String>,
    pub(super) holders: Vec<LikelyHolder>,
    /// Children that a deletion in the foreground waits for, with their states.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) waits_for_children: Vec<String>,
    /// What its namespace, which is being deleted too, says remains in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) namespace_says: Vec<String>,
    pub(super) owns: Vec<OwnedObject>,
    pub(super) events: Vec<RecentEvent>,
}

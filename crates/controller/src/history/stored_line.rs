//! The lines of the history, as they are stored.

use serde::{Deserialize, Serialize};

/// Answer of a policy about a parent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryAnswer {
    /// `Ready`, `Failed`, …
    pub verdict: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// `AllChildrenReady`, …
    pub reason: String,
}

/// A part of a rollout, as it was stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryRolloutPart {
    /// Kind and name of the object that was waited for.
    pub object: String,
    /// What its time was spent on: `imagePull`, `operator`, …
    pub cause: String,
    /// The same in words, with its detail.
    pub says: String,
    /// Its beginning, RFC 3339.
    pub from: String,
    /// Its end: the beginning of the next part.
    pub to: String,
}

/// What the rollout of a generation waited for, as it was stored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct HistoryRollout {
    /// Its beginning, RFC 3339.
    pub from: String,
    /// Its end.
    pub to: String,
    /// What it waited for, oldest first; the parts follow each other.
    pub parts: Vec<HistoryRolloutPart>,
    /// What could not be read, with the reason.
    pub not_read: Vec<String>,
}

/// One line of the history as it was stored: a transition, or the rollout that ended with it. Missing fields are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HistoryEntry {
    /// Timestamp, RFC 3339.
    pub at: String,
    /// The policy.
    pub policy: String,
    /// API group of the parent.
    pub group: String,
    /// Version of the parent.
    pub version: String,
    /// Kind of the parent.
    pub kind: String,
    /// Namespace of the parent; empty for cluster-scoped ones.
    pub namespace: String,
    /// Name of the parent.
    pub name: String,
    /// Uid of the parent.
    pub uid: String,
    /// `metadata.generation` of the parent.
    pub generation: Option<i64>,
    /// Previous answer.
    pub from: Option<HistoryAnswer>,
    /// New answer.
    pub to: HistoryAnswer,
    /// The message.
    pub message: String,
    /// Root causes, as they were written.
    pub causes: Vec<serde_json::Value>,
    /// The policy was in shadow mode: nothing was written.
    pub shadow: bool,
    /// What the rollout waited for, if the line tells of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<HistoryRollout>,
}

/// Which lines are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryLineKind {
    /// Transitions.
    Transitions,
    /// Rollouts that ended.
    Rollouts,
}

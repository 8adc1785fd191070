//! Content of a `ReadinessRecord`: state that must survive a restart of Rollcall. One set of types makes the schema that
//! the API server checks, and reads and writes what the schema describes.
//!
//! Nothing here knows a client: `api` makes a custom resource of [`RecordContent`].

mod lenient;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use lenient::{LenientRead, read_content};

/// Outcomes of Jobs that a parent owns or owned, for policies with `afterDeletion: remember`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordContent {
    /// The parent.
    pub parent: RecordedParent,
    /// Outcomes of the newest run of each slot; below one known from Events alone, those before it.
    #[serde(default)]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["uid"]))]
    pub outcomes: Vec<RecordedOutcome>,
}

/// Parent that the outcomes count for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedParent {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// Kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Namespace; empty for a cluster-scoped parent whose Jobs have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// One object that runs to completion, and its outcome.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RecordedOutcome {
    /// API group.
    #[schemars(length(max = 253))]
    pub group: String,
    /// Kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Namespace.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Name, or `generateName`, shared by successive runs of the same Job. A newer run replaces the older one.
    #[schemars(length(min = 1, max = 253))]
    pub slot: String,
    /// Uid.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
    /// Creation time. For a Job known only from Events, the time of its first Event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub created: Option<String>,
    /// resourceVersion of the object when it was first observed. Reports about runs before it are older.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub resource_version: String,
    /// Labels of the object, for policies that exclude children by label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Generation of the parent when the object was first observed; a hash of the spec for kinds without generations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Outcome of the run.
    pub outcome: OutcomeWord,
    /// Reason for the failure.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// The run is known only from its Events, which do not name the owner. Only a user can tell the outcome of the
    /// parent's own run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub heard: bool,
    /// UIDs of later runs of the same slot that no longer count, though this one still existed: they were deleted unfinished,
    /// or replaced by such a run. An Event about them is no sign of an unobserved run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), inner(length(min = 1, max = 128)))]
    pub discarded: Vec<String>,
}

/// Outcome of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OutcomeWord {
    /// Not finished yet.
    #[default]
    Running,
    /// Finished successfully.
    Complete,
    /// Failed permanently.
    Failed,
    /// Deleted before its outcome was observed.
    Unseen,
}

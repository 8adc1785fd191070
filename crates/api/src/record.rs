//! `ReadinessRecord`: what must outlive a restart of Rollcall, kept in Rollcall's own namespace under the uid of the parent.
//!
//! Rollcall writes it and reads it. A person may set the outcome of an entry that says `Unseen`; anything else that is
//! changed is set right again.

#![allow(clippy::duplicated_attributes, reason = "each printed column has its type")]
#![allow(unreachable_pub, reason = "KubeSchema generates a public twin of each struct inside its own scope")]

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How Jobs ended that a parent owns or owned, for policies with `afterDeletion: remember`.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    group = "rollcall.dev",
    version = "v1alpha1",
    kind = "ReadinessRecord",
    plural = "readinessrecords",
    shortname = "rrec",
    category = "rollcall",
    namespaced,
    derive = "PartialEq",
    printcolumn(
        name = "Kind",
        json_path = ".spec.parent.kind",
        type_ = "string",
        description = "Kind of the parent."
    ),
    printcolumn(
        name = "Of",
        json_path = ".spec.parent.namespace",
        type_ = "string",
        description = "Namespace of the parent."
    ),
    printcolumn(
        name = "Parent",
        json_path = ".spec.parent.name",
        type_ = "string",
        description = "Name of the parent."
    ),
    printcolumn(
        name = "Outcomes",
        json_path = ".spec.outcomes[*].outcome",
        type_ = "string",
        description = "How they ended."
    ),
    printcolumn(name = "Age", json_path = ".metadata.creationTimestamp", type_ = "date")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadinessRecordSpec {
    /// The parent.
    pub parent: RecordedParent,
    /// The outcomes: of each thing that is run, the newest run.
    #[serde(default)]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["uid"]))]
    pub outcomes: Vec<RecordedOutcome>,
}

/// The parent for which outcomes count.
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
    /// Namespace; empty for a parent that has none and whose Jobs have none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// One object that runs to an end, and how it ended.
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
    /// What it is a run of: its name, or its `generateName`. A newer run of the same takes its place.
    #[schemars(length(min = 1, max = 253))]
    pub slot: String,
    /// Uid.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
    /// When it was created; of one that is known by its Events alone, when it was first told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "date-time"))]
    pub created: Option<String>,
    /// Its resourceVersion when it was first seen: what is told of runs before it is older.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub resource_version: String,
    /// Its labels, for policies that pass over some.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The parent's generation when it was first seen; a hash of the spec for a kind without generations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// How it ended.
    pub outcome: OutcomeWord,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub reason: String,
    /// It is known by its Events alone, and they do not say whose it was: how the parent's ended only a person can tell.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub heard: bool,
}

/// How something ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OutcomeWord {
    /// It has not.
    #[default]
    Running,
    /// Well.
    Complete,
    /// For good.
    Failed,
    /// It is gone, and nobody saw how it ended.
    Unseen,
}

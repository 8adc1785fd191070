//! `ReadinessPolicy`: which children make a parent ready, and what is written on it.
//!
//! Everything but the parent is optional. Durations are written as `100ms`, `5s`, `10m`, `1h30m`.

#![allow(clippy::duplicated_attributes, reason = "each printed column has its type")]
#![allow(unreachable_pub, reason = "KubeSchema generates a public twin of each struct inside its own scope")]

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::children::*;

/// A kind that is watched.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KindRef {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// API version; left out, the one that the server prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub version: Option<String>,
    /// Kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
}

/// Which children make a parent ready, and what is written on it.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "rollcall.dev",
    version = "v1alpha1",
    kind = "ReadinessPolicy",
    plural = "readinesspolicies",
    shortname = "rpol",
    category = "rollcall",
    status = "ReadinessPolicyStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Parent",
        json_path = ".spec.parent.kind",
        type_ = "string",
        description = "Kind of the parents."
    ),
    printcolumn(
        name = "Parents",
        json_path = ".status.parents",
        type_ = "integer",
        description = "How many parents the policy applies to."
    ),
    printcolumn(
        name = "Ready",
        json_path = ".status.ready",
        type_ = "integer",
        description = "How many of them are ready."
    ),
    printcolumn(
        name = "Mode",
        json_path = ".spec.mode",
        type_ = "string",
        description = "write, or shadow."
    ),
    printcolumn(
        name = "Accepted",
        json_path = ".status.conditions[?(@.type=='Accepted')].status",
        type_ = "string",
        description = "Whether the policy is valid and in use."
    ),
    printcolumn(name = "Age", json_path = ".metadata.creationTimestamp", type_ = "date")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadinessPolicySpec {
    /// The parents.
    pub parent: ParentSpec,
    /// The children, by kind. Left out: the common workload kinds (Deployment, StatefulSet, DaemonSet, ReplicaSet, Job,
    /// CronJob, Pod), found by ownerReference, at least one in all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub children: Vec<ChildSpec>,
    /// The condition that is written.
    #[serde(default)]
    pub condition: ConditionSpec,
    /// How changes are gathered into one write.
    #[serde(default)]
    pub debounce: DebounceSpec,
    /// How long nothing may be created, deleted or re-specified before children are judged for a parent whose operator
    /// leaves no mark of having handled the generation.
    #[serde(default = "five_seconds")]
    #[schemars(regex(pattern = r"^([0-9]+(ms|s|m|h))+$"), length(max = 32))]
    pub settle: String,
    /// What tells that the operator has handled a generation, beside `observedGeneration`: the mark that Kopf leaves. `auto`:
    /// where another parent of this policy in the same namespace carries one, a parent without one is not handled yet.
    /// `kopf`: the first of all is not either;
    /// for operators in Kopf with handlers for changes (`on.create`, `on.update`, …), not for those that have only timers,
    /// daemons or `on.event`, which leave none. `own`: a mark counts where it is, its absence says nothing; for operators that
    /// handle only some of these parents.
    #[serde(default)]
    pub evidence: EvidenceMode,
    /// How long all children must have been well before the condition turns True.
    #[serde(default = "zero_seconds")]
    #[schemars(regex(pattern = r"^([0-9]+(ms|s|m|h))+$"), length(max = 32))]
    pub hold: String,
    /// From when on something is stuck.
    #[serde(default)]
    pub limits: LimitsSpec,
    /// Whether `status.observedGeneration` of the parent is kept: `auto` where a default of its CRD supplies the field
    /// and nobody else owns it, `write` wherever nobody else owns it, or `never`.
    #[serde(default)]
    pub observed_generation: ObservedGenerationMode,
    /// `write`, or `shadow`: everything is computed and exported, nothing of yours is written; records of outcomes are Rollcall's own.
    #[serde(default)]
    pub mode: Mode,
}

/// The parents of a policy.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("self.kind != 'ReadinessPolicy' && self.kind != 'ReadinessRecord'", "a policy cannot be the parent of a policy"))]
pub struct ParentSpec {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// API version; left out, the one that the server prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub version: Option<String>,
    /// Kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Only parents with such labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Only parents in namespaces with such labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
}

/// A label selector, as everywhere in Kubernetes. All of it must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LabelSelector {
    /// Labels and the values that they must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements on labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub match_expressions: Vec<LabelRequirement>,
}

/// One requirement on one label.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)", "values are for In and NotIn, and only for them"))]
pub struct LabelRequirement {
    /// The label's key.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// The operator.
    pub operator: SelectorOperator,
    /// The values, for `In` and `NotIn`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SelectorOperator {
    /// It has one of the values.
    In,
    /// It has none of the values, or is absent.
    NotIn,
    /// It is there.
    Exists,
    /// It is not there.
    DoesNotExist,
}

/// The condition that is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConditionSpec {
    /// Its type. `Reconciling` and `Stalled` are written beside it where it is `Ready`.
    #[serde(default = "ready")]
    #[schemars(
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"),
        length(min = 1, max = 316)
    )]
    pub r#type: String,
    /// Where a condition of that type is somebody else's, or keeps being overwritten: this one instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"),
        length(min = 1, max = 316)
    )]
    pub fallback: Option<String>,
    /// Take it even where it is somebody else's.
    #[serde(default)]
    pub takeover: bool,
}

/// How changes are gathered into one write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebounceSpec {
    /// Write once nothing happened for so long.
    #[serde(default = "hundred_millis")]
    #[schemars(regex(pattern = r"^([0-9]+(ms|s|m|h))+$"), length(max = 32))]
    pub quiet: String,
    /// Write at the latest after so long.
    #[serde(default = "one_second")]
    #[schemars(regex(pattern = r"^([0-9]+(ms|s|m|h))+$"), length(max = 32))]
    pub cap: String,
}

/// From when on something is stuck.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitsSpec {
    /// Pending for so long; also how long the operator may stay silent. Left out: `--stuck-after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(ms|s|m|h))+$"), length(max = 32))]
    pub pending: Option<String>,
    /// Terminating for so long. Left out: `--stuck-after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(ms|s|m|h))+$"), length(max = 32))]
    pub terminating: Option<String>,
    /// The whole parent not ready for so long, since its generation or since it stopped being ready: Stalled, DeadlineExceeded.
    /// Whether children are not ready, not there or not handled yet by its operator; not while all of them are suspended, and not
    /// while they cannot be seen. Left out: no such limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^([0-9]+(ms|s|m|h))+$"), length(max = 32))]
    pub deadline: Option<String>,
}

/// What it means that a parent carries no mark of Kopf's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceMode {
    /// That it was not handled yet, where other parents of the policy in its namespace carry one.
    #[default]
    Auto,
    /// That it was not handled yet.
    Kopf,
    /// Nothing.
    Own,
}

/// What to do about `status.observedGeneration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObservedGenerationMode {
    /// Keep it where a default of the schema supplies it.
    #[default]
    Auto,
    /// Keep it wherever nobody else owns it.
    Write,
    /// Leave it alone.
    Never,
}

/// Write, or only watch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Conditions are written.
    #[default]
    Write,
    /// Nothing is written.
    Shadow,
}

/// What became of a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessPolicyStatus {
    /// `Accepted`, `Watching`, `Ready`.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<PolicyCondition>,
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many parents the policy applies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parents: Option<i64>,
    /// How many of them are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<i64>,
}

/// A condition of a policy, as `metav1.Condition`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyCondition {
    /// `Accepted`, `Watching` or `Ready`.
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// A CamelCase word.
    pub reason: String,
    /// For people.
    #[serde(default)]
    pub message: String,
    /// When the status last changed.
    pub last_transition_time: String,
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

fn ready() -> String {
    "Ready".to_owned()
}

fn zero_seconds() -> String {
    "0s".to_owned()
}

fn five_seconds() -> String {
    "5s".to_owned()
}

fn hundred_millis() -> String {
    "100ms".to_owned()
}

fn one_second() -> String {
    "1s".to_owned()
}

impl Default for ConditionSpec {
    fn default() -> Self {
        ConditionSpec { r#type: ready(), fallback: None, takeover: false }
    }
}

impl Default for DebounceSpec {
    fn default() -> Self {
        DebounceSpec { quiet: hundred_millis(), cap: one_second() }
    }
}

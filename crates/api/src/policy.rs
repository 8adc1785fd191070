//! `ReadinessPolicy`: the children that make a parent ready, and the conditions that are written on the parent.
//!
//! Everything except the parent is optional. Durations are written as `100ms`, `5s`, `10m`, `1h30m`.

#![allow(clippy::duplicated_attributes, reason = "each printed column has its type")]

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::children::*;
pub use crate::policy_status::*;
pub use crate::selectors::*;

/// Defines the children that make a parent ready, and the conditions that are written on the parent.
#[derive(CustomResource, JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
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
        description = "Number of parents the policy applies to."
    ),
    printcolumn(
        name = "Ready",
        json_path = ".status.ready",
        type_ = "integer",
        description = "Number of those parents that are ready."
    ),
    printcolumn(name = "Mode", json_path = ".spec.mode", type_ = "string", description = "write or shadow."),
    printcolumn(
        name = "Accepted",
        json_path = ".status.conditions[?(@.type=='Accepted')].status",
        type_ = "string",
        description = "The policy is valid and in use."
    ),
    printcolumn(name = "Age", json_path = ".metadata.creationTimestamp", type_ = "date")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadinessPolicySpec {
    /// Selects the parents. Several policies may write the same condition on parents of one kind if their selectors differ;
    /// a parent that two of them select is ruled by the older one, and the other names it in its condition `Conflicted`.
    pub parent: ParentSpec,
    /// Selects the children, by kind. Defaults to the common workload kinds (Deployment, StatefulSet, DaemonSet,
    /// ReplicaSet, Job, CronJob, Pod), found by ownerReference, at least one in all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub children: Vec<ChildSpec>,
    /// Condition that is written on the parent.
    #[serde(default)]
    pub condition: ConditionSpec,
    /// Coalesces successive changes into one status write.
    #[serde(default)]
    pub debounce: DebounceSpec,
    /// Quiet time, without any child created, deleted or changed in its spec, before the children are judged. Applies
    /// to parents whose operator does not report which generation it has handled. Defaults to `5s`.
    #[serde(default = "five_seconds")]
    #[schemars(length(max = 32))]
    pub settle: String,
    /// Evidence that the operator has handled a generation: its `observedGeneration`, or the mark
    /// (`last-handled-configuration`) that Kopf leaves. `auto` (the default): if another parent of this policy in the
    /// same namespace carries the mark, or any parent of the kind an `observedGeneration` of the operator's, a parent
    /// without it is not handled yet. `kopf`: a parent without the mark is never handled yet, not even the first one, and
    /// the mark alone, which Kopf leaves after a failure too, is no proof: a child must have changed since, or the
    /// operator keep its outcomes with `rollcall_kopf.py`; a failure that Kopf has posted as an Event counts, as it does by
    /// default before 1.44. For Kopf operators with change handlers (`on.create`,
    /// `on.update`, …), not for those that have only timers, daemons or `on.event`, which leave no mark. `own`: either
    /// counts if present and its absence means nothing; for operators that handle only some of these parents.
    #[serde(default)]
    pub evidence: EvidenceMode,
    /// CEL expression over `parent` and the list `children` that must hold before a generation of the parent counts as handled,
    /// beside what its operator reports: what the children are to look like once the operator has done its work, such as
    /// `children.filter(c, c.kind == 'Deployment').all(c, c.spec.template.spec.containers[0].image == parent.spec.image)`.
    /// `children` are the objects that count for the parent and exist, optional ones included. It is evaluated when the parent or
    /// a child changes, until it holds. While it does not hold, reads a field that is absent, or has no value, the condition is
    /// Unknown with reason ChildrenPending. Limits: 50,000 steps, and 16 KiB of what it reads of each object. Defaults to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8192))]
    pub proof: Option<String>,
    /// What the parent's own status counts for. Defaults to `failures`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_status: Option<OwnStatusMode>,
    /// Time that all children must have been ready before the condition becomes True. Defaults to `0s`.
    #[serde(default = "zero_seconds")]
    #[schemars(length(max = 32))]
    pub hold: String,
    /// Whether children that were ready keep the condition True while they are rolled out and available by their own budget
    /// (a Deployment's condition `Available`; the `maxUnavailable` of a StatefulSet or DaemonSet or, where it allows more, the
    /// PodDisruptionBudget of its pods, and one replica at least): while the number of replicas changes, or some are lost. A
    /// Deployment of up to three replicas with the default `maxUnavailable` of 25 % has none to spare. `tolerant` (the default)
    /// keeps it, for `limits.pending` at most, or as long again after Rollcall restarts; the message names such children.
    /// `strict` keeps it only while every replica is ready. Neither makes a condition True: that takes every replica.
    #[serde(default)]
    pub availability: AvailabilityMode,
    /// Time for which the condition stays True when children stop being ready. Children that failed or are stuck end it at
    /// once; so does a kind of children that cannot be seen. A child that is a parent itself and says Unknown does not. It begins
    /// anew with a restart or an edit of the policy. Defaults to `0s`.
    #[serde(default = "zero_seconds")]
    #[schemars(length(max = 32))]
    pub grace: String,
    /// Time limits after which children or the parent are reported as stuck.
    #[serde(default)]
    pub limits: LimitsSpec,
    /// Maintenance of the parent's `status.observedGeneration`, with an answer that is final. `auto` (the default) writes it
    /// if a default in the CRD supplies the field and it cannot hide the operator's own: no other manager writes the status, or
    /// the operator reports what it has handled by other means. `write` says that the operator does not keep the field:
    /// it is written if no other field manager owns it. `never` does not write it.
    #[serde(default)]
    pub observed_generation: ObservedGenerationMode,
    /// `write` (the default) writes conditions. `shadow` evaluates and exports metrics without writing to parents;
    /// ReadinessRecords are still written.
    #[serde(default)]
    pub mode: WriteMode,
}

/// Selection of a policy's parents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ParentSpec {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// API version. Defaults to the version that the API server prefers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub version: Option<String>,
    /// Kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Restricts the policy to parents with matching labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Restricts the policy to parents in namespaces with matching labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
}

/// Condition that is written on the parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConditionSpec {
    /// Condition type. Defaults to `Ready`, in which case `Reconciling` and `Stalled` are written as well.
    #[serde(default = "ready")]
    #[schemars(length(min = 1, max = 316))]
    pub r#type: String,
    /// Condition type to use instead if `type` is owned, or repeatedly overwritten, by another field manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 316))]
    pub fallback: Option<String>,
    /// Writes the condition even if another field manager owns it. Defaults to false.
    #[serde(default)]
    pub takeover: bool,
}

/// Coalescing of successive changes into one status write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DebounceSpec {
    /// Quiet time: the write is sent once no change has occurred for this long. Defaults to `100ms`.
    #[serde(default = "hundred_millis")]
    #[schemars(length(max = 32))]
    pub quiet: String,
    /// Maximum delay: the write is sent no later than this after the first change. Defaults to `1s`.
    #[serde(default = "one_second")]
    #[schemars(length(max = 32))]
    pub cap: String,
}

/// Time limits after which children or the parent are reported as stuck.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LimitsSpec {
    /// How long a child may stay Pending, or the operator unresponsive, before it is reported as Stuck. Defaults to
    /// `--stuck-after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub pending: Option<String>,
    /// How long nothing of a child's spec and status may change, by its managedFields, while its controller is at work on
    /// replicas or completions, before it is reported as Stuck. Covers StatefulSets, DaemonSets, ReplicaSets, Jobs with no
    /// pod at work, custom resources that count replicas, and Deployments outside of what their own
    /// `progressDeadlineSeconds` measures. Defaults to `--stuck-after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub progress: Option<String>,
    /// Maximum time a child, or the parent itself, may be Terminating before it is reported as Stuck. Defaults to
    /// `--stuck-after`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub terminating: Option<String>,
    /// Maximum time a parent may be not ready, measured from its current generation or from when it last became not
    /// ready. When exceeded, the parent is Stalled: with reason DeadlineExceeded where its children are not ready or
    /// missing, with OperatorSilent where its operator has not handled the generation, and with OperatorFailed where
    /// that failed. It is paused while all children are suspended or cannot be observed. Defaults to no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub deadline: Option<String>,
}

/// Meaning of a parent without Kopf's mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EvidenceMode {
    /// The parent is not handled yet if other parents of the policy in its namespace carry the mark.
    #[default]
    Auto,
    /// The parent is not handled yet.
    Kopf,
    /// Nothing can be concluded.
    Own,
}

/// What the parent's own status counts for, whoever wrote it, without what Rollcall wrote there. `failures` (the default): where it
/// reports a failure by the rule for its kind (a condition such as `Failed`, `Stalled` or `Degraded`, a `phase` or `state` in a word
/// for failure, a `Ready` that is False with a reason in one), the condition is False with reason OperatorFailed, and quotes what
/// reports it, however its children are; it is Stalled as well where the failure is final and of the current generation. A status
/// that does not say which generation it is about counts once this one counts as handled. Of a parent that is True, while all its
/// children are ready, a failure counts once it has been reported for 10 s, or for 2 s where it is final: an operator's next try may
/// mend it. `ignore`: nothing, for operators whose
/// words for failure mean something else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OwnStatusMode {
    /// A failure that it reports is the parent's.
    Failures,
    /// Nothing.
    Ignore,
}

/// Maintenance of `status.observedGeneration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ObservedGenerationMode {
    /// Written if a default in the CRD supplies the field and it cannot hide the operator's own.
    #[default]
    Auto,
    /// The operator does not keep the field. Written if no other field manager owns it.
    Write,
    /// Never written.
    Never,
}

/// What keeps a condition True while the number of replicas moves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AvailabilityMode {
    /// Children that were ready and are available.
    #[default]
    Tolerant,
    /// Ready children only.
    Strict,
}

/// Conditions are written, or only evaluated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WriteMode {
    /// Conditions are written.
    #[default]
    Write,
    /// Conditions are evaluated and exported, not written.
    Shadow,
}

fn ready() -> String {
    "Ready".to_owned()
}

pub(crate) fn zero_seconds() -> String {
    "0s".to_owned()
}

pub(crate) fn five_seconds() -> String {
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

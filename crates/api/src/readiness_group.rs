//! `ReadinessGroup`: a parent of Rollcall's own, for what has none: the objects of a release, of a Kustomization, of an
//! application, or any others that are to be ready together.
//!
//! The status is written by Rollcall and has a default in the schema, so that the first read is true. Durations are written as
//! `100ms`, `5s`, `10m`, `1h30m`.

#![allow(clippy::duplicated_attributes, reason = "each printed column has its type")]

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::children::{AfterDeletion, ChildRole, ExpectSpec, IgnoreSpec, ReadyRule, number_or_text, quorum};
use crate::policy::{AvailabilityMode, DebounceSpec, LimitsSpec, five_seconds, zero_seconds};
use crate::policy_status::PolicyCondition;
use crate::selectors::label_map;

/// Defines objects that are ready together, of one namespace, or of those that an administrator opens to it.
#[derive(CustomResource, JsonSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "rollcall.dev",
    version = "v1alpha1",
    kind = "ReadinessGroup",
    plural = "readinessgroups",
    shortname = "rgroup",
    category = "rollcall",
    namespaced,
    status = "ReadinessGroupStatus",
    derive = "PartialEq",
    printcolumn(
        name = "Ready",
        json_path = ".status.conditions[?(@.type=='Ready')].status",
        type_ = "string",
        description = "All members are ready."
    ),
    printcolumn(
        name = "Reason",
        json_path = ".status.conditions[?(@.type=='Ready')].reason",
        type_ = "string",
        description = "Why, in one word."
    ),
    printcolumn(
        name = "Message",
        json_path = ".status.conditions[?(@.type=='Ready')].message",
        type_ = "string",
        description = "What is not ready."
    ),
    printcolumn(name = "Age", json_path = ".metadata.creationTimestamp", type_ = "date")
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadinessGroupSpec {
    /// The members. They are in the namespace of the group, unless they name others. Members and kinds together may select in 64 ways at most.
    #[schemars(length(max = 32))]
    pub members: Vec<GroupMember>,
    /// Groups of the same namespace that come first: this one is not ready before they are, and names the one that it awaits.
    /// Nothing is held back by it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub after: Vec<EarlierGroup>,
    /// Coalesces successive changes into one status write, as in a policy. Not shorter than the defaults, `quiet: 100ms` and
    /// `cap: 1s`: writes are shared by all.
    // Without a default in the schema: whoever reads the group by an older version would find a field that it does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub debounce: Option<DebounceSpec>,
    /// Time without any member created, deleted or changed in its spec before a new generation of the group is judged.
    /// Defaults to `5s`.
    #[serde(default = "five_seconds")]
    #[schemars(length(max = 32))]
    pub settle: String,
    /// Time that all members must have been ready before the condition becomes True. Defaults to `0s`.
    #[serde(default = "zero_seconds")]
    #[schemars(length(max = 32))]
    pub hold: String,
    /// Time for which the condition stays True when members stop being ready. Members that failed or are stuck end it at
    /// once; so does a kind of members that cannot be seen. A member that is a parent itself and says Unknown does not. Defaults to
    /// `0s`.
    #[serde(default = "zero_seconds")]
    #[schemars(length(max = 32))]
    pub grace: String,
    /// Whether members that were ready keep the condition True while they are available by their own budget: as in a policy.
    #[serde(default)]
    pub availability: AvailabilityMode,
    /// Time limits after which members or the group are reported as stuck.
    #[serde(default)]
    pub limits: LimitsSpec,
}

/// Objects that belong to a group. Exactly one of `labels`, `helmRelease`, `application`, `kustomization`, `applySet`, `inventory`
/// and `objects` must be set; all but `objects` go with either `kinds` or `category`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GroupMember {
    /// Kinds of the objects. Of each at least one is expected, unless `expect` says otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub kinds: Vec<MemberKind>,
    /// In place of `kinds`: all namespaced kinds that the API server lists in this category (`kubectl api-resources
    /// --categories`), such as `all`, or Crossplane's `managed`. Kinds that join the category count within a minute. At
    /// least one object in all is expected, unless `expect` says otherwise. An object whose controller, by its ownerReference, is
    /// of a kind of the category as well does not count, because its controller does: the Pods of a Deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub category: Option<String>,
    /// Namespaces to search instead of the group's own. Others than that must be opened to the namespace of the group by an
    /// administrator (`--group-namespaces`). Not for `objects`, each of which may name its namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 63)))]
    pub namespaces: Vec<String>,
    /// Objects with these labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "label_map")]
    pub labels: BTreeMap<String, String>,
    /// Objects of this Helm release, by the annotations that Helm sets on what it installs, `meta.helm.sh/release-name` and
    /// `meta.helm.sh/release-namespace`. Hooks and what controllers make have none: those are found by the labels that Helm asks
    /// charts to set, `app.kubernetes.io/managed-by: Helm` and `app.kubernetes.io/instance`, or by `labels` or `objects`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 53))]
    pub helm_release: Option<String>,
    /// Objects of this Application of Argo CD, by the annotation `argocd.argoproj.io/tracking-id`, which Argo CD sets by default
    /// since version 3. An Application outside of Argo CD's own namespace is called `NAMESPACE_NAME`, as in the annotation. Where
    /// Argo CD tracks by a label, select by `labels`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub application: Option<String>,
    /// Objects of this Kustomization of Flux, by the labels that Flux sets: `kustomize.toolkit.fluxcd.io/name` and
    /// `kustomize.toolkit.fluxcd.io/namespace`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kustomization: Option<FluxObjectRef>,
    /// Objects of the ApplySet with this id, by the label `applyset.kubernetes.io/part-of` that `kubectl apply --applyset` sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub apply_set: Option<String>,
    /// Objects of the inventory with this id, by the annotation `config.k8s.io/owning-inventory` that cli-utils sets: those of kpt
    /// and of Config Sync.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub inventory: Option<String>,
    /// These objects. One that does not exist is missing. An object of kind ReadinessGroup (`rollcall.dev/v1alpha1`) counts
    /// with its own members.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub objects: Vec<MemberRef>,
    /// Number of objects that are expected: of each kind, or of all kinds of the `category` together. Defaults to at least one.
    /// Not for `objects`, all of which are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<MemberCount>,
    /// `critical` (the default) or `optional`. Optional members are shown and exported as metrics but never make the group not
    /// ready.
    #[serde(default)]
    pub role: ChildRole,
    /// Treatment of a finished Job's outcome once the Job is deleted, for members that are Jobs (group `batch`): hooks of Helm and
    /// of Argo CD are deleted when they have run. `remember`: the outcome counts until another Job of the same name replaces it,
    /// if the group existed before the Job was deleted. Defaults to `forget`: the outcome no longer counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_deletion: Option<AfterDeletion>,
    /// Excludes objects: they are not counted and not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<IgnoreSpec>,
    /// Number of objects of each kind that must be ready: `all`, a number, or a percentage. Not for a `category`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "number_or_text")]
    #[schemars(schema_with = "quorum")]
    pub quorum: Option<String>,
    /// Readiness rule for these objects, as in a policy; not `rules`, whose ConfigMap only an administrator's ReadinessPolicy
    /// names. It is evaluated on objects of namespaces with such a group only. Defaults to Rollcall's built-in rule for the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<ReadyRule>,
}

/// Kind of members, in the version that the API server prefers: all that judge a kind share one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemberKind {
    /// API group; empty for the core group.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub group: String,
    /// Kind.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
}

/// A group that comes before another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EarlierGroup {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Number of objects that are expected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemberCount {
    /// Minimum number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000), extend("format" = "int32"))]
    pub min: Option<u32>,
    /// Maximum number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000), extend("format" = "int32"))]
    pub max: Option<u32>,
    /// CEL expression over `parent`, the group, that yields the minimum number of objects of each kind, as in a policy. Not for a
    /// `category`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub cel: Option<String>,
}

/// Reference to an object of Flux.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FluxObjectRef {
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its namespace. Defaults to that of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
}

/// Reference to a member by its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MemberRef {
    /// API group and version, such as `apps/v1`; `v1` for the core group.
    #[schemars(
        length(min = 1, max = 317),
        regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[a-z]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub api_version: String,
    /// Kind.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$"))]
    pub kind: String,
    /// Its namespace. Defaults to that of the group; another one must be opened to that by an administrator
    /// (`--group-namespaces`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub namespace: Option<String>,
    /// Name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Observed state of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessGroupStatus {
    /// Condition `Ready`; `Reconciling` while members are on their way, and `Stalled` where they will not get there.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<PolicyCondition>,
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

impl From<&MemberCount> for ExpectSpec {
    fn from(count: &MemberCount) -> ExpectSpec {
        ExpectSpec { min: count.min, max: count.max, names: Vec::new(), cel: count.cel.clone() }
    }
}

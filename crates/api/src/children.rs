//! `children`: the objects that count for a parent, their expected number, and the rules they are judged by.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::selectors::{KindRef, LabelSelector};

/// Children of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChildSpec {
    /// Kind of the children.
    pub kind: KindRef,
    /// Selects the children. Defaults to objects whose ownerReference names the parent. PersistentVolumeClaims have no
    /// ownerReference: if StatefulSets are listed as children too, the claims of the parent's StatefulSets are found by
    /// name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub find: Option<FindSpec>,
    /// Number of children expected. Defaults to at least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<ExpectSpec>,
    /// `critical` (the default) or `optional`. Optional children are shown and exported as metrics but never make the
    /// parent not ready.
    #[serde(default)]
    pub role: ChildRole,
    /// Treatment of a finished Job's outcome once the Job is deleted. Defaults to `forget`: the outcome no longer
    /// counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_deletion: Option<AfterDeletion>,
    /// Excludes children: they are not counted and not judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<IgnoreSpec>,
    /// Number of children that must be ready: `all`, a number, or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "number_or_text")]
    #[schemars(schema_with = "quorum")]
    pub quorum: Option<String>,
    /// Readiness rule for these children. Defaults to Rollcall's built-in rule for the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<ReadyRule>,
}

/// JSON schema of a quorum: YAML parses `2` as a number and `50%` as a string.
pub(crate) fn quorum(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true, "nullable": true, "pattern": "^(all|[1-9][0-9]{0,5}|[1-9][0-9]?%|100%)$",
        "minimum": 1, "maximum": 999_999,
    })
}

pub(crate) fn number_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "all, a number, or a percentage")]
    enum Either {
        Number(i64),
        Text(String),
    }
    Ok(Option::<Either>::deserialize(deserializer)?.map(|either| match either {
        Either::Number(number) => number.to_string(),
        Either::Text(text) => text,
    }))
}

/// Selection of children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FindSpec {
    /// Selects children by these labels. Values may refer to fields of the parent: `{parent.metadata.name}`. Objects
    /// owned by another object of the parent's own kind do not count. All others count regardless of their owner (such
    /// as a Pod owned by a ReplicaSet), and count for every parent that selects them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "template_map")]
    pub labels: BTreeMap<String, String>,
    /// Namespaces to search for `labels` instead of the parent's own. May refer to fields of the parent; one that may lead to
    /// another namespace than the parent's own is restricted to `allowedNamespaces`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 1024)))]
    pub namespaces: Vec<String>,
    /// Namespaces among which an author of parents may choose: by the fields that `namespaces` refers to, and, for
    /// cluster-scoped parents, by `refs`. Objects in these namespaces, and in no others, count for a cluster-scoped parent
    /// that their ownerReference names. Names, or the beginning of names followed by `*`: `team-*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub allowed_namespaces: Vec<String>,
    /// Path to references in the parent that name the children, such as `spec.resourceRefs[*]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub refs: Option<String>,
}

/// JSON schema of labels whose values are templates.
fn template_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "maxProperties": 64, "additionalProperties": { "type": "string", "maxLength": 1024 },
    })
}

/// Number or names of the children expected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExpectSpec {
    /// Minimum number of children. Also where it is 0 for all kinds, a parent without any child is not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000), extend("format" = "int32"))]
    pub min: Option<u32>,
    /// Maximum number of children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000), extend("format" = "int32"))]
    pub max: Option<u32>,
    /// Names of children that must exist. May refer to fields of the parent: `{parent.metadata.name}-migrate`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), inner(length(min = 1, max = 1024)))]
    pub names: Vec<String>,
    /// CEL expression over `parent` that yields the minimum number of children.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub cel: Option<String>,
}

/// Children that are excluded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IgnoreSpec {
    /// Excludes children with matching labels.
    pub selector: LabelSelector,
}

/// Effect of a child on its parent's condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChildRole {
    /// The parent is not ready unless the child is ready.
    #[default]
    Critical,
    /// The child is shown but never makes its parent not ready.
    Optional,
}

/// Treatment of the outcome of a finished child that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AfterDeletion {
    /// The outcome counts until a newer Job of the same name, or of the same `generateName`, replaces it.
    Remember,
    /// As `remember`, but only for the generation of the parent under which the Job was first observed.
    RememberGeneration,
    /// The outcome no longer counts.
    Forget,
}

/// Readiness rule. Exactly one field must be set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReadyRule {
    /// CEL expressions in the format of Flux `healthCheckExprs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel: Option<CelRule>,
    /// Lua script in the format of Argo CD's `health.lua`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 65_536))]
    pub lua: Option<String>,
    /// Reproduces the verdict of another tool: `kstatus`, `flux` or `argocd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<RuleProfile>,
    /// ConfigMap that holds Argo CD health scripts, read live: `argocd-cm` (in namespace `argocd`) or NAMESPACE/NAME.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub rules: Option<String>,
}

/// Tool whose verdict is reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleProfile {
    /// kstatus, the library in sigs.k8s.io/cli-utils.
    Kstatus,
    /// Flux.
    Flux,
    /// Argo CD.
    Argocd,
}

/// CEL expressions over the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CelRule {
    /// The object is ready if this is true.
    #[schemars(length(min = 1, max = 4096))]
    pub current: String,
    /// The object is still progressing if this is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub in_progress: Option<String>,
    /// The object has failed if this is true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub failed: Option<String>,
}

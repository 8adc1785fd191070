//! `children`: which objects count for a parent, how many are expected, and how they are judged.

#![allow(unreachable_pub, reason = "KubeSchema generates a public twin of each struct inside its own scope")]

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

use crate::policy::{KindRef, LabelSelector};

/// Children of one kind.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ChildSpec {
    /// Their kind.
    pub kind: KindRef,
    /// How they are found: by ownerReference, unless this says otherwise. Volume claims have none: where StatefulSets are
    /// named too, those that a StatefulSet of the parent claims are found by their names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub find: Option<FindSpec>,
    /// How many are expected: at least one, unless this says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<ExpectSpec>,
    /// `critical`, or `optional`: shown and metered, but never turns Ready away from True.
    #[serde(default)]
    pub role: ChildRole,
    /// What becomes of the outcome of a finished Job that is deleted: it does not count any more, unless this says
    /// otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_deletion: Option<AfterDeletion>,
    /// Children that do not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<IgnoreSpec>,
    /// How many of them must be ready: `all`, a number, or a percentage.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "number_or_text")]
    #[schemars(schema_with = "quorum")]
    pub quorum: Option<String>,
    /// How they are judged: by Rollcall's own rules, unless this says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<ReadyRule>,
}

/// YAML makes a number of `2` and a text of `50%`.
fn quorum(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "x-kubernetes-int-or-string": true, "nullable": true, "pattern": "^(all|[0-9]{1,6}|[0-9]{1,3}%)$",
    })
}

fn number_or_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
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

/// How children are found.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("!(has(self.labels) && has(self.refs))", "labels or refs, not both"))]
#[x_kube(validation = ("!has(self.namespaces) || has(self.labels)", "namespaces goes with labels"))]
pub struct FindSpec {
    /// By these labels; values may hold fields of the parent: `{parent.metadata.name}`. What another object of the parent's own
    /// kind owns does not count. Anything else does, whoever owns it (a Pod that a ReplicaSet owns), and for every parent that
    /// selects it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// In these namespaces instead of the parent's own; may hold fields of the parent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub namespaces: Vec<String>,
    /// By references in the parent, such as `spec.resourceRefs[*]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub refs: Option<String>,
}

/// How many children are expected.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("!has(self.min) || !has(self.max) || self.min <= self.max", "min must not be above max"))]
pub struct ExpectSpec {
    /// At least so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000), extend("format" = "int32"))]
    pub min: Option<u32>,
    /// At most so many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000), extend("format" = "int32"))]
    pub max: Option<u32>,
    /// These by name; may hold fields of the parent: `{parent.metadata.name}-migrate`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub names: Vec<String>,
    /// A CEL expression over `parent` that yields how many, at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub cel: Option<String>,
}

/// Children that do not count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IgnoreSpec {
    /// Those with such labels.
    pub selector: LabelSelector,
}

/// May a child turn its parent's condition away from True?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ChildRole {
    /// Yes.
    #[default]
    Critical,
    /// No.
    Optional,
}

/// What becomes of the outcome of a finished child that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AfterDeletion {
    /// It counts until a newer Job of the same name, or of the same `generateName`, takes its place.
    Remember,
    /// The same, but only for the generation of the parent that the Job was first seen under.
    RememberGeneration,
    /// It does not count.
    Forget,
}

/// How children are judged; one of these.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("[has(self.cel), has(self.lua), has(self.profile), has(self.rules)].filter(x, x).size() == 1", "exactly one of cel, lua, profile, rules"))]
pub struct ReadyRule {
    /// CEL expressions, in the shape of Flux `healthCheckExprs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel: Option<CelRule>,
    /// A script in the shape of Argo CD's `health.lua`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 65_536))]
    pub lua: Option<String>,
    /// A peer's verdict: `kstatus`, `flux` or `argocd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<RuleProfile>,
    /// Argo CD's scripts in a live ConfigMap: `argocd-cm` (in the namespace `argocd`), or NAMESPACE/NAME.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub rules: Option<String>,
}

/// A peer whose verdict is reproduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RuleProfile {
    /// sigs.k8s.io/cli-utils.
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
    /// True where it is ready.
    #[schemars(length(min = 1, max = 4096))]
    pub current: String,
    /// True where it is on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub in_progress: Option<String>,
    /// True where it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub failed: Option<String>,
}

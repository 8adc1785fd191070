//! `status` of a policy: what is in force of it, and what Rollcall lacks for it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Observed state of a policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadinessPolicyStatus {
    /// Conditions `Accepted`, `Watching` and `Ready`; `Conflicted` while older policies rule parents that this one selects
    /// too; `OutcomesHidden` while nothing shows whether the operator of some parents succeeded, and `spec.proof` is not set.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<PolicyCondition>,
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The generation whose spec is in force. An older one than `observedGeneration` where that is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_generation: Option<i64>,
    /// The spec that is in force. It stays so while a later one is refused, also across restarts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<AcceptedPolicy>,
    /// Releases of Rollcall that have accepted the policy, by the namespace of their records and the name of their lease. On a
    /// parent that policies of two releases choose for the same condition the older policy rules, and the other one leaves it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub accepted_by: BTreeMap<String, ReleaseClaim>,
    /// Rights that the policy needs and Rollcall lacks, each with what it is for. The command that grants them is in the
    /// message of the condition that is False for it.
    #[serde(default)]
    #[schemars(length(max = 99))]
    pub missing_rights: Vec<String>,
    /// Number of parents the policy applies to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parents: Option<i64>,
    /// Number of those parents that are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<i64>,
}

/// A spec that was accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedPolicy {
    /// The generation that it was accepted in.
    pub generation: i64,
    /// The spec as JSON text; left out where it has more than 64 KiB.
    #[serde(default)]
    #[schemars(length(max = 65536))]
    pub spec: Option<String>,
    /// Why the spec is not kept, where it is not.
    #[serde(default)]
    pub omitted: Option<String>,
    /// Minor version of Rollcall that accepted it, for example `0.1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub version: Option<String>,
    /// What another version had accepted before. It is in force again after a rollback to one that cannot use `spec`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<EarlierPolicy>,
}

/// A spec that another version of Rollcall had accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EarlierPolicy {
    /// The generation that it was accepted in.
    pub generation: i64,
    /// The spec as JSON text, of at most 64 KiB.
    #[schemars(length(max = 65536))]
    pub spec: String,
    /// Minor version that accepted it; absent where that did not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub version: Option<String>,
}

/// What one release of Rollcall says of a policy that it accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseClaim {
    /// Namespaces to whose parents the release is restricted; absent where it has all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// The policy has no labels of the release any more, and no other release has accepted it: what it says on parents is
    /// taken back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdrawn: bool,
}

/// Condition of a policy, as `metav1.Condition`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyCondition {
    /// Condition type: `Accepted`, `Watching` or `Ready`.
    pub r#type: String,
    /// Condition status: `True`, `False` or `Unknown`.
    pub status: String,
    /// Machine-readable reason, in CamelCase.
    pub reason: String,
    /// Human-readable explanation.
    #[serde(default)]
    pub message: String,
    /// Time of the last change of the status.
    pub last_transition_time: String,
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

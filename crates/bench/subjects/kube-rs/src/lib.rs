//! What both controllers write: a condition `Ready` in the status of the parent.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Status of parents and of children.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}

impl Status {
    /// Condition of this type.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == type_)
    }

    /// Whether the condition `Ready` is True.
    pub fn is_ready(&self) -> bool {
        self.condition("Ready").is_some_and(|condition| condition.status == "True")
    }
}

/// The condition that a parent is to have. The time of the last transition is kept where the answer is the same.
pub fn ready_condition(parent: &impl ResourceExt, status: Option<&Status>, ready: usize, all: usize) -> Condition {
    let is_ready = ready == all && ready > 0;
    let text = if is_ready { "True" } else { "False" };
    let before = status.and_then(|status| status.condition("Ready")).filter(|before| before.status == text);
    Condition {
        type_: "Ready".into(),
        status: text.into(),
        reason: if is_ready { "PartsReady" } else { "PartsNotReady" }.into(),
        message: format!("{ready} of {all} parts are ready"),
        observed_generation: parent.meta().generation,
        last_transition_time: before.map_or_else(|| Time(jiff::Timestamp::now()), |before| before.last_transition_time.clone()),
    }
}

/// A merge patch that gives the parent this condition beside its others.
pub fn condition_patch(status: Option<&Status>, condition: &Condition) -> Value {
    let others = status.into_iter().flat_map(|status| &status.conditions);
    let mut conditions: Vec<&Condition> = others.filter(|other| other.type_ != condition.type_).collect();
    conditions.push(condition);
    json!({ "status": { "conditions": conditions } })
}

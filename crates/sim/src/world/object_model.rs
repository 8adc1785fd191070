//! One object, read naively from its JSON, as a person would. It shares nothing with the product's own reading.

use std::collections::{BTreeMap, BTreeSet};

use readiness::Level;
use readiness::rollup::ParentReason;
use serde_json::Value;

use super::model_workload::{BudgetReading, ModelSteadiness, ModelWorkload};
use super::sim_budget::SimBudget;
use super::status_json::{conditions_of, has_true_condition};
use crate::scenario::KindDef;

/// State of an object by its own status, unless it is being deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelState {
    /// Its level, and whether it is stalled.
    Is(Level, bool),
    /// A Job that no controller has started: progressing, and stuck once that takes too long.
    NotStarted,
}

/// The operator's report about the current generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelMark {
    Handled,
    NotYet,
    Silent,
}

/// What the status of a parent says of a failure, by others than Rollcall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelFailure {
    pub(crate) reach: FailureReach,
    /// How that is quoted.
    pub(crate) text: &'static str,
}

/// How far a failure reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureReach {
    /// It may be of an earlier generation.
    Unattributed,
    /// It may pass.
    Temporary,
    /// This generation has failed for good.
    Final,
}

/// One condition of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelCondition {
    pub(crate) status: String,
    pub(crate) reason: ParentReason,
    pub(crate) message: String,
    pub(crate) observed: i64,
    pub(crate) since: i64,
}

/// One object.
#[derive(Clone, Debug)]
pub(crate) struct ModelObject {
    pub(crate) kind: usize,
    pub(crate) uid: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) version: u64,
    pub(crate) generation: i64,
    pub(crate) created: i64,
    /// Time at which anybody but us changed its spec or status last, as far as the server records it.
    pub(crate) changed: i64,
    pub(crate) deleted: Option<i64>,
    /// Group, kind and UID of each owner.
    pub(crate) owners: Vec<(String, String, String)>,
    /// UIDs of the owners whose deletion in the foreground waits for it.
    pub(crate) blocked: BTreeSet<String>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) state: ModelState,
    /// What a workload of pods says of them.
    pub(crate) workload: Option<ModelWorkload>,
    /// Its controller reports another generation than it has.
    pub(crate) is_stale: bool,
    pub(crate) mark: ModelMark,
    /// What its status says of a failure.
    pub(crate) failure: Option<ModelFailure>,
    pub(crate) ours: BTreeMap<String, ModelCondition>,
    pub(crate) foreign: BTreeSet<String>,
    /// Conditions that another release has written, as the same field manager.
    pub(crate) theirs: BTreeMap<String, ModelCondition>,
    /// Types of ours that stand in the list more than once.
    pub(crate) doubled: BTreeSet<String>,
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn parse_moment(value: &Value) -> Option<i64> {
    watcher::status::time::parse_rfc3339(value.as_str()?).map(|t| t.0)
}

/// Returns the version of an object, and nothing else of it.
pub(crate) fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

impl ModelObject {
    /// Reads an object of this kind.
    pub(crate) fn from_json(at: usize, kind: &KindDef, object: &Value) -> ModelObject {
        let (meta, status) = (&object["metadata"], &object["status"]);
        let owner = |owner: &Value| {
            let api = text_of(&owner["apiVersion"]);
            let group = api.split_once('/').map_or("", |(group, _)| group).to_owned();
            (group, text_of(&owner["kind"]), text_of(&owner["uid"]))
        };
        let references = || meta["ownerReferences"].as_array().into_iter().flatten();
        let blocked = references().filter(|owner| owner["blockOwnerDeletion"] == true);
        let label = |(key, value): (&String, &Value)| (key.clone(), text_of(value));
        let mut model = ModelObject {
            kind: at,
            uid: text_of(&meta["uid"]),
            namespace: text_of(&meta["namespace"]),
            name: text_of(&meta["name"]),
            version: version_of(object),
            generation: meta["generation"].as_i64().unwrap_or(0),
            created: parse_moment(&meta["creationTimestamp"]).unwrap_or(0),
            changed: last_change(meta),
            deleted: parse_moment(&meta["deletionTimestamp"]),
            owners: references().map(owner).collect(),
            blocked: blocked.map(|owner| text_of(&owner["uid"])).collect(),
            finalizers: meta["finalizers"].as_array().into_iter().flatten().map(text_of).collect(),
            labels: meta["labels"].as_object().into_iter().flatten().map(label).collect(),
            state: read_state(&kind.api.kind, object),
            workload: ModelWorkload::read(&kind.api.kind, object),
            is_stale: status["observedGeneration"]
                .as_i64()
                .is_some_and(|o| Some(o) != meta["generation"].as_i64()),
            mark: ModelMark::Silent,
            failure: None,
            ours: BTreeMap::new(),
            foreign: BTreeSet::new(),
            theirs: BTreeMap::new(),
            doubled: BTreeSet::new(),
        };
        for condition in conditions_of(status) {
            model.add_condition(condition, object);
        }
        model.mark = read_mark(object, &model);
        model.failure = read_failure(status, &model);
        model
    }

    /// Returns `true` for a workload whose controller has observed what it is wanted to be.
    pub(crate) fn is_observed_workload(&self) -> bool {
        self.workload.as_ref().is_some_and(ModelWorkload::is_observed)
    }

    /// How far it can be counted on while it is not ready.
    pub(crate) fn steadiness(&self, reading: BudgetReading) -> ModelSteadiness {
        self.workload.as_ref().map_or(ModelSteadiness::Unsteady, |workload| workload.steadiness(reading))
    }

    /// Takes over what was known of the object before it changed to this, and reads it by the budgets of its namespace. Of one in
    /// the same version as before it may not be known that it `is_read_anew`.
    pub(crate) fn follow(
        mut self,
        before: Option<&ModelObject>,
        budgets: &[SimBudget],
        is_read_anew: bool,
    ) -> ModelObject {
        let Some(workload) = &mut self.workload else { return self };
        let known = before.and_then(|before| before.workload.as_ref().zip(Some(before)));
        workload.follow(known.map(|(workload, before)| (workload, before.is_ready())), budgets);
        if let Some((known, _)) = known.filter(|(_, before)| before.version == self.version && !is_read_anew)
        {
            workload.doubt(known);
        }
        self
    }

    fn is_ready(&self) -> bool {
        self.state == ModelState::Is(Level::Ready, false) && self.deleted.is_none()
    }

    fn add_condition(&mut self, condition: &Value, object: &Value) {
        let kind = text_of(&condition["type"]);
        let reason = ParentReason::parse_reason(&text_of(&condition["reason"]));
        // No policy writes what strangers say, and theirs are ordinary words: those are ours only with ours behind them.
        let ordinary = matches!(reason, Some(ParentReason::DeadlineExceeded | ParentReason::Terminating));
        let theirs = FOREIGN_CONDITION_TYPES.contains(&&*kind) || (ordinary && condition["message"] == "");
        match reason.filter(|_| !theirs && is_ours(object, &kind)) {
            Some(reason) => {
                let said = ModelCondition {
                    status: text_of(&condition["status"]),
                    reason,
                    message: text_of(&condition["message"]),
                    observed: condition["observedGeneration"].as_i64().unwrap_or(-1),
                    since: parse_moment(&condition["lastTransitionTime"]).unwrap_or(0),
                };
                let is_theirs = said.message.starts_with(OTHER_RELEASE_WORDS);
                let known = if is_theirs { &mut self.theirs } else { &mut self.ours };
                if known.insert(kind.clone(), said).is_some() {
                    self.doubled.insert(kind);
                }
            }
            None => _ = self.foreign.insert(kind),
        }
    }
}

/// With this begins what another release says, so that the judges know whose it is. To the product it is like its own words, which
/// open so, too.
pub(crate) const OTHER_RELEASE_WORDS: &str =
    "waiting for the operator to handle what another release says, policy ";

/// What other writers call their conditions.
pub(crate) const FOREIGN_CONDITION_TYPES: [&str; 2] = ["Degraded", "Reachable"];

/// Returns `true` if the condition is ours. In a list-map the server records the owner of each entry; in an atomic list
/// the last writer owns all of it.
pub(crate) fn is_ours(object: &Value, condition: &str) -> bool {
    let key = format!("k:{{\"type\":\"{condition}\"}}");
    let mut owners = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|m| m["fieldsV1"]["f:status"]["f:conditions"].get(&key).is_some())
        .map(|m| text_of(&m["manager"]))
        .peekable();
    owners.peek().is_none() || owners.any(|owner| owner == watcher::status::FIELD_MANAGER)
}

fn last_change(meta: &Value) -> i64 {
    let entries = meta["managedFields"].as_array().into_iter().flatten();
    let is_content = |m: &&Value| {
        m["manager"] != watcher::status::FIELD_MANAGER
            && ["f:spec", "f:status"].iter().any(|part| m["fieldsV1"].get(part).is_some())
    };
    entries.filter(is_content).filter_map(|m| parse_moment(&m["time"])).max().unwrap_or(0)
}

fn read_mark(object: &Value, model: &ModelObject) -> ModelMark {
    let status = &object["status"];
    let mut marks = Vec::new();
    if let Some(observed) = status["observedGeneration"].as_i64() {
        marks.push(observed >= model.generation);
    } else {
        let foreign = conditions_of(status).iter().filter(|c| model.foreign.contains(&text_of(&c["type"])));
        let highest = foreign.filter_map(|c| c["observedGeneration"].as_i64()).max();
        marks.extend(highest.map(|observed| observed >= model.generation));
    }
    if let Some(handled) = object["metadata"]["annotations"][KOPF_ANNOTATION].as_str() {
        let handled: Value = serde_json::from_str(handled).unwrap_or_default();
        marks.push(handled["spec"] == object["spec"]);
    }
    match marks.as_slice() {
        [] => ModelMark::Silent,
        marks if marks.contains(&false) => ModelMark::NotYet,
        _ => ModelMark::Handled,
    }
}

/// What others than Rollcall say in the status of a failure. What strangers say has no message.
fn read_failure(status: &Value, model: &ModelObject) -> Option<ModelFailure> {
    let says_for = |kind: &str, value: &str, reason: &str| {
        let is_said = |c: &Value| c["status"] == value && c["reason"] == reason && c["message"] == "";
        let mut of_kind = conditions_of(status).iter().filter(|c| c["type"] == kind);
        model.foreign.contains(kind) && of_kind.any(is_said)
    };
    let says = |kind: &str, value: &str| {
        let reason = if value == "True" { "Terminating" } else { "DeadlineExceeded" };
        says_for(kind, value, reason)
    };
    let (reach, text) = if says("Ready", "False") {
        (FailureReach::Temporary, "Ready=False: DeadlineExceeded")
    } else if says_for("Ready", "True", "DeadlineExceeded") {
        // Somebody has turned it.
        (FailureReach::Temporary, "Ready: DeadlineExceeded")
    } else if says("Degraded", "True") {
        (FailureReach::Temporary, "Degraded: Terminating")
    } else if status["phase"] == "Failed" {
        (FailureReach::Final, "phase Failed")
    } else if says("Reachable", "False") {
        (FailureReach::Temporary, "Reachable=False: DeadlineExceeded")
    } else {
        return None;
    };
    let is_of_this = status["observedGeneration"].as_i64() == Some(model.generation) || model.generation == 1;
    Some(ModelFailure { reach: if is_of_this { reach } else { FailureReach::Unattributed }, text })
}

/// Annotation in which Kopf stores the last handled configuration.
pub(crate) const KOPF_ANNOTATION: &str = "kopf.zalando.org/last-handled-configuration";

fn read_state(kind: &str, object: &Value) -> ModelState {
    match kind {
        "Deployment" | "StatefulSet" => workload_state(object),
        "Job" => job_state(object),
        _ => custom_state(object),
    }
}

fn workload_state(object: &Value) -> ModelState {
    let status = &object["status"];
    if status["observedGeneration"].as_i64() != object["metadata"]["generation"].as_i64() {
        return ModelState::Is(Level::Progressing, false);
    }
    if conditions_of(status).iter().any(|c| c["reason"] == "ProgressDeadlineExceeded") {
        return ModelState::Is(Level::Failed, true);
    }
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let counts = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
    let all = counts.iter().all(|field| status[field].as_i64().unwrap_or(0) == wanted);
    ModelState::Is(if all { Level::Ready } else { Level::Progressing }, false)
}

fn job_state(object: &Value) -> ModelState {
    let status = &object["status"];
    if has_true_condition(status, "Failed") {
        ModelState::Is(Level::Failed, true)
    } else if has_true_condition(status, "Complete") {
        ModelState::Is(Level::Ready, false)
    } else if object["spec"]["suspend"] == true {
        ModelState::Is(Level::Suspended, false)
    } else if status["startTime"].is_null() {
        ModelState::NotStarted
    } else {
        ModelState::Is(Level::Progressing, false)
    }
}

fn custom_state(object: &Value) -> ModelState {
    let status = &object["status"];
    let observed = status["observedGeneration"].as_i64();
    let level = if object["spec"]["suspend"] == true {
        Level::Suspended
    } else if observed.is_some() && observed != object["metadata"]["generation"].as_i64() {
        Level::Progressing
    } else if has_true_condition(status, "Stalled") {
        return ModelState::Is(Level::Failed, true);
    } else if has_true_condition(status, "Reconciling") {
        Level::Progressing
    } else if has_true_condition(status, "Ready") {
        Level::Ready
    } else {
        Level::Unknown
    };
    ModelState::Is(level, false)
}

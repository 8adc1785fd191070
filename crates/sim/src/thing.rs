//! One object, read naively: what a person would see in its JSON. Nothing here is shared with the product's own reading.

use std::collections::{BTreeMap, BTreeSet};

use readiness::Level;
use readiness::rollup::ParentReason;
use serde_json::Value;

use crate::scenario::KindDef;

/// What it says of itself while nobody deletes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// This.
    Is(Level, bool),
    /// A Job that nobody has taken up: on its way, and stuck once that takes too long.
    NotStarted,
}

/// What its operator left behind about the current generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Handled,
    NotYet,
    Silent,
}

/// One condition of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) status: String,
    pub(crate) reason: ParentReason,
    pub(crate) message: String,
    pub(crate) observed: i64,
    pub(crate) since: i64,
}

/// One object.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    pub(crate) kind: usize,
    pub(crate) uid: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) version: u64,
    pub(crate) generation: i64,
    pub(crate) created: i64,
    pub(crate) deleted: Option<i64>,
    /// Group, kind and uid.
    pub(crate) owners: Vec<(String, String, String)>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) state: State,
    pub(crate) mark: Mark,
    pub(crate) ours: BTreeMap<String, Said>,
    pub(crate) foreign: BTreeSet<String>,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn moment(value: &Value) -> Option<i64> {
    watcher::status::time::parse(value.as_str()?).map(|t| t.0)
}

/// A condition with this type and status.
pub(crate) fn holds(status: &Value, kind: &str) -> bool {
    conditions(status).iter().any(|c| c["type"] == kind && c["status"] == "True")
}

/// `conditions`, or nothing.
pub(crate) fn conditions(status: &Value) -> &[Value] {
    status["conditions"].as_array().map_or(&[], Vec::as_slice)
}

impl Thing {
    /// Reads an object of this kind.
    pub(crate) fn read(at: usize, kind: &KindDef, object: &Value) -> Thing {
        let (meta, status) = (&object["metadata"], &object["status"]);
        let owner = |owner: &Value| {
            let api = text(&owner["apiVersion"]);
            let group = api.split_once('/').map_or("", |(group, _)| group).to_owned();
            (group, text(&owner["kind"]), text(&owner["uid"]))
        };
        let label = |(key, value): (&String, &Value)| (key.clone(), text(value));
        let mut thing = Thing {
            kind: at,
            uid: text(&meta["uid"]),
            namespace: text(&meta["namespace"]),
            name: text(&meta["name"]),
            version: text(&meta["resourceVersion"]).parse().unwrap_or(0),
            generation: meta["generation"].as_i64().unwrap_or(0),
            created: moment(&meta["creationTimestamp"]).unwrap_or(0),
            deleted: moment(&meta["deletionTimestamp"]),
            owners: meta["ownerReferences"].as_array().into_iter().flatten().map(owner).collect(),
            labels: meta["labels"].as_object().into_iter().flatten().map(label).collect(),
            state: state(&kind.api.kind, object),
            mark: Mark::Silent,
            ours: BTreeMap::new(),
            foreign: BTreeSet::new(),
        };
        for condition in conditions(status) {
            thing.condition(condition, object);
        }
        thing.mark = mark(object, &thing);
        thing
    }

    fn condition(&mut self, condition: &Value, object: &Value) {
        let kind = text(&condition["type"]);
        match ParentReason::parse(&text(&condition["reason"])).filter(|_| is_ours(object, &kind)) {
            Some(reason) => {
                let said = Said {
                    status: text(&condition["status"]),
                    reason,
                    message: text(&condition["message"]),
                    observed: condition["observedGeneration"].as_i64().unwrap_or(-1),
                    since: moment(&condition["lastTransitionTime"]).unwrap_or(0),
                };
                self.ours.insert(kind, said);
            }
            None => _ = self.foreign.insert(kind),
        }
    }
}

/// In a list-map, the server knows who wrote an entry; in an atomic list, whoever wrote last wrote all of it.
pub(crate) fn is_ours(object: &Value, condition: &str) -> bool {
    let key = format!("k:{{\"type\":\"{condition}\"}}");
    let mut owners = object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|m| m["fieldsV1"]["f:status"]["f:conditions"].get(&key).is_some())
        .map(|m| text(&m["manager"]))
        .peekable();
    owners.peek().is_none() || owners.any(|owner| owner == watcher::status::MANAGER)
}

fn mark(object: &Value, thing: &Thing) -> Mark {
    let status = &object["status"];
    let mut marks = Vec::new();
    if let Some(observed) = status["observedGeneration"].as_i64() {
        marks.push(observed >= thing.generation);
    } else {
        let foreign = conditions(status).iter().filter(|c| thing.foreign.contains(&text(&c["type"])));
        let highest = foreign.filter_map(|c| c["observedGeneration"].as_i64()).max();
        marks.extend(highest.map(|observed| observed >= thing.generation));
    }
    if let Some(handled) = object["metadata"]["annotations"][KOPF].as_str() {
        let handled: Value = serde_json::from_str(handled).unwrap_or_default();
        marks.push(handled["spec"] == object["spec"]);
    }
    match marks.as_slice() {
        [] => Mark::Silent,
        marks if marks.contains(&false) => Mark::NotYet,
        _ => Mark::Handled,
    }
}

/// Where Kopf keeps what it handled last.
pub(crate) const KOPF: &str = "kopf.zalando.org/last-handled-configuration";

fn state(kind: &str, object: &Value) -> State {
    match kind {
        "Deployment" | "StatefulSet" => workload(object),
        "Job" => job(object),
        _ => custom(object),
    }
}

fn workload(object: &Value) -> State {
    let status = &object["status"];
    if status["observedGeneration"].as_i64() != object["metadata"]["generation"].as_i64() {
        return State::Is(Level::Progressing, false);
    }
    if conditions(status).iter().any(|c| c["reason"] == "ProgressDeadlineExceeded") {
        return State::Is(Level::Failed, true);
    }
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let counts = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"];
    let all = counts.iter().all(|field| status[field].as_i64().unwrap_or(0) == wanted);
    State::Is(if all { Level::Ready } else { Level::Progressing }, false)
}

fn job(object: &Value) -> State {
    let status = &object["status"];
    if holds(status, "Failed") {
        State::Is(Level::Failed, true)
    } else if holds(status, "Complete") {
        State::Is(Level::Ready, false)
    } else if object["spec"]["suspend"] == true {
        State::Is(Level::Suspended, false)
    } else if status["startTime"].is_null() {
        State::NotStarted
    } else {
        State::Is(Level::Progressing, false)
    }
}

fn custom(object: &Value) -> State {
    let status = &object["status"];
    let observed = status["observedGeneration"].as_i64();
    let level = if object["spec"]["suspend"] == true {
        Level::Suspended
    } else if observed.is_some() && observed != object["metadata"]["generation"].as_i64() {
        Level::Progressing
    } else if holds(status, "Stalled") {
        return State::Is(Level::Failed, true);
    } else if holds(status, "Reconciling") {
        Level::Progressing
    } else if holds(status, "Ready") {
        Level::Ready
    } else {
        Level::Unknown
    };
    State::Is(level, false)
}

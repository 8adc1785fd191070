//! The columns of the built-in kinds that people look at most; of the others only when they were made.

use serde_json::{Value, json};

use super::{Cell, age, cell};
use crate::store::kind::Kind;
use crate::store::message::Millis;
use crate::store::meta;

/// All cells but the name.
pub(super) fn cells(kind: &Kind, now: Millis, object: &Value) -> Vec<Cell> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let text = |value: &Value| json!(value.as_str().unwrap_or_default());
    let size = || object["data"].as_object().map_or(0, serde_json::Map::len);
    let made = &object["metadata"]["creationTimestamp"];
    let (cells, wide) = match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "namespaces") => (vec![cell("Status", text(&status["phase"]))], vec![]),
        ("", "serviceaccounts") => (vec![], vec![]),
        ("", "configmaps") => (vec![cell("Data", json!(size()))], vec![]),
        ("", "secrets") => (vec![cell("Type", text(&object["type"])), cell("Data", json!(size()))], vec![]),
        ("coordination.k8s.io", "leases") => (vec![cell("Holder", text(&spec["holderIdentity"]))], vec![]),
        ("", "pods") => (pod(object), placed(object)),
        ("", "services") => (service(spec), vec![cell("Selector", json!("<none>"))]),
        ("batch", "jobs") => (job(now, object), made_of(spec, true)),
        ("apps", plural) if plural != "controllerrevisions" => {
            (workload(plural, object), made_of(spec, plural != "statefulsets"))
        }
        (_, "events") => return event(now, object),
        _ => return vec![Cell { kind: "date".into(), ..cell("Created At", made.clone()) }],
    };
    let wide = wide.into_iter().map(|cell| Cell { priority: 1, ..cell });
    cells.into_iter().chain([cell("Age", age::since(now, made))]).chain(wide).collect()
}

/// What a workload's pods are made of, and how it knows them.
fn made_of(spec: &Value, selects: bool) -> Vec<Cell> {
    let containers = || spec["template"]["spec"]["containers"].as_array().into_iter().flatten();
    let joined = |field: &str| {
        let texts = containers().map(|container| container[field].as_str().unwrap_or_default());
        json!(texts.collect::<Vec<_>>().join(","))
    };
    let mut cells = vec![cell("Containers", joined("name")), cell("Images", joined("image"))];
    if selects {
        let labels = spec["selector"]["matchLabels"].as_object().into_iter().flatten();
        let labels = labels.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
        cells.push(cell("Selector", json!(labels.collect::<Vec<_>>().join(","))));
    }
    cells
}

fn count(from: &Value, field: &str) -> Value {
    json!(from[field].as_i64().unwrap_or(0))
}

/// `done/all`.
fn of(status: &Value, done: &str, all: &Value) -> Value {
    json!(format!("{}/{}", count(status, done), all.as_i64().unwrap_or(0)))
}

fn workload(plural: &str, object: &Value) -> Vec<Cell> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let counted = |counts: &[(&str, &str)]| -> Vec<Cell> {
        counts.iter().map(|(name, field)| whole(name, count(status, field), "integer")).collect()
    };
    let ready = cell("Ready", of(status, "readyReplicas", &spec["replicas"]));
    match plural {
        "deployments" => vec![
            ready,
            whole("Up-to-date", count(status, "updatedReplicas"), "string"),
            whole("Available", count(status, "availableReplicas"), "string"),
        ],
        "replicasets" => {
            let mut cells = vec![whole("Desired", count(spec, "replicas"), "integer")];
            cells.extend(counted(&[("Current", "replicas"), ("Ready", "readyReplicas")]));
            cells
        }
        "daemonsets" => {
            let mut cells = counted(&[
                ("Desired", "desiredNumberScheduled"),
                ("Current", "currentNumberScheduled"),
                ("Ready", "numberReady"),
                ("Up-to-date", "updatedNumberScheduled"),
                ("Available", "numberAvailable"),
            ]);
            cells.push(cell("Node Selector", json!("<none>")));
            cells
        }
        _ => vec![ready],
    }
}

fn whole(name: &str, value: Value, kind: &str) -> Cell {
    Cell { kind: kind.into(), ..cell(name, value) }
}

fn pod(object: &Value) -> Vec<Cell> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let all = spec["containers"].as_array().map_or(0, Vec::len);
    let containers = || status["containerStatuses"].as_array().into_iter().flatten();
    let ready = containers().filter(|container| container["ready"] == true).count();
    let restarts: i64 = containers().filter_map(|container| container["restartCount"].as_i64()).sum();
    let why = containers().find_map(|container| {
        let state = &container["state"];
        state["waiting"]["reason"].as_str().or_else(|| state["terminated"]["reason"].as_str())
    });
    let phase = status["reason"].as_str().or(status["phase"].as_str()).unwrap_or_default();
    let word = if meta::is_deleting(object) { "Terminating" } else { why.unwrap_or(phase) };
    vec![
        cell("Ready", json!(format!("{ready}/{all}"))),
        cell("Status", json!(word)),
        cell("Restarts", json!(restarts.to_string())),
    ]
}

/// Where a Pod runs.
fn placed(object: &Value) -> Vec<Cell> {
    let none = |value: &Value| json!(value.as_str().unwrap_or("<none>"));
    vec![
        cell("IP", none(&object["status"]["podIP"])),
        cell("Node", none(&object["spec"]["nodeName"])),
        cell("Nominated Node", json!("<none>")),
        cell("Readiness Gates", json!("<none>")),
    ]
}

fn job(now: Millis, object: &Value) -> Vec<Cell> {
    let (spec, status) = (&object["spec"], &object["status"]);
    vec![
        cell("Status", json!(job_status(object))),
        cell("Completions", of(status, "succeeded", &spec["completions"])),
        cell("Duration", age::between(now, &status["startTime"], &status["completionTime"])),
    ]
}

fn job_status(object: &Value) -> &'static str {
    let conditions = object["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is = |what: &str| conditions.iter().any(|one| one["type"] == what && one["status"] == "True");
    match () {
        () if is("Complete") => "Complete",
        () if is("Failed") => "Failed",
        () if meta::is_deleting(object) => "Terminating",
        () if is("Suspended") => "Suspended",
        () if is("FailureTarget") => "FailureTarget",
        () if is("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn service(spec: &Value) -> Vec<Cell> {
    let ports = spec["ports"].as_array().into_iter().flatten();
    let ports: Vec<String> = ports
        .map(|port| format!("{}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP")))
        .collect();
    let text = |field: &str| json!(spec[field].as_str().unwrap_or("<none>"));
    vec![
        cell("Type", text("type")),
        cell("Cluster-IP", text("clusterIP")),
        cell("External-IP", json!("<none>")),
        cell("Port(s)", json!(ports.join(","))),
    ]
}

fn event(now: Millis, object: &Value) -> Vec<Cell> {
    let first = |names: &[&str]| names.iter().map(|name| &object[*name]).find(|value| !value.is_null());
    let text = |names: &[&str]| json!(first(names).and_then(Value::as_str).unwrap_or_default());
    let about = first(&["involvedObject", "regarding"]).unwrap_or(&Value::Null);
    let named = |field: &str| about[field].as_str().unwrap_or_default().to_lowercase();
    let seen = first(&["lastTimestamp", "deprecatedLastTimestamp", "eventTime"])
        .unwrap_or(&object["metadata"]["creationTimestamp"]);
    vec![
        cell("Last Seen", age::since(now, seen)),
        cell("Type", text(&["type"])),
        cell("Reason", text(&["reason"])),
        cell("Object", json!(format!("{}/{}", named("kind"), named("name")))),
        cell("Message", text(&["message", "note"])),
    ]
}

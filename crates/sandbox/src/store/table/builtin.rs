//! Table columns of the most used built-in kinds; for the others only the age.

use serde_json::{Value, json};

use super::age;
use super::table_cell::{TableCell, text_cell};
use crate::store::kind::SandboxKind;
use crate::store::message::EpochMillis;
use crate::store::meta;

/// Returns all cells but the name.
pub(super) fn builtin_cells(kind: &SandboxKind, now: EpochMillis, object: &Value) -> Vec<TableCell> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let text = |value: &Value| json!(value.as_str().unwrap_or_default());
    let size = || object["data"].as_object().map_or(0, serde_json::Map::len);
    let made = &object["metadata"]["creationTimestamp"];
    let (cells, wide) = match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "namespaces") => (vec![text_cell("Status", text(&status["phase"]))], vec![]),
        ("", "serviceaccounts") => (vec![], vec![]),
        ("", "configmaps") => (vec![text_cell("Data", json!(size()))], vec![]),
        ("", "secrets") => {
            (vec![text_cell("Type", text(&object["type"])), text_cell("Data", json!(size()))], vec![])
        }
        ("coordination.k8s.io", "leases") => {
            (vec![text_cell("Holder", text(&spec["holderIdentity"]))], vec![])
        }
        ("", "pods") => (pod_cells(object), pod_wide_cells(object)),
        ("", "services") => (service_cells(spec), vec![text_cell("Selector", json!("<none>"))]),
        ("batch", "jobs") => (job_cells(now, object), container_cells(spec, true)),
        ("apps", plural) if plural != "controllerrevisions" => {
            (workload_cells(plural, object), container_cells(spec, plural != "statefulsets"))
        }
        (_, "events") => return event_cells(now, object),
        _ => return vec![TableCell { kind: "date".into(), ..text_cell("Created At", made.clone()) }],
    };
    let wide = wide.into_iter().map(|cell| TableCell { priority: 1, ..cell });
    cells.into_iter().chain([text_cell("Age", age::age_since(now, made))]).chain(wide).collect()
}

/// Cells of a workload's containers, images and selector.
fn container_cells(spec: &Value, selects: bool) -> Vec<TableCell> {
    let containers = || spec["template"]["spec"]["containers"].as_array().into_iter().flatten();
    let joined = |field: &str| {
        let texts = containers().map(|container| container[field].as_str().unwrap_or_default());
        json!(texts.collect::<Vec<_>>().join(","))
    };
    let mut cells = vec![text_cell("Containers", joined("name")), text_cell("Images", joined("image"))];
    if selects {
        let labels = spec["selector"]["matchLabels"].as_object().into_iter().flatten();
        let labels = labels.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
        cells.push(text_cell("Selector", json!(labels.collect::<Vec<_>>().join(","))));
    }
    cells
}

fn count_value(from: &Value, field: &str) -> Value {
    json!(from[field].as_i64().unwrap_or(0))
}

/// Formats `done/all`.
fn done_of_all(status: &Value, done: &str, all: &Value) -> Value {
    json!(format!("{}/{}", count_value(status, done), all.as_i64().unwrap_or(0)))
}

fn workload_cells(plural: &str, object: &Value) -> Vec<TableCell> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let counted = |counts: &[(&str, &str)]| -> Vec<TableCell> {
        counts.iter().map(|(name, field)| typed_cell(name, count_value(status, field), "integer")).collect()
    };
    let ready = text_cell("Ready", done_of_all(status, "readyReplicas", &spec["replicas"]));
    match plural {
        "deployments" => vec![
            ready,
            typed_cell("Up-to-date", count_value(status, "updatedReplicas"), "string"),
            typed_cell("Available", count_value(status, "availableReplicas"), "string"),
        ],
        "replicasets" => {
            let mut cells = vec![typed_cell("Desired", count_value(spec, "replicas"), "integer")];
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
            cells.push(text_cell("Node Selector", json!("<none>")));
            cells
        }
        _ => vec![ready],
    }
}

fn typed_cell(name: &str, value: Value, kind: &str) -> TableCell {
    TableCell { kind: kind.into(), ..text_cell(name, value) }
}

fn pod_cells(object: &Value) -> Vec<TableCell> {
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
        text_cell("Ready", json!(format!("{ready}/{all}"))),
        text_cell("Status", json!(word)),
        text_cell("Restarts", json!(restarts.to_string())),
    ]
}

/// Wide cells of a Pod: IP, node, nominated node and readiness gates.
fn pod_wide_cells(object: &Value) -> Vec<TableCell> {
    let none = |value: &Value| json!(value.as_str().unwrap_or("<none>"));
    vec![
        text_cell("IP", none(&object["status"]["podIP"])),
        text_cell("Node", none(&object["spec"]["nodeName"])),
        text_cell("Nominated Node", json!("<none>")),
        text_cell("Readiness Gates", json!("<none>")),
    ]
}

fn job_cells(now: EpochMillis, object: &Value) -> Vec<TableCell> {
    let (spec, status) = (&object["spec"], &object["status"]);
    vec![
        text_cell("Status", json!(job_status(object))),
        text_cell("Completions", done_of_all(status, "succeeded", &spec["completions"])),
        text_cell("Duration", age::duration_between(now, &status["startTime"], &status["completionTime"])),
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

fn service_cells(spec: &Value) -> Vec<TableCell> {
    let ports = spec["ports"].as_array().into_iter().flatten();
    let ports: Vec<String> = ports
        .map(|port| format!("{}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP")))
        .collect();
    let text = |field: &str| json!(spec[field].as_str().unwrap_or("<none>"));
    vec![
        text_cell("Type", text("type")),
        text_cell("Cluster-IP", text("clusterIP")),
        text_cell("External-IP", json!("<none>")),
        text_cell("Port(s)", json!(ports.join(","))),
    ]
}

fn event_cells(now: EpochMillis, object: &Value) -> Vec<TableCell> {
    let first = |names: &[&str]| names.iter().map(|name| &object[*name]).find(|value| !value.is_null());
    let text = |names: &[&str]| json!(first(names).and_then(Value::as_str).unwrap_or_default());
    let about = first(&["involvedObject", "regarding"]).unwrap_or(&Value::Null);
    let named = |field: &str| about[field].as_str().unwrap_or_default().to_lowercase();
    let seen = first(&["lastTimestamp", "deprecatedLastTimestamp", "eventTime"])
        .unwrap_or(&object["metadata"]["creationTimestamp"]);
    vec![
        text_cell("Last Seen", age::age_since(now, seen)),
        text_cell("Type", text(&["type"])),
        text_cell("Reason", text(&["reason"])),
        text_cell("Object", json!(format!("{}/{}", named("kind"), named("name")))),
        text_cell("Message", text(&["message", "note"])),
    ]
}

//! What the server fills in.

use serde_json::{Value, json};

use super::kind::Kind;
use super::meta::{self, lacking};
use super::template;

/// Fills in what the object leaves out: a custom resource by its schema, a built-in kind by the few defaults that a
/// reader of its readiness would miss.
pub(super) fn fill(kind: &Kind, object: &mut Value, fresh: bool) {
    match &kind.schema {
        Some(schema) => by_schema(object, &schema.0),
        None if kind.traits.custom => {}
        None => builtin(kind, object, fresh),
    }
}

fn by_schema(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(map) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                // A null that the schema does not allow counts as left out.
                if map.get(name).is_some_and(Value::is_null) && property["nullable"] != true {
                    map.remove(name);
                }
                if !map.contains_key(name)
                    && let Some(default) = property.get("default")
                {
                    map.insert(name.clone(), default.clone());
                }
                if let Some(child) = map.get_mut(name) {
                    by_schema(child, property);
                }
            }
            let others = &schema["additionalProperties"];
            if others.is_object() {
                let known = &schema["properties"];
                map.iter_mut()
                    .filter(|(name, _)| known[name.as_str()].is_null())
                    .for_each(|(_, child)| by_schema(child, others));
            }
        }
        Value::Array(list) if schema["items"].is_object() => {
            for item in list {
                by_schema(item, &schema["items"]);
            }
        }
        _ => {}
    }
}

fn builtin(kind: &Kind, object: &mut Value, fresh: bool) {
    let known = (kind.group.as_str(), kind.plural.as_str());
    let spec = spec_of(known);
    if !spec.is_null() {
        lacking(object, &json!({ "spec": spec }));
    }
    template::fill(known, object);
    match known {
        ("batch", "jobs") => job(object),
        ("", "services") => service(object),
        // The label of a generated name comes later: nobody gave it.
        ("", "namespaces") if meta::text(object, "generateName").is_empty() => name_label(object),
        ("apiextensions.k8s.io", "customresourcedefinitions") => super::crd::complete(object),
        ("", "secrets") => lacking(object, &json!({"type": "Opaque"})),
        _ => {}
    }
    if fresh {
        let mut status = status_of(known);
        if kind.plural == "customresourcedefinitions" {
            status["storedVersions"] = json!(super::crd::stored(object));
        }
        if !status.is_null() {
            object["status"] = status;
        }
    }
}

/// What the server hands out after it has noted who wrote what: addresses, priorities, and what is there but empty.
pub(super) fn allocate(kind: &Kind, object: &mut Value, number: Option<u64>) {
    if kind.traits.custom {
        return;
    }
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "services") => address(object, number),
        ("batch", "jobs") if number.is_some() => job_labels(object),
        ("", "pods") => {
            lacking(object, &json!({"spec": {"preemptionPolicy": "PreemptLowerPriority", "priority": 0}}));
        }
        ("", "namespaces") => {
            name_label(object);
            lacking(object, &json!({"spec": {"finalizers": ["kubernetes"]}}));
        }
        ("coordination.k8s.io", "leases") => lacking(object, &json!({"spec": {}})),
        (group, "events") => super::events::complete(object, group),
        _ => {}
    }
}

fn name_label(namespace: &mut Value) {
    let label = json!({"kubernetes.io/metadata.name": meta::name(namespace)});
    lacking(namespace, &json!({"metadata": {"labels": label}}));
}

fn spec_of(kind: (&str, &str)) -> Value {
    match kind {
        ("apps", "deployments") => json!({
            "replicas": 1, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 10,
            "strategy": {"type": "RollingUpdate"},
        }),
        ("apps", "statefulsets") => json!({
            "replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady", "serviceName": "",
            "updateStrategy": {"type": "RollingUpdate"},
        }),
        ("apps", "daemonsets") => {
            json!({"revisionHistoryLimit": 10, "updateStrategy": {"type": "RollingUpdate"}})
        }
        ("apps", "replicasets") => json!({"replicas": 1}),
        ("batch", "cronjobs") => json!({
            "concurrencyPolicy": "Allow", "suspend": false, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
        }),
        ("", "pods") => json!({"enableServiceLinks": true}),
        ("", "persistentvolumeclaims") => json!({"volumeMode": "Filesystem"}),
        ("", "persistentvolumes") => {
            json!({"volumeMode": "Filesystem", "persistentVolumeReclaimPolicy": "Retain"})
        }
        ("autoscaling", "horizontalpodautoscalers") => json!({"minReplicas": 1}),
        _ => Value::Null,
    }
}

/// The status a fresh object of a built-in kind starts with.
fn status_of(kind: (&str, &str)) -> Value {
    match kind {
        ("apps", "deployments") | ("batch", "jobs" | "cronjobs") | ("", "nodes") => json!({}),
        ("apps", "statefulsets") => json!({"replicas": 0, "availableReplicas": 0}),
        ("apps", "daemonsets") => {
            json!({"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0})
        }
        ("apps", "replicasets") | ("", "replicationcontrollers") => json!({"replicas": 0}),
        ("", "pods") => json!({"phase": "Pending", "qosClass": "BestEffort"}),
        ("", "persistentvolumeclaims" | "persistentvolumes") => json!({"phase": "Pending"}),
        ("", "namespaces") => json!({"phase": "Active"}),
        ("", "services") | ("networking.k8s.io", "ingresses") => json!({"loadBalancer": {}}),
        ("autoscaling", "horizontalpodautoscalers") => json!({"desiredReplicas": 0, "currentMetrics": null}),
        ("policy", "poddisruptionbudgets") => {
            json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0})
        }
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}})
        }
        _ => Value::Null,
    }
}

fn job(object: &mut Value) {
    let queue = object["spec"]["completions"].is_null() && !object["spec"]["parallelism"].is_null();
    let mut spec = json!({
        "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
        "podReplacementPolicy": "TerminatingOrFailed", "manualSelector": false,
    });
    if !queue {
        spec["completions"] = json!(1);
    }
    lacking(object, &json!({ "spec": spec }));
}

/// By what a Job knows its pods.
fn job_labels(object: &mut Value) {
    if object["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (object["metadata"]["uid"].clone(), object["metadata"]["name"].clone());
    let labels = json!({
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
        "controller-uid": uid, "job-name": name,
    });
    let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    lacking(object, &json!({"spec": {"selector": selector, "template": {"metadata": {"labels": labels}}}}));
    // A Job without labels takes those of its pods.
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if object["metadata"]["labels"].as_object().is_none_or(serde_json::Map::is_empty) {
        meta::meta_mut(object).insert("labels".into(), labels);
    }
}

fn service(object: &mut Value) {
    lacking(
        object,
        &json!({"spec": {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}}),
    );
    template::lacking_in_items(object, "/spec/ports", &json!({"protocol": "TCP"}));
    let ports = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let number = port["port"].clone();
        lacking(port, &json!({ "targetPort": number }));
    }
}

fn address(object: &mut Value, number: Option<u64>) {
    lacking(object, &json!({"spec": {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]}}));
    if let Some(number) = number
        && object["spec"]["type"] != "ExternalName"
    {
        let address =
            format!("10.{}.{}.{}", number >> 8 & 0xff, number >> 16 & 0xff, 1 + (number >> 24) % 254);
        lacking(object, &json!({"spec": {"clusterIP": address}}));
        let address = object["spec"]["clusterIP"].clone();
        lacking(object, &json!({"spec": {"clusterIPs": [address]}}));
    }
}

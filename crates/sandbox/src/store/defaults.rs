//! Defaulting of objects.

use serde_json::{Value, json};

use super::kind::SandboxKind;
use super::meta::{self, fill_missing};
use super::pod_defaults;

/// Applies defaults: to a custom resource those of its schema, to a built-in kind the few that affect its readiness.
pub(super) fn fill_defaults(kind: &SandboxKind, object: &mut Value, fresh: bool) {
    match &kind.schema {
        Some(schema) => fill_schema_defaults(object, &schema.0),
        None if kind.traits.custom => {}
        None => fill_builtin_defaults(kind, object, fresh),
    }
}

fn fill_schema_defaults(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(map) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                // A null that the schema does not allow counts as missing.
                if map.get(name).is_some_and(Value::is_null) && property["nullable"] != true {
                    map.remove(name);
                }
                if !map.contains_key(name)
                    && let Some(default) = property.get("default")
                {
                    map.insert(name.clone(), default.clone());
                }
                if let Some(child) = map.get_mut(name) {
                    fill_schema_defaults(child, property);
                }
            }
            let others = &schema["additionalProperties"];
            if others.is_object() {
                let known = &schema["properties"];
                map.iter_mut()
                    .filter(|(name, _)| known[name.as_str()].is_null())
                    .for_each(|(_, child)| fill_schema_defaults(child, others));
            }
        }
        Value::Array(list) if schema["items"].is_object() => {
            for item in list {
                fill_schema_defaults(item, &schema["items"]);
            }
        }
        _ => {}
    }
}

fn fill_builtin_defaults(kind: &SandboxKind, object: &mut Value, fresh: bool) {
    let known = (kind.group.as_str(), kind.plural.as_str());
    let spec = spec_defaults(known);
    if !spec.is_null() {
        fill_missing(object, &json!({ "spec": spec }));
    }
    pod_defaults::fill_pod_defaults(known, object);
    match known {
        ("batch", "jobs") => fill_job(object),
        ("", "services") => fill_service(object),
        // The label of a generated name is added later: no client set it.
        ("", "namespaces") if meta::text_field(object, "generateName").is_empty() => name_label(object),
        ("apiextensions.k8s.io", "customresourcedefinitions") => {
            super::definition::complete_definition(object);
        }
        ("", "secrets") => fill_missing(object, &json!({"type": "Opaque"})),
        _ => {}
    }
    if fresh {
        let mut status = initial_status(known);
        if kind.plural == "customresourcedefinitions" {
            status["storedVersions"] = json!(super::definition::storage_versions(object));
        }
        if !status.is_null() {
            object["status"] = status;
        }
    }
}

/// Sets the fields that the server allocates after it has recorded field ownership: addresses, priorities, and fields
/// that are present but empty.
pub(super) fn allocate_fields(kind: &SandboxKind, object: &mut Value, number: Option<u64>) {
    if kind.traits.custom {
        return;
    }
    match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "services") => allocate_cluster_ip(object, number),
        ("batch", "jobs") if number.is_some() => fill_job_labels(object),
        ("", "pods") => {
            fill_missing(
                object,
                &json!({"spec": {"preemptionPolicy": "PreemptLowerPriority", "priority": 0}}),
            );
        }
        ("", "namespaces") => {
            name_label(object);
            fill_missing(object, &json!({"spec": {"finalizers": ["kubernetes"]}}));
        }
        ("coordination.k8s.io", "leases") => fill_missing(object, &json!({"spec": {}})),
        (group, "events") => super::events::complete_event(object, group),
        _ => {}
    }
}

fn name_label(namespace: &mut Value) {
    let label = json!({"kubernetes.io/metadata.name": meta::name(namespace)});
    fill_missing(namespace, &json!({"metadata": {"labels": label}}));
}

fn spec_defaults(kind: (&str, &str)) -> Value {
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

/// Initial status of a new object of a built-in kind.
fn initial_status(kind: (&str, &str)) -> Value {
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

fn fill_job(object: &mut Value) {
    let queue = object["spec"]["completions"].is_null() && !object["spec"]["parallelism"].is_null();
    let mut spec = json!({
        "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
        "podReplacementPolicy": "TerminatingOrFailed", "manualSelector": false,
    });
    if !queue {
        spec["completions"] = json!(1);
    }
    fill_missing(object, &json!({ "spec": spec }));
}

/// Sets the labels and selector by which a Job finds its pods.
fn fill_job_labels(object: &mut Value) {
    if object["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (object["metadata"]["uid"].clone(), object["metadata"]["name"].clone());
    let labels = json!({
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
        "controller-uid": uid, "job-name": name,
    });
    let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    fill_missing(
        object,
        &json!({"spec": {"selector": selector, "template": {"metadata": {"labels": labels}}}}),
    );
    // A Job without labels takes those of its pod template.
    let labels = object["spec"]["template"]["metadata"]["labels"].clone();
    if object["metadata"]["labels"].as_object().is_none_or(serde_json::Map::is_empty) {
        meta::meta_mut(object).insert("labels".into(), labels);
    }
}

fn fill_service(object: &mut Value) {
    fill_missing(
        object,
        &json!({"spec": {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"}}),
    );
    pod_defaults::fill_missing_in_items(object, "/spec/ports", &json!({"protocol": "TCP"}));
    let ports = object.pointer_mut("/spec/ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let number = port["port"].clone();
        fill_missing(port, &json!({ "targetPort": number }));
    }
}

fn allocate_cluster_ip(object: &mut Value, number: Option<u64>) {
    fill_missing(object, &json!({"spec": {"ipFamilyPolicy": "SingleStack", "ipFamilies": ["IPv4"]}}));
    if let Some(number) = number
        && object["spec"]["type"] != "ExternalName"
    {
        let address =
            format!("10.{}.{}.{}", number >> 8 & 0xff, number >> 16 & 0xff, 1 + (number >> 24) % 254);
        fill_missing(object, &json!({"spec": {"clusterIP": address}}));
        let address = object["spec"]["clusterIP"].clone();
        fill_missing(object, &json!({"spec": {"clusterIPs": [address]}}));
    }
}

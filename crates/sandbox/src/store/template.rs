//! Defaults of pods, wherever they are written: in a Pod, or in the template of what makes Pods.

use serde_json::{Value, json};

use super::meta::lacking;

/// Fills in the pod that a built-in kind is or describes, and how it rolls out.
pub(super) fn fill(kind: (&str, &str), object: &mut Value) {
    if let Some(defaults) = rollout(kind, &object["spec"]) {
        lacking(object, &json!({ "spec": defaults }));
    }
    let place = match kind {
        ("", "pods") => "/spec",
        ("apps", _) | ("batch", "jobs") | ("", "replicationcontrollers") => "/spec/template/spec",
        ("batch", "cronjobs") => "/spec/jobTemplate/spec/template/spec",
        _ => return,
    };
    if let Some(spec) = object.pointer_mut(place) {
        pod(spec);
    }
}

fn rollout(kind: (&str, &str), spec: &Value) -> Option<Value> {
    let rolls = |field: &str| spec[field]["type"] == "RollingUpdate";
    match kind {
        ("apps", "deployments") if rolls("strategy") => {
            Some(json!({"strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}}))
        }
        ("apps", "daemonsets") if rolls("updateStrategy") => {
            Some(json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}}))
        }
        ("apps", "statefulsets") => {
            let kept = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
            let mut defaults = json!({"persistentVolumeClaimRetentionPolicy": kept});
            if rolls("updateStrategy") {
                defaults["updateStrategy"] = json!({"rollingUpdate": {"partition": 0}});
            }
            Some(defaults)
        }
        _ => None,
    }
}

fn pod(spec: &mut Value) {
    lacking(
        spec,
        &json!({
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "securityContext": {}, "schedulerName": "default-scheduler",
        }),
    );
    for list in ["/containers", "/initContainers"] {
        let containers = spec.pointer_mut(list).and_then(Value::as_array_mut);
        containers.into_iter().flatten().for_each(container);
    }
}

fn container(container: &mut Value) {
    let latest = is_latest(container["image"].as_str().unwrap_or_default());
    lacking(
        container,
        &json!({
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "imagePullPolicy": if latest { "Always" } else { "IfNotPresent" }, "resources": {},
        }),
    );
    lacking_in_items(container, "/ports", &json!({"protocol": "TCP"}));
}

/// Whether an image has no tag, or the one that moves.
fn is_latest(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// Adds to every item of the list at `place` what it lacks.
pub(super) fn lacking_in_items(object: &mut Value, place: &str, defaults: &Value) {
    let items = object.pointer_mut(place).and_then(Value::as_array_mut);
    items.into_iter().flatten().for_each(|item| lacking(item, defaults));
}

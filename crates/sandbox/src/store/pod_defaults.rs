//! Defaults of pods: in a Pod, and in the pod templates of workloads.

use serde_json::{Value, json};

use super::meta::fill_missing;

/// Applies the defaults of the pod (template) of a built-in kind, and of its rollout strategy.
pub(super) fn fill_pod_defaults(kind: (&str, &str), object: &mut Value) {
    if let Some(defaults) = rollout_defaults(kind, &object["spec"]) {
        fill_missing(object, &json!({ "spec": defaults }));
    }
    let place = match kind {
        ("", "pods") => "/spec",
        ("apps", _) | ("batch", "jobs") | ("", "replicationcontrollers") => "/spec/template/spec",
        ("batch", "cronjobs") => "/spec/jobTemplate/spec/template/spec",
        _ => return,
    };
    if let Some(spec) = object.pointer_mut(place) {
        fill_pod_spec(spec);
    }
}

fn rollout_defaults(kind: (&str, &str), spec: &Value) -> Option<Value> {
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

fn fill_pod_spec(spec: &mut Value) {
    fill_missing(
        spec,
        &json!({
            "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
            "securityContext": {}, "schedulerName": "default-scheduler",
        }),
    );
    for list in ["/containers", "/initContainers"] {
        let containers = spec.pointer_mut(list).and_then(Value::as_array_mut);
        containers.into_iter().flatten().for_each(fill_container);
    }
}

fn fill_container(container: &mut Value) {
    let latest = is_latest(container["image"].as_str().unwrap_or_default());
    fill_missing(
        container,
        &json!({
            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
            "imagePullPolicy": if latest { "Always" } else { "IfNotPresent" }, "resources": {},
        }),
    );
    fill_missing_in_items(container, "/ports", &json!({"protocol": "TCP"}));
}

/// Returns `true` if an image has no tag, or the tag `latest`.
fn is_latest(image: &str) -> bool {
    let name = image.rsplit('/').next().unwrap_or_default();
    !name.contains('@') && name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

/// Applies defaults to every item of the list at `place`.
pub(super) fn fill_missing_in_items(object: &mut Value, place: &str, defaults: &Value) {
    let items = object.pointer_mut(place).and_then(Value::as_array_mut);
    items.into_iter().flatten().for_each(|item| fill_missing(item, defaults));
}

//! The text of a CustomResourceDefinition: its names, versions and conditions.

use serde_json::{Value, json};

use super::kind::SandboxKind;
use super::message::EpochMillis;
use super::meta;

/// Finalizer that holds a CRD until all objects of its kind are gone.
pub(super) const CRD_CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Sort key of versions: stable before beta before alpha, higher before lower, others last.
pub(super) fn version_priority(version: &str) -> (u8, u32, u32) {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let Some(rest) = version.strip_prefix('v') else { return (0, 0, 0) };
    let major = digits(rest);
    let number = |text: &str| text.parse().unwrap_or(0);
    match &rest[major.len()..] {
        "" if !major.is_empty() => (3, number(&major), 0),
        stage if stage.starts_with("beta") => (2, number(&major), number(&stage[4..])),
        stage if stage.starts_with("alpha") => (1, number(&major), number(&stage[5..])),
        _ => (0, 0, 0),
    }
}

/// Returns `spec.names` with the optional names filled in.
pub(super) fn complete_names(definition: &Value) -> Value {
    let mut names = definition["spec"]["names"].clone();
    if !names.is_object() {
        names = json!({});
    }
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    for (field, default) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if names[field].as_str().is_none_or(str::is_empty) {
            names[field] = json!(default);
        }
    }
    names
}

/// Fills in the fields that a definition may omit.
pub(super) fn complete_definition(definition: &mut Value) {
    let names = complete_names(definition);
    definition["spec"]["names"] = names;
    if definition["spec"]["conversion"].is_null() {
        definition["spec"]["conversion"] = json!({"strategy": "None"});
    }
}

/// Returns the storage version.
pub(super) fn storage_versions(definition: &Value) -> Vec<Value> {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    versions.filter(|version| version["storage"] == true).map(|version| version["name"].clone()).collect()
}

/// Sets the status of a definition that waits for the deletion of its objects.
pub(super) fn mark_terminating(definition: &mut Value, now: EpochMillis) {
    let conditions = &mut definition["status"]["conditions"];
    let list = conditions.as_array_mut().map(std::mem::take).unwrap_or_default();
    let mut list: Vec<Value> =
        list.into_iter().filter(|condition| condition["type"] != "Terminating").collect();
    list.push(json!({
        "type": "Terminating", "status": "True", "reason": "InstanceDeletionPending",
        "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
        "lastTransitionTime": meta::format_time(now),
    }));
    *conditions = Value::Array(list);
}

/// Sets the status of a definition whose objects are being deleted.
pub(super) fn mark_emptying(definition: &mut Value) {
    let conditions = definition["status"]["conditions"].as_array_mut().into_iter().flatten();
    for condition in conditions.filter(|condition| condition["type"] == "Terminating") {
        condition["reason"] = json!("InstanceDeletionInProgress");
        condition["message"] = json!("CustomResource deletion is in progress");
    }
}

/// Adds the finalizer of objects that only a controller may finish deleting: a CRD waits for its objects, a namespace
/// for its contents.
pub(super) fn hold_for_controller(kind: &SandboxKind, object: &mut Value, now: EpochMillis) {
    if kind.plural == "namespaces" {
        object["status"]["phase"] = json!("Terminating");
    } else {
        meta::add_finalizer(object, CRD_CLEANUP_FINALIZER);
        mark_terminating(object, now);
    }
}

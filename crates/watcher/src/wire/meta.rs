//! `metadata`.

use readiness::{Facts, StatusFacts};

use super::conditions;
use super::cursor::JsonCursor;
use super::wire_meta::{OwnerRef, WireMeta};

/// Annotations that say a volume is being provisioned, or name the node that will use it.
const PROVISIONING_ANNOTATIONS: [&str; 3] = [
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
];
/// Annotation in which version 1 of the autoscaler keeps its conditions, as JSON text.
const AUTOSCALER_CONDITIONS_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// Annotations that tie an object to a deployment, or exclude it from evaluation.
const KEPT_ANNOTATIONS: [&str; 4] = [
    "argocd.argoproj.io/hook",
    "argocd.argoproj.io/hook-delete-policy",
    "helm.sh/hook",
    "helm.sh/hook-delete-policy",
];

pub(super) const UNREAD_META_FIELDS: [&str; 0] = [];

pub(super) fn read_meta_field(key: &str, value: &mut JsonCursor<'_>, meta: &mut WireMeta, facts: &mut Facts) {
    match key {
        "name" => meta.name = value.read_boxed(),
        "generateName" => meta.generate_name = value.read_boxed(),
        "namespace" => meta.namespace = value.read_boxed(),
        "uid" => meta.uid = value.read_boxed(),
        "resourceVersion" => {
            meta.resource_version = value.read_string().and_then(|text| text.parse().ok()).unwrap_or(0);
        }
        "generation" => {
            facts.generation = value.read_integer();
            meta.generation = facts.generation.unwrap_or(0);
        }
        "creationTimestamp" => meta.created = value.read_time(),
        "deletionTimestamp" => meta.deleted = value.read_time(),
        "ownerReferences" => {
            value.each_element(|owner| meta.owners.push(self::read_owner_reference(owner)));
        }
        "labels" => {
            value.each_member(|key, value| meta.labels.push((key.into(), value.read_boxed())));
        }
        "finalizers" => {
            value.each_element(|name| meta.finalizers.extend(name.read_string().map(Into::into)));
        }
        "annotations" => read_annotations(value, meta, facts),
        // The API server writes them after the finalizers; of most objects nothing of them is read.
        "managedFields" if !meta.finalizers.is_empty() => {
            value.each_element(|entry| read_finalizer_setters(entry, &mut meta.setters));
        }
        _ => {}
    }
}

/// Reads the managers of finalizers from one entry of `managedFields`.
fn read_finalizer_setters(entry: &mut JsonCursor<'_>, setters: &mut Vec<(Box<str>, Box<str>)>) {
    let (mut manager, mut names) = (None, Vec::new());
    entry.each_member(|key, value| match key {
        "manager" => manager = value.read_string(),
        "fieldsV1" => each_member_named(value, "f:metadata", |metadata| {
            each_member_named(metadata, "f:finalizers", |finalizers| {
                finalizers.each_member(|key, _| {
                    let name = key.strip_prefix("v:\"").and_then(|key| key.strip_suffix('"'));
                    names.extend(name.map(Box::<str>::from));
                });
            });
        }),
        _ => {}
    });
    if let Some(manager) = manager.filter(|manager| !manager.is_empty()) {
        setters.extend(names.into_iter().map(|name| (name, manager.as_ref().into())));
    }
}

fn each_member_named(object: &mut JsonCursor<'_>, name: &str, mut each: impl FnMut(&mut JsonCursor<'_>)) {
    object.each_member(|key, value| {
        if key == name {
            each(value);
        }
    });
}

fn read_owner_reference(reference: &mut JsonCursor<'_>) -> OwnerRef {
    let mut owner = OwnerRef::default();
    reference.each_member(|key, value| match key {
        "apiVersion" => owner.api_version = value.read_boxed(),
        "kind" => owner.kind = value.read_boxed(),
        "name" => owner.name = value.read_boxed(),
        "uid" => owner.uid = value.read_boxed(),
        "controller" => owner.controller = value.read_flag() == Some(true),
        _ => {}
    });
    owner
}

fn read_annotations(map: &mut JsonCursor<'_>, meta: &mut WireMeta, facts: &mut Facts) {
    map.each_member(|key, value| {
        if PROVISIONING_ANNOTATIONS.contains(&key) {
            facts.provisioning = true;
        } else if KEPT_ANNOTATIONS.contains(&key) {
            meta.annotations.push((key.into(), value.read_boxed()));
        } else if key == AUTOSCALER_CONDITIONS_ANNOTATION
            && let Some(text) = value.read_string()
        {
            let status: &mut StatusFacts = &mut facts.status;
            conditions::read_conditions(&mut JsonCursor::new(&text), None, status);
        } else if readiness::is_pausing_annotation(key)
            && value.read_string().is_some_and(|text| readiness::says_paused(key, &text))
        {
            facts.paused_by = Some(key.into());
        }
    });
}

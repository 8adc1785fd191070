//! `metadata`.

use readiness::Status;

use super::cursor::Cursor;
use super::{Child, OwnerRef, conditions};

/// Annotations that say a volume is being made, or on which node it will be used.
const PROVISIONING: [&str; 3] = [
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
];
/// Where version 1 of the autoscaler keeps its conditions, as a text.
const AUTOSCALER: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// Annotations that say that an object comes and goes with a deployment, or is not to be judged.
const KEPT: [&str; 4] = [
    "argocd.argoproj.io/hook",
    "argocd.argoproj.io/hook-delete-policy",
    "helm.sh/hook",
    "helm.sh/hook-delete-policy",
];

pub(super) const UNREAD: [&str; 0] = [];

pub(super) fn field(key: &str, value: &mut Cursor<'_>, child: &mut Child) {
    let meta = &mut child.meta;
    match key {
        "name" => meta.name = value.boxed(),
        "generateName" => meta.generate_name = value.boxed(),
        "namespace" => meta.namespace = value.boxed(),
        "uid" => meta.uid = value.boxed(),
        "resourceVersion" => {
            meta.resource_version = value.string().and_then(|text| text.parse().ok()).unwrap_or(0);
        }
        "generation" => {
            child.facts.generation = value.integer();
            meta.generation = child.facts.generation.unwrap_or(0);
        }
        "creationTimestamp" => meta.created = value.time(),
        "deletionTimestamp" => meta.deleted = value.time(),
        "ownerReferences" => {
            value.elements(|owner| meta.owners.push(self::owner(owner)));
        }
        "labels" => {
            value.members(|key, value| meta.labels.push((key.into(), value.boxed())));
        }
        "finalizers" => {
            value.elements(|name| meta.finalizers.extend(name.string().map(Into::into)));
        }
        "annotations" => annotations(value, child),
        // The API server writes them behind the finalizers; of most objects nothing of them is read.
        "managedFields" if !meta.finalizers.is_empty() => {
            value.elements(|entry| setters(entry, &mut meta.setters));
        }
        _ => {}
    }
}

/// Who has set which finalizers, from one entry of `managedFields`.
fn setters(entry: &mut Cursor<'_>, setters: &mut Vec<(Box<str>, Box<str>)>) {
    let (mut manager, mut names) = (None, Vec::new());
    entry.members(|key, value| match key {
        "manager" => manager = value.string(),
        "fieldsV1" => within(value, "f:metadata", |metadata| {
            within(metadata, "f:finalizers", |finalizers| {
                finalizers.members(|key, _| {
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

fn within(object: &mut Cursor<'_>, name: &str, mut each: impl FnMut(&mut Cursor<'_>)) {
    object.members(|key, value| {
        if key == name {
            each(value);
        }
    });
}

fn owner(reference: &mut Cursor<'_>) -> OwnerRef {
    let mut owner = OwnerRef::default();
    reference.members(|key, value| match key {
        "apiVersion" => owner.api_version = value.boxed(),
        "kind" => owner.kind = value.boxed(),
        "name" => owner.name = value.boxed(),
        "uid" => owner.uid = value.boxed(),
        "controller" => owner.controller = value.flag() == Some(true),
        _ => {}
    });
    owner
}

fn annotations(map: &mut Cursor<'_>, child: &mut Child) {
    map.members(|key, value| {
        if PROVISIONING.contains(&key) {
            child.facts.provisioning = true;
        } else if KEPT.contains(&key) {
            child.meta.annotations.push((key.into(), value.boxed()));
        } else if key == AUTOSCALER
            && let Some(text) = value.string()
        {
            let status: &mut Status = &mut child.facts.status;
            conditions::read(&mut Cursor::new(&text), None, status);
        }
    });
}

//! `metadata`.

use readiness::{Facts, StatusFacts};

use super::conditions;
use super::cursor::JsonCursor;
use super::wire_meta::{
    HELM_NAMESPACE_ANNOTATION, HELM_RELEASE_ANNOTATION, INVENTORY_ANNOTATION, OwnerRef, TRACKING_ANNOTATION,
    WireMeta,
};
use crate::status::FIELD_MANAGER;

/// Annotations that say a volume is being provisioned, or name the node that will use it.
const PROVISIONING_ANNOTATIONS: [&str; 3] = [
    "volume.kubernetes.io/selected-node",
    "volume.kubernetes.io/storage-provisioner",
    "volume.beta.kubernetes.io/storage-provisioner",
];
/// Annotation in which version 1 of the autoscaler keeps its conditions, as JSON text.
const AUTOSCALER_CONDITIONS_ANNOTATION: &str = "autoscaling.alpha.kubernetes.io/conditions";
/// Annotations that tie an object to a deployment, or exclude it from evaluation.
const KEPT_ANNOTATIONS: [&str; 8] = [
    "argocd.argoproj.io/hook",
    "argocd.argoproj.io/hook-delete-policy",
    "helm.sh/hook",
    "helm.sh/hook-delete-policy",
    TRACKING_ANNOTATION,
    INVENTORY_ANNOTATION,
    HELM_RELEASE_ANNOTATION,
    HELM_NAMESPACE_ANNOTATION,
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
        _ => {}
    }
}

/// Reads `managedFields`, which fill a third of most objects, where something of them is asked for: by finalizers, by counts
/// of replicas or completions, or by what is measured from the last change. Returns whether the number of replicas was last set
/// through the subresource `scale`: whoever sets it next takes the field away from that entry.
pub(super) fn read_managed_fields(
    mut fields: JsonCursor<'_>,
    meta: &mut WireMeta,
    facts: &mut Facts,
) -> bool {
    let mut is_scaled = false;
    let (spec, status) = (&facts.spec, &facts.status);
    let counts = [spec.replicas, spec.completions, status.desired, status.active];
    let has_counts = counts.iter().any(Option::is_some) || !status.counts.is_empty();
    let is_not_started = spec.suspended.is_some() && status.started.is_none();
    let waits_from_change = is_not_started || facts.provisioning || status.addresses == Some(0);
    if !meta.finalizers.is_empty() || has_counts || waits_from_change {
        fields.each_element(|entry| is_scaled |= read_manager_entry(entry, meta, facts));
    }
    is_scaled
}

/// Reads one entry of `managedFields`: when its manager last changed the spec or the status, and the finalizers that it set. Returns
/// whether it is about the subresource `scale`.
fn read_manager_entry(entry: &mut JsonCursor<'_>, meta: &mut WireMeta, facts: &mut Facts) -> bool {
    let (mut manager, mut names, mut changed) = (None, Vec::new(), None);
    let (mut is_content, mut is_scale) = (false, false);
    let has_finalizers = !meta.finalizers.is_empty();
    entry.each_member(|key, value| match key {
        "manager" => manager = value.read_string(),
        "time" => changed = value.read_time(),
        "subresource" => is_scale = value.read_string().is_some_and(|name| name == "scale"),
        "fieldsV1" => {
            value.each_member(|key, fields| match key {
                "f:spec" | "f:status" => is_content = true,
                "f:metadata" if has_finalizers => read_finalizer_names(fields, &mut names),
                // A claim is asked to be provisioned by an annotation.
                "f:metadata" if facts.provisioning => is_content |= has_provisioning_annotation(fields),
                _ => {}
            });
        }
        _ => {}
    });
    let manager = manager.unwrap_or_default();
    // What Rollcall says of an object moves nothing.
    if is_content && *manager != *FIELD_MANAGER {
        facts.changed = facts.changed.max(changed);
    }
    if !manager.is_empty() {
        meta.setters.extend(names.into_iter().map(|name| (name, manager.as_ref().into())));
    }
    is_scale && is_content
}

fn has_provisioning_annotation(metadata: &mut JsonCursor<'_>) -> bool {
    let mut has_any = false;
    each_member_named(metadata, "f:annotations", |annotations| {
        annotations.each_member(|key, _| {
            has_any |= key.strip_prefix("f:").is_some_and(|key| PROVISIONING_ANNOTATIONS.contains(&key));
        });
    });
    has_any
}

fn read_finalizer_names(metadata: &mut JsonCursor<'_>, names: &mut Vec<Box<str>>) {
    each_member_named(metadata, "f:finalizers", |finalizers| {
        finalizers.each_member(|key, _| {
            let name = key.strip_prefix("v:\"").and_then(|key| key.strip_suffix('"'));
            names.extend(name.map(Box::<str>::from));
        });
    });
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
        "blockOwnerDeletion" => owner.blocks_deletion = value.read_flag() == Some(true),
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

//! Labels by which Argo CD tracks its objects, copied onto objects that an operator created.
//!
//! With label tracking Argo CD takes every object with its label for its own and prunes what is not in Git, unless it
//! has an ownerReference (argo-cd#26556 quotes the code). Operators that copy all labels of a parent
//! (ClusterSecret#146, clickhouse-operator#487) create such objects. They need no policy and often have no owner: the
//! label may come from any custom object.

use std::collections::{BTreeMap, BTreeSet};

use super::super::checked_object::CheckedObject;
use super::super::finding::{DoctorFinding, DoctorSeverity};
use super::super::inventory::DoctorInventory;
use inspect::kubectl::shell_quote;

pub(super) const CHECK_NAME: &str = "copied-label";

const INSTANCE_LABELS: [&str; 2] = ["app.kubernetes.io/instance", "argocd.argoproj.io/instance"];
/// Annotations that a tool leaves on objects it applies itself.
const APPLIED_ANNOTATIONS: [&str; 3] = [
    "argocd.argoproj.io/tracking-id",
    "kubectl.kubernetes.io/last-applied-configuration",
    "meta.helm.sh/release-name",
];

pub(super) fn run_check(world: &DoctorInventory) -> Vec<DoctorFinding> {
    let (parents, custom) = (world.parent_kinds(), world.custom_kinds());
    let among = |kinds: &BTreeSet<(String, String)>, seen: &CheckedObject| {
        kinds.iter().any(|(group, kind)| seen.is_kind(group, kind))
    };
    let is_parent = |seen: &CheckedObject| among(&parents, seen);
    let mut labelled: BTreeMap<(&str, &str), Vec<&CheckedObject>> = BTreeMap::new();
    for parent in world.objects.iter().filter(|seen| is_parent(seen) || among(&custom, seen)) {
        for key in INSTANCE_LABELS {
            if let Some(value) = parent.label_value(key) {
                labelled.entry((key, value)).or_default().push(parent);
            }
        }
    }
    let mut found = Vec::new();
    for seen in world.objects.iter().filter(|seen| !is_parent(seen) && seen.meta.owners.is_empty()) {
        if APPLIED_ANNOTATIONS.iter().any(|key| seen.has_annotation(key)) {
            continue;
        }
        let label = INSTANCE_LABELS.iter().find_map(|key| Some((*key, seen.label_value(key)?)));
        let Some((key, value)) = label else { continue };
        // Custom objects side by side are not copies of each other, unless one is of a kind that has children.
        let beside = among(&custom, seen);
        let sources = labelled.get(&(key, value)).into_iter().flatten();
        let mut sources = sources.filter(|source| !beside || is_parent(source));
        // An object installed beside the parent has the same field manager; a copy does not.
        if let Some(parent) = sources.find(|source| !is_same_writer(seen, source)) {
            found.push(label_finding(seen, parent, key, value));
        }
    }
    found
}

fn is_same_writer(a: &CheckedObject, b: &CheckedObject) -> bool {
    let hands = |seen: &CheckedObject| -> Vec<String> {
        seen.managers.iter().filter(|writer| writer.wrote_main).map(|writer| writer.name.clone()).collect()
    };
    let (a, b) = (hands(a), hands(b));
    a.is_empty() || a.iter().any(|hand| b.contains(hand))
}

fn label_finding(seen: &CheckedObject, parent: &CheckedObject, key: &str, value: &str) -> DoctorFinding {
    let command = seen.object_ref().command_for("label") + " " + &shell_quote(&format!("{key}-"));
    DoctorFinding::new(DoctorSeverity::Warning, CHECK_NAME, seen.display_title())
        .with_evidence(format!("{key}={value}, as {} has it, no ownerReference, and applied by another field manager: Argo CD with label tracking takes it for its own and prunes it", parent.display_title()))
        .with_fix("keep the operator from copying this label, give the child an ownerReference, or let Argo CD track by annotation")
        .with_patch(command)
}

#[cfg(test)]
mod tests {
    use super::super::support::{describe_findings, object, world};
    use super::*;
    use serde_json::{Value, json};

    fn labelled(kind: &str, name: &str, manager: &str, more: &Value) -> Value {
        let fields = json!([{ "manager": manager, "operation": "Update", "fieldsV1": { "f:metadata": {} } }]);
        let mut metadata =
            json!({ "labels": { "app.kubernetes.io/instance": "shop" }, "managedFields": fields });
        for (key, value) in more.as_object().into_iter().flatten() {
            metadata[key] = value.clone();
        }
        object(kind, name, &metadata, &json!({}))
    }

    fn found(job: Value) -> Vec<String> {
        describe_findings(&run_check(&world(&[
            labelled("Database", "db", "argocd-controller", &json!({})),
            job,
        ])))
    }

    #[test]
    fn a_copy_is_found_and_what_was_applied_or_is_owned_is_not() {
        assert_eq!(found(labelled("Job", "copy", "kopf", &json!({}))), ["warning Job shop/copy"]);
        assert!(found(labelled("Job", "beside", "argocd-controller", &json!({}))).is_empty());
        let owner =
            json!({ "apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": "uid-db" });
        assert!(found(labelled("Job", "owned", "kopf", &json!({ "ownerReferences": [owner] }))).is_empty());
        let applied = json!({ "annotations": { "argocd.argoproj.io/tracking-id": "shop:batch/Job:x" } });
        assert!(found(labelled("Job", "applied", "kopf", &applied)).is_empty());
        let installed = json!({ "annotations": { "meta.helm.sh/release-name": "shop" } });
        assert!(found(labelled("Job", "installed", "helm", &installed)).is_empty());
    }

    #[test]
    fn what_copies_its_label_needs_no_policy_and_owns_nothing() {
        let from = || labelled("Database", "db", "argocd-controller", &json!({}));
        let mut world = world(&[from(), labelled("Secret", "copy", "kopf", &json!({}))]);
        world.policies.clear();
        assert_eq!(describe_findings(&run_check(&world)), ["warning Secret shop/copy"]);
        world.crds.clear();
        assert!(run_check(&world).is_empty(), "nothing of Kubernetes' own copies labels");
    }
}

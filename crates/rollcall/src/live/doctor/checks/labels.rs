//! Labels by which Argo CD knows its own, copied onto what an operator made.
//!
//! With tracking by label Argo CD takes every object with its label for its own, and prunes what is not in Git, unless it
//! has an ownerReference (argo-cd#26556 quotes the code). Operators that copy all labels of a parent (ClusterSecret#146,
//! clickhouse-operator#487) hand it such objects. These need no policy, and often own nothing: the label may come from any
//! custom object.

use std::collections::{BTreeMap, BTreeSet};

use super::super::finding::{Finding, Severity};
use super::super::seen::Seen;
use super::super::world::World;
use controller::inspect::command::quoted;

pub(super) const NAME: &str = "copied-label";

const LABELS: [&str; 2] = ["app.kubernetes.io/instance", "argocd.argoproj.io/instance"];
/// Whoever applied an object itself left one of these.
const APPLIED: [&str; 3] = [
    "argocd.argoproj.io/tracking-id",
    "kubectl.kubernetes.io/last-applied-configuration",
    "meta.helm.sh/release-name",
];

pub(super) fn check(world: &World) -> Vec<Finding> {
    let (parents, custom) = (world.parents(), world.custom());
    let among = |kinds: &BTreeSet<(String, String)>, seen: &Seen| {
        kinds.iter().any(|(group, kind)| seen.is(group, kind))
    };
    let is_parent = |seen: &Seen| among(&parents, seen);
    let mut labelled: BTreeMap<(&str, &str), Vec<&Seen>> = BTreeMap::new();
    for parent in world.objects.iter().filter(|seen| is_parent(seen) || among(&custom, seen)) {
        for key in LABELS {
            if let Some(value) = parent.label(key) {
                labelled.entry((key, value)).or_default().push(parent);
            }
        }
    }
    let mut found = Vec::new();
    for seen in world.objects.iter().filter(|seen| !is_parent(seen) && seen.meta.owners.is_empty()) {
        if APPLIED.iter().any(|key| seen.annotated(key)) {
            continue;
        }
        let label = LABELS.iter().find_map(|key| Some((*key, seen.label(key)?)));
        let Some((key, value)) = label else { continue };
        // Custom objects beside each other copy nothing, unless one is of a kind that has children.
        let beside = among(&custom, seen);
        let sources = labelled.get(&(key, value)).into_iter().flatten();
        let mut sources = sources.filter(|source| !beside || is_parent(source));
        // What was installed beside the parent was written by the same hand; a copy was not.
        if let Some(parent) = sources.find(|source| !same_hand(seen, source)) {
            found.push(finding(seen, parent, key, value));
        }
    }
    found
}

fn same_hand(a: &Seen, b: &Seen) -> bool {
    let hands = |seen: &Seen| -> Vec<String> {
        seen.managers.iter().filter(|writer| writer.main).map(|writer| writer.name.clone()).collect()
    };
    let (a, b) = (hands(a), hands(b));
    a.is_empty() || a.iter().any(|hand| b.contains(hand))
}

fn finding(seen: &Seen, parent: &Seen, key: &str, value: &str) -> Finding {
    let command = seen.object().kubectl("label") + " " + &quoted(&format!("{key}-"));
    Finding::new(Severity::Warning, NAME, seen.title())
        .because(format!("{key}={value}, as {} has it, no ownerReference, and not applied by whoever applied that: Argo CD with tracking by label takes it for its own and prunes it", parent.title()))
        .fix("keep the operator from copying this label, give the child an ownerReference, or let Argo CD track by annotation")
        .by(command)
}

#[cfg(test)]
mod tests {
    use super::super::support::{object, told, world};
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
        told(&check(&world(&[labelled("Database", "db", "argocd-controller", &json!({})), job])))
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
        assert_eq!(told(&check(&world)), ["warning Secret shop/copy"]);
        world.crds.clear();
        assert!(check(&world).is_empty(), "nothing of Kubernetes' own copies labels");
    }
}

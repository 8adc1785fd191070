//! ownerReferences with which the garbage collector does something unintended.

use std::collections::{BTreeMap, BTreeSet};

use watcher::wire::OwnerRef;

use super::super::checked_object::CheckedObject;
use super::super::finding::{DoctorFinding, DoctorSeverity};
use super::super::inventory::DoctorInventory;

pub(super) const CHECK_NAME: &str = "owner-reference";

pub(super) fn run_check(world: &DoctorInventory) -> Vec<DoctorFinding> {
    let known: BTreeMap<&str, &CheckedObject> =
        world.objects.iter().map(|seen| (&*seen.meta.uid, seen)).collect();
    let mut found = Vec::new();
    for seen in world.objects.iter().filter(|seen| seen.meta.deleted.is_none()) {
        found.extend(duplicate_owners(seen));
        for owner in &seen.meta.owners {
            found.extend(known.get(&*owner.uid).map_or_else(
                || dangling_owner(world, seen, owner),
                |parent| foreign_namespace_owner(seen, parent),
            ));
        }
    }
    found
}

fn owner_error(seen: &CheckedObject) -> DoctorFinding {
    DoctorFinding::new(DoctorSeverity::Error, CHECK_NAME, seen.display_title())
}

fn duplicate_owners(seen: &CheckedObject) -> Option<DoctorFinding> {
    let owners = &seen.meta.owners;
    let controllers: Vec<String> = owners
        .iter()
        .filter(|owner| owner.controller)
        .map(|owner| format!("{} {}", owner.kind, owner.name))
        .collect();
    let different: BTreeSet<&str> = owners.iter().map(|owner| &*owner.uid).collect();
    if controllers.len() > 1 {
        return Some(
            owner_error(seen)
                .with_evidence(format!("{} controllers: {}", controllers.len(), controllers.join(", ")))
                .with_fix("remove one of the references: each controller acts on the object as its own"),
        );
    }
    (different.len() < owners.len()).then(|| {
        let mut again = owner_error(seen).with_evidence("it has several ownerReferences to the same owner");
        again.severity = DoctorSeverity::Warning;
        again.with_fix("change its operator to compare UIDs before it adds a reference")
    })
}

fn dangling_owner(world: &DoctorInventory, seen: &CheckedObject, owner: &OwnerRef) -> Option<DoctorFinding> {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    // An owner is known not to exist only if its kind was listed in all namespaces.
    if !world.fully_listed.contains(&(group.to_owned(), owner.kind.to_string())) {
        return None;
    }
    let (kind, name) = (&owner.kind, &owner.name);
    let namesake = world.objects.iter().any(|other| {
        other.is_kind(group, kind) && other.meta.name == *name && other.meta.namespace == seen.meta.namespace
    });
    let why = if namesake {
        format!(
            "its owner {kind} {name} was deleted and recreated with another UID, so it has no owner any more"
        )
    } else {
        format!("its owner {kind} {name} does not exist")
    };
    Some(owner_error(seen).with_evidence(why).with_fix(
        "the garbage collector deletes it; to keep it, its operator must adopt it again with the new UID",
    ))
}

fn foreign_namespace_owner(seen: &CheckedObject, parent: &CheckedObject) -> Option<DoctorFinding> {
    let (own, its) = (&seen.meta.namespace, &parent.meta.namespace);
    let place = |namespace: &str| {
        if namespace.is_empty() { "no namespace".to_owned() } else { format!("namespace {namespace}") }
    };
    (!its.is_empty() && own != its).then(|| {
        owner_error(seen)
            .with_evidence(format!(
                "its owner {} is in {}, it is in {}",
                parent.display_title(),
                place(its),
                place(own)
            ))
            .with_fix(
                "an owner must be in the same namespace or cluster-scoped: the garbage collector treats it \
                 as absent and deletes the child. Select such children by labels instead",
            )
    })
}

#[cfg(test)]
mod tests {
    use super::super::support::{object, world};
    use super::*;
    use serde_json::{Value, json};

    fn owner(name: &str, uid: &str, controller: bool) -> Value {
        json!({ "apiVersion": "example.com/v1", "kind": "Database", "name": name, "uid": uid, "controller": controller })
    }

    fn job(owners: &[Value]) -> Value {
        object("Job", "seed", &json!({ "ownerReferences": owners }), &json!({}))
    }

    fn found(job: &Value) -> Vec<DoctorFinding> {
        let db = object("Database", "db", &json!({}), &json!({}));
        let far = object("Database", "far", &json!({ "namespace": "other" }), &json!({}));
        run_check(&world(&[db, far, job.clone()]))
    }

    #[test]
    fn references_that_cross_dangle_or_repeat_are_found() {
        for (owners, words) in [
            (vec![owner("far", "uid-far", true)], "is in namespace other"),
            (vec![owner("none", "uid-none", true)], "does not exist"),
            (vec![owner("db", "uid-before", true)], "recreated with another UID"),
            (vec![owner("db", "uid-db", false), owner("db", "uid-db", false)], "several ownerReferences"),
            (vec![owner("db", "uid-db", true), owner("db", "uid-db", true)], "2 controllers"),
        ] {
            let found = found(&job(&owners));
            assert!(found.len() == 1 && found[0].evidence.contains(words), "{words}: {found:?}");
        }
        assert_eq!(found(&job(&[owner("db", "uid-db", true)])), []);
    }

    #[test]
    fn nothing_is_said_of_owners_that_were_not_looked_for() {
        let unseen = json!({ "apiVersion": "a.io/v1", "kind": "Thing", "name": "x", "uid": "uid-x" });
        assert_eq!(found(&job(&[unseen])), []);
    }
}

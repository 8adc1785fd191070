//! ownerReferences that the garbage collector acts on in ways nobody meant.

use std::collections::{BTreeMap, BTreeSet};

use watcher::wire::OwnerRef;

use super::super::finding::{Finding, Severity};
use super::super::seen::Seen;
use super::super::world::World;

pub(super) const NAME: &str = "owner-reference";

pub(super) fn check(world: &World) -> Vec<Finding> {
    let known: BTreeMap<&str, &Seen> = world.objects.iter().map(|seen| (&*seen.meta.uid, seen)).collect();
    let mut found = Vec::new();
    for seen in world.objects.iter().filter(|seen| seen.meta.deleted.is_none()) {
        found.extend(twice(seen));
        for owner in &seen.meta.owners {
            found.extend(
                known
                    .get(&*owner.uid)
                    .map_or_else(|| dangling(world, seen, owner), |parent| elsewhere(seen, parent)),
            );
        }
    }
    found
}

fn finding(seen: &Seen) -> Finding {
    Finding::new(Severity::Error, NAME, seen.title())
}

fn twice(seen: &Seen) -> Option<Finding> {
    let owners = &seen.meta.owners;
    let controllers: Vec<String> = owners
        .iter()
        .filter(|owner| owner.controller)
        .map(|owner| format!("{} {}", owner.kind, owner.name))
        .collect();
    let different: BTreeSet<&str> = owners.iter().map(|owner| &*owner.uid).collect();
    if controllers.len() > 1 {
        return Some(
            finding(seen)
                .because(format!("{} controllers: {}", controllers.len(), controllers.join(", ")))
                .fix("one of them has to let go: each will act on it as if it were its own"),
        );
    }
    (different.len() < owners.len()).then(|| {
        let mut again = finding(seen).because("the same owner is named more than once");
        again.severity = Severity::Warning;
        again.fix("its operator should compare by UID before it adds a reference")
    })
}

fn dangling(world: &World, seen: &Seen, owner: &OwnerRef) -> Option<Finding> {
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    // Only of what was listed everywhere is it known that it does not exist.
    if !world.whole.contains(&(group.to_owned(), owner.kind.to_string())) {
        return None;
    }
    let (kind, name) = (&owner.kind, &owner.name);
    let namesake = world.objects.iter().any(|other| {
        other.is(group, kind) && other.meta.name == *name && other.meta.namespace == seen.meta.namespace
    });
    let why = if namesake {
        format!("its owner {kind} {name} was deleted and created anew: another UID, so it is nobody's child")
    } else {
        format!("its owner {kind} {name} does not exist")
    };
    Some(
        finding(seen).because(why).fix(
            "the garbage collector deletes it; if it is to stay, its operator has to adopt it anew, by UID",
        ),
    )
}

fn elsewhere(seen: &Seen, parent: &Seen) -> Option<Finding> {
    let (own, its) = (&seen.meta.namespace, &parent.meta.namespace);
    let place = |namespace: &str| {
        if namespace.is_empty() { "no namespace".to_owned() } else { format!("namespace {namespace}") }
    };
    (!its.is_empty() && own != its).then(|| {
        finding(seen)
            .because(format!("its owner {} lives in {}, it lives in {}", parent.title(), place(its), place(own)))
            .fix("an owner has to live in the same namespace, or in none: the garbage collector takes it for gone and deletes the child. Find such children by labels instead")
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

    fn found(job: &Value) -> Vec<Finding> {
        let db = object("Database", "db", &json!({}), &json!({}));
        let far = object("Database", "far", &json!({ "namespace": "other" }), &json!({}));
        check(&world(&[db, far, job.clone()]))
    }

    #[test]
    fn references_that_cross_dangle_or_repeat_are_found() {
        for (owners, words) in [
            (vec![owner("far", "uid-far", true)], "lives in namespace other"),
            (vec![owner("none", "uid-none", true)], "does not exist"),
            (vec![owner("db", "uid-before", true)], "created anew"),
            (vec![owner("db", "uid-db", false), owner("db", "uid-db", false)], "more than once"),
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

//! Kopf operators that overwrite the finalizers of others, or cannot tell their own from another's.
//!
//! Up to 1.43 Kopf patched the whole list of finalizers by a merge patch; since 1.44.0 it patches its own (kopf#1252). Its
//! version is nowhere in the cluster. But only up to 1.43 does it keep its progress in the status as well (kopf#1259).

use std::collections::{BTreeMap, BTreeSet};

use super::super::finding::{Finding, Severity};
use super::super::seen::Seen;
use super::super::world::World;

pub(super) const NAME: &str = "kopf";

const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";
const MARK: &str = "/last-handled-configuration";

pub(super) fn check(world: &World) -> Vec<Finding> {
    world.objects.iter().filter_map(shared).chain(old(world)).chain(alike(world)).collect()
}

/// An operator of 1.43 or before, by kind: one finding for all its objects.
fn old(world: &World) -> Vec<Finding> {
    let mut kinds: BTreeMap<(&str, &str), Vec<&Seen>> = BTreeMap::new();
    for seen in world.objects.iter().filter(|seen| seen.kopf_progress) {
        kinds.entry((&seen.group, &seen.kind)).or_default().push(seen);
    }
    let told = kinds.into_iter().map(|((group, kind), all)| {
        let others = all.iter().any(|seen| seen.meta.finalizers.iter().any(|name| **name != *FINALIZER));
        let severity = if others { Severity::Error } else { Severity::Warning };
        let beside = if others { ", and others have finalizers on the same objects" } else { "" };
        let dot = if group.is_empty() { "" } else { "." };
        Finding::new(severity, NAME, format!("{kind}{dot}{group}"))
            .because(format!("status.kopf.progress in {} of them, as in {}: only Kopf before 1.44 writes it, and such an operator replaces the whole list of finalizers{beside}", all.len(), all[0].title()))
            .fix("update its operator to Kopf 1.44 or newer")
    });
    told.collect()
}

/// Two operators on one object: each has a mark of its own, and both take the finalizer for theirs.
fn shared(seen: &Seen) -> Option<Finding> {
    let marks: BTreeSet<&str> =
        seen.annotations.iter().filter_map(|(key, _)| key.strip_suffix(MARK)).collect();
    let held = seen.meta.finalizers.iter().any(|name| **name == *FINALIZER);
    (held && marks.len() > 1).then(|| {
        let marks = marks.into_iter().collect::<Vec<_>>().join(", ");
        Finding::new(Severity::Warning, NAME, seen.title())
            .because(format!("{FINALIZER} on an object that several Kopf operators handle ({marks}): the first to let go lets go for all"))
            .fix("give each operator a finalizer of its own: settings.persistence.finalizer")
    })
}

/// The default name on kinds of several API groups.
fn alike(world: &World) -> Option<Finding> {
    let groups: BTreeSet<&str> = world
        .objects
        .iter()
        .filter(|seen| seen.meta.finalizers.iter().any(|name| **name == *FINALIZER))
        .map(|seen| if seen.group.is_empty() { "core" } else { &*seen.group })
        .collect();
    (groups.len() > 1).then(|| {
        let groups = groups.into_iter().collect::<Vec<_>>().join(", ");
        Finding::new(Severity::Info, NAME, format!("finalizer {FINALIZER}"))
            .because(format!("Kopf's default name is in use in several API groups ({groups}): if these are several operators, none can tell its own"))
            .fix("give each operator a finalizer of its own: settings.persistence.finalizer")
    })
}

#[cfg(test)]
mod tests {
    use super::super::support::{object, told, world};
    use super::*;
    use serde_json::json;

    #[test]
    fn an_operator_before_1_44_is_known_by_its_progress_in_the_status() {
        let progress = json!({ "kopf": { "progress": { "create_fn": { "retries": 1 } } } });
        let alone = object("Database", "db", &json!({ "finalizers": [FINALIZER] }), &progress);
        assert_eq!(told(&check(&world(&[alone]))), ["warning Database.example.com"]);
        let beside = object("Database", "db", &json!({ "finalizers": [FINALIZER, "a.io/x"] }), &progress);
        assert_eq!(told(&check(&world(&[beside]))), ["error Database.example.com"]);
        let done = object("Database", "db", &json!({}), &json!({ "kopf": { "progress": null } }));
        assert!(check(&world(&[done])).is_empty());
    }

    #[test]
    fn a_default_finalizer_that_several_operators_share_is_found() {
        let marks = json!({ "finalizers": [FINALIZER], "annotations": {
            "kopf.zalando.org/last-handled-configuration": "{}", "b.io/last-handled-configuration": "{}" } });
        let both = object("Database", "db", &marks, &json!({}));
        assert_eq!(told(&check(&world(&[both]))), ["warning Database shop/db"]);
        let job = object("Job", "seed", &json!({ "finalizers": [FINALIZER] }), &json!({}));
        let db = object("Database", "db", &json!({ "finalizers": [FINALIZER] }), &json!({}));
        assert_eq!(told(&check(&world(&[job, db]))), [format!("info finalizer {FINALIZER}")]);
    }
}

//! Kopf operators that overwrite the finalizers of others, or cannot tell their own from another's.
//!
//! Up to 1.43 Kopf patched the whole list of finalizers by a merge patch; since 1.44.0 it patches its own (kopf#1252). Its
//! version is nowhere in the cluster, and both call themselves `kopf` in managedFields, which tell a list that was replaced from
//! an entry that was added in no way. But only up to 1.43 does it keep its progress in the status as well (kopf#1259), and leaves
//! an empty one behind; and only an old list brings back what somebody else had taken off. Where a CRD prunes that, or the
//! progress is kept in annotations alone, there is a hint in Events, as long as the server keeps these ([`super::super::logged`]).

use std::collections::{BTreeMap, BTreeSet};

use super::super::finding::{Finding, Severity};
use super::super::seen::Seen;
use super::super::world::World;

pub(super) const NAME: &str = "kopf";

const FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";
/// As the API server takes it from what Kopf calls itself.
const MANAGER: &str = "kopf";
/// As [`readiness::holder`] calls it.
const OPERATOR: &str = "a Kopf operator";
const MARK: &str = "/last-handled-configuration";

pub(super) fn check(world: &World) -> Vec<Finding> {
    let returned = world.objects.iter().flat_map(returned);
    let told = returned.chain(world.objects.iter().filter_map(shared)).chain(old(world));
    told.chain(logging(world)).chain(alike(world)).collect()
}

/// What an old one does unless it is told not to, and a new one only if it is told to: no more than a hint, but the only
/// one where nothing is kept in the status.
fn logging(world: &World) -> Vec<Finding> {
    let known = |kind: &(String, String)| {
        world.objects.iter().any(|seen| seen.kopf_progress.is_some() && seen.is(&kind.0, &kind.1))
    };
    let told = world.logged.iter().filter(|(kind, _)| !known(kind)).map(|((group, kind), object)| {
        let dot = if group.is_empty() { "" } else { "." };
        Finding::new(Severity::Info, NAME, format!("{kind}{dot}{group}"))
            .because(format!("what its operator logs is posted as Events, as about {object}: Kopf before 1.44 does that by itself, a newer one where settings.posting.loggers says so"))
            .fix("look at the version in its image; before 1.44 it replaces the whole list of finalizers")
    });
    told.collect()
}

/// An operator of 1.43 or before, by kind: one finding for all its objects.
fn old(world: &World) -> Vec<Finding> {
    let mut kinds: BTreeMap<(&str, &str), Vec<&Seen>> = BTreeMap::new();
    for seen in world.objects.iter().filter(|seen| seen.kopf_progress.is_some()) {
        kinds.entry((&seen.group, &seen.kind)).or_default().push(seen);
    }
    let told = kinds.into_iter().map(|((group, kind), all)| {
        let others = all.iter().any(|seen| seen.meta.finalizers.iter().any(|name| **name != *FINALIZER));
        let severity = if others { Severity::Error } else { Severity::Warning };
        let beside = if others { ", and others have finalizers on the same objects" } else { "" };
        let dot = if group.is_empty() { "" } else { "." };
        let last = all.iter().filter_map(|seen| seen.kopf_progress.as_ref()).filter(|at| !at.is_empty()).max();
        let last = last.map_or(String::new(), |last| format!(" (last at {last})"));
        Finding::new(severity, NAME, format!("{kind}{dot}{group}"))
            .because(format!("status.kopf.progress in {} of them, as in {}: only Kopf before 1.44 writes it{last}, and such an operator replaces the whole list of finalizers{beside}", all.len(), all[0].title()))
            .fix("update its operator to Kopf 1.44 or newer; one that was updated since leaves what it had written")
    });
    told.collect()
}

/// A finalizer of somebody who is known, set by Kopf: it stood in the list that an old one wrote back.
fn returned(seen: &Seen) -> Vec<Finding> {
    let foreign = |(name, manager): &&(String, String)| {
        manager == MANAGER && readiness::holder(name).is_some_and(|holder| holder.who != OPERATOR)
    };
    let told = seen.holders.iter().filter(foreign).map(|(name, _)| {
        let who = readiness::holder(name).map_or("another", |holder| holder.who);
        Finding::new(Severity::Error, NAME, seen.title())
            .because(format!("finalizer {name} of {who} was set by field manager {MANAGER}: {who} had taken it off, and an old list brought it back; only Kopf before 1.44 writes lists"))
            .fix("update its operator to Kopf 1.44 or newer; rollcall explain names what takes the finalizer off")
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
    use serde_json::{Value, json};

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
    fn when_it_was_last_written_is_told_and_so_is_what_an_old_list_brought_back() {
        let progress = json!({ "kopf": { "progress": {} } });
        let by_kopf = |fields: &Value| json!([{ "manager": "kopf", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields }]);
        let status = json!({ "f:status": { "f:kopf": { "f:progress": {} } } });
        let left = object("Database", "db", &json!({ "managedFields": by_kopf(&status) }), &progress);
        let found = check(&world(&[left]));
        assert!(found[0].evidence.contains("(last at 2026-01-01T00:00:00Z)"), "{found:?}");
        let held = |name: &str| {
            let fields = json!({ "f:metadata": { "f:finalizers": { format!("v:\"{name}\""): {} } } });
            let metadata = json!({ "finalizers": [name], "managedFields": by_kopf(&fields) });
            check(&world(&[object("Database", "db", &metadata, &json!({}))]))
        };
        let found = held("argocd.argoproj.io/hook-finalizer");
        assert_eq!(told(&found), ["error Database shop/db"]);
        assert!(found[0].evidence.contains("Argo CD had taken it off"), "{found:?}");
        // Its own, by default or by its settings.
        for own in [FINALIZER, "team.example.com/guard"] {
            assert_eq!(held(own), [], "{own}");
        }
    }

    #[test]
    fn what_is_logged_as_events_is_a_hint_where_nothing_surer_is_known() {
        let kind = ("example.com".to_owned(), "Database".to_owned());
        let progress = json!({ "kopf": { "progress": {} } });
        for (status, expected) in
            [(json!({}), "info Database.example.com"), (progress, "warning Database.example.com")]
        {
            let mut world = world(&[object("Database", "db", &json!({}), &status)]);
            world.logged.insert(kind.clone(), "Database shop/db".to_owned());
            assert_eq!(told(&check(&world)), [expected]);
        }
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

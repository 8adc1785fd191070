//! Kopf operators that overwrite the finalizers of others, or cannot tell their own from another's.
//!
//! Up to 1.43 Kopf patched the whole list of finalizers by a merge patch; since 1.44.0 it patches its own (kopf#1252).
//! Its version is nowhere in the cluster, and both versions are `kopf` in managedFields, which do not distinguish a
//! replaced list from an added entry. But only versions up to 1.43 also keep their progress in the status (kopf#1259)
//! and leave an empty one behind; and only a replaced list restores a finalizer that another manager had removed. If a
//! CRD prunes the progress, or it is kept in annotations alone, the only hint is in Events, as long as the server keeps
//! them ([`super::super::kopf_events`]).

use std::collections::{BTreeMap, BTreeSet};

use super::super::checked_object::CheckedObject;
use super::super::finding::{DoctorFinding, DoctorSeverity};
use super::super::inventory::DoctorInventory;

pub(super) const CHECK_NAME: &str = "kopf";

const KOPF_FINALIZER: &str = "kopf.zalando.org/KopfFinalizerMarker";
/// Field manager name that the API server derives from Kopf's user agent.
const KOPF_MANAGER: &str = "kopf";
/// Name of the operator, as [`readiness::likely_holder`] returns it.
const KOPF_OPERATOR: &str = "a Kopf operator";
const LAST_HANDLED_SUFFIX: &str = "/last-handled-configuration";

pub(super) fn run_check(world: &DoctorInventory) -> Vec<DoctorFinding> {
    let returned = world.objects.iter().flat_map(returned_finalizers);
    let findings =
        returned.chain(world.objects.iter().filter_map(shared_finalizer)).chain(outdated_findings(world));
    findings.chain(logging_findings(world)).chain(default_finalizer_groups(world)).collect()
}

/// Returns findings from logged Events. An old Kopf posts them unless disabled, a new one only if enabled: no more than
/// a hint, but the only one if no progress is kept in the status.
fn logging_findings(world: &DoctorInventory) -> Vec<DoctorFinding> {
    let known = |kind: &(String, String)| {
        world.objects.iter().any(|seen| seen.kopf_progress.is_some() && seen.is_kind(&kind.0, &kind.1))
    };
    let findings = world.logged.iter().filter(|(kind, _)| !known(kind)).map(|((group, kind), object)| {
        let dot = if group.is_empty() { "" } else { "." };
        DoctorFinding::new(DoctorSeverity::Info, CHECK_NAME, format!("{kind}{dot}{group}"))
            .with_evidence(format!(
                "its operator posts its log as Events, for example about {object}: Kopf before 1.44 \
                 does so by default, newer versions only with settings.posting.loggers"
            ))
            .with_fix(
                "check the Kopf version in its image; before 1.44 it replaces the whole list of finalizers",
            )
    });
    findings.collect()
}

/// Returns one finding per kind for operators of version 1.43 or earlier.
fn outdated_findings(world: &DoctorInventory) -> Vec<DoctorFinding> {
    let mut kinds: BTreeMap<(&str, &str), Vec<&CheckedObject>> = BTreeMap::new();
    for seen in world.objects.iter().filter(|seen| seen.kopf_progress.is_some()) {
        kinds.entry((&seen.group, &seen.kind)).or_default().push(seen);
    }
    let findings = kinds.into_iter().map(|((group, kind), all)| {
        let others = all.iter().any(|seen| seen.meta.finalizers.iter().any(|name| **name != *KOPF_FINALIZER));
        let severity = if others { DoctorSeverity::Error } else { DoctorSeverity::Warning };
        let beside = if others { ", and others have finalizers on the same objects" } else { "" };
        let dot = if group.is_empty() { "" } else { "." };
        let last = all.iter().filter_map(|seen| seen.kopf_progress.as_ref()).filter(|at| !at.is_empty()).max();
        let last = last.map_or(String::new(), |last| format!(" (last at {last})"));
        DoctorFinding::new(severity, CHECK_NAME, format!("{kind}{dot}{group}"))
            .with_evidence(format!("status.kopf.progress in {} of them, as in {}: only Kopf before 1.44 writes it{last}, and such an operator replaces the whole list of finalizers{beside}", all.len(), all[0].display_title()))
            .with_fix("update its operator to Kopf 1.44 or newer; an updated operator leaves the old entry in place")
    });
    findings.collect()
}

/// Returns finalizers of known other owners that were set by Kopf: an old version wrote them back with its list.
fn returned_finalizers(seen: &CheckedObject) -> Vec<DoctorFinding> {
    let foreign = |(name, manager): &&(String, String)| {
        manager == KOPF_MANAGER
            && readiness::likely_holder(name).is_some_and(|holder| holder.who != KOPF_OPERATOR)
    };
    let findings = seen.finalizer_managers.iter().filter(foreign).map(|(name, _)| {
        let who = readiness::likely_holder(name).map_or("another", |holder| holder.who);
        DoctorFinding::new(DoctorSeverity::Error, CHECK_NAME, seen.display_title())
            .with_evidence(format!("finalizer {name} of {who} was set by field manager {KOPF_MANAGER}: {who} had removed it, and the write of an old list restored it; only Kopf before 1.44 writes lists"))
            .with_fix("update its operator to Kopf 1.44 or newer; rollcall explain prints the command that removes the finalizer")
    });
    findings.collect()
}

/// Returns a finding if two operators share an object: each has an annotation of its own, and both take the finalizer
/// for theirs.
fn shared_finalizer(seen: &CheckedObject) -> Option<DoctorFinding> {
    let marks: BTreeSet<&str> =
        seen.annotations.iter().filter_map(|(key, _)| key.strip_suffix(LAST_HANDLED_SUFFIX)).collect();
    let held = seen.meta.finalizers.iter().any(|name| **name == *KOPF_FINALIZER);
    (held && marks.len() > 1).then(|| {
        let marks = marks.into_iter().collect::<Vec<_>>().join(", ");
        DoctorFinding::new(DoctorSeverity::Warning, CHECK_NAME, seen.display_title())
            .with_evidence(format!("{KOPF_FINALIZER} on an object that several Kopf operators handle ({marks}): the first to remove it removes it for all"))
            .with_fix("give each operator a finalizer of its own: settings.persistence.finalizer")
    })
}

/// Returns a finding if kinds of several API groups carry Kopf's default finalizer name.
fn default_finalizer_groups(world: &DoctorInventory) -> Option<DoctorFinding> {
    let groups: BTreeSet<&str> = world
        .objects
        .iter()
        .filter(|seen| seen.meta.finalizers.iter().any(|name| **name == *KOPF_FINALIZER))
        .map(|seen| if seen.group.is_empty() { "core" } else { &*seen.group })
        .collect();
    (groups.len() > 1).then(|| {
        let groups = groups.into_iter().collect::<Vec<_>>().join(", ");
        DoctorFinding::new(DoctorSeverity::Info, CHECK_NAME, format!("finalizer {KOPF_FINALIZER}"))
            .with_evidence(format!("Kopf's default name is in use in several API groups ({groups}): if these are several operators, none can tell its own finalizer"))
            .with_fix("give each operator a finalizer of its own: settings.persistence.finalizer")
    })
}

#[cfg(test)]
mod tests {
    use super::super::support::{describe_findings, object, world};
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn an_operator_before_1_44_is_known_by_its_progress_in_the_status() {
        let progress = json!({ "kopf": { "progress": { "create_fn": { "retries": 1 } } } });
        let alone = object("Database", "db", &json!({ "finalizers": [KOPF_FINALIZER] }), &progress);
        assert_eq!(describe_findings(&run_check(&world(&[alone]))), ["warning Database.example.com"]);
        let beside =
            object("Database", "db", &json!({ "finalizers": [KOPF_FINALIZER, "a.io/x"] }), &progress);
        assert_eq!(describe_findings(&run_check(&world(&[beside]))), ["error Database.example.com"]);
        let done = object("Database", "db", &json!({}), &json!({ "kopf": { "progress": null } }));
        assert!(run_check(&world(&[done])).is_empty());
    }

    #[test]
    fn when_it_was_last_written_is_told_and_so_is_what_an_old_list_brought_back() {
        let progress = json!({ "kopf": { "progress": {} } });
        let by_kopf = |fields: &Value| json!([{ "manager": "kopf", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields }]);
        let status = json!({ "f:status": { "f:kopf": { "f:progress": {} } } });
        let left = object("Database", "db", &json!({ "managedFields": by_kopf(&status) }), &progress);
        let found = run_check(&world(&[left]));
        assert!(found[0].evidence.contains("(last at 2026-01-01T00:00:00Z)"), "{found:?}");
        let held = |name: &str| {
            let fields = json!({ "f:metadata": { "f:finalizers": { format!("v:\"{name}\""): {} } } });
            let metadata = json!({ "finalizers": [name], "managedFields": by_kopf(&fields) });
            run_check(&world(&[object("Database", "db", &metadata, &json!({}))]))
        };
        let found = held("argocd.argoproj.io/hook-finalizer");
        assert_eq!(describe_findings(&found), ["error Database shop/db"]);
        assert!(found[0].evidence.contains("Argo CD had removed it"), "{found:?}");
        // Its own finalizers, by default or by settings.
        for own in [KOPF_FINALIZER, "team.example.com/guard"] {
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
            assert_eq!(describe_findings(&run_check(&world)), [expected]);
        }
    }

    #[test]
    fn a_default_finalizer_that_several_operators_share_is_found() {
        let marks = json!({ "finalizers": [KOPF_FINALIZER], "annotations": {
            "kopf.zalando.org/last-handled-configuration": "{}", "b.io/last-handled-configuration": "{}" } });
        let both = object("Database", "db", &marks, &json!({}));
        assert_eq!(describe_findings(&run_check(&world(&[both]))), ["warning Database shop/db"]);
        let job = object("Job", "seed", &json!({ "finalizers": [KOPF_FINALIZER] }), &json!({}));
        let db = object("Database", "db", &json!({ "finalizers": [KOPF_FINALIZER] }), &json!({}));
        assert_eq!(
            describe_findings(&run_check(&world(&[job, db]))),
            [format!("info finalizer {KOPF_FINALIZER}")]
        );
    }
}

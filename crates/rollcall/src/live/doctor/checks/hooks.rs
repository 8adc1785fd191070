//! Objects whose deletion hangs on a finalizer, in particular deployment hooks.

use readiness::likely_holder;

use super::super::checked_object::CheckedObject;
use super::super::finding::{DoctorFinding, DoctorSeverity};
use super::super::inventory::DoctorInventory;
use crate::limits::STUCK_AFTER;

pub(super) const CHECK_NAME: &str = "stuck-deletion";

const HOOK_ANNOTATIONS: [&str; 2] = ["argocd.argoproj.io/hook", "helm.sh/hook"];

pub(super) fn run_check(world: &DoctorInventory) -> Vec<DoctorFinding> {
    world.objects.iter().filter_map(|seen| check_object(world, seen)).collect()
}

fn check_object(world: &DoctorInventory, seen: &CheckedObject) -> Option<DoctorFinding> {
    let since = seen.meta.deleted?;
    let first = seen.meta.finalizers.first()?;
    let hook = HOOK_ANNOTATIONS.iter().find(|key| seen.has_annotation(key));
    let long = world.now - since > STUCK_AFTER;
    // A finished hook has nothing left to wait for.
    if !(long || (hook.is_some() && seen.ended)) {
        return None;
    }
    let severity = if hook.is_some() { DoctorSeverity::Error } else { DoctorSeverity::Warning };
    let what = match (hook, seen.ended) {
        (Some(hook), true) => format!("a finished hook ({hook}), "),
        (Some(hook), false) => format!("a hook ({hook}), "),
        (None, _) => String::new(),
    };
    let names = seen.meta.finalizers.iter().map(|name| {
        let likely = likely_holder(name).map(|known| format!("likely {}", known.who));
        let manager = seen
            .finalizer_managers
            .iter()
            .find(|(held, _)| **held == **name)
            .map(|(_, by)| format!("set by {by}"));
        let who: Vec<String> = likely.into_iter().chain(manager).collect();
        if who.is_empty() { name.to_string() } else { format!("{name} ({})", who.join(", ")) }
    });
    let names = names.collect::<Vec<_>>().join(", ");
    let waits = likely_holder(first).map_or(
        "the controller that set the finalizer; check that it runs, and its log for this object",
        |known| known.waits,
    );
    Some(
        DoctorFinding::new(severity, CHECK_NAME, seen.display_title())
            .with_evidence(format!("{what}being deleted since {since}, held by {names}"))
            .with_fix(format!(
                "waits for: {waits}. Remove a finalizer by hand only if its controller is \
                 permanently gone: it leaves behind what it would have cleaned up"
            ))
            .with_patch(seen.object_ref().release_command(0, first)),
    )
}

#[cfg(test)]
mod tests {
    use super::super::support::{describe_findings, object, world};
    use super::*;
    use serde_json::{Value, json};

    fn job(since: &str, hook: bool, ended: bool) -> Value {
        let annotations = if hook { json!({ "argocd.argoproj.io/hook": "PreSync" }) } else { json!({}) };
        let metadata = json!({ "deletionTimestamp": since, "annotations": annotations,
            "finalizers": ["argocd.argoproj.io/hook-finalizer"] });
        let conditions = if ended { json!([{ "type": "Complete", "status": "True" }]) } else { json!([]) };
        object("Job", "seed", &metadata, &json!({ "conditions": conditions }))
    }

    #[test]
    fn a_hook_that_has_ended_is_stuck_at_once_and_anything_else_beyond_the_limit() {
        let (long_ago, just_now) = ("2026-01-01T12:00:00Z", "2026-01-01T23:59:00Z");
        for (since, hook, ended, expected) in [
            (just_now, true, true, vec!["error Job shop/seed"]),
            (just_now, true, false, vec![]),
            (just_now, false, true, vec![]),
            (long_ago, true, false, vec!["error Job shop/seed"]),
            (long_ago, false, true, vec!["warning Job shop/seed"]),
        ] {
            let found = run_check(&world(&[job(since, hook, ended)]));
            assert_eq!(describe_findings(&found), expected, "{since} {hook} {ended}");
            assert!(found.iter().all(|finding| finding.evidence.contains("likely Argo CD")));
        }
    }
}

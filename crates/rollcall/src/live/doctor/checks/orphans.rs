//! Rollcall's conditions that no policy keeps up to date any more.

use super::super::checked_object::CheckedObject;
use super::super::finding::{DoctorFinding, DoctorSeverity};
use super::super::inventory::DoctorInventory;
use inspect::kubectl::shell_quote;
use policy::GROUP_KIND;

pub(super) const CHECK_NAME: &str = "orphaned-entry";

pub(super) fn run_check(world: &DoctorInventory) -> Vec<DoctorFinding> {
    let kept = |seen: &CheckedObject| {
        let mut writing = world.policies.iter().filter(|(_, policy)| !policy.shadow);
        // What the service says of its own objects needs no policy.
        seen.group == GROUP_KIND.0 || writing.any(|(_, policy)| world.is_parent(policy, seen) != Some(false))
    };
    // A policy that cannot be read might be the one that writes them.
    let unsure =
        !world.invalid_policies.is_empty() || world.unread.contains_key("ReadinessPolicy.rollcall.dev");
    let severity = if unsure { DoctorSeverity::Info } else { DoctorSeverity::Warning };
    let orphans = world.objects.iter().filter(|seen| !seen.own_conditions.is_empty() && !kept(seen));
    orphans.map(|seen| orphan_finding(severity, seen)).collect()
}

fn orphan_finding(severity: DoctorSeverity, seen: &CheckedObject) -> DoctorFinding {
    let finding = DoctorFinding::new(severity, CHECK_NAME, seen.display_title())
        .with_evidence(format!(
            "its condition {} was written by Rollcall, but it is no longer a parent in any policy that writes",
            seen.own_conditions.join(", ")
        ))
        .with_fix("remove them, as readers still trust them: `rollcall release` does so if the policy still exists");
    let Some(ops) = &seen.release else { return finding };
    let part = if seen.without_status_subresource { "" } else { " --subresource=status" };
    let body = String::from_utf8_lossy(&watcher::status::patch_body(ops)).into_owned();
    let command = seen.object_ref().command_for("patch");
    finding
        .with_patch(format!("{command}{part} --field-manager=rollcall --type=json -p {}", shell_quote(&body)))
}

#[cfg(test)]
mod tests {
    use super::super::support::{describe_findings, in_namespaces, object, policy, world};
    use super::*;
    use serde_json::json;

    #[test]
    fn what_no_policy_keeps_up_to_date_is_found_with_the_patch_that_takes_it_off() {
        let entry = json!({ "type": "Ready", "status": "True", "reason": "AllChildrenReady", "message": "1 of 1 ready",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let db = object("Database", "db", &json!({}), &json!({ "conditions": [entry] }));
        let mut world = world(&[db]);
        assert!(run_check(&world).is_empty(), "a policy keeps it");
        world.policies = vec![policy("Database", &json!({ "mode": "shadow" }))];
        assert_eq!(describe_findings(&run_check(&world)), ["warning Database shop/db"]);
        world.policies.clear();
        let found = run_check(&world);
        assert_eq!(describe_findings(&found), ["warning Database shop/db"]);
        let patch = found[0].patch.as_deref().unwrap();
        assert!(
            patch.contains("--subresource=status")
                && patch.contains(r#""op":"remove","path":"/status/conditions""#),
            "{patch}"
        );
        world.invalid_policies.push(("databases".to_owned(), "odd".to_owned()));
        assert_eq!(describe_findings(&run_check(&world)), ["info Database shop/db"]);
    }

    #[test]
    fn what_rollcall_says_of_its_own_objects_is_no_orphan() {
        let entry = |kind: &str, reason: &str| {
            json!({ "type": kind, "status": "True", "reason": reason, "message": "", "observedGeneration": 2,
                "lastTransitionTime": "2026-01-01T00:00:00Z" })
        };
        let conditions = [entry("Accepted", "Accepted"), entry("Ready", "AllChildrenReady")];
        let own = |kind: &str| {
            let mut own = object(kind, "databases", &json!({}), &json!({ "conditions": conditions }));
            own["apiVersion"] = json!("rollcall.dev/v1alpha1");
            own
        };
        assert_eq!(run_check(&world(&[own("ReadinessPolicy"), own("ReadinessGroup")])), []);
    }

    #[test]
    fn a_parent_in_a_namespace_that_its_policy_leaves_out_is_an_orphan() {
        let entry = json!({ "type": "Ready", "status": "True", "reason": "AllChildrenReady", "message": "1 of 1 ready",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let mut world =
            in_namespaces(&object("Database", "db", &json!({}), &json!({ "conditions": [entry] })));
        let orphans = ["warning Database left-out/db", "warning Database unlabelled/db"];
        assert_eq!(describe_findings(&run_check(&world)), orphans);
        world.namespace_labels = None;
        assert_eq!(run_check(&world), [], "any of them may be a parent");
    }
}

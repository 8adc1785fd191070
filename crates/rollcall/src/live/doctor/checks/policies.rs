//! Policies without any effect.

use policy::CompiledPolicy;

use super::super::finding::{DoctorFinding, DoctorSeverity};
use super::super::inventory::DoctorInventory;

pub(super) const CHECK_NAME: &str = "policy";

pub(super) fn run_check(world: &DoctorInventory) -> Vec<DoctorFinding> {
    let broken = world.invalid_policies.iter().map(|(name, why)| {
        policy_finding(DoctorSeverity::Error, name)
            .with_evidence(format!("it is not valid: {why}"))
            .with_fix("rollcall check -f POLICY names the line")
    });
    let findings = world.service_conditions.iter().map(|(name, words)| {
        policy_finding(DoctorSeverity::Error, name)
            .with_evidence(format!("the service reports {words}"))
            .with_fix("kubectl describe readinesspolicy shows since when")
    });
    let idle = world.policies.iter().filter_map(|(name, policy)| without_parents(world, name, policy));
    let lost = world.policies.iter().flat_map(|(name, policy)| missing_child_kinds(world, name, policy));
    broken.chain(findings).chain(idle).chain(lost).collect()
}

fn policy_finding(severity: DoctorSeverity, name: &str) -> DoctorFinding {
    DoctorFinding::new(severity, CHECK_NAME, format!("ReadinessPolicy {name}"))
}

/// Returns a finding if the policy has no parent.
fn without_parents(world: &DoctorInventory, name: &str, policy: &CompiledPolicy) -> Option<DoctorFinding> {
    let (group, kind) = (&policy.parent.group, &policy.parent.kind);
    let key = (group.clone(), kind.clone());
    if world.unserved_kinds.contains(&key) {
        return Some(
            policy_finding(DoctorSeverity::Error, name)
                .with_evidence(format!("the cluster serves no {kind} of group {group:?}"))
                .with_fix("install its CRD, or correct spec.parent"),
        );
    }
    let of_kind = world.objects.iter().filter(|seen| seen.is_kind(group, kind));
    let (mut all, mut matching) = (0_usize, 0_usize);
    for seen in of_kind {
        all += 1;
        matching += usize::from(world.is_parent(policy, seen) != Some(false));
    }
    if matching > 0 || !world.fully_listed.contains(&key) {
        return None;
    }
    let fix = "none if they will be created later; otherwise correct spec.parent";
    Some(
        policy_finding(DoctorSeverity::Warning, name)
            .with_evidence(format!("it matches none of {all} {kind} objects"))
            .with_fix(fix),
    )
}

/// Returns a finding for each kind of children that is not installed.
fn missing_child_kinds(world: &DoctorInventory, name: &str, policy: &CompiledPolicy) -> Vec<DoctorFinding> {
    let gone = |kind: &&api::policy::KindRef| {
        world.unserved_kinds.contains(&(kind.group.clone(), kind.kind.clone()))
    };
    let kinds = policy.groups.iter().map(|group| &group.kind).filter(gone);
    let findings = kinds.map(|kind| {
        policy_finding(DoctorSeverity::Warning, name)
            .with_evidence(format!(
                "the cluster serves no {} of group {:?}: it counts as zero children",
                kind.kind, kind.group
            ))
            .with_fix("install its CRD, or remove the kind from spec.children")
    });
    findings.collect()
}

#[cfg(test)]
mod tests {
    use super::super::support::{describe_findings, in_namespaces, object, policy, world};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_policy_without_parents_is_found() {
        assert_eq!(describe_findings(&run_check(&world(&[]))), ["warning ReadinessPolicy databases"]);
        let mut narrow = world(&[object("Database", "db", &json!({}), &json!({}))]);
        assert!(run_check(&narrow).is_empty());
        let selector = json!({ "parent": { "group": "example.com", "kind": "Database",
            "selector": { "matchLabels": { "tier": "gold" } } } });
        narrow.policies = vec![policy("Database", &selector)];
        assert_eq!(describe_findings(&run_check(&narrow)), ["warning ReadinessPolicy databases"]);
        // A single namespace is not enough to tell.
        narrow.fully_listed.clear();
        assert!(run_check(&narrow).is_empty());
    }

    #[test]
    fn a_policy_whose_namespaces_have_no_parents_is_found() {
        let mut world = in_namespaces(&object("Database", "db", &json!({}), &json!({})));
        assert_eq!(run_check(&world), []);
        world.objects.retain(|seen| &*seen.meta.namespace != "chosen");
        let found = run_check(&world);
        assert_eq!(describe_findings(&found), ["warning ReadinessPolicy databases"]);
        assert!(found[0].evidence.contains("none of 2 Database objects"), "{found:?}");
        world.namespace_labels = None;
        assert_eq!(run_check(&world), [], "it may choose all of them");
    }

    #[test]
    fn kinds_that_are_not_installed_and_policies_that_are_not_valid_are_named() {
        let mut world = world(&[]);
        world.unserved_kinds.insert(("example.com".to_owned(), "Database".to_owned()));
        world.invalid_policies.push(("odd".to_owned(), "spec.quorum: 150%".to_owned()));
        world
            .service_conditions
            .push(("twin".to_owned(), "Accepted=False, Conflict: another has it".to_owned()));
        let expected = ["odd", "twin", "databases"].map(|name| format!("error ReadinessPolicy {name}"));
        assert_eq!(describe_findings(&run_check(&world)), expected);
    }
}

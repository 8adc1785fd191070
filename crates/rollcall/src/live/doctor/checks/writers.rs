//! Other field managers that write a policy's condition.

use policy::CompiledPolicy;

use super::super::checked_object::CheckedObject;
use super::super::finding::{DoctorFinding, DoctorSeverity};
use super::super::inventory::DoctorInventory;

pub(super) const CHECK_NAME: &str = "condition-owner";

pub(super) fn run_check(world: &DoctorInventory) -> Vec<DoctorFinding> {
    let mut found = Vec::new();
    for (name, policy) in world.policies.iter().filter(|(_, policy)| !policy.shadow) {
        for seen in world.objects.iter().filter(|seen| world.is_parent(policy, seen) == Some(true)) {
            found.extend(owned_condition(name, policy, seen).or_else(|| rewritten_list(seen)));
            found.extend(seen.unwritable.map(|why| {
                DoctorFinding::new(DoctorSeverity::Error, CHECK_NAME, seen.display_title())
                    .with_evidence(format!("{why}: no condition can be written"))
                    .with_fix("change its operator to write a status with a list of conditions")
            }));
        }
    }
    found
}

fn owned_condition(name: &str, policy: &CompiledPolicy, seen: &CheckedObject) -> Option<DoctorFinding> {
    let (_, manager) = seen.foreign_conditions.iter().find(|(kind, _)| *kind == policy.condition)?;
    let by = if manager.is_empty() {
        "another field manager".to_owned()
    } else {
        format!("field manager {manager}")
    };
    let finding = |severity| DoctorFinding::new(severity, CHECK_NAME, seen.display_title());
    let evidence = format!("its condition {} belongs to {by}", policy.condition);
    Some(match (&policy.fallback, policy.takeover) {
        (_, true) => finding(DoctorSeverity::Warning)
            .with_evidence(format!("{evidence}; policy {name} takes it over, and both may keep overwriting each other"))
            .with_fix("stop the other field manager from writing it"),
        (Some(fallback), _) => finding(DoctorSeverity::Info)
            .with_evidence(format!("{evidence}; policy {name} writes {fallback} instead"))
            .with_fix(format!("let readers use {fallback}")),
        (None, false) => finding(DoctorSeverity::Error)
            .with_evidence(format!("{evidence}: policy {name} writes no condition on it"))
            .with_fix("set another type in spec.condition.fallback, or stop the other field manager from writing this one"),
    })
}

/// Returns a finding if Rollcall's condition is in a list that another manager writes as a whole.
fn rewritten_list(seen: &CheckedObject) -> Option<DoctorFinding> {
    if seen.own_conditions.is_empty() {
        return None;
    }
    let other = seen
        .managers
        .iter()
        .find(|writer| writer.owns_conditions && writer.name != watcher::status::FIELD_MANAGER)?;
    Some(
        DoctorFinding::new(DoctorSeverity::Warning, CHECK_NAME, seen.display_title())
            .with_evidence(format!("field manager {} writes status.conditions as one list: each write drops the conditions of others", other.name))
            .with_fix("change it to patch its own conditions only; with a list-map in the CRD it can apply them"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::support::{describe_findings, in_namespaces, object, policy, world};
    use super::*;
    use serde_json::{Value, json};

    fn database(manager: &str, reason: &str, owned: &Value) -> Value {
        let entry = json!({ "type": "Ready", "status": "True", "reason": reason, "message": "1 of 1 ready",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let fields = json!([{ "manager": manager, "operation": "Update", "subresource": "status",
            "fieldsV1": { "f:status": { "f:conditions": owned } } }]);
        object("Database", "db", &json!({ "managedFields": fields }), &json!({ "conditions": [entry] }))
    }

    fn found(rest: &Value, database: Value) -> Vec<String> {
        let mut world = world(&[database]);
        world.policies = vec![policy("Database", rest)];
        describe_findings(&run_check(&world))
    }

    #[test]
    fn whoever_has_our_condition_is_named() {
        let foreign = || database("kopf", "Created", &json!({ "k:{\"type\":\"Ready\"}": {} }));
        assert_eq!(found(&json!({}), foreign()), ["error Database shop/db"]);
        assert_eq!(
            found(&json!({ "condition": { "fallback": "ChildrenReady" } }), foreign()),
            ["info Database shop/db"]
        );
        assert_eq!(
            found(&json!({ "condition": { "takeover": true } }), foreign()),
            ["warning Database shop/db"]
        );
        assert!(found(&json!({ "mode": "shadow" }), foreign()).is_empty());
    }

    #[test]
    fn only_parents_that_the_policy_chooses_are_looked_at() {
        let mut world = in_namespaces(&database("kopf", "Created", &json!({ "k:{\"type\":\"Ready\"}": {} })));
        assert_eq!(describe_findings(&run_check(&world)), ["error Database chosen/db"]);
        world.namespace_labels = None;
        assert_eq!(run_check(&world), [], "nobody knows whose they are");
    }

    #[test]
    fn whoever_writes_the_list_as_a_whole_is_named() {
        assert_eq!(
            found(&json!({}), database("kopf", "AllChildrenReady", &json!({}))),
            ["warning Database shop/db"]
        );
        let own = json!({ "k:{\"type\":\"Ready\"}": {} });
        assert!(found(&json!({}), database("rollcall", "AllChildrenReady", &own)).is_empty());
    }
}

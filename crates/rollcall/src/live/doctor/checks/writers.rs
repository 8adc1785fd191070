//! Others who write the condition that a policy is to write.

use controller::policies::Compiled;

use super::super::finding::{Finding, Severity};
use super::super::seen::Seen;
use super::super::world::World;

pub(super) const NAME: &str = "condition-owner";

pub(super) fn check(world: &World) -> Vec<Finding> {
    let mut found = Vec::new();
    for (name, policy) in world.policies.iter().filter(|(_, policy)| !policy.shadow) {
        let (group, kind) = (&policy.parent.group, &policy.parent.kind);
        let parents = world
            .objects
            .iter()
            .filter(|seen| seen.is(group, kind) && policy.selector.matches(&seen.meta.labels));
        for seen in parents {
            found.extend(owned(name, policy, seen).or_else(|| rewritten(seen)));
            found.extend(seen.unwritable.map(|why| {
                Finding::new(Severity::Error, NAME, seen.title())
                    .because(format!("{why}: no condition can be written"))
                    .fix("its operator has to write a status with a list of conditions")
            }));
        }
    }
    found
}

fn owned(name: &str, policy: &Compiled, seen: &Seen) -> Option<Finding> {
    let (_, manager) = seen.foreign.iter().find(|(kind, _)| *kind == policy.condition)?;
    let by = if manager.is_empty() { "somebody else".to_owned() } else { format!("field manager {manager}") };
    let finding = |severity| Finding::new(severity, NAME, seen.title());
    let evidence = format!("its condition {} belongs to {by}", policy.condition);
    Some(match (&policy.fallback, policy.takeover) {
        (_, true) => finding(Severity::Warning)
            .because(format!("{evidence}; policy {name} takes it over, and they may fight"))
            .fix("keep the other from writing it"),
        (Some(fallback), _) => finding(Severity::Info)
            .because(format!("{evidence}; policy {name} writes {fallback} instead"))
            .fix(format!("readers have to look at {fallback}")),
        (None, false) => finding(Severity::Error)
            .because(format!("{evidence}: policy {name} says nothing on it"))
            .fix("name another type in spec.condition.fallback, or keep the other from writing this one"),
    })
}

/// Our entry stands in a list that another writes as a whole.
fn rewritten(seen: &Seen) -> Option<Finding> {
    if seen.ours.is_empty() {
        return None;
    }
    let other =
        seen.managers.iter().find(|writer| writer.conditions && writer.name != watcher::status::MANAGER)?;
    Some(
        Finding::new(Severity::Warning, NAME, seen.title())
            .because(format!("field manager {} writes status.conditions as one list: it drops the entries of others at each write", other.name))
            .fix("it should patch its own entries only; a list-map in the CRD lets it apply them"),
    )
}

#[cfg(test)]
mod tests {
    use super::super::support::{object, policy, told, world};
    use super::*;
    use serde_json::{Value, json};

    fn database(manager: &str, reason: &str, owned: &Value) -> Value {
        let entry = json!({ "type": "Ready", "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let fields = json!([{ "manager": manager, "operation": "Update", "subresource": "status",
            "fieldsV1": { "f:status": { "f:conditions": owned } } }]);
        object("Database", "db", &json!({ "managedFields": fields }), &json!({ "conditions": [entry] }))
    }

    fn found(rest: &Value, database: Value) -> Vec<String> {
        let mut world = world(&[database]);
        world.policies = vec![policy("Database", rest)];
        told(&check(&world))
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
    fn whoever_writes_the_list_as_a_whole_is_named() {
        assert_eq!(
            found(&json!({}), database("kopf", "AllChildrenReady", &json!({}))),
            ["warning Database shop/db"]
        );
        let own = json!({ "k:{\"type\":\"Ready\"}": {} });
        assert!(found(&json!({}), database("rollcall", "AllChildrenReady", &own)).is_empty());
    }
}

//! Entries of ours that nobody keeps up to date any more.

use super::super::finding::{Finding, Severity};
use super::super::seen::Seen;
use super::super::world::World;
use controller::inspect::command::quoted;

pub(super) const NAME: &str = "orphaned-entry";

pub(super) fn check(world: &World) -> Vec<Finding> {
    let kept = |seen: &&Seen| {
        world.policies.iter().any(|(_, policy)| {
            !policy.shadow
                && seen.is(&policy.parent.group, &policy.parent.kind)
                && policy.selector.matches(&seen.meta.labels)
        })
    };
    // A policy that cannot be read might be the one that keeps them.
    let unsure = !world.broken.is_empty() || world.unread.contains_key("ReadinessPolicy.rollcall.dev");
    let severity = if unsure { Severity::Info } else { Severity::Warning };
    let orphans = world.objects.iter().filter(|seen| !seen.ours.is_empty() && !kept(seen));
    orphans.map(|seen| finding(severity, seen)).collect()
}

fn finding(severity: Severity, seen: &Seen) -> Finding {
    let finding = Finding::new(severity, NAME, seen.title())
        .because(format!(
            "its condition {} was written by Rollcall, and no policy that writes has it for a parent",
            seen.ours.join(", ")
        ))
        .fix("take them off: readers believe them. `rollcall release` does so where the policy still exists");
    let Some(ops) = &seen.release else { return finding };
    let part = if seen.flat { "" } else { " --subresource=status" };
    let body = String::from_utf8_lossy(&watcher::status::patch_body(ops)).into_owned();
    let command = seen.object().kubectl("patch");
    finding.by(format!("{command}{part} --field-manager=rollcall --type=json -p {}", quoted(&body)))
}

#[cfg(test)]
mod tests {
    use super::super::support::{object, policy, told, world};
    use super::*;
    use serde_json::json;

    #[test]
    fn what_no_policy_keeps_up_to_date_is_found_with_the_patch_that_takes_it_off() {
        let entry = json!({ "type": "Ready", "status": "True", "reason": "AllChildrenReady", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" });
        let db = object("Database", "db", &json!({}), &json!({ "conditions": [entry] }));
        let mut world = world(&[db]);
        assert!(check(&world).is_empty(), "a policy keeps it");
        world.policies = vec![policy("Database", &json!({ "mode": "shadow" }))];
        assert_eq!(told(&check(&world)), ["warning Database shop/db"]);
        world.policies.clear();
        let found = check(&world);
        assert_eq!(told(&found), ["warning Database shop/db"]);
        let patch = found[0].patch.as_deref().unwrap();
        assert!(
            patch.contains("--subresource=status")
                && patch.contains(r#""op":"remove","path":"/status/conditions/0""#),
            "{patch}"
        );
        world.broken.push(("databases".to_owned(), "odd".to_owned()));
        assert_eq!(told(&check(&world)), ["info Database shop/db"]);
    }
}

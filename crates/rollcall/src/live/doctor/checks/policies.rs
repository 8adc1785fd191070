//! Policies that do nothing.

use controller::policies::Compiled;

use super::super::finding::{Finding, Severity};
use super::super::world::World;

pub(super) const NAME: &str = "policy";

pub(super) fn check(world: &World) -> Vec<Finding> {
    let broken = world.broken.iter().map(|(name, why)| {
        finding(Severity::Error, name)
            .because(format!("it is not valid: {why}"))
            .fix("rollcall check -f POLICY names the line")
    });
    let told = world.told.iter().map(|(name, words)| {
        finding(Severity::Error, name)
            .because(format!("the service says {words}"))
            .fix("kubectl describe readinesspolicy says when")
    });
    let idle = world.policies.iter().filter_map(|(name, policy)| idle(world, name, policy));
    let lost = world.policies.iter().flat_map(|(name, policy)| lost(world, name, policy));
    broken.chain(told).chain(idle).chain(lost).collect()
}

fn finding(severity: Severity, name: &str) -> Finding {
    Finding::new(severity, NAME, format!("ReadinessPolicy {name}"))
}

/// It has no parent.
fn idle(world: &World, name: &str, policy: &Compiled) -> Option<Finding> {
    let (group, kind) = (&policy.parent.group, &policy.parent.kind);
    let key = (group.clone(), kind.clone());
    if world.absent.contains(&key) {
        return Some(
            finding(Severity::Error, name)
                .because(format!("the cluster serves no {kind} of group {group:?}"))
                .fix("install its CRD, or correct spec.parent"),
        );
    }
    let of_kind = world.objects.iter().filter(|seen| seen.is(group, kind));
    let (mut all, mut matching) = (0_usize, 0_usize);
    for seen in of_kind {
        all += 1;
        matching += usize::from(policy.selector.matches(&seen.meta.labels));
    }
    if matching > 0 || !world.whole.contains(&key) {
        return None;
    }
    let fix = "nothing to do if they are still to come; otherwise correct spec.parent";
    Some(
        finding(Severity::Warning, name).because(format!("it matches none of {all} {kind} objects")).fix(fix),
    )
}

/// It waits for children of a kind that is not installed.
fn lost(world: &World, name: &str, policy: &Compiled) -> Vec<Finding> {
    let gone = |kind: &&api::policy::KindRef| world.absent.contains(&(kind.group.clone(), kind.kind.clone()));
    let kinds = policy.groups.iter().map(|group| &group.kind).filter(gone);
    let told = kinds.map(|kind| {
        finding(Severity::Warning, name)
            .because(format!(
                "the cluster serves no {} of group {:?}: it counts as zero children",
                kind.kind, kind.group
            ))
            .fix("install its CRD, or take the kind out of spec.children")
    });
    told.collect()
}

#[cfg(test)]
mod tests {
    use super::super::support::{object, policy, told, world};
    use super::*;
    use serde_json::json;

    #[test]
    fn a_policy_without_parents_is_found() {
        assert_eq!(told(&check(&world(&[]))), ["warning ReadinessPolicy databases"]);
        let mut narrow = world(&[object("Database", "db", &json!({}), &json!({}))]);
        assert!(check(&narrow).is_empty());
        let selector = json!({ "parent": { "group": "example.com", "kind": "Database",
            "selector": { "matchLabels": { "tier": "gold" } } } });
        narrow.policies = vec![policy("Database", &selector)];
        assert_eq!(told(&check(&narrow)), ["warning ReadinessPolicy databases"]);
        // One namespace alone cannot tell.
        narrow.whole.clear();
        assert!(check(&narrow).is_empty());
    }

    #[test]
    fn kinds_that_are_not_installed_and_policies_that_are_not_valid_are_named() {
        let mut world = world(&[]);
        world.absent.insert(("example.com".to_owned(), "Database".to_owned()));
        world.broken.push(("odd".to_owned(), "spec.quorum: 150%".to_owned()));
        world.told.push(("twin".to_owned(), "Accepted=False, Conflict: another has it".to_owned()));
        let expected = ["odd", "twin", "databases"].map(|name| format!("error ReadinessPolicy {name}"));
        assert_eq!(told(&check(&world)), expected);
    }
}

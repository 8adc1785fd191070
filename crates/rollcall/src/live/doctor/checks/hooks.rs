//! What hangs in deletion behind a finalizer, hooks of a deployment above all.

use readiness::holder;

use super::super::STUCK_AFTER;
use super::super::finding::{Finding, Severity};
use super::super::seen::Seen;
use super::super::world::World;

pub(super) const NAME: &str = "stuck-deletion";

const HOOKS: [&str; 2] = ["argocd.argoproj.io/hook", "helm.sh/hook"];

pub(super) fn check(world: &World) -> Vec<Finding> {
    world.objects.iter().filter_map(|seen| about(world, seen)).collect()
}

fn about(world: &World, seen: &Seen) -> Option<Finding> {
    let since = seen.meta.deleted?;
    let first = seen.meta.finalizers.first()?;
    let hook = HOOKS.iter().find(|key| seen.annotated(key));
    let long = world.now - since > STUCK_AFTER;
    // A hook that has ended has nothing left to wait for.
    if !(long || (hook.is_some() && seen.ended)) {
        return None;
    }
    let severity = if hook.is_some() { Severity::Error } else { Severity::Warning };
    let what = match (hook, seen.ended) {
        (Some(hook), true) => format!("a hook ({hook}) that has ended, "),
        (Some(hook), false) => format!("a hook ({hook}), "),
        (None, _) => String::new(),
    };
    let names = seen.meta.finalizers.iter().map(|name| {
        let likely = holder(name).map(|known| format!("likely {}", known.who));
        let manager =
            seen.holders.iter().find(|(held, _)| **held == **name).map(|(_, by)| format!("set by {by}"));
        let who: Vec<String> = likely.into_iter().chain(manager).collect();
        if who.is_empty() { name.to_string() } else { format!("{name} ({})", who.join(", ")) }
    });
    let names = names.collect::<Vec<_>>().join(", ");
    let waits = holder(first).map_or("whether its holder runs, and what its log says", |known| known.waits);
    Some(
        Finding::new(severity, NAME, seen.title())
            .because(format!("{what}being deleted since {since}, held by {names}"))
            .fix(format!("look at: {waits}. By hand only where the holder is gone for good: what it was to clean up stays behind"))
            .by(seen.object().release(0, first)),
    )
}

#[cfg(test)]
mod tests {
    use super::super::support::{object, told, world};
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
            let found = check(&world(&[job(since, hook, ended)]));
            assert_eq!(told(&found), expected, "{since} {hook} {ended}");
            assert!(found.iter().all(|finding| finding.evidence.contains("likely Argo CD")));
        }
    }
}

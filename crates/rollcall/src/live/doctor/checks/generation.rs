//! `status.observedGeneration` that readers cannot read, or that nobody keeps.

use super::super::STUCK_AFTER;
use super::super::finding::{Finding, Severity};
use super::super::seen::{Observed, Seen};
use super::super::world::{World, kind_of};

pub(super) const NAME: &str = "observed-generation";

pub(super) fn check(world: &World) -> Vec<Finding> {
    let custom: Vec<_> = world.crds.iter().filter_map(kind_of).collect();
    let is_custom = |seen: &&Seen| custom.iter().any(|(group, kind)| seen.is(group, kind));
    world.objects.iter().filter(is_custom).filter_map(|seen| about(world, seen)).collect()
}

fn about(world: &World, seen: &Seen) -> Option<Finding> {
    let generation = seen.meta.generation;
    let finding = |severity| Finding::new(severity, NAME, seen.title());
    match &seen.observed {
        Observed::Odd(text) => Some(
            finding(Severity::Warning)
                .because(format!("status.observedGeneration is {text}, which is no number: readers that go by kstatus report an error"))
                .fix("its operator has to write a number; the CRD should declare the field as an integer"),
        ),
        Observed::Number(observed) if *observed > generation => Some(
            finding(Severity::Warning)
                .because(format!("status.observedGeneration is {observed}, metadata.generation is {generation}: as after a restore; readers that go by kstatus wait for ever"))
                .fix("its operator has to write the status anew; or clear the field"),
        ),
        // Zero is what a schema's default says before anybody has.
        Observed::Number(observed) if *observed != 0 && *observed < generation => {
            let changed = seen.changed()?;
            (world.now - changed > STUCK_AFTER).then(|| {
                finding(Severity::Error)
                    .because(format!("status.observedGeneration is {observed}, metadata.generation is {generation}, and its spec has not changed since {changed}"))
                    .fix("is its operator running? until it writes the field, nobody may call the object ready")
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{object, told, world};
    use super::*;
    use serde_json::{Value, json};

    fn database(observed: &Value, changed: &str) -> Value {
        let fields = json!([{ "manager": "kubectl", "operation": "Update", "time": changed, "fieldsV1": { "f:spec": {} } }]);
        object(
            "Database",
            "db",
            &json!({ "managedFields": fields }),
            &json!({ "observedGeneration": observed }),
        )
    }

    #[test]
    fn a_generation_that_is_odd_ahead_or_long_stale_is_found() {
        let (long_ago, just_now) = ("2026-01-01T12:00:00Z", "2026-01-01T23:59:00Z");
        for (observed, changed, expected) in [
            (json!("2"), long_ago, vec!["warning Database shop/db"]),
            (json!(3), long_ago, vec!["warning Database shop/db"]),
            (json!(1), long_ago, vec!["error Database shop/db"]),
            (json!(1), just_now, vec![]),
            (json!(2), long_ago, vec![]),
            (json!(0), long_ago, vec![]),
            (json!(null), long_ago, vec![]),
        ] {
            assert_eq!(
                told(&check(&world(&[database(&observed, changed)]))),
                expected,
                "{observed} {changed}"
            );
        }
    }
}

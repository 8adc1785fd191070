//! `status.observedGeneration` in a form that readers do not understand, or that no controller updates.

use super::super::checked_object::{CheckedObject, ReportedGeneration};
use super::super::finding::{DoctorFinding, DoctorSeverity};
use super::super::inventory::{DoctorInventory, crd_kind};
use crate::limits::STUCK_AFTER;

pub(super) const CHECK_NAME: &str = "observed-generation";

pub(super) fn run_check(world: &DoctorInventory) -> Vec<DoctorFinding> {
    let custom: Vec<_> = world.crds.iter().filter_map(crd_kind).collect();
    let is_custom = |seen: &&CheckedObject| custom.iter().any(|(group, kind)| seen.is_kind(group, kind));
    world.objects.iter().filter(is_custom).filter_map(|seen| check_object(world, seen)).collect()
}

fn check_object(world: &DoctorInventory, seen: &CheckedObject) -> Option<DoctorFinding> {
    let generation = seen.meta.generation;
    let finding = |severity| DoctorFinding::new(severity, CHECK_NAME, seen.display_title());
    match &seen.observed {
        ReportedGeneration::Odd(text) => Some(
            finding(DoctorSeverity::Warning)
                .with_evidence(format!("status.observedGeneration is {text}, which is not a number: readers that follow kstatus report an error"))
                .with_fix("change its operator to write a number, and declare the field as an integer in the CRD"),
        ),
        ReportedGeneration::Number(observed) if *observed > generation => Some(
            finding(DoctorSeverity::Warning)
                .with_evidence(format!("status.observedGeneration is {observed}, metadata.generation is {generation}: as after a restore; readers that follow kstatus wait forever"))
                .with_fix("let its operator write the status again, or clear the field"),
        ),
        // Zero is the schema's default before any controller has written it.
        ReportedGeneration::Number(observed) if *observed != 0 && *observed < generation => {
            let changed = seen.spec_changed_at()?;
            (world.now - changed > STUCK_AFTER).then(|| {
                finding(DoctorSeverity::Error)
                    .with_evidence(format!("status.observedGeneration is {observed}, metadata.generation is {generation}, and its spec has not changed since {changed}"))
                    .with_fix("check that its operator is running: until it writes the field, the object does not count as ready")
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::support::{describe_findings, object, world};
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
                describe_findings(&run_check(&world(&[database(&observed, changed)]))),
                expected,
                "{observed} {changed}"
            );
        }
    }
}

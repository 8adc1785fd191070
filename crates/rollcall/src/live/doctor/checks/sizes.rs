//! Objects near a size limit of the server: beyond it every write fails, also one that would shrink the object.

use super::super::checked_object::CheckedObject;
use super::super::finding::{DoctorFinding, DoctorSeverity};
use super::super::inventory::DoctorInventory;

pub(super) const CHECK_NAME: &str = "size";

/// Limit of all annotations of an object together: `TotalAnnotationSizeLimitB` of Kubernetes.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;
/// Default limit of an etcd request (`--max-request-bytes`).
const MAX_OBJECT_BYTES: usize = 1_572_864;

pub(super) fn run_check(world: &DoctorInventory) -> Vec<DoctorFinding> {
    world
        .objects
        .iter()
        .flat_map(|seen| check_annotations(seen).into_iter().chain(check_object(seen)))
        .collect()
}

/// Returns a warning from three quarters of the limit on, an error from nine tenths on.
fn size_severity(size: usize, limit: usize) -> Option<DoctorSeverity> {
    match size * 100 / limit {
        0..75 => None,
        75..90 => Some(DoctorSeverity::Warning),
        _ => Some(DoctorSeverity::Error),
    }
}

fn check_annotations(seen: &CheckedObject) -> Option<DoctorFinding> {
    let total: usize = seen.annotations.iter().map(|(key, size)| key.len() + size).sum();
    let severity = size_severity(total, MAX_ANNOTATION_BYTES)?;
    let (key, size) = seen.annotations.iter().max_by_key(|(_, size)| *size)?;
    let fix = if key.ends_with("/last-handled-configuration") {
        "Kopf stores the whole spec in it: configure the operator to use \
             StatusDiffBaseStorage, or to ignore large fields in its diff base"
    } else if key == "kubectl.kubernetes.io/last-applied-configuration" {
        "apply it with `kubectl apply --server-side`, which needs no such annotation"
    } else {
        "change its writer to store less in it"
    };
    let evidence = format!(
        "its annotations have {} of at most {}; {key} alone has {}",
        format_kib(total),
        format_kib(MAX_ANNOTATION_BYTES),
        format_kib(*size)
    );
    Some(DoctorFinding::new(severity, CHECK_NAME, seen.display_title()).with_evidence(evidence).with_fix(fix))
}

fn check_object(seen: &CheckedObject) -> Option<DoctorFinding> {
    let bytes = seen.bytes?;
    let severity = size_severity(bytes, MAX_OBJECT_BYTES)?;
    let evidence = format!(
        "it has {} as JSON; etcd takes {} by default",
        format_kib(bytes),
        format_kib(MAX_OBJECT_BYTES)
    );
    let fix = "store history, logs or results elsewhere";
    Some(DoctorFinding::new(severity, CHECK_NAME, seen.display_title()).with_evidence(evidence).with_fix(fix))
}

fn format_kib(bytes: usize) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}

#[cfg(test)]
mod tests {
    use super::super::support::{describe_findings, object, world};
    use super::*;
    use serde_json::json;

    #[test]
    fn what_comes_near_a_limit_is_found_and_the_largest_annotation_named() {
        let key = "kopf.zalando.org/last-handled-configuration";
        for (size, expected) in [
            (100_000, vec![]),
            (200_000, vec!["warning Database shop/db"]),
            (250_000, vec!["error Database shop/db"]),
        ] {
            let metadata = json!({ "annotations": { key: "x".repeat(size), "small": "y" } });
            let found = run_check(&world(&[object("Database", "db", &metadata, &json!({}))]));
            assert_eq!(describe_findings(&found), expected, "{size}");
            assert!(found.iter().all(|finding| finding.fix.contains("StatusDiffBaseStorage")));
        }
    }

    #[test]
    fn an_object_near_what_etcd_takes_is_found() {
        let status = json!({ "history": "x".repeat(1_450_000) });
        assert_eq!(
            describe_findings(&run_check(&world(&[object("Database", "db", &json!({}), &status)]))),
            ["error Database shop/db"]
        );
        let status = json!({ "history": "x".repeat(1_000_000) });
        assert!(run_check(&world(&[object("Database", "db", &json!({}), &status)])).is_empty());
    }
}

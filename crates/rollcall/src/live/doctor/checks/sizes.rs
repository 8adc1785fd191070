//! Objects that grow towards a limit of the server: beyond it every write fails, also the one that would make it smaller.

use super::super::finding::{Finding, Severity};
use super::super::seen::Seen;
use super::super::world::World;

pub(super) const NAME: &str = "size";

/// All annotations of an object together: `TotalAnnotationSizeLimitB` of Kubernetes.
const ANNOTATIONS: usize = 256 * 1024;
/// What etcd takes in one request by default (`--max-request-bytes`).
const OBJECT: usize = 1_572_864;

pub(super) fn check(world: &World) -> Vec<Finding> {
    world.objects.iter().flat_map(|seen| annotations(seen).into_iter().chain(object(seen))).collect()
}

/// From three quarters on it is worth a word, from nine tenths on it is late.
fn severity(size: usize, limit: usize) -> Option<Severity> {
    match size * 100 / limit {
        0..75 => None,
        75..90 => Some(Severity::Warning),
        _ => Some(Severity::Error),
    }
}

fn annotations(seen: &Seen) -> Option<Finding> {
    let total: usize = seen.annotations.iter().map(|(key, size)| key.len() + size).sum();
    let severity = severity(total, ANNOTATIONS)?;
    let (key, size) = seen.annotations.iter().max_by_key(|(_, size)| *size)?;
    let fix = if key.ends_with("/last-handled-configuration") {
        "Kopf keeps the whole spec in it: let the operator use StatusDiffBaseStorage, or ignore large fields in its diff base"
    } else if key == "kubectl.kubernetes.io/last-applied-configuration" {
        "apply it by `kubectl apply --server-side`, which needs no such annotation"
    } else {
        "whoever writes it has to write less"
    };
    let evidence = format!(
        "its annotations have {} of at most {}; {key} alone has {}",
        kib(total),
        kib(ANNOTATIONS),
        kib(*size)
    );
    Some(Finding::new(severity, NAME, seen.title()).because(evidence).fix(fix))
}

fn object(seen: &Seen) -> Option<Finding> {
    let bytes = seen.bytes?;
    let severity = severity(bytes, OBJECT)?;
    let evidence = format!("it has {} as JSON; etcd takes {} by default", kib(bytes), kib(OBJECT));
    let fix = "whoever writes history, logs or results into it has to keep them elsewhere";
    Some(Finding::new(severity, NAME, seen.title()).because(evidence).fix(fix))
}

fn kib(bytes: usize) -> String {
    format!("{} KiB", bytes.div_ceil(1024))
}

#[cfg(test)]
mod tests {
    use super::super::support::{object, told, world};
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
            let found = check(&world(&[object("Database", "db", &metadata, &json!({}))]));
            assert_eq!(told(&found), expected, "{size}");
            assert!(found.iter().all(|finding| finding.fix.contains("StatusDiffBaseStorage")));
        }
    }

    #[test]
    fn an_object_near_what_etcd_takes_is_found() {
        let status = json!({ "history": "x".repeat(1_450_000) });
        assert_eq!(
            told(&check(&world(&[object("Database", "db", &json!({}), &status)]))),
            ["error Database shop/db"]
        );
        let status = json!({ "history": "x".repeat(1_000_000) });
        assert!(check(&world(&[object("Database", "db", &json!({}), &status)])).is_empty());
    }
}

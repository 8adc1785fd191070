//! The checks: each a pure function of the inventory.

mod argocd;
mod crds;
mod generation;
mod hooks;
mod kopf;
mod kopf_outcome;
mod labels;
mod orphans;
mod owners;
mod policies;
mod rights;
mod sizes;
mod writers;

use super::finding::{DoctorFinding, DoctorSeverity};
use super::inventory::DoctorInventory;

/// Maximum number of findings shown per check and severity.
const MAX_FINDINGS_PER_CHECK: usize = 50;

type DoctorCheck = (&'static str, fn(&DoctorInventory) -> Vec<DoctorFinding>);

const ALL_CHECKS: [DoctorCheck; 13] = [
    (argocd::CHECK_NAME, argocd::run_check),
    (crds::CHECK_NAME, crds::run_check),
    (generation::CHECK_NAME, generation::run_check),
    (hooks::CHECK_NAME, hooks::run_check),
    (kopf::CHECK_NAME, kopf::run_check),
    (kopf_outcome::CHECK_NAME, kopf_outcome::run_check),
    (labels::CHECK_NAME, labels::run_check),
    (orphans::CHECK_NAME, orphans::run_check),
    (owners::CHECK_NAME, owners::run_check),
    (policies::CHECK_NAME, policies::run_check),
    (rights::CHECK_NAME, rights::run_check),
    (sizes::CHECK_NAME, sizes::run_check),
    (writers::CHECK_NAME, writers::run_check),
];

/// Runs all checks and returns their findings, worst first.
pub(super) fn run_all_checks(world: &DoctorInventory) -> Vec<DoctorFinding> {
    let mut findings = Vec::new();
    for (name, check) in ALL_CHECKS {
        let mut found = check(world);
        found.sort();
        found.dedup();
        let more = found.len().saturating_sub(MAX_FINDINGS_PER_CHECK);
        found.truncate(MAX_FINDINGS_PER_CHECK);
        if more > 0 {
            let rest = DoctorFinding::new(DoctorSeverity::Info, name, format!("and {more} more"));
            found.push(
                rest.with_evidence("of the same kind; fix these first")
                    .with_fix("-n NAMESPACE shows those of one namespace"),
            );
        }
        findings.extend(found);
    }
    findings.sort();
    findings
}

#[cfg(test)]
mod support {
    use policy::{CompiledPolicy, compile};
    use readiness::Time;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::super::checked_object::CheckedObject;
    use super::*;

    /// 2026-01-02T00:00:00Z
    pub(super) const NOW: Time = Time(1_767_312_000_000);

    pub(super) fn seen(value: &Value) -> CheckedObject {
        let mut seen = CheckedObject::from_json(&RawValue::from_string(value.to_string()).unwrap());
        let api_version = value["apiVersion"].as_str().unwrap_or_default();
        seen.group = api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
        seen.kind = value["kind"].as_str().unwrap_or_default().to_owned();
        seen
    }

    /// Returns an object of a kind in `example.com`, or of a built-in kind, with additional metadata.
    pub(super) fn object(kind: &str, name: &str, metadata: &Value, status: &Value) -> Value {
        let api_version = match kind {
            "Pod" | "Secret" => "v1",
            "Job" => "batch/v1",
            "Deployment" => "apps/v1",
            _ => "example.com/v1",
        };
        let mut meta = json!({ "name": name, "namespace": "shop", "uid": format!("uid-{name}"), "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z" });
        for (key, value) in metadata.as_object().into_iter().flatten() {
            meta[key] = value.clone();
        }
        json!({ "apiVersion": api_version, "kind": kind, "metadata": meta, "spec": {}, "status": status })
    }

    pub(super) fn policy(kind: &str, rest: &Value) -> (String, CompiledPolicy) {
        let mut spec = json!({ "parent": { "group": "example.com", "kind": kind } });
        for (key, value) in rest.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        let spec = serde_json::from_value(spec).unwrap();
        ("databases".to_owned(), compile(&spec, crate::limits::STUCK_AFTER).unwrap())
    }

    /// Returns the CRD of `example.com/Database` with this status in its schema.
    pub(super) fn crd(status: &Value, subresources: &Value) -> Value {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "metadata": { "name": "databases.example.com" },
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": { "kind": "Database", "plural": "databases" },
                "versions": [{ "name": "v1", "served": true, "storage": true, "subresources": subresources,
                    "schema": { "openAPIV3Schema": { "type": "object", "properties": { "status": status } } } }],
            },
        })
    }

    /// Returns an inventory of these objects, with a policy for Database and a CRD that has all it needs.
    pub(super) fn world(objects: &[Value]) -> DoctorInventory {
        let whole = [("example.com", "Database"), ("batch", "Job"), ("", "Pod"), ("", "Secret")];
        DoctorInventory {
            now: NOW,
            policies: vec![policy("Database", &json!({}))],
            crds: vec![crd(&json!({ "type": "object" }), &json!({ "status": {} }))],
            objects: objects.iter().map(seen).collect(),
            fully_listed: whole.map(|(group, kind)| (group.to_owned(), kind.to_owned())).into(),
            ..DoctorInventory::default()
        }
    }

    /// Returns an inventory with this Database in three namespaces, one of which the policy chooses by its labels.
    pub(super) fn in_namespaces(database: &Value) -> DoctorInventory {
        let placed = ["chosen", "left-out", "unlabelled"].map(|namespace| {
            let mut placed = database.clone();
            placed["metadata"]["namespace"] = json!(namespace);
            placed["metadata"]["uid"] = json!(format!("uid-{namespace}"));
            placed
        });
        let parent = json!({ "group": "example.com", "kind": "Database",
            "namespaceSelector": { "matchLabels": { "tier": "gold" } } });
        let label = |value: &str| vec![("tier".into(), value.into())];
        let labels = [("chosen".into(), label("gold")), ("left-out".into(), label("tin"))];
        DoctorInventory {
            policies: vec![policy("Database", &json!({ "parent": parent }))],
            namespace_labels: Some(labels.into()),
            ..world(&placed)
        }
    }

    /// Returns severity and object of each finding.
    pub(super) fn describe_findings(found: &[DoctorFinding]) -> Vec<String> {
        found.iter().map(|finding| format!("{} {}", finding.severity.word(), finding.object)).collect()
    }

    #[test]
    fn a_world_without_trouble_has_none() {
        let mut world = world(&[object("Database", "db", &json!({}), &json!({}))]);
        world.crds.clear();
        assert_eq!(run_all_checks(&world), []);
    }

    #[test]
    fn a_flood_of_one_kind_is_cut_and_counted() {
        let odd = |n: u32| {
            object("Database", &format!("db-{n}"), &json!({}), &json!({ "observedGeneration": "2" }))
        };
        let objects: Vec<Value> = (0..60).map(odd).collect();
        let found = generation::run_check(&world(&objects)).len();
        let shown = run_all_checks(&world(&objects));
        assert_eq!(found, 60);
        assert!(
            describe_findings(&shown).contains(&"info and 10 more".to_owned()),
            "{:?}",
            describe_findings(&shown)
        );
    }
}

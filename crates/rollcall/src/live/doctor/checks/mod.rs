//! The checks: each a function of what was read, and of nothing else.

mod argocd;
mod crds;
mod generation;
mod hooks;
mod kopf;
mod labels;
mod orphans;
mod owners;
mod policies;
mod rights;
mod sizes;
mod writers;

use super::finding::{Finding, Severity};
use super::world::World;

/// Of one check and severity, so many are shown.
const SHOWN: usize = 50;

type Check = (&'static str, fn(&World) -> Vec<Finding>);

const ALL: [Check; 12] = [
    (argocd::NAME, argocd::check),
    (crds::NAME, crds::check),
    (generation::NAME, generation::check),
    (hooks::NAME, hooks::check),
    (kopf::NAME, kopf::check),
    (labels::NAME, labels::check),
    (orphans::NAME, orphans::check),
    (owners::NAME, owners::check),
    (policies::NAME, policies::check),
    (rights::NAME, rights::check),
    (sizes::NAME, sizes::check),
    (writers::NAME, writers::check),
];

/// What all checks find, worst first.
pub(super) fn all(world: &World) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, check) in ALL {
        let mut found = check(world);
        found.sort();
        found.dedup();
        let more = found.len().saturating_sub(SHOWN);
        found.truncate(SHOWN);
        if more > 0 {
            let rest = Finding::new(Severity::Info, name, format!("and {more} more"));
            found.push(
                rest.because("of the same kind; mend these first")
                    .fix("-n NAMESPACE shows those of one namespace"),
            );
        }
        findings.extend(found);
    }
    findings.sort();
    findings
}

#[cfg(test)]
mod support {
    use controller::policies::{Compiled, compile};
    use readiness::Time;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::super::seen::Seen;
    use super::*;

    /// 2026-01-02T00:00:00Z
    pub(super) const NOW: Time = Time(1_767_312_000_000);

    pub(super) fn seen(value: &Value) -> Seen {
        let mut seen = Seen::read(&RawValue::from_string(value.to_string()).unwrap());
        let api_version = value["apiVersion"].as_str().unwrap_or_default();
        seen.group = api_version.split_once('/').map_or("", |(group, _)| group).to_owned();
        seen.kind = value["kind"].as_str().unwrap_or_default().to_owned();
        seen
    }

    /// An object of a kind in `example.com`, or of Kubernetes' own, with more metadata.
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

    pub(super) fn policy(kind: &str, rest: &Value) -> (String, Compiled) {
        let mut spec = json!({ "parent": { "group": "example.com", "kind": kind } });
        for (key, value) in rest.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        let spec = serde_json::from_value(spec).unwrap();
        ("databases".to_owned(), compile(&spec, super::super::STUCK_AFTER).unwrap())
    }

    /// The CRD of `example.com/Database`, with this status in its schema.
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

    /// These objects, a policy for Database, and a CRD that has all it needs.
    pub(super) fn world(objects: &[Value]) -> World {
        let whole = [("example.com", "Database"), ("batch", "Job"), ("", "Pod"), ("", "Secret")];
        World {
            now: NOW,
            policies: vec![policy("Database", &json!({}))],
            crds: vec![crd(&json!({ "type": "object" }), &json!({ "status": {} }))],
            objects: objects.iter().map(seen).collect(),
            whole: whole.map(|(group, kind)| (group.to_owned(), kind.to_owned())).into(),
            ..World::default()
        }
    }

    /// Severity and object of each.
    pub(super) fn told(found: &[Finding]) -> Vec<String> {
        found.iter().map(|finding| format!("{} {}", finding.severity.word(), finding.object)).collect()
    }

    #[test]
    fn a_world_without_trouble_has_none() {
        let mut world = world(&[object("Database", "db", &json!({}), &json!({}))]);
        world.crds.clear();
        assert_eq!(all(&world), []);
    }

    #[test]
    fn a_flood_of_one_kind_is_cut_and_counted() {
        let odd = |n: u32| {
            object("Database", &format!("db-{n}"), &json!({}), &json!({ "observedGeneration": "2" }))
        };
        let objects: Vec<Value> = (0..60).map(odd).collect();
        let found = generation::check(&world(&objects)).len();
        let shown = all(&world(&objects));
        assert_eq!(found, 60);
        assert!(told(&shown).contains(&"info and 10 more".to_owned()), "{:?}", told(&shown));
    }
}

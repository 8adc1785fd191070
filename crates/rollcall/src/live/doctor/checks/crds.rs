//! CRDs of parents whose schema makes every status write costlier, lost or overwritten.

use serde_json::{Value, json};

use super::super::finding::{DoctorFinding, DoctorSeverity};
use super::super::inventory::{DoctorInventory, crd_kind};
use crate::generate::{drops_conditions, missing_defaults};
use inspect::kubectl::shell_quote;

pub(super) const CHECK_NAME: &str = "crd";

/// Fields of a condition that Rollcall writes. A schema that prunes one makes every write look reverted.
const CONDITION_FIELDS: [&str; 6] =
    ["type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"];

pub(super) fn run_check(world: &DoctorInventory) -> Vec<DoctorFinding> {
    let parents = world.parent_kinds();
    let mut found = Vec::new();
    for crd in &world.crds {
        let Some(kind) = crd_kind(crd).filter(|kind| parents.contains(kind)) else { continue };
        let written = world.policies.iter().any(|(_, policy)| {
            !policy.shadow && (&policy.parent.group, &policy.parent.kind) == (&kind.0, &kind.1)
        });
        let served = crd["spec"]["versions"].as_array().into_iter().flatten().enumerate();
        for (at, version) in served.filter(|(_, version)| version["served"] != false) {
            found.extend(ServedVersion { crd, at, version, written }.check_version());
        }
    }
    found
}

struct ServedVersion<'c> {
    crd: &'c Value,
    at: usize,
    version: &'c Value,
    /// `true` if some policy writes to its status.
    written: bool,
}

impl ServedVersion<'_> {
    fn check_version(&self) -> Vec<DoctorFinding> {
        let mut found = Vec::new();
        let status = self.version["subresources"]["status"].is_null();
        if status {
            let ops = json!([self.version_name_test(), {
                "op": "add", "path": format!("{}/subresources", self.version_path()), "value": { "status": {} },
            }]);
            found.push(
                self.new_finding(DoctorSeverity::Warning)
                    .with_evidence("no status subresource: every status write increments the generation and needs the right to change the spec")
                    .with_fix("add `subresources: { status: {} }` to the version, in the repository that owns the CRD")
                    .with_patch(self.patch_command(&ops)),
            );
        }
        let shape = self.check_conditions();
        let whole = shape.is_none() && !status;
        found.extend(shape);
        if whole {
            found.extend(self.check_defaults());
        }
        found
    }

    /// Checks that conditions are preserved and that their list can be shared between field managers.
    fn check_conditions(&self) -> Option<DoctorFinding> {
        let root = &self.version["schema"]["openAPIV3Schema"];
        let status = &root["properties"]["status"];
        let conditions = &status["properties"]["conditions"];
        let pruned = if self.written { DoctorSeverity::Error } else { DoctorSeverity::Warning };
        if drops_conditions(self.version) {
            return Some(
                self.new_finding(pruned)
                    .with_evidence("its schema has no status.conditions: the server drops them silently")
                    .with_fix("declare status.conditions as a list-map of metav1.Condition"),
            );
        }
        let items = &conditions["items"];
        let dropped: Vec<&str> =
            CONDITION_FIELDS.into_iter().filter(|field| items["properties"][field].is_null()).collect();
        if !conditions.is_null() && !is_open(items) && !dropped.is_empty() {
            return Some(
                self.new_finding(pruned)
                    .with_evidence(format!("its schema drops {} of every condition", dropped.join(", ")))
                    .with_fix("declare all fields of metav1.Condition"),
            );
        }
        (conditions["x-kubernetes-list-type"] != "map").then(|| self.atomic_list_finding(conditions))
    }

    fn atomic_list_finding(&self, conditions: &Value) -> DoctorFinding {
        let finding = self
            .new_finding(DoctorSeverity::Warning)
            .with_evidence("status.conditions is an atomic list: any apply or merge patch of it replaces the conditions of all other field managers")
            .with_fix("declare `x-kubernetes-list-type: map` and `x-kubernetes-list-map-keys: [type]`; remove duplicate condition types first");
        if conditions.is_null() {
            return finding;
        }
        let path =
            format!("{}/schema/openAPIV3Schema/properties/status/properties/conditions", self.version_path());
        finding.with_patch(self.patch_command(&json!([
            self.version_name_test(),
            { "op": "add", "path": format!("{path}/x-kubernetes-list-type"), "value": "map" },
            { "op": "add", "path": format!("{path}/x-kubernetes-list-map-keys"), "value": ["type"] },
        ])))
    }

    fn check_defaults(&self) -> Option<DoctorFinding> {
        let finding = self.new_finding(DoctorSeverity::Warning).with_evidence(
            "no default for the first condition: until one is written, Flux, Helm 4 and \
             other readers of kstatus take a new object for current",
        );
        let fix = "rollcall crd-defaults prints the patch for the repository that owns the CRD";
        match missing_defaults(self.version, self.at) {
            Ok(ops) if ops.is_empty() => None,
            Ok(ops) => Some(finding.with_fix(fix).with_patch(self.patch_command(&Value::Array(ops)))),
            Err(why) => {
                Some(finding.with_fix(format!("{fix}, after this has been fixed: {}", why.join("; "))))
            }
        }
    }

    fn new_finding(&self, severity: DoctorSeverity) -> DoctorFinding {
        let version = self.version["name"].as_str().unwrap_or_default();
        DoctorFinding::new(
            severity,
            CHECK_NAME,
            format!("CustomResourceDefinition {} {version}", self.crd_name()),
        )
    }

    fn crd_name(&self) -> &str {
        self.crd["metadata"]["name"].as_str().unwrap_or_default()
    }

    fn version_path(&self) -> String {
        format!("/spec/versions/{}", self.at)
    }

    /// Returns a JSON Patch test of the version's name. Lists are addressed by index: the test fails if the versions
    /// have moved since.
    fn version_name_test(&self) -> Value {
        json!({ "op": "test", "path": format!("{}/name", self.version_path()), "value": self.version["name"] })
    }

    fn patch_command(&self, ops: &Value) -> String {
        format!(
            "kubectl patch crd {} --type=json -p {}",
            shell_quote(self.crd_name()),
            shell_quote(&ops.to_string())
        )
    }
}

fn is_open(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}

#[cfg(test)]
mod tests {
    use super::super::support::{crd, world};
    use super::*;

    fn text() -> Value {
        json!({ "type": "string" })
    }

    fn conditions(list: &str) -> Value {
        let fields: serde_json::Map<String, Value> =
            CONDITION_FIELDS.iter().map(|field| ((*field).to_owned(), text())).collect();
        json!({ "type": "array", "x-kubernetes-list-type": list, "x-kubernetes-list-map-keys": ["type"],
            "items": { "type": "object", "required": ["type", "status"], "properties": fields } })
    }

    fn found(status: &Value, subresources: &Value) -> Vec<DoctorFinding> {
        let mut world = world(&[]);
        world.crds = vec![crd(status, subresources)];
        run_check(&world)
    }

    fn with(conditions: &Value) -> Value {
        json!({ "type": "object", "properties": { "conditions": conditions } })
    }

    #[test]
    fn each_shape_that_hurts_is_named_with_what_it_does() {
        let status = json!({ "status": {} });
        let pruning = json!({ "type": "object", "properties": { "phase": text() } });
        let shapeless = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let mut lossy = conditions("map");
        lossy["items"]["properties"].as_object_mut().unwrap().remove("observedGeneration");
        for (schema, subresources, severity, words) in [
            (with(&conditions("map")), json!({}), DoctorSeverity::Warning, "no status subresource"),
            (pruning, status.clone(), DoctorSeverity::Error, "drops them"),
            (with(&lossy), status.clone(), DoctorSeverity::Error, "drops observedGeneration"),
            (with(&conditions("atomic")), status.clone(), DoctorSeverity::Warning, "atomic list"),
            (shapeless, status.clone(), DoctorSeverity::Warning, "atomic list"),
            (with(&conditions("map")), status.clone(), DoctorSeverity::Warning, "no default"),
        ] {
            let found = found(&schema, &subresources);
            assert_eq!(found.len(), 1, "{words}: {found:?}");
            assert_eq!(found[0].severity, severity, "{words}");
            assert!(found[0].evidence.contains(words), "{words}: {found:?}");
        }
    }

    #[test]
    fn with_the_defaults_that_are_asked_for_there_is_nothing_to_say() {
        let crd = crd(&with(&conditions("map")), &json!({ "status": {} }));
        let ops = missing_defaults(&crd["spec"]["versions"][0], 0).unwrap();
        assert!(!ops.is_empty());
        let mut patched = crd;
        for op in ops.iter().filter(|op| op["op"] == "add") {
            let (parent, key) = op["path"].as_str().unwrap().rsplit_once('/').unwrap();
            patched.pointer_mut(parent).unwrap()[key] = op["value"].clone();
        }
        let mut world = world(&[]);
        world.crds = vec![patched];
        assert_eq!(run_check(&world), []);
    }

    #[test]
    fn a_kind_that_is_nobodys_parent_is_left_alone() {
        let mut world = world(&[]);
        world.policies.clear();
        assert_eq!(run_check(&world), []);
    }
}

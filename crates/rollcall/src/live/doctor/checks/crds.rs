//! CRDs of parents in a shape that makes every status write cost more, get lost, or be overwritten.

use serde_json::{Value, json};

use super::super::finding::{Finding, Severity};
use super::super::world::{World, kind_of};
use crate::generate::missing_defaults;
use controller::inspect::command::quoted;

pub(super) const NAME: &str = "crd";

/// What is written into an entry: a schema that drops one makes every write look undone.
const FIELDS: [&str; 6] = ["type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"];

pub(super) fn check(world: &World) -> Vec<Finding> {
    let parents = world.parents();
    let mut found = Vec::new();
    for crd in &world.crds {
        let Some(kind) = kind_of(crd).filter(|kind| parents.contains(kind)) else { continue };
        let written = world.policies.iter().any(|(_, policy)| {
            !policy.shadow && (&policy.parent.group, &policy.parent.kind) == (&kind.0, &kind.1)
        });
        let served = crd["spec"]["versions"].as_array().into_iter().flatten().enumerate();
        for (at, version) in served.filter(|(_, version)| version["served"] != false) {
            found.extend(Served { crd, at, version, written }.check());
        }
    }
    found
}

struct Served<'c> {
    crd: &'c Value,
    at: usize,
    version: &'c Value,
    /// Some policy has its status written.
    written: bool,
}

impl Served<'_> {
    fn check(&self) -> Vec<Finding> {
        let mut found = Vec::new();
        let status = self.version["subresources"]["status"].is_null();
        if status {
            let ops = json!([self.named(), {
                "op": "add", "path": format!("{}/subresources", self.path()), "value": { "status": {} },
            }]);
            found.push(
                self.finding(Severity::Warning)
                    .because("no status subresource: every status write of anybody makes a new generation, and needs the right to change the spec")
                    .fix("add `subresources: { status: {} }` to the version, in the repository that owns the CRD")
                    .by(self.patch(&ops)),
            );
        }
        let shape = self.shape();
        let whole = shape.is_none() && !status;
        found.extend(shape);
        if whole {
            found.extend(self.defaults());
        }
        found
    }

    /// Whether conditions survive, and whether their list can be shared.
    fn shape(&self) -> Option<Finding> {
        let root = &self.version["schema"]["openAPIV3Schema"];
        let status = &root["properties"]["status"];
        let conditions = &status["properties"]["conditions"];
        let pruned = if self.written { Severity::Error } else { Severity::Warning };
        if status.is_null() && !open(root) || !status.is_null() && conditions.is_null() && !open(status) {
            return Some(
                self.finding(pruned)
                    .because("its schema has no status.conditions: the server drops them without a word")
                    .fix("declare status.conditions as a list-map of metav1.Condition"),
            );
        }
        let items = &conditions["items"];
        let dropped: Vec<&str> =
            FIELDS.into_iter().filter(|field| items["properties"][field].is_null()).collect();
        if !conditions.is_null() && !open(items) && !dropped.is_empty() {
            return Some(
                self.finding(pruned)
                    .because(format!("its schema drops {} of every condition", dropped.join(", ")))
                    .fix("declare all fields of metav1.Condition"),
            );
        }
        (conditions["x-kubernetes-list-type"] != "map").then(|| self.atomic(conditions))
    }

    fn atomic(&self, conditions: &Value) -> Finding {
        let finding = self
            .finding(Severity::Warning)
            .because("status.conditions is an atomic list: whoever applies or merge-patches it replaces the entries of all others")
            .fix("declare `x-kubernetes-list-type: map` and `x-kubernetes-list-map-keys: [type]`; entries of one type twice have to go first");
        if conditions.is_null() {
            return finding;
        }
        let path = format!("{}/schema/openAPIV3Schema/properties/status/properties/conditions", self.path());
        finding.by(self.patch(&json!([
            self.named(),
            { "op": "add", "path": format!("{path}/x-kubernetes-list-type"), "value": "map" },
            { "op": "add", "path": format!("{path}/x-kubernetes-list-map-keys"), "value": ["type"] },
        ])))
    }

    fn defaults(&self) -> Option<Finding> {
        let finding = self.finding(Severity::Warning).because(
            "no default for the first condition: until somebody has written one, Flux, Helm 4 and all that go by kstatus call a new object current",
        );
        let fix = "rollcall crd-defaults prints the patch for the repository that owns the CRD";
        match missing_defaults(self.version, self.at) {
            Ok(ops) if ops.is_empty() => None,
            Ok(ops) => Some(finding.fix(fix).by(self.patch(&Value::Array(ops)))),
            Err(why) => Some(finding.fix(format!("{fix}, once this is out of the way: {}", why.join("; ")))),
        }
    }

    fn finding(&self, severity: Severity) -> Finding {
        let version = self.version["name"].as_str().unwrap_or_default();
        Finding::new(severity, NAME, format!("CustomResourceDefinition {} {version}", self.name()))
    }

    fn name(&self) -> &str {
        self.crd["metadata"]["name"].as_str().unwrap_or_default()
    }

    fn path(&self) -> String {
        format!("/spec/versions/{}", self.at)
    }

    /// Lists are patched by place: whoever moved a version since is told.
    fn named(&self) -> Value {
        json!({ "op": "test", "path": format!("{}/name", self.path()), "value": self.version["name"] })
    }

    fn patch(&self, ops: &Value) -> String {
        format!("kubectl patch crd {} --type=json -p {}", quoted(self.name()), quoted(&ops.to_string()))
    }
}

fn open(schema: &Value) -> bool {
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
            FIELDS.iter().map(|field| ((*field).to_owned(), text())).collect();
        json!({ "type": "array", "x-kubernetes-list-type": list, "x-kubernetes-list-map-keys": ["type"],
            "items": { "type": "object", "required": ["type", "status"], "properties": fields } })
    }

    fn found(status: &Value, subresources: &Value) -> Vec<Finding> {
        let mut world = world(&[]);
        world.crds = vec![crd(status, subresources)];
        check(&world)
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
            (with(&conditions("map")), json!({}), Severity::Warning, "no status subresource"),
            (pruning, status.clone(), Severity::Error, "drops them"),
            (with(&lossy), status.clone(), Severity::Error, "drops observedGeneration"),
            (with(&conditions("atomic")), status.clone(), Severity::Warning, "atomic list"),
            (shapeless, status.clone(), Severity::Warning, "atomic list"),
            (with(&conditions("map")), status.clone(), Severity::Warning, "no default"),
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
        assert_eq!(check(&world), []);
    }

    #[test]
    fn a_kind_that_is_nobodys_parent_is_left_alone() {
        let mut world = world(&[]);
        world.policies.clear();
        assert_eq!(check(&world), []);
    }
}

//! Computes the defaults that one version of a CRD lacks, as JSON Patch operations. Pure.
//!
//! Readers that follow kstatus take an object without a status for current. With these defaults the API server itself
//! returns `Unknown/ChildrenPending` from the first read on. They are nested: a single default for the whole status
//! would be lost as soon as an operator writes a status of its own.

use readiness::rollup::ParentReason;
use serde_json::{Map, Value, json};
use watcher::status::AWAITS_ROLLCALL;

/// Fields of a condition that Rollcall writes. A schema that prunes one makes every write look reverted.
const CONDITION_FIELDS: [&str; 6] =
    ["type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"];

/// Returns the operations, on the whole CRD, that the version at this index lacks; empty if nothing is missing. Returns
/// all obstacles as an error.
pub(crate) fn find_missing_defaults(version: &Value, at: usize) -> Result<Vec<Value>, Vec<String>> {
    let mut plan =
        DefaultsPlan { at: format!("/spec/versions/{at}/schema/openAPIV3Schema"), ..DefaultsPlan::default() };
    if version["subresources"]["status"].is_null() {
        plan.add_refusal(
            "it has no status subresource, so each write of the status makes a new generation: add `subresources: { status: {} }`",
        );
    }
    plan.plan_root(&version["schema"]["openAPIV3Schema"]);
    if !plan.why.is_empty() {
        return Err(plan.why);
    }
    if !plan.ops.is_empty() {
        // A JSON Patch addresses lists by index: the test fails if the versions have moved since.
        let name =
            json!({ "op": "test", "path": format!("/spec/versions/{at}/name"), "value": version["name"] });
        plan.ops.insert(0, name);
    }
    Ok(plan.ops)
}

/// Returns `true` if the server takes conditions off the objects of this version, whoever writes them.
pub(crate) fn drops_conditions(version: &Value) -> bool {
    let root = &version["schema"]["openAPIV3Schema"];
    let status = &root["properties"]["status"];
    let declared = if status.is_null() { root } else { status };
    status["properties"]["conditions"].is_null() && !is_open(declared)
}

#[derive(Default)]
struct DefaultsPlan {
    at: String,
    ops: Vec<Value>,
    why: Vec<String>,
}

impl DefaultsPlan {
    fn add_refusal(&mut self, why: impl Into<String>) {
        self.why.push(why.into());
    }

    fn add_operation(&mut self, path: &str, value: &Value) {
        self.ops.push(json!({ "op": "add", "path": format!("{}{path}", self.at), "value": value }));
    }

    fn plan_root(&mut self, root: &Value) {
        let status = &root["properties"]["status"];
        if status.is_null() && !is_open(root) {
            return self.add_refusal(
                "its schema has no status, so the server prunes what is written there: declare one",
            );
        }
        if root["properties"].is_null() {
            self.add_operation("/properties", &json!({}));
        }
        if status.is_null() {
            let status = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
            self.add_operation("/properties/status", &status);
            return self.plan_status(&status);
        }
        self.plan_status(status);
    }

    fn plan_status(&mut self, status: &Value) {
        let at = "/properties/status";
        match status["type"].as_str() {
            Some("object") => {}
            None if is_open(status) => self.add_operation(&format!("{at}/type"), &json!("object")),
            _ => return self.add_refusal("its status is not an object"),
        }
        let properties = &status["properties"];
        if properties.is_null() {
            self.add_operation(&format!("{at}/properties"), &json!({}));
        }
        for field in string_items(&status["required"]) {
            let ours = field == "conditions" || field == "observedGeneration";
            if !ours && properties[field]["default"].is_null() {
                self.add_refusal(format!(
                    "its status requires `{field}`, so an object could not be created with a default status: \
                     make it optional or give it a default"
                ));
            }
        }
        self.plan_generation(&properties["observedGeneration"]);
        let conditions = &properties["conditions"];
        match conditions["type"].as_str() {
            Some("array") => self.plan_conditions(status, conditions),
            None if conditions.is_null() && is_open(status) => {
                let items = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
                let default = [default_condition(CONDITION_FIELDS)];
                let list = json!({ "type": "array", "items": items, "default": default });
                self.add_operation(&format!("{at}/properties/conditions"), &list);
                self.plan_status_default(status);
            }
            None if conditions.is_null() => {
                self.add_refusal(
                    "its schema drops `status.conditions`, so Rollcall cannot write there: declare the list",
                );
            }
            _ => self.add_refusal("its `status.conditions` is not a list"),
        }
        if status["default"].is_null() {
            self.add_operation(&format!("{at}/default"), &json!({}));
        } else if !status["default"].is_object() {
            self.add_refusal("its status has a default that is not an object");
        }
    }

    fn plan_generation(&mut self, schema: &Value) {
        let at = "/properties/status/properties/observedGeneration";
        if schema.is_null() {
            return self.add_operation(at, &json!({ "type": "integer", "format": "int64", "default": 0 }));
        }
        if !matches!(schema["type"].as_str(), Some("integer" | "number")) {
            return self.add_refusal(
                "its `status.observedGeneration` is not a number, so readers cannot compare it: declare it as an integer",
            );
        }
        if schema["minimum"].as_f64().is_some_and(|least| least > 0.0) {
            return self.add_refusal(
                "its `status.observedGeneration` may not be 0, the value for a generation not observed yet",
            );
        }
        if schema["default"].is_null() {
            self.add_operation(&format!("{at}/default"), &json!(0));
        }
    }

    fn plan_conditions(&mut self, status: &Value, conditions: &Value) {
        let (items, known) = (&conditions["items"], &conditions["items"]["properties"]);
        for field in CONDITION_FIELDS.into_iter().filter(|field| known[field].is_null() && !is_open(items)) {
            match condition_field_schema(field) {
                // An extra field does no harm, and some older condition types lack fields such as the generation.
                Some(schema) if known.is_object() => {
                    self.add_operation(
                        &format!("/properties/status/properties/conditions/items/properties/{field}"),
                        &schema,
                    );
                }
                _ => {
                    self.add_refusal(format!("its conditions drop `{field}`, which Rollcall writes: add it"));
                }
            }
        }
        for field in string_items(&items["required"]).filter(|field| !CONDITION_FIELDS.contains(field)) {
            if known[field]["default"].is_null() {
                self.add_refusal(format!("its conditions require `{field}`, which Rollcall does not write"));
            }
        }
        let entry = default_condition(CONDITION_FIELDS);
        for field in ["type", "status", "reason"] {
            let allowed = known[field]["enum"].as_array();
            if allowed.is_some_and(|allowed| !allowed.contains(&entry[field])) {
                self.add_refusal(format!("its conditions do not allow {} as `{field}`", entry[field]));
            }
        }
        let at = "/properties/status/properties/conditions/default";
        match conditions["default"].as_array() {
            None => self.add_operation(at, &json!([entry])),
            Some(list) => self.plan_ready_entry(list, at),
        }
        self.plan_status_default(status);
    }

    /// A default of the whole status takes precedence over the defaults inside it.
    fn plan_status_default(&mut self, status: &Value) {
        if let Some(list) = status["default"]["conditions"].as_array() {
            self.plan_ready_entry(list, "/properties/status/default/conditions");
        }
    }

    fn plan_ready_entry(&mut self, list: &[Value], at: &str) {
        let entry = default_condition(CONDITION_FIELDS);
        match list.iter().find(|held| held["type"] == "Ready") {
            None => self.add_operation(&format!("{at}/-"), &entry),
            Some(held) if held["status"] == entry["status"] && held["reason"] == entry["reason"] => {}
            Some(held) => self.add_refusal(format!(
                "its default contains another controller's Ready condition ({}/{}): remove it",
                held["status"].as_str().unwrap_or("no status"),
                held["reason"].as_str().unwrap_or("no reason")
            )),
        }
    }
}

/// Returns the default condition. Its time is the epoch, as it has never been written.
fn default_condition(fields: [&str; 6]) -> Value {
    let values = [
        json!("Ready"),
        json!("Unknown"),
        json!(ParentReason::ChildrenPending.as_str()),
        json!(AWAITS_ROLLCALL),
        json!("1970-01-01T00:00:00Z"),
        json!(0),
    ];
    let pairs = fields.into_iter().zip(values).map(|(field, value)| (field.to_owned(), value));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// Returns the schema of a condition field that may be absent; `type` and `status` are required.
fn condition_field_schema(field: &str) -> Option<Value> {
    match field {
        "type" | "status" => None,
        "observedGeneration" => Some(json!({ "type": "integer", "format": "int64" })),
        "lastTransitionTime" => Some(json!({ "type": "string", "format": "date-time" })),
        _ => Some(json!({ "type": "string" })),
    }
}

fn is_open(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
}

fn string_items(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

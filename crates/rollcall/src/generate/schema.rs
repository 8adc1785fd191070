//! The defaults that one version of a CRD lacks, as operations of a JSON Patch: pure.
//!
//! A reader that goes by kstatus calls an object without a status current. With these defaults the server itself says
//! `Unknown/ChildrenPending` from the very first read on. They are nested: one default for the whole status would be
//! gone as soon as an operator writes a status of its own.

use serde_json::{Map, Value, json};

/// What Rollcall writes into an entry. A schema that drops one of these makes every write look undone.
const FIELDS: [&str; 6] = ["type", "status", "reason", "message", "lastTransitionTime", "observedGeneration"];

/// What is missing in the version at this place of the list: operations on the whole CRD, none where nothing is.
/// Otherwise everything that stands in the way.
pub(crate) fn missing(version: &Value, at: usize) -> Result<Vec<Value>, Vec<String>> {
    let mut plan = Plan { at: format!("/spec/versions/{at}/schema/openAPIV3Schema"), ..Plan::default() };
    if version["subresources"]["status"].is_null() {
        plan.refuse(
            "it has no status subresource, so each write of the status makes a new generation: add `subresources: { status: {} }`",
        );
    }
    plan.root(&version["schema"]["openAPIV3Schema"]);
    if !plan.why.is_empty() {
        return Err(plan.why);
    }
    if !plan.ops.is_empty() {
        // Lists are patched by place: whoever moved a version since is told.
        let name =
            json!({ "op": "test", "path": format!("/spec/versions/{at}/name"), "value": version["name"] });
        plan.ops.insert(0, name);
    }
    Ok(plan.ops)
}

#[derive(Default)]
struct Plan {
    at: String,
    ops: Vec<Value>,
    why: Vec<String>,
}

impl Plan {
    fn refuse(&mut self, why: impl Into<String>) {
        self.why.push(why.into());
    }

    fn add(&mut self, path: &str, value: &Value) {
        self.ops.push(json!({ "op": "add", "path": format!("{}{path}", self.at), "value": value }));
    }

    fn root(&mut self, root: &Value) {
        let status = &root["properties"]["status"];
        if status.is_null() && !is_open(root) {
            return self
                .refuse("its schema has no status, so the server drops what is written there: add one");
        }
        if root["properties"].is_null() {
            self.add("/properties", &json!({}));
        }
        if status.is_null() {
            let status = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
            self.add("/properties/status", &status);
            return self.status(&status);
        }
        self.status(status);
    }

    fn status(&mut self, status: &Value) {
        let at = "/properties/status";
        match status["type"].as_str() {
            Some("object") => {}
            None if is_open(status) => self.add(&format!("{at}/type"), &json!("object")),
            _ => return self.refuse("its status is not an object"),
        }
        let properties = &status["properties"];
        if properties.is_null() {
            self.add(&format!("{at}/properties"), &json!({}));
        }
        for field in names(&status["required"]) {
            let ours = field == "conditions" || field == "observedGeneration";
            if !ours && properties[field]["default"].is_null() {
                self.refuse(format!(
                    "its status requires `{field}`, so an object could not be created with a default status: \
                     make it optional or give it a default"
                ));
            }
        }
        self.generation(&properties["observedGeneration"]);
        let conditions = &properties["conditions"];
        match conditions["type"].as_str() {
            Some("array") => self.conditions(status, conditions),
            None if conditions.is_null() && is_open(status) => {
                let items = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
                let default = [entry(FIELDS)];
                let list = json!({ "type": "array", "items": items, "default": default });
                self.add(&format!("{at}/properties/conditions"), &list);
                self.within(status);
            }
            None if conditions.is_null() => {
                self.refuse("its schema drops `status.conditions`, so Rollcall cannot write there: add them");
            }
            _ => self.refuse("its `status.conditions` is not a list"),
        }
        if status["default"].is_null() {
            self.add(&format!("{at}/default"), &json!({}));
        } else if !status["default"].is_object() {
            self.refuse("its status has a default that is not an object");
        }
    }

    fn generation(&mut self, schema: &Value) {
        let at = "/properties/status/properties/observedGeneration";
        if schema.is_null() {
            return self.add(at, &json!({ "type": "integer", "format": "int64", "default": 0 }));
        }
        if !matches!(schema["type"].as_str(), Some("integer" | "number")) {
            return self.refuse(
                "its `status.observedGeneration` is not a number, so nobody can compare it: make it one",
            );
        }
        if schema["minimum"].as_f64().is_some_and(|least| least > 0.0) {
            return self.refuse(
                "its `status.observedGeneration` may not be 0, which says that nothing was observed",
            );
        }
        if schema["default"].is_null() {
            self.add(&format!("{at}/default"), &json!(0));
        }
    }

    fn conditions(&mut self, status: &Value, conditions: &Value) {
        let (items, known) = (&conditions["items"], &conditions["items"]["properties"]);
        for field in FIELDS.into_iter().filter(|field| known[field].is_null() && !is_open(items)) {
            match lacking(field) {
                // Older types of conditions have no generation, for example: a field more harms nobody.
                Some(schema) if known.is_object() => {
                    self.add(
                        &format!("/properties/status/properties/conditions/items/properties/{field}"),
                        &schema,
                    );
                }
                _ => self.refuse(format!("its conditions drop `{field}`, which Rollcall writes: add it")),
            }
        }
        for field in names(&items["required"]).filter(|field| !FIELDS.contains(field)) {
            if known[field]["default"].is_null() {
                self.refuse(format!("its conditions require `{field}`, which Rollcall does not write"));
            }
        }
        let entry = entry(FIELDS);
        for field in ["type", "status", "reason"] {
            let allowed = known[field]["enum"].as_array();
            if allowed.is_some_and(|allowed| !allowed.contains(&entry[field])) {
                self.refuse(format!("its conditions do not allow {} as `{field}`", entry[field]));
            }
        }
        let at = "/properties/status/properties/conditions/default";
        match conditions["default"].as_array() {
            None => self.add(at, &json!([entry])),
            Some(list) => self.beside(list, at),
        }
        self.within(status);
    }

    /// A default of the whole status comes before those inside of it.
    fn within(&mut self, status: &Value) {
        if let Some(list) = status["default"]["conditions"].as_array() {
            self.beside(list, "/properties/status/default/conditions");
        }
    }

    fn beside(&mut self, list: &[Value], at: &str) {
        let entry = entry(FIELDS);
        match list.iter().find(|held| held["type"] == "Ready") {
            None => self.add(&format!("{at}/-"), &entry),
            Some(held) if held["status"] == entry["status"] && held["reason"] == entry["reason"] => {}
            Some(held) => self.refuse(format!(
                "its default has a Ready of somebody else's ({}/{}): take it out",
                held["status"].as_str().unwrap_or("no status"),
                held["reason"].as_str().unwrap_or("no reason")
            )),
        }
    }
}

/// What the first read is to say; the time is that of nobody, as it was never written.
fn entry(fields: [&str; 6]) -> Value {
    let values = [
        json!("Ready"),
        json!("Unknown"),
        json!("ChildrenPending"),
        json!("Waiting for Rollcall"),
        json!("1970-01-01T00:00:00Z"),
        json!(0),
    ];
    let pairs = fields.into_iter().zip(values).map(|(field, value)| (field.to_owned(), value));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// How a field of a condition is declared that may be missing; one without type and status is no condition.
fn lacking(field: &str) -> Option<Value> {
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

fn names(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str)
}

//! What the server does not take.

use serde_json::{Value, json};

use super::kind::Kind;
use super::message::Request;
use super::meta;
use super::refusal::{Cause, Refusal};
use super::schema::{Items, Shape};

/// Checks who a write says to come from.
pub(super) fn field_manager(request: &Request) -> Result<(), Refusal> {
    let Some(manager) = request.param("fieldManager").filter(|_| request.method != "GET") else {
        return Ok(());
    };
    let options = match request.method.as_str() {
        "PATCH" => "PatchOptions",
        "POST" => "CreateOptions",
        "PUT" => "UpdateOptions",
        _ => return Ok(()),
    };
    let cause = if manager.len() > 128 {
        let message = "Too long: may not be more than 128 bytes".into();
        Cause { reason: "FieldValueTooLong", message, field: "fieldManager".into() }
    } else if manager.chars().any(char::is_control) {
        Cause::invalid("fieldManager", &json!(manager), "should contain only printable characters")
    } else {
        return Ok(());
    };
    Err(Refusal::invalid("meta.k8s.io", options, "", vec![cause]))
}

/// Checks a whole object as it would be kept.
pub(super) fn object(kind: &Kind, object: &Value) -> Result<(), Refusal> {
    let mut causes = Vec::new();
    name(kind, object, &mut causes);
    owners(object, &mut causes);
    // Of custom resources the real server only warns.
    if !kind.traits.custom {
        finalizers(object, &mut causes);
    }
    if let Some(schema) = &kind.schema {
        for (field, value) in object.as_object().into_iter().flatten() {
            if let Some(property) = schema.0["properties"].get(field).filter(|_| field != "metadata") {
                against(value, property, field, &mut causes);
            }
        }
        required(object, &schema.0, "", &mut causes);
    }
    refuse(kind, object, causes)
}

fn refuse(kind: &Kind, object: &Value, causes: Vec<Cause>) -> Result<(), Refusal> {
    if causes.is_empty() {
        Ok(())
    } else {
        Err(Refusal::invalid(&kind.group, &kind.kind, meta::name(object), causes))
    }
}

fn name(kind: &Kind, object: &Value, causes: &mut Vec<Cause>) {
    const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let name = meta::name(object);
    let loose = ["rbac.authorization.k8s.io", "apiregistration.k8s.io"].contains(&kind.group.as_str());
    let legal =
        if loose { !name.contains(['/', '%']) && name != "." && name != ".." } else { is_subdomain(name) };
    if !legal {
        causes.push(Cause::invalid("metadata.name", &json!(name), SUBDOMAIN));
    }
}

fn is_subdomain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let label = |part: &str| {
        part.starts_with(plain) && part.ends_with(plain) && part.chars().all(|c| plain(c) || c == '-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

fn owners(object: &Value, causes: &mut Vec<Cause>) {
    for owner in meta::owners(object) {
        for (field, lower) in [("apiVersion", "version"), ("kind", "kind"), ("name", "name"), ("uid", "uid")]
        {
            let text = owner[field].as_str().unwrap_or_default();
            if text.is_empty() {
                let why = if field == "apiVersion" {
                    format!("{lower} must not be empty")
                } else {
                    "must not be empty".into()
                };
                causes.push(Cause::invalid(format!("metadata.ownerReferences.{field}"), &json!(text), &why));
            }
        }
    }
    let controllers = meta::owners(object).iter().filter(|owner| owner["controller"] == true).count();
    if controllers > 1 {
        let why = "Only one reference can have Controller set to true.";
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {why}"),
            field: "metadata.ownerReferences".into(),
        });
    }
}

fn finalizers(object: &Value, causes: &mut Vec<Cause>) {
    for (at, finalizer) in meta::finalizers(object).into_iter().enumerate() {
        let standard = ["foregroundDeletion", "orphan", "kubernetes"].contains(&finalizer);
        if !standard && !finalizer.contains('/') {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(format!("metadata.finalizers[{at}]"), &json!(finalizer), why));
        }
    }
}

/// While an object is being deleted its finalizers may go, none may come.
pub(super) fn finalizers_only_go(kind: &Kind, old: &Value, new: &Value) -> Result<(), Refusal> {
    let had = meta::finalizers(old);
    let come: Vec<&str> =
        meta::finalizers(new).into_iter().filter(|finalizer| !had.contains(finalizer)).collect();
    if !meta::is_deleting(old) || come.is_empty() {
        return Ok(());
    }
    let listed: Vec<String> = come.iter().map(|finalizer| format!("{finalizer:?}")).collect();
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        listed.join(", ")
    );
    let cause = Cause::forbidden("metadata.finalizers", &why);
    refuse(kind, old, vec![cause.clone(), cause])
}

/// The few rules for definitions of custom resources that tests run into.
pub(super) fn custom_definition(kind: &Kind, object: &Value) -> Result<(), Refusal> {
    if kind.plural != "customresourcedefinitions" || kind.traits.custom {
        return Ok(());
    }
    let spec = &object["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let expected = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    let mut causes = Vec::new();
    if meta::name(object) != expected {
        causes.push(Cause::invalid(
            "metadata.name",
            &json!(meta::name(object)),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        causes.push(Cause::invalid(
            "spec.versions",
            &json!(versions.len()),
            "must have exactly one version marked as storage version",
        ));
    }
    for (at, version) in versions.iter().enumerate() {
        if version["schema"]["openAPIV3Schema"].is_null() {
            causes.push(Cause::required(
                format!("spec.versions[{at}].schema.openAPIV3Schema"),
                "schemas are required",
            ));
        }
    }
    refuse(kind, object, causes)
}

fn against(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    if let Some(wrong) = wrong_type(value, schema) {
        let wanted = schema["type"].as_str().unwrap_or("integer,string");
        let message =
            format!("Invalid value: \"{wrong}\": {path} in body must be of type {wanted}: \"{wrong}\"");
        causes.push(Cause { reason: "FieldValueTypeInvalid", message, field: path.into() });
        if (wrong, wanted) == ("number", "integer") {
            let message = format!(
                "Invalid value: \"\": Checked value must be of type integer (default format) in {path}"
            );
            causes.push(Cause { reason: "FieldValueInvalid", message, field: "<nil>".into() });
        }
        return;
    }
    if let Some(wrong) = wrong_format(value, schema) {
        let format = schema["format"].as_str().unwrap_or_default();
        let message = format!("Invalid value: {wrong:?}: {path} in body must be of type {format}: {wrong:?}");
        causes.push(Cause { reason: "FieldValueTypeInvalid", message, field: path.into() });
    }
    bounds(value, schema, path, causes);
    match value {
        Value::Object(map) => {
            required(value, schema, path, causes);
            for (name, child) in map {
                let property = &schema["properties"][name.as_str()];
                let below = if property.is_null() { &schema["additionalProperties"] } else { property };
                if below.is_object() {
                    against(child, below, &format!("{path}.{name}"), causes);
                }
            }
        }
        Value::Array(list) => {
            duplicates(list, schema, path, causes);
            for (at, item) in list.iter().enumerate().filter(|_| schema["items"].is_object()) {
                against(item, &schema["items"], &format!("{path}[{at}]"), causes);
            }
        }
        _ => {}
    }
}

fn required(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    for field in meta::strings(&schema["required"]) {
        if value.get(field).is_none() {
            let at = if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
            causes.push(Cause::required(at, ""));
        }
    }
}

fn wrong_type(value: &Value, schema: &Value) -> Option<&'static str> {
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number)
            if number.is_f64() && number.as_f64().is_some_and(|number| number.fract() != 0.0) =>
        {
            "number"
        }
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if schema["x-kubernetes-int-or-string"] == true {
        return (!["integer", "string"].contains(&is)).then_some(is);
    }
    match schema["type"].as_str() {
        None => None,
        Some(wanted) if wanted == is || (wanted == "number" && is == "integer") => None,
        Some(_) => Some(is),
    }
}

/// Of the formats only that of conditions' times is checked.
fn wrong_format<'a>(value: &'a Value, schema: &Value) -> Option<&'a str> {
    let text = value.as_str().filter(|_| schema["format"] == "date-time")?;
    text.parse::<jiff::Timestamp>().is_err().then_some(text)
}

fn bounds(value: &Value, schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let listed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", listed.join(", "));
        causes.push(Cause { reason: "FieldValueNotSupported", message, field: path.into() });
    }
    let mut limit = |holds: bool, what: String| {
        if !holds {
            causes.push(Cause::invalid(path, value, &format!("{path} in body should {what}")));
        }
    };
    if let Some(number) = value.as_f64() {
        let above = schema["minimum"].as_f64().is_none_or(|least| number >= least);
        limit(above, format!("be greater than or equal to {}", schema["minimum"]));
        let below = schema["maximum"].as_f64().is_none_or(|most| number <= most);
        limit(below, format!("be less than or equal to {}", schema["maximum"]));
    }
    let (size, least, most, what) = match value {
        Value::String(text) => (text.chars().count() as u64, "minLength", "maxLength", "chars long"),
        Value::Array(list) => (list.len() as u64, "minItems", "maxItems", "items"),
        _ => return,
    };
    limit(
        schema[least].as_u64().is_none_or(|least| size >= least),
        format!("be at least {} {what}", schema[least]),
    );
    if let Some(most) = schema[most].as_u64().filter(|most| size > *most) {
        let (reason, message) = match value {
            Value::String(_) => ("FieldValueTooLong", format!("Too long: may not be more than {most} bytes")),
            _ => ("FieldValueTooMany", format!("Too many: {size}: must have at most {most} items")),
        };
        causes.push(Cause { reason, message, field: path.into() });
    }
}

fn duplicates(list: &[Value], schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let identity = |item: &Value| match Shape::Custom(schema).items() {
        Items::Atomic => None,
        Items::Set => Some(item.clone()),
        Items::Map(keys) => Some(keys.iter().map(|key| ((*key).to_owned(), item[*key].clone())).collect()),
    };
    let identities: Vec<Option<Value>> = list.iter().map(identity).collect();
    for (at, identity) in identities.iter().enumerate() {
        if let Some(identity) = identity
            && identities[..at].iter().flatten().any(|other| other == identity)
        {
            let message = format!("Duplicate value: {identity}");
            causes.push(Cause { reason: "FieldValueDuplicate", message, field: format!("{path}[{at}]") });
        }
    }
}

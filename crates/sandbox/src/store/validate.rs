//! Validation of objects and request options.

use serde_json::{Value, json};

use super::kind::SandboxKind;
use super::message::StoreRequest;
use super::meta;
use super::refusal::{StatusCause, StoreRefusal};
use super::schema::{SchemaListType, SchemaShape};

/// Validates the field manager.
pub(super) fn check_field_manager(request: &StoreRequest) -> Result<(), StoreRefusal> {
    let Some(manager) = request.query_param("fieldManager").filter(|_| request.method != "GET") else {
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
        StatusCause { reason: "FieldValueTooLong", message, field: "fieldManager".into() }
    } else if manager.chars().any(char::is_control) {
        StatusCause::invalid("fieldManager", &json!(manager), "should contain only printable characters")
    } else {
        return Ok(());
    };
    Err(StoreRefusal::invalid("meta.k8s.io", options, "", vec![cause]))
}

/// Validates a whole object as it would be stored.
pub(super) fn check_object(kind: &SandboxKind, object: &Value) -> Result<(), StoreRefusal> {
    let mut causes = Vec::new();
    check_name(kind, object, &mut causes);
    check_owners(object, &mut causes);
    // For custom resources the real server only warns.
    if !kind.traits.custom {
        check_finalizers(object, &mut causes);
    }
    if let Some(schema) = &kind.schema {
        for (field, value) in object.as_object().into_iter().flatten() {
            if let Some(property) = schema.0["properties"].get(field).filter(|_| field != "metadata") {
                check_schema(value, property, field, &mut causes);
            }
        }
        check_required(object, &schema.0, "", &mut causes);
    }
    refuse_causes(kind, object, causes)
}

fn refuse_causes(kind: &SandboxKind, object: &Value, causes: Vec<StatusCause>) -> Result<(), StoreRefusal> {
    if causes.is_empty() {
        Ok(())
    } else {
        Err(StoreRefusal::invalid(&kind.group, &kind.kind, meta::name(object), causes))
    }
}

fn check_name(kind: &SandboxKind, object: &Value, causes: &mut Vec<StatusCause>) {
    const SUBDOMAIN_MESSAGE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let name = meta::name(object);
    let loose = ["rbac.authorization.k8s.io", "apiregistration.k8s.io"].contains(&kind.group.as_str());
    let legal =
        if loose { !name.contains(['/', '%']) && name != "." && name != ".." } else { is_subdomain(name) };
    if !legal {
        causes.push(StatusCause::invalid("metadata.name", &json!(name), SUBDOMAIN_MESSAGE));
    }
}

fn is_subdomain(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let label = |part: &str| {
        part.starts_with(plain) && part.ends_with(plain) && part.chars().all(|c| plain(c) || c == '-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

fn check_owners(object: &Value, causes: &mut Vec<StatusCause>) {
    for owner in meta::owner_references(object) {
        for (field, lower) in [("apiVersion", "version"), ("kind", "kind"), ("name", "name"), ("uid", "uid")]
        {
            let text = owner[field].as_str().unwrap_or_default();
            if text.is_empty() {
                let why = if field == "apiVersion" {
                    format!("{lower} must not be empty")
                } else {
                    "must not be empty".into()
                };
                causes.push(StatusCause::invalid(
                    format!("metadata.ownerReferences.{field}"),
                    &json!(text),
                    &why,
                ));
            }
        }
    }
    let controllers =
        meta::owner_references(object).iter().filter(|owner| owner["controller"] == true).count();
    if controllers > 1 {
        let why = "Only one reference can have Controller set to true.";
        causes.push(StatusCause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {why}"),
            field: "metadata.ownerReferences".into(),
        });
    }
}

fn check_finalizers(object: &Value, causes: &mut Vec<StatusCause>) {
    for (at, finalizer) in meta::finalizers(object).into_iter().enumerate() {
        let standard = ["foregroundDeletion", "orphan", "kubernetes"].contains(&finalizer);
        if !standard && !finalizer.contains('/') {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(StatusCause::invalid(format!("metadata.finalizers[{at}]"), &json!(finalizer), why));
        }
    }
}

/// Refuses new finalizers on an object that is being deleted; they may only be removed.
pub(super) fn check_no_new_finalizers(
    kind: &SandboxKind,
    old: &Value,
    new: &Value,
) -> Result<(), StoreRefusal> {
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
    let cause = StatusCause::forbidden("metadata.finalizers", &why);
    refuse_causes(kind, old, vec![cause.clone(), cause])
}

/// Validates a CustomResourceDefinition, as far as tests need it.
pub(super) fn check_custom_definition(kind: &SandboxKind, object: &Value) -> Result<(), StoreRefusal> {
    if kind.plural != "customresourcedefinitions" || kind.traits.custom {
        return Ok(());
    }
    let spec = &object["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let expected = format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"]));
    let mut causes = Vec::new();
    if meta::name(object) != expected {
        causes.push(StatusCause::invalid(
            "metadata.name",
            &json!(meta::name(object)),
            "must be spec.names.plural+\".\"+spec.group",
        ));
    }
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        causes.push(StatusCause::invalid(
            "spec.versions",
            &json!(versions.len()),
            "must have exactly one version marked as storage version",
        ));
    }
    for (at, version) in versions.iter().enumerate() {
        if version["schema"]["openAPIV3Schema"].is_null() {
            causes.push(StatusCause::required(
                format!("spec.versions[{at}].schema.openAPIV3Schema"),
                "schemas are required",
            ));
        }
    }
    refuse_causes(kind, object, causes)
}

fn check_schema(value: &Value, schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    if let Some(wrong) = wrong_type(value, schema) {
        let wanted = schema["type"].as_str().unwrap_or("integer,string");
        let message =
            format!("Invalid value: \"{wrong}\": {path} in body must be of type {wanted}: \"{wrong}\"");
        causes.push(StatusCause { reason: "FieldValueTypeInvalid", message, field: path.into() });
        if (wrong, wanted) == ("number", "integer") {
            let message = format!(
                "Invalid value: \"\": Checked value must be of type integer (default format) in {path}"
            );
            causes.push(StatusCause { reason: "FieldValueInvalid", message, field: "<nil>".into() });
        }
        return;
    }
    if let Some(wrong) = wrong_format(value, schema) {
        let format = schema["format"].as_str().unwrap_or_default();
        let message = format!("Invalid value: {wrong:?}: {path} in body must be of type {format}: {wrong:?}");
        causes.push(StatusCause { reason: "FieldValueTypeInvalid", message, field: path.into() });
    }
    check_bounds(value, schema, path, causes);
    match value {
        Value::Object(map) => {
            check_required(value, schema, path, causes);
            for (name, child) in map {
                let property = &schema["properties"][name.as_str()];
                let below = if property.is_null() { &schema["additionalProperties"] } else { property };
                if below.is_object() {
                    check_schema(child, below, &format!("{path}.{name}"), causes);
                }
            }
        }
        Value::Array(list) => {
            check_duplicates(list, schema, path, causes);
            for (at, item) in list.iter().enumerate().filter(|_| schema["items"].is_object()) {
                check_schema(item, &schema["items"], &format!("{path}[{at}]"), causes);
            }
        }
        _ => {}
    }
}

fn check_required(value: &Value, schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    for field in meta::list_strings(&schema["required"]) {
        if value.get(field).is_none() {
            let at = if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
            causes.push(StatusCause::required(at, ""));
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

/// Checks the only supported format, that of conditions' times.
fn wrong_format<'a>(value: &'a Value, schema: &Value) -> Option<&'a str> {
    let text = value.as_str().filter(|_| schema["format"] == "date-time")?;
    rollcall_rfc3339::parse_nanos(text).is_none().then_some(text)
}

fn check_bounds(value: &Value, schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let listed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        let message = format!("Unsupported value: {value}: supported values: {}", listed.join(", "));
        causes.push(StatusCause { reason: "FieldValueNotSupported", message, field: path.into() });
    }
    let mut limit = |holds: bool, what: String| {
        if !holds {
            causes.push(StatusCause::invalid(path, value, &format!("{path} in body should {what}")));
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
        causes.push(StatusCause { reason, message, field: path.into() });
    }
}

fn check_duplicates(list: &[Value], schema: &Value, path: &str, causes: &mut Vec<StatusCause>) {
    let identity = |item: &Value| match SchemaShape::Custom(schema).list_type() {
        SchemaListType::Atomic => None,
        SchemaListType::Set => Some(item.clone()),
        SchemaListType::Map(keys) => {
            Some(keys.iter().map(|key| ((*key).to_owned(), item[*key].clone())).collect())
        }
    };
    let identities: Vec<Option<Value>> = list.iter().map(identity).collect();
    for (at, identity) in identities.iter().enumerate() {
        if let Some(identity) = identity
            && identities[..at].iter().flatten().any(|other| other == identity)
        {
            let message = format!("Duplicate value: {identity}");
            causes.push(StatusCause {
                reason: "FieldValueDuplicate",
                message,
                field: format!("{path}[{at}]"),
            });
        }
    }
}

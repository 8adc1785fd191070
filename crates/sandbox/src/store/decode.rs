//! Decoding of request bodies into objects of the kind that the path names.

use serde_json::Value;

use super::json;
use super::kind::SandboxKind;
use super::message::StoreRequest;
use super::refusal::{StatusCause, StoreRefusal};

/// Longest request body that is accepted. 3 MiB.
pub(crate) const MAX_BODY_BYTES: usize = 3 * 1024 * 1024;

/// Decodes the body of a create or update as an object of this kind.
pub(super) fn decode_object(kind: &SandboxKind, request: &StoreRequest) -> Result<Value, StoreRefusal> {
    require_json(request)?;
    let unrecognised = |why: String| {
        StoreRefusal::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why}",
            kind.kind
        ))
    };
    let mut value = decode_body(request).map_err(|why| match why {
        UnreadBody::TooLarge(refusal) => refusal,
        UnreadBody::NoJson(why) => {
            unrecognised(format!("couldn't get version/kind; json parse error: {why}"))
        }
    })?;
    if !value.is_object() {
        return Err(unrecognised("couldn't get version/kind; json parse error: it is no object".into()));
    }
    if kind.traits.custom && value["kind"].as_str().is_none_or(str::is_empty) {
        return Err(unrecognised("Object 'Kind' is missing".into()));
    }
    check_type_meta(kind, &mut value)?;
    check_field_types(kind, &value)?;
    Ok(value)
}

/// Checks the object's apiVersion and kind against the path, and fills them in if they are missing.
pub(super) fn check_type_meta(kind: &SandboxKind, value: &mut Value) -> Result<(), StoreRefusal> {
    let api_version = kind.api_version();
    let said = value["apiVersion"].as_str().unwrap_or_default();
    if !said.is_empty() && said != api_version {
        return Err(StoreRefusal::bad_request(format!(
            "the API version in the data ({said}) does not match the expected API version ({api_version})"
        )));
    }
    let said = value["kind"].as_str().unwrap_or_default();
    if !said.is_empty() && said != kind.kind {
        if kind.traits.custom {
            let cause = StatusCause::invalid("kind", &value["kind"], &format!("must be {}", kind.kind));
            return Err(StoreRefusal::invalid(&kind.group, said, super::meta::name(value), vec![cause]));
        }
        let message = format!("{said} in version {:?} cannot be handled as a {}", kind.version, kind.kind);
        return Err(StoreRefusal::bad_request(message));
    }
    value["apiVersion"] = api_version.into();
    value["kind"] = kind.kind.clone().into();
    Ok(())
}

/// Checks the types of the metadata: with wrong ones an object of any kind cannot be decoded.
pub(super) fn check_field_types(kind: &SandboxKind, value: &Value) -> Result<(), StoreRefusal> {
    let meta = &value["metadata"];
    let strings = ["name", "namespace", "generateName", "uid", "resourceVersion"];
    let wrong = !(meta.is_null() || meta.is_object())
        || strings.iter().any(|field| !(meta[*field].is_null() || meta[*field].is_string()))
        || ["labels", "annotations"].iter().any(|field| !is_text_map(&meta[*field]))
        || ["finalizers", "ownerReferences"]
            .iter()
            .any(|field| !(meta[*field].is_null() || meta[*field].is_array()));
    // For custom resources the schema reports it.
    let is_part = |part: &Value| kind.traits.custom || part.is_null() || part.is_object();
    if wrong || !is_part(&value["spec"]) || !is_part(&value["status"]) {
        return Err(StoreRefusal::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: a field has the wrong type",
            kind.kind, kind.version, kind.kind
        )));
    }
    Ok(())
}

fn is_text_map(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(|map| map.values().all(Value::is_string))
}

fn require_json(request: &StoreRequest) -> Result<(), StoreRefusal> {
    match media_type(request) {
        "" | "application/json" => Ok(()),
        what @ ("application/yaml" | "application/vnd.kubernetes.protobuf") => {
            Err(StoreRefusal::not_implemented(&format!("bodies in {what}")))
        }
        _ => Err(StoreRefusal::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

/// Returns the content type without its parameters.
pub(super) fn media_type(request: &StoreRequest) -> &str {
    request.content_type.as_deref().unwrap_or_default().split(';').next().unwrap_or_default().trim()
}

/// Reason why a body is not a JSON document.
pub(super) enum UnreadBody {
    TooLarge(StoreRefusal),
    NoJson(String),
}

/// Parses the body as JSON.
pub(super) fn decode_body(request: &StoreRequest) -> Result<Value, UnreadBody> {
    if request.body.len() > MAX_BODY_BYTES {
        return Err(UnreadBody::TooLarge(StoreRefusal::too_large(
            "Request entity too large: limit is 3145728",
        )));
    }
    json::parse_json(&request.body).map_err(UnreadBody::NoJson)
}

//! From a body to an object of the kind that the path asks for.

use serde_json::Value;

use super::json;
use super::kind::Kind;
use super::message::Request;
use super::refusal::{Cause, Refusal};

/// The largest body that is read.
pub(crate) const LARGEST: usize = 3 * 1024 * 1024;

/// The body of a create or update as an object of this kind.
pub(super) fn object(kind: &Kind, request: &Request) -> Result<Value, Refusal> {
    json_only(request)?;
    let unrecognised = |why: String| {
        Refusal::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): {why}",
            kind.kind
        ))
    };
    let mut value = body(request).map_err(|why| match why {
        Unread::TooLarge(refusal) => refusal,
        Unread::NoJson(why) => unrecognised(format!("couldn't get version/kind; json parse error: {why}")),
    })?;
    if !value.is_object() {
        return Err(unrecognised("couldn't get version/kind; json parse error: it is no object".into()));
    }
    if kind.traits.custom && value["kind"].as_str().is_none_or(str::is_empty) {
        return Err(unrecognised("Object 'Kind' is missing".into()));
    }
    claims(kind, &mut value)?;
    well_formed(kind, &value)?;
    Ok(value)
}

/// Checks what the object says it is, and fills in what it leaves out.
pub(super) fn claims(kind: &Kind, value: &mut Value) -> Result<(), Refusal> {
    let api_version = kind.api_version();
    let said = value["apiVersion"].as_str().unwrap_or_default();
    if !said.is_empty() && said != api_version {
        return Err(Refusal::bad_request(format!(
            "the API version in the data ({said}) does not match the expected API version ({api_version})"
        )));
    }
    let said = value["kind"].as_str().unwrap_or_default();
    if !said.is_empty() && said != kind.kind {
        if kind.traits.custom {
            let cause = Cause::invalid("kind", &value["kind"], &format!("must be {}", kind.kind));
            return Err(Refusal::invalid(&kind.group, said, super::meta::name(value), vec![cause]));
        }
        let message = format!("{said} in version {:?} cannot be handled as a {}", kind.version, kind.kind);
        return Err(Refusal::bad_request(message));
    }
    value["apiVersion"] = api_version.into();
    value["kind"] = kind.kind.clone().into();
    Ok(())
}

/// Metadata whose types are wrong cannot be read at all, in any kind.
pub(super) fn well_formed(kind: &Kind, value: &Value) -> Result<(), Refusal> {
    let meta = &value["metadata"];
    let strings = ["name", "namespace", "generateName", "uid", "resourceVersion"];
    let wrong = !(meta.is_null() || meta.is_object())
        || strings.iter().any(|field| !(meta[*field].is_null() || meta[*field].is_string()))
        || ["labels", "annotations"].iter().any(|field| !is_text_map(&meta[*field]))
        || ["finalizers", "ownerReferences"]
            .iter()
            .any(|field| !(meta[*field].is_null() || meta[*field].is_array()));
    // Of a custom resource the schema says it.
    let is_part = |part: &Value| kind.traits.custom || part.is_null() || part.is_object();
    if wrong || !is_part(&value["spec"]) || !is_part(&value["status"]) {
        return Err(Refusal::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: a field has the wrong type",
            kind.kind, kind.version, kind.kind
        )));
    }
    Ok(())
}

fn is_text_map(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(|map| map.values().all(Value::is_string))
}

fn json_only(request: &Request) -> Result<(), Refusal> {
    match media_type(request) {
        "" | "application/json" => Ok(()),
        what @ ("application/yaml" | "application/vnd.kubernetes.protobuf") => {
            Err(Refusal::not_implemented(&format!("bodies in {what}")))
        }
        _ => Err(Refusal::unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        )),
    }
}

/// The content type without its parameters.
pub(super) fn media_type(request: &Request) -> &str {
    request.content_type.as_deref().unwrap_or_default().split(';').next().unwrap_or_default().trim()
}

/// Why a body is no JSON document.
pub(super) enum Unread {
    TooLarge(Refusal),
    NoJson(String),
}

/// The body as JSON.
pub(super) fn body(request: &Request) -> Result<Value, Unread> {
    if request.body.len() > LARGEST {
        return Err(Unread::TooLarge(Refusal::too_large("Request entity too large: limit is 3145728")));
    }
    json::parse(&request.body).map_err(Unread::NoJson)
}

//! Representation of an answer: whole, metadata only, or a table, as the `Accept` header asks.

use std::borrow::Cow;

use serde_json::{Value, json};

use super::message::StoreRequest;
use super::refusal::StoreRefusal;

/// Representation that a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResponseForm {
    Whole,
    Metadata,
    /// Whole until the answer is complete; then converted to a table.
    Table,
}

impl ResponseForm {
    /// Returns the first supported representation in the `Accept` header.
    pub(super) fn from_request(request: &StoreRequest) -> Result<ResponseForm, StoreRefusal> {
        let Some(accept) = request.accept.as_deref().filter(|accept| !accept.is_empty()) else {
            return Ok(ResponseForm::Whole);
        };
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            if !matches!(media, "application/json" | "application/*" | "*/*") {
                continue;
            }
            match parts.find_map(|part| part.strip_prefix("as=")) {
                None => return Ok(ResponseForm::Whole),
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => {
                    return Ok(ResponseForm::Metadata);
                }
                Some("Table") => return Ok(ResponseForm::Table),
                Some(_) => {}
            }
        }
        let message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
        Err(StoreRefusal::new(406, "NotAcceptable", message))
    }

    /// Converts one object to this representation.
    pub(super) fn render_form(self, object: &Value) -> Cow<'_, Value> {
        match self {
            ResponseForm::Whole | ResponseForm::Table => Cow::Borrowed(object),
            ResponseForm::Metadata => Cow::Owned(
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]}),
            ),
        }
    }
}

/// Returns one object in the representation that the request asks for.
pub(super) fn render_one<'a>(request: &StoreRequest, object: &'a Value) -> Cow<'a, Value> {
    ResponseForm::from_request(request)
        .map_or_else(|refusal| Cow::Owned(refusal.to_status()), |view| view.render_form(object))
}

//! How an answer is shown: whole, its metadata alone, or as a table, as the `Accept` header asks.

use serde_json::{Value, json};

use super::message::Request;
use super::refusal::Refusal;

/// What a client wants to see of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Whole,
    Metadata,
    /// Whole until the answer is complete; then it becomes a table.
    Table,
}

impl View {
    /// The first form in the `Accept` header that is known here.
    pub(super) fn of(request: &Request) -> Result<View, Refusal> {
        let Some(accept) = request.accept.as_deref().filter(|accept| !accept.is_empty()) else {
            return Ok(View::Whole);
        };
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            if !matches!(media, "application/json" | "application/*" | "*/*") {
                continue;
            }
            match parts.find_map(|part| part.strip_prefix("as=")) {
                None => return Ok(View::Whole),
                Some("PartialObjectMetadata" | "PartialObjectMetadataList") => return Ok(View::Metadata),
                Some("Table") => return Ok(View::Table),
                Some(_) => {}
            }
        }
        let message = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
        Err(Refusal::new(406, "NotAcceptable", message))
    }

    /// One object in this form.
    pub(super) fn show(self, object: &Value) -> Value {
        match self {
            View::Whole | View::Table => object.clone(),
            View::Metadata => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
            }
        }
    }
}

/// One object as the request wants to see it.
pub(super) fn one(request: &Request, object: &Value) -> Value {
    View::of(request).map_or_else(|refusal| refusal.status(), |view| view.show(object))
}

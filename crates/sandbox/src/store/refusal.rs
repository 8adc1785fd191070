//! Error responses: `Status` objects.

use serde_json::{Value, json};

use super::message::StoreResponse;

/// An error response. Boxed, because it is the rare half of every `Result` here.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreRefusal(Box<RefusalBody>);

#[derive(Clone, Debug, PartialEq)]
struct RefusalBody {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Value>,
    /// Seconds after which to retry, also sent as the `Retry-After` header.
    retry_after: Option<u32>,
    /// Continue token with which an expired list may go on, inconsistently.
    resume: Option<String>,
    plain: bool,
}

/// One invalid field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatusCause {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) field: String,
}

impl StatusCause {
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> StatusCause {
        StatusCause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: {why}"),
            field: field.into(),
        }
    }

    pub(crate) fn required(field: impl Into<String>, why: &str) -> StatusCause {
        let message =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        StatusCause { reason: "FieldValueRequired", message, field: field.into() }
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> StatusCause {
        StatusCause {
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {why}"),
            field: field.into(),
        }
    }
}

impl StoreRefusal {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> StoreRefusal {
        StoreRefusal(Box::new(RefusalBody {
            code,
            reason,
            message: message.into(),
            details: None,
            retry_after: None,
            resume: None,
            plain: false,
        }))
    }

    fn with_details(mut self, details: Value) -> StoreRefusal {
        self.0.details = Some(details);
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> StoreRefusal {
        StoreRefusal::new(400, "BadRequest", message)
    }

    /// Error for a path that no API serves: the real server answers in plain text.
    pub(crate) fn no_such_path() -> StoreRefusal {
        let mut refusal = StoreRefusal::new(404, "NotFound", "404 page not found\n");
        refusal.0.plain = true;
        refusal
    }

    pub(crate) fn no_such_resource() -> StoreRefusal {
        StoreRefusal::new(404, "NotFound", "the server could not find the requested resource")
            .with_details(json!({}))
    }

    pub(crate) fn not_found(group: &str, plural: &str, name: &str) -> StoreRefusal {
        StoreRefusal::new(
            404,
            "NotFound",
            format!("{} {name:?} not found", qualified_resource(group, plural)),
        )
        .with_details(status_details(group, plural, name))
    }

    pub(crate) fn already_exists(group: &str, plural: &str, name: &str) -> StoreRefusal {
        let message = format!("{} {name:?} already exists", qualified_resource(group, plural));
        StoreRefusal::new(409, "AlreadyExists", message).with_details(status_details(group, plural, name))
    }

    pub(crate) fn conflict(group: &str, plural: &str, name: &str, why: &str) -> StoreRefusal {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified_resource(group, plural));
        StoreRefusal::new(409, "Conflict", message).with_details(status_details(group, plural, name))
    }

    pub(crate) fn invalid(group: &str, kind: &str, name: &str, causes: Vec<StatusCause>) -> StoreRefusal {
        let mut lines: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        // The message names each cause once, even if the list of causes repeats it.
        lines.dedup();
        let told = if let [one] = &lines[..] { one.clone() } else { format!("[{}]", lines.join(", ")) };
        let message = format!("{} {name:?} is invalid: {told}", qualified_resource(group, kind));
        let causes: Vec<Value> = causes
            .into_iter()
            .map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}))
            .collect();
        let mut details = status_details(group, kind, name);
        details["causes"] = Value::Array(causes);
        StoreRefusal::new(422, "Invalid", message).with_details(details)
    }

    /// Error for a JSON patch that does not apply: the real server does not say which operation failed.
    pub(crate) fn patch_failed() -> StoreRefusal {
        StoreRefusal::new(422, "Invalid", "the server rejected our request due to an error in our request")
            .with_details(json!({}))
    }

    pub(crate) fn method_not_allowed() -> StoreRefusal {
        let message = "the server does not allow this method on the requested resource";
        StoreRefusal::new(405, "MethodNotAllowed", message).with_details(json!({}))
    }

    pub(crate) fn forbidden(message: impl Into<String>, details: Value) -> StoreRefusal {
        StoreRefusal::new(403, "Forbidden", message).with_details(details)
    }

    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> StoreRefusal {
        StoreRefusal::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn unknown_patch() -> StoreRefusal {
        StoreRefusal::unsupported_media_type("415: Unsupported Media Type").with_details(json!({}))
    }

    pub(crate) fn too_large(message: impl Into<String>) -> StoreRefusal {
        StoreRefusal::new(413, "RequestEntityTooLarge", message)
    }

    /// Error for a feature that the sandbox does not implement. It names the feature, so that it cannot be mistaken for
    /// success.
    pub(crate) fn not_implemented(what: &str) -> StoreRefusal {
        StoreRefusal::new(501, "NotImplemented", format!("the sandbox does not implement {what}"))
    }

    pub(crate) fn expired(message: impl Into<String>) -> StoreRefusal {
        StoreRefusal::new(410, "Expired", message)
    }

    pub(crate) fn continued_by(mut self, token: String) -> StoreRefusal {
        self.0.resume = Some(token);
        self
    }

    pub(crate) fn too_large_revision(asked: u64, current: u64) -> StoreRefusal {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        let mut refusal = StoreRefusal::new(504, "Timeout", message)
            .with_details(json!({"causes": [cause], "retryAfterSeconds": 1}));
        refusal.0.retry_after = Some(1);
        refusal
    }

    /// The HTTP status.
    pub fn code(&self) -> u16 {
        self.0.code
    }

    /// The machine-readable reason.
    pub fn reason(&self) -> &'static str {
        self.0.reason
    }

    /// The human-readable message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the `Status` object: the body of the response, or the object of an ERROR event.
    pub fn to_status(&self) -> Value {
        let RefusalBody { code, reason, message, details, .. } = &*self.0;
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "code": code,
        });
        if !reason.is_empty() {
            status["reason"] = json!(reason);
        }
        if let Some(token) = &self.0.resume {
            status["metadata"] = json!({ "continue": token });
        }
        if let Some(details) = details {
            status["details"] = details.clone();
        }
        status
    }
}

impl From<StoreRefusal> for StoreResponse {
    fn from(refusal: StoreRefusal) -> StoreResponse {
        if refusal.0.plain {
            return StoreResponse::text(refusal.0.code, &refusal.0.message);
        }
        let mut response = StoreResponse::json(refusal.0.code, &refusal.to_status());
        if let Some(seconds) = refusal.0.retry_after {
            response.headers.push(("retry-after", seconds.to_string()));
        }
        response
    }
}

fn qualified_resource(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

fn status_details(group: &str, kind: &str, name: &str) -> Value {
    let mut details = json!({"kind": kind});
    if !name.is_empty() {
        details["name"] = json!(name);
    }
    if !group.is_empty() {
        details["group"] = json!(group);
    }
    details
}

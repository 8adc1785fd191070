//! What the server answers when it does not do what was asked: `Status` objects.

use serde_json::{Value, json};

use super::message::Response;

/// A refused request. Boxed, because it is the rare half of every `Result` here.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal(Box<Body>);

#[derive(Clone, Debug, PartialEq)]
struct Body {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Value>,
    /// Seconds, also sent as the `Retry-After` header.
    retry_after: Option<u32>,
    /// Where an expired list may go on, inconsistently.
    resume: Option<String>,
    plain: bool,
}

/// One field that is wrong.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cause {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) field: String,
}

impl Cause {
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Cause {
        Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value}: {why}"),
            field: field.into(),
        }
    }

    pub(crate) fn required(field: impl Into<String>, why: &str) -> Cause {
        let message =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Cause { reason: "FieldValueRequired", message, field: field.into() }
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Cause {
        Cause { reason: "FieldValueForbidden", message: format!("Forbidden: {why}"), field: field.into() }
    }
}

impl Refusal {
    pub(crate) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Refusal {
        Refusal(Box::new(Body {
            code,
            reason,
            message: message.into(),
            details: None,
            retry_after: None,
            resume: None,
            plain: false,
        }))
    }

    fn details(mut self, details: Value) -> Refusal {
        self.0.details = Some(details);
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Refusal {
        Refusal::new(400, "BadRequest", message)
    }

    /// A path that no API serves: the real server answers in plain text.
    pub(crate) fn no_such_path() -> Refusal {
        let mut refusal = Refusal::new(404, "NotFound", "404 page not found\n");
        refusal.0.plain = true;
        refusal
    }

    pub(crate) fn no_such_resource() -> Refusal {
        Refusal::new(404, "NotFound", "the server could not find the requested resource").details(json!({}))
    }

    pub(crate) fn not_found(group: &str, plural: &str, name: &str) -> Refusal {
        Refusal::new(404, "NotFound", format!("{} {name:?} not found", qualified(group, plural)))
            .details(named(group, plural, name))
    }

    pub(crate) fn already_exists(group: &str, plural: &str, name: &str) -> Refusal {
        let message = format!("{} {name:?} already exists", qualified(group, plural));
        Refusal::new(409, "AlreadyExists", message).details(named(group, plural, name))
    }

    pub(crate) fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Refusal {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified(group, plural));
        Refusal::new(409, "Conflict", message).details(named(group, plural, name))
    }

    pub(crate) fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Refusal {
        let mut lines: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        // The message says once what the causes may say twice.
        lines.dedup();
        let told = if let [one] = &lines[..] { one.clone() } else { format!("[{}]", lines.join(", ")) };
        let message = format!("{} {name:?} is invalid: {told}", qualified(group, kind));
        let causes: Vec<Value> = causes
            .into_iter()
            .map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}))
            .collect();
        let mut details = named(group, kind, name);
        details["causes"] = Value::Array(causes);
        Refusal::new(422, "Invalid", message).details(details)
    }

    /// A JSON patch that does not apply: the real server does not say which operation it was, only that one failed.
    pub(crate) fn patch_failed() -> Refusal {
        Refusal::new(422, "Invalid", "the server rejected our request due to an error in our request")
            .details(json!({}))
    }

    pub(crate) fn not_allowed() -> Refusal {
        let message = "the server does not allow this method on the requested resource";
        Refusal::new(405, "MethodNotAllowed", message).details(json!({}))
    }

    pub(crate) fn forbidden(message: impl Into<String>, details: Value) -> Refusal {
        Refusal::new(403, "Forbidden", message).details(details)
    }

    pub(crate) fn unsupported_media_type(message: impl Into<String>) -> Refusal {
        Refusal::new(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn unknown_patch() -> Refusal {
        Refusal::unsupported_media_type("415: Unsupported Media Type").details(json!({}))
    }

    pub(crate) fn too_large(message: impl Into<String>) -> Refusal {
        Refusal::new(413, "RequestEntityTooLarge", message)
    }

    /// What this server does not do, by name, so that nobody takes silence for success.
    pub(crate) fn not_implemented(what: &str) -> Refusal {
        Refusal::new(501, "NotImplemented", format!("the sandbox does not implement {what}"))
    }

    pub(crate) fn expired(message: impl Into<String>) -> Refusal {
        Refusal::new(410, "Expired", message)
    }

    pub(crate) fn continued_by(mut self, token: String) -> Refusal {
        self.0.resume = Some(token);
        self
    }

    pub(crate) fn too_large_revision(asked: u64, current: u64) -> Refusal {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        let mut refusal =
            Refusal::new(504, "Timeout", message).details(json!({"causes": [cause], "retryAfterSeconds": 1}));
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

    /// What to tell a person.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The `Status` object: the body of the answer, or the object of an ERROR event.
    pub fn status(&self) -> Value {
        let Body { code, reason, message, details, .. } = &*self.0;
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

impl From<Refusal> for Response {
    fn from(refusal: Refusal) -> Response {
        if refusal.0.plain {
            return Response::text(refusal.0.code, &refusal.0.message);
        }
        let mut response = Response::json(refusal.0.code, &refusal.status());
        if let Some(seconds) = refusal.0.retry_after {
            response.headers.push(("retry-after", seconds.to_string()));
        }
        response
    }
}

fn qualified(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

fn named(group: &str, kind: &str, name: &str) -> Value {
    let mut details = json!({"kind": kind});
    if !name.is_empty() {
        details["name"] = json!(name);
    }
    if !group.is_empty() {
        details["group"] = json!(group);
    }
    details
}

//! Evidence that one object does not exist: a 404 alone is none.

use serde::Deserialize;

use crate::kind::ApiKind;

/// The parts of a `Status` that say what was not found.
#[derive(Default, Deserialize)]
#[serde(default)]
struct NotFoundStatus {
    kind: Option<String>,
    reason: Option<String>,
    details: Option<NotFoundDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NotFoundDetails {
    name: Option<String>,
    group: Option<String>,
    /// The resource, as in URLs; servers of other makes put the kind there.
    kind: Option<String>,
    causes: Option<Vec<NotFoundCause>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NotFoundCause {
    reason: Option<String>,
}

/// Whether the body of a 404 proves that this object does not exist.
///
/// A server that serves the kind says so of the object by its name. Where a version is not served, or the definition of
/// the kind is gone for a moment, the 404 is of the path ("404 page not found") and says nothing of any object.
pub fn proves_absence(body: &[u8], kind: &ApiKind, name: &str) -> bool {
    let Ok(status) = serde_json::from_slice::<NotFoundStatus>(body) else { return false };
    let is_status = status.kind.as_deref() == Some("Status") && status.reason.as_deref() == Some("NotFound");
    let Some(details) = status.details.filter(|_| is_status) else { return false };
    let of = details.kind.unwrap_or_default();
    // What a client or a proxy made of an answer that it did not understand.
    let made_up = |cause: &NotFoundCause| cause.reason.as_deref() == Some("UnexpectedServerResponse");
    details.name.as_deref() == Some(name)
        && details.group.unwrap_or_default() == kind.group
        && (of == kind.plural || of.eq_ignore_ascii_case(&kind.kind))
        && !details.causes.unwrap_or_default().iter().any(made_up)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn databases() -> ApiKind {
        ApiKind {
            group: "example.com".into(),
            version: "v1".into(),
            kind: "Database".into(),
            plural: "databases".into(),
            namespaced: true,
            has_status: true,
        }
    }

    fn status(reason: &str, details: &Value) -> String {
        json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 404,
            "message": "not found", "reason": reason, "details": details })
        .to_string()
    }

    fn proves(body: &str) -> bool {
        proves_absence(body.as_bytes(), &databases(), "db")
    }

    #[test]
    fn an_object_is_gone_where_a_status_names_it() {
        let named = json!({ "name": "db", "group": "example.com", "kind": "databases" });
        assert!(proves(&status("NotFound", &named)));
        let by_kind = json!({ "name": "db", "group": "example.com", "kind": "Database" });
        assert!(proves(&status("NotFound", &by_kind)), "as servers of other makes say it");
        let pods = ApiKind { group: String::new(), kind: "Pod".into(), plural: "pods".into(), ..databases() };
        let core = status("NotFound", &json!({ "name": "web-0", "kind": "pods" }));
        assert!(proves_absence(core.as_bytes(), &pods, "web-0"), "the core group has no name");
    }

    #[test]
    fn any_other_404_says_nothing_of_an_object() {
        let details = |name: &str, group: &str, kind: &str| {
            status("NotFound", &json!({ "name": name, "group": group, "kind": kind }))
        };
        let made_up = json!({ "name": "db", "group": "example.com", "kind": "databases",
            "causes": [{ "reason": "UnexpectedServerResponse", "message": "404 page not found" }] });
        for body in [
            "404 page not found\n".to_owned(),
            String::new(),
            "{}".to_owned(),
            status("NotFound", &json!({})),
            status("NotFound", &json!(null)),
            status("Gone", &json!({ "name": "db", "group": "example.com", "kind": "databases" })),
            details("other", "example.com", "databases"),
            details("db", "", "databases"),
            details("db", "example.com", "namespaces"),
            status("NotFound", &made_up),
        ] {
            assert!(!proves(&body), "{body}");
        }
    }
}

//! Log lines of operators that are stored in the cluster as Events.
//!
//! Up to 1.43 Kopf posted its handlers' log lines as Events of the reason `Logging`; since 1.44.0 only if
//! `settings.posting.loggers` says so (kopf#1258).

use std::collections::BTreeMap;

use serde_json::Value;

use super::refusal_text::refusal_text;

/// Maximum number of Events read, in the server's order: they identify kinds, not objects.
const MAX_EVENTS_READ: u32 = 500;
const KOPF_EVENTS_SELECTOR: &str = "fieldSelector=reason%3DLogging%2Csource%3Dkopf";

/// An object that such an Event is about, by group and kind.
pub(super) type LoggedKinds = BTreeMap<(String, String), String>;

pub(super) async fn read_logged_kinds(
    client: &kube::Client,
    namespace: Option<&str>,
) -> Result<LoggedKinds, String> {
    let place = namespace.map_or_else(String::new, |namespace| format!("/namespaces/{namespace}"));
    let path = format!("/api/v1{place}/events?{KOPF_EVENTS_SELECTOR}&limit={MAX_EVENTS_READ}");
    let request = http::Request::get(path).body(Vec::new()).unwrap_or_default();
    let list = client.request::<Value>(request).await.map_err(refusal_text)?;
    Ok(list["items"].as_array().into_iter().flatten().filter_map(event_subject).collect())
}

fn event_subject(event: &Value) -> Option<((String, String), String)> {
    // The server has applied the field selector; one that does not support it has not.
    if event["reason"] != "Logging" || event["source"]["component"] != "kopf" {
        return None;
    }
    let object = &event["involvedObject"];
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    let title = crate::eval::object_title(text("kind"), text("namespace"), text("name"));
    Some(((group.to_owned(), text("kind").to_owned()), title))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_kopf_logged_counts() {
        let event = |reason: &str, from: &str| {
            json!({ "reason": reason, "source": { "component": from }, "involvedObject": {
                "apiVersion": "example.com/v1", "kind": "Database", "namespace": "shop", "name": "db" } })
        };
        let kind = ("example.com".to_owned(), "Database".to_owned());
        assert_eq!(event_subject(&event("Logging", "kopf")), Some((kind, "Database shop/db".to_owned())));
        assert_eq!(event_subject(&event("Logging", "another")), None);
        assert_eq!(event_subject(&event("Created", "kopf")), None);
    }
}

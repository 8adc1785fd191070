//! Lines that operators log, where they stand in the cluster.
//!
//! Up to 1.43 Kopf posted what its handlers log as Events of the reason `Logging`; since 1.44.0 only where
//! `settings.posting.loggers` says so (kopf#1258).

use std::collections::BTreeMap;

use serde_json::Value;

use super::world::why;

/// So many Events are looked at, whichever the server names first: they tell of kinds, not of objects.
const MOST: u32 = 500;
const WHICH: &str = "fieldSelector=reason%3DLogging%2Csource%3Dkopf";

/// By group and kind, an object that such an Event is about.
pub(super) type Logged = BTreeMap<(String, String), String>;

pub(super) async fn read(client: &kube::Client, namespace: Option<&str>) -> Result<Logged, String> {
    let place = namespace.map_or_else(String::new, |namespace| format!("/namespaces/{namespace}"));
    let path = format!("/api/v1{place}/events?{WHICH}&limit={MOST}");
    let request = http::Request::get(path).body(Vec::new()).unwrap_or_default();
    let list = client.request::<Value>(request).await.map_err(why)?;
    Ok(list["items"].as_array().into_iter().flatten().filter_map(about).collect())
}

fn about(event: &Value) -> Option<((String, String), String)> {
    // The server has already chosen; one that knows no such selector has not.
    if event["reason"] != "Logging" || event["source"]["component"] != "kopf" {
        return None;
    }
    let object = &event["involvedObject"];
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    let title = crate::eval::title(text("kind"), text("namespace"), text("name"));
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
        assert_eq!(about(&event("Logging", "kopf")), Some((kind, "Database shop/db".to_owned())));
        assert_eq!(about(&event("Logging", "another")), None);
        assert_eq!(about(&event("Created", "kopf")), None);
    }
}

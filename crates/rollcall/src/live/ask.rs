//! Single questions to the API server, answered as plain JSON. What may not be read is named, and is not fatal.

use std::collections::BTreeSet;

use serde_json::Value;
use watcher::ApiKind;

/// Asks, and remembers what was refused.
pub(super) struct Ask {
    client: kube::Client,
    /// What could not be read, and why, each once.
    pub(super) refused: BTreeSet<String>,
}

impl Ask {
    pub(super) fn new(client: kube::Client) -> Ask {
        Ask { client, refused: BTreeSet::new() }
    }

    /// What stands at this path; nothing where there is nothing, or it may not be read.
    pub(super) async fn get(&mut self, what: &str, path: &str) -> Option<Value> {
        let request = http::Request::get(path).body(Vec::new());
        match self.client.request::<Value>(request.ok()?).await {
            Ok(value) => Some(value),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(kube::Error::Api(status)) if status.code == 403 => {
                self.refused.insert(format!("{what}: you may not read it"));
                None
            }
            Err(error) => {
                self.refused.insert(format!("{what}: {error}"));
                None
            }
        }
    }

    /// The items of a list.
    pub(super) async fn list(&mut self, what: &str, path: &str) -> Vec<Value> {
        let items = self.get(what, path).await.and_then(|mut list| match list["items"].take() {
            Value::Array(items) => Some(items),
            _ => None,
        });
        items.unwrap_or_default()
    }

    /// The Events about an object, of which there may be none left.
    pub(super) async fn events(&mut self, namespace: &str, uid: &str) -> Vec<Value> {
        // What lives in no namespace has its Events in this one.
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        let field = encoded(&format!("involvedObject.uid={uid}"));
        self.list("Events", &format!("/api/v1/namespaces/{namespace}/events?fieldSelector={field}&limit=100"))
            .await
    }
}

/// A kind of Kubernetes' own that lives in namespaces.
pub(super) fn built_in(group: &str, kind: &str, plural: &str) -> ApiKind {
    ApiKind {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
        has_status: true,
    }
}

/// A value in a query.
pub(super) fn encoded(value: &str) -> String {
    use std::fmt::Write;
    value.bytes().fold(String::with_capacity(value.len()), |mut out, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ => _ = write!(out, "%{byte:02X}"),
        }
        out
    })
}

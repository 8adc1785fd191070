//! Single questions to the API server, answered as plain JSON. What may not be read is named, and is not fatal.

use std::collections::BTreeSet;

use serde_json::Value;
use watcher::ApiKind;

/// What is read beside the object itself, as it is named where it may not be read.
pub const PODS: &str = "Pods";
/// The same.
pub const CLAIM: &str = "PersistentVolumeClaims";
/// The same.
pub const SETS: &str = "ReplicaSets";
/// The same.
pub const EVENTS: &str = "Events";

/// Asks, and remembers what was refused.
pub struct Ask {
    client: kube::Client,
    /// Who is refused, where the API server refuses: `you`, `Rollcall`.
    who: &'static str,
    /// Not asked for at all: who looks may not read it.
    barred: BTreeSet<&'static str>,
    /// What could not be read, and why, each once.
    pub refused: BTreeSet<String>,
}

impl Ask {
    /// With the rights of whoever runs this.
    pub fn new(client: kube::Client) -> Ask {
        Ask { client, who: "you", barred: BTreeSet::new(), refused: BTreeSet::new() }
    }

    /// With Rollcall's rights, for somebody who may not read what is `barred`.
    pub fn on_behalf(client: kube::Client, barred: BTreeSet<&'static str>) -> Ask {
        Ask { client, who: "Rollcall", barred, refused: BTreeSet::new() }
    }

    /// Whether this may be asked for; if not, that is noted.
    pub fn may(&mut self, what: &str) -> bool {
        let barred = self.barred.contains(what);
        if barred {
            self.refused.insert(format!("{what}: you may not read them here"));
        }
        !barred
    }

    /// What stands at this path; nothing where there is nothing, or it may not be read.
    pub async fn get(&mut self, what: &str, path: &str) -> Option<Value> {
        if !self.may(what) {
            return None;
        }
        let request = http::Request::get(path).body(Vec::new());
        match self.client.request::<Value>(request.ok()?).await {
            Ok(value) => Some(value),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(kube::Error::Api(status)) if status.code == 403 => {
                self.refused.insert(format!("{what}: {} may not read it", self.who));
                None
            }
            Err(error) => {
                self.refused.insert(format!("{what}: {error}"));
                None
            }
        }
    }

    /// The items of a list.
    pub async fn list(&mut self, what: &str, path: &str) -> Vec<Value> {
        let items = self.get(what, path).await.and_then(|mut list| match list["items"].take() {
            Value::Array(items) => Some(items),
            _ => None,
        });
        items.unwrap_or_default()
    }

    /// The Events about an object, of which there may be none left.
    pub async fn events(&mut self, namespace: &str, uid: &str) -> Vec<Value> {
        // What lives in no namespace has its Events in this one.
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        let field = encoded(&format!("involvedObject.uid={uid}"));
        self.list(EVENTS, &format!("/api/v1/namespaces/{namespace}/events?fieldSelector={field}&limit=100"))
            .await
    }
}

/// A kind of Kubernetes' own that lives in namespaces.
pub fn built_in(group: &str, kind: &str, plural: &str) -> ApiKind {
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
pub fn encoded(value: &str) -> String {
    use std::fmt::Write;
    value.bytes().fold(String::with_capacity(value.len()), |mut out, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ => _ = write!(out, "%{byte:02X}"),
        }
        out
    })
}

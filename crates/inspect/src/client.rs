//! Single requests to the API server, with responses as plain JSON. A resource that may not be read is reported, and is
//! no error.

use std::collections::BTreeSet;

use serde_json::Value;
use watcher::{ApiKind, percent_encode};

/// Name of a resource read besides the object, for the report that it may not be read.
pub const PODS_LABEL: &str = "Pods";
/// As [`PODS_LABEL`].
pub const CLAIMS_LABEL: &str = "PersistentVolumeClaims";
/// As [`PODS_LABEL`].
pub const REPLICA_SETS_LABEL: &str = "ReplicaSets";
/// As [`PODS_LABEL`].
pub const EVENTS_LABEL: &str = "Events";
/// As [`PODS_LABEL`].
pub const LEASES_LABEL: &str = "Leases";
/// `Accept` header for metadata alone; a server that cannot provide it sends whole objects.
const ACCEPT_METADATA: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

/// Client that records rejected requests.
pub struct InspectClient {
    client: kube::Client,
    /// Subject of the report if the API server rejects a request: `you`, `Rollcall`.
    requester: &'static str,
    /// Resources that are not requested because the viewer may not read them.
    barred: BTreeSet<&'static str>,
    /// Resources that could not be read, with the reason, without duplicates.
    pub refused: BTreeSet<String>,
}

impl InspectClient {
    /// Client with the user's own rights.
    pub fn new(client: kube::Client) -> InspectClient {
        InspectClient { client, requester: "you", barred: BTreeSet::new(), refused: BTreeSet::new() }
    }

    /// Client with Rollcall's rights, for a viewer who may not read what is `barred`.
    pub fn on_behalf(client: kube::Client, barred: BTreeSet<&'static str>) -> InspectClient {
        InspectClient { client, requester: "Rollcall", barred, refused: BTreeSet::new() }
    }

    /// True if the resource may be requested; records the refusal otherwise.
    pub fn may_read(&mut self, what: &str) -> bool {
        let barred = self.barred.contains(what);
        if barred {
            self.refused.insert(format!("{what}: you may not read them here"));
        }
        !barred
    }

    /// Object at this path; `None` if it does not exist or may not be read.
    pub async fn get(&mut self, what: &str, path: &str) -> Option<Value> {
        self.get_accepting(what, path, "application/json").await
    }

    /// As [`InspectClient::get`], of a list whose items' metadata is enough.
    pub async fn get_metadata(&mut self, what: &str, path: &str) -> Option<Value> {
        self.get_accepting(what, path, ACCEPT_METADATA).await
    }

    async fn get_accepting(&mut self, what: &str, path: &str, accept: &str) -> Option<Value> {
        if !self.may_read(what) {
            return None;
        }
        let request = http::Request::get(path).header(http::header::ACCEPT, accept).body(Vec::new());
        match self.client.request::<Value>(request.ok()?).await {
            Ok(value) => Some(value),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(kube::Error::Api(status)) if status.code == 403 => {
                self.refused.insert(format!("{what}: {} may not read it", self.requester));
                None
            }
            Err(error) => {
                self.refused.insert(format!("{what}: {error}"));
                None
            }
        }
    }

    /// Items of a list.
    pub async fn list_items(&mut self, what: &str, path: &str) -> Vec<Value> {
        let items = self.get(what, path).await.and_then(|mut list| match list["items"].take() {
            Value::Array(items) => Some(items),
            _ => None,
        });
        items.unwrap_or_default()
    }

    /// Events about an object; possibly expired.
    pub async fn list_events(&mut self, namespace: &str, uid: &str) -> Vec<Value> {
        // Events about cluster-scoped objects are in this namespace.
        let namespace = if namespace.is_empty() { "default" } else { namespace };
        let field = percent_encode(&format!("involvedObject.uid={uid}"));
        self.list_items(
            EVENTS_LABEL,
            &format!("/api/v1/namespaces/{namespace}/events?fieldSelector={field}&limit=100"),
        )
        .await
    }
}

/// Built-in namespaced kind.
pub fn built_in_kind(group: &str, kind: &str, plural: &str) -> ApiKind {
    ApiKind {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced: true,
        has_status: true,
    }
}

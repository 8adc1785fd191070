//! The ConfigMap that keeps the inventory, as one reads and writes it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::core::Status;
use policy::rbac::DEFAULT_NAMESPACE;
use readiness::Time;
use serde_json::{Map, Value, json};
use tokio::time::timeout;
use watcher::status::FIELD_MANAGER;

/// Longest time that a request about it may take. 10 s.
const INVENTORY_REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the inventory is kept.
#[derive(Clone, Debug)]
pub(super) struct InventoryMap {
    api: Api<ConfigMap>,
    namespace: String,
    name: String,
}

/// The inventory in the server's last version.
#[derive(Debug, Default)]
pub(super) struct StoredInventory {
    /// `None` where there is no ConfigMap.
    pub(super) version: Option<String>,
    /// When it was created.
    pub(super) created: Option<Time>,
    /// Its values, but for those that are none of ours.
    pub(super) data: BTreeMap<String, String>,
}

/// Why a request about it failed.
#[derive(Debug)]
pub(super) enum InventoryFailure {
    TimedOut,
    Refused(Box<Status>),
    NoResponse,
}

impl InventoryMap {
    pub(super) fn new(client: &kube::Client, namespace: &str, name: &str) -> InventoryMap {
        InventoryMap {
            api: Api::namespaced(client.clone(), namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Reads it; `None` where there is none.
    pub(super) fn read(&self) -> BoxFuture<'static, Result<Option<ConfigMap>, InventoryFailure>> {
        let map = self.clone();
        async move { bounded(map.api.get_opt(&map.name)).await }.boxed()
    }

    /// Replaces the stored values by `data`, unless another writer has changed them since. Foreign values stay.
    pub(super) fn write(
        &self,
        stored: &StoredInventory,
        data: &BTreeMap<String, String>,
    ) -> BoxFuture<'static, Result<ConfigMap, InventoryFailure>> {
        let map = self.clone();
        let manager = Some(FIELD_MANAGER.to_owned());
        let Some(version) = &stored.version else {
            let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
            let created = ConfigMap { metadata, data: Some(data.clone()), ..ConfigMap::default() };
            let params = PostParams { field_manager: manager, ..PostParams::default() };
            return async move { bounded(map.api.create(&params, &created)).await }.boxed();
        };
        let gone = stored.data.keys().filter(|uid| !data.contains_key(*uid));
        let mut changes: Map<String, Value> = gone.map(|uid| (uid.clone(), Value::Null)).collect();
        let changed = data.iter().filter(|(uid, text)| stored.data.get(*uid) != Some(*text));
        changes.extend(changed.map(|(uid, text)| (uid.clone(), json!(text))));
        let patch = Patch::Merge(json!({ "metadata": { "resourceVersion": version }, "data": changes }));
        let params = PatchParams { field_manager: manager, ..PatchParams::default() };
        async move { bounded(map.api.patch(&map.name, &params, &patch)).await }.boxed()
    }

    /// Says what is wrong and what mends it.
    pub(super) fn explain(&self, verb: &str, failure: &InventoryFailure) -> String {
        let namespace = &self.namespace;
        let why = match failure {
            InventoryFailure::Refused(status) if status.code == 403 => {
                let flag = if namespace == DEFAULT_NAMESPACE {
                    String::new()
                } else {
                    format!(" --records-namespace {namespace}")
                };
                format!(
                    "not permitted to {verb} it; grant it with `rollcall rbac{flag} | kubectl apply -f -`"
                )
            }
            InventoryFailure::Refused(status) if status.code == 404 => format!(
                "namespace {namespace} does not exist; create it with `kubectl create namespace {namespace}`, or name \
                 another with --records-namespace"
            ),
            failure => format!("failed to {verb} it: {}", failure.cause()),
        };
        self.explain_for(&why)
    }

    /// Says what is wrong where the server keeps something else than was written.
    pub(super) fn explain_changed(&self) -> String {
        self.explain_for("the API server keeps something else than was written; look for an admission webhook that changes it")
    }

    fn explain_for(&self, why: &str) -> String {
        format!(
            "conditions of a policy that is deleted while Rollcall does not run will stay: ConfigMap {self}: {why}"
        )
    }
}

impl Display for InventoryMap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl InventoryFailure {
    /// Another writer was faster, or the ConfigMap is gone: what there is now decides.
    pub(super) fn is_conflict(&self) -> bool {
        let of_namespace =
            |status: &Status| status.details.as_ref().is_some_and(|of| of.kind == "namespaces");
        match self {
            InventoryFailure::Refused(status) => {
                status.code == 409 || (status.code == 404 && !of_namespace(status))
            }
            InventoryFailure::TimedOut | InventoryFailure::NoResponse => false,
        }
    }

    /// What tells it from other failures.
    pub(super) fn cause(&self) -> String {
        match self {
            InventoryFailure::TimedOut => "request timed out".to_owned(),
            InventoryFailure::Refused(status) => format!("{} {}", status.code, status.reason),
            InventoryFailure::NoResponse => "no response".to_owned(),
        }
    }
}

async fn bounded<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, InventoryFailure> {
    match timeout(INVENTORY_REQUEST_TIMEOUT, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) => Err(InventoryFailure::Refused(status)),
        Ok(Err(_)) => Err(InventoryFailure::NoResponse),
        Err(_) => Err(InventoryFailure::TimedOut),
    }
}

//! The demo's in-memory cluster, and every actor in it except Rollcall: operator, controllers, kubelet and readers.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, anyhow};
use sandbox::store::{StoreRefusal, StoreRequest};
use sandbox::{FaultAction, FaultHandle, InjectedFault, SandboxOptions, SandboxServer};
use serde_json::Value;

use super::fixtures::DemoObject;

/// An in-memory API server, with the CRDs and policies that the demo needs.
pub(super) struct DemoCluster {
    server: SandboxServer,
    reader: kube::Client,
}

impl DemoCluster {
    /// Starts the server on a free loopback port, with these objects in it.
    pub(super) async fn start_server(setup: Vec<Value>) -> anyhow::Result<DemoCluster> {
        let server = SandboxServer::start(SandboxOptions::default())
            .await
            .context("failed to start the API server")?;
        let reader = connect_client(&server.url())?;
        let cluster = DemoCluster { server, reader };
        for object in setup {
            cluster.create_object(object)?;
        }
        Ok(cluster)
    }

    /// Returns the server's URL.
    pub(super) fn server_url(&self) -> String {
        self.server.url()
    }

    /// Returns the kubectl command line that reaches this server.
    pub(super) fn kubectl_command(&self) -> String {
        format!("kubectl -s {}", self.server.addr())
    }

    /// Returns a client that talks to the server over HTTP.
    pub(super) fn new_client(&self) -> anyhow::Result<kube::Client> {
        connect_client(&self.server.url())
    }

    /// Returns the object as `kubectl get -o json` shows it, read over HTTP.
    pub(super) async fn get_object(&self, part: DemoObject<'_>) -> anyhow::Result<Value> {
        self.find_object(part).await?.with_context(|| format!("{} {} does not exist", part.kind, part.name))
    }

    /// Like [`DemoCluster::get_object`]; `None` if the server answers 404.
    pub(super) async fn find_object(&self, part: DemoObject<'_>) -> anyhow::Result<Option<Value>> {
        let DemoObject { api, kind, namespace, name } = part;
        let path = self
            .server
            .lock_store()
            .object_path(api, kind, namespace, name)
            .map_err(|r| refusal_error("find", &r))?;
        let request = http::Request::get(path).body(Vec::new())?;
        match self.reader.request(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error).with_context(|| format!("failed to get {kind} {name}")),
        }
    }

    /// Milliseconds since the Unix epoch.
    pub(super) fn now_millis(&self) -> i64 {
        self.server.now()
    }

    /// Creates an object, together with its status if it has one.
    pub(super) fn create_object(&self, object: Value) -> anyhow::Result<()> {
        let what = format!("create {} {}", object["kind"], object["metadata"]["name"]);
        let now = self.now_millis();
        self.server
            .lock_store()
            .create_with_status(now, object)
            .map(drop)
            .map_err(|r| refusal_error(&what, &r))
    }

    /// Applies a merge patch to the object.
    pub(super) fn patch_object(&self, part: DemoObject<'_>, patch: &Value) -> anyhow::Result<()> {
        let (DemoObject { api, kind, namespace, name }, now) = (part, self.now_millis());
        let done = self.server.lock_store().patch_object(now, api, kind, namespace, name, patch);
        done.map(drop).map_err(|r| refusal_error(&format!("patch {kind} {name}"), &r))
    }

    /// Adds a finalizer as another field manager.
    pub(super) fn add_finalizer(
        &self,
        part: DemoObject<'_>,
        manager: &str,
        finalizer: &str,
    ) -> anyhow::Result<()> {
        let (DemoObject { api, kind, namespace, name }, now) = (part, self.now_millis());
        let patch = serde_json::json!({ "metadata": { "finalizers": [finalizer] } });
        let mut store = self.server.lock_store();
        let path = store
            .object_path(api, kind, namespace, name)
            .map_err(|r| refusal_error(&format!("hold {kind} {name}"), &r))?;
        let request = StoreRequest::with_body("PATCH", &path, "application/merge-patch+json", &patch)
            .with_user_agent(manager);
        let answer = store.handle_request(now, &request);
        anyhow::ensure!(answer.is_success(), "failed to hold {kind} {name}: {}", answer.body_value());
        Ok(())
    }

    /// Patches the object's status as its controller.
    pub(super) fn patch_status(&self, part: DemoObject<'_>, status: &Value) -> anyhow::Result<()> {
        let (DemoObject { api, kind, namespace, name }, now) = (part, self.now_millis());
        let patch = serde_json::json!({ "status": status });
        let done = self.server.lock_store().patch_status(now, api, kind, namespace, name, &patch);
        done.map(drop).map_err(|r| refusal_error(&format!("patch status of {kind} {name}"), &r))
    }

    /// Deletes the object; one with a finalizer is only marked for deletion.
    pub(super) fn delete_object(&self, part: DemoObject<'_>) -> anyhow::Result<()> {
        let (DemoObject { api, kind, namespace, name }, now) = (part, self.now_millis());
        let done = self.server.lock_store().delete_object(now, api, kind, namespace, name);
        done.map(drop).map_err(|r| refusal_error(&format!("delete {kind} {name}"), &r))
    }

    /// Returns the object's uid.
    pub(super) fn object_uid(&self, part: DemoObject<'_>) -> anyhow::Result<String> {
        let found = self.server.lock_store().get(part.api, part.kind, part.namespace, part.name);
        let uid = found.as_ref().and_then(|object| object["metadata"]["uid"].as_str());
        uid.map(str::to_owned).ok_or_else(|| anyhow!("{} {} does not exist", part.kind, part.name))
    }

    /// Number of status writes to this object over HTTP; only Rollcall makes them.
    pub(super) fn count_status_writes(&self, part: DemoObject<'_>) -> usize {
        let end = format!("/{}/status", part.name);
        let requests = self.server.logged_requests();
        requests.iter().filter(|r| r.method == "PATCH" && r.path.ends_with(&end)).count()
    }

    /// Until the handle is dropped, watches of this kind stay open but deliver no event.
    pub(super) fn silence_watch(&self, group: &str, plural: &str) -> FaultHandle {
        self.server.faults().add(InjectedFault::new(FaultAction::DropEvent).on_kind(group, plural))
    }
}

/// Reads the metrics that Rollcall serves.
#[derive(Clone)]
pub(super) struct MetricsReader(kube::Client);

impl MetricsReader {
    /// Returns a reader of the metrics served at this address.
    pub(super) fn at_address(addr: SocketAddr) -> anyhow::Result<MetricsReader> {
        // A listener on an unspecified address is reachable on loopback.
        let ip = if addr.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { addr.ip() };
        connect_client(&format!("http://{}", SocketAddr::new(ip, addr.port()))).map(MetricsReader)
    }

    /// Returns the value of a series, named as Prometheus writes it; `None` if it does not exist.
    pub(super) async fn read_series(&self, series: &str) -> anyhow::Result<Option<f64>> {
        let request = http::Request::get("/metrics").body(Vec::new())?;
        let text = self.0.request_text(request).await.context("failed to get /metrics")?;
        Ok(text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok()))
    }
}

fn connect_client(url: &str) -> anyhow::Result<kube::Client> {
    let url = url.parse().context("failed to read a server's address")?;
    watcher::client_without_retries(kube::Config::new(url)).context("failed to make a client")
}

fn refusal_error(what: &str, refusal: &StoreRefusal) -> anyhow::Error {
    anyhow!("failed to {what}: {}", refusal.message())
}

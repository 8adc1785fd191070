//! The cluster, and everybody in it but Rollcall: the operator, the controllers, the kubelet, and who looks at it.

use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, anyhow};
use sandbox::store::{Refusal, Request};
use sandbox::{Act, Fault, FaultHandle, Options, Server};
use serde_json::Value;

use super::cast::{self, NAMESPACE, Part};

/// An API server in memory with the scenery in place.
pub(super) struct Cluster {
    server: Server,
    reader: kube::Client,
}

impl Cluster {
    /// Starts one on a free port of loopback.
    pub(super) async fn start() -> anyhow::Result<Cluster> {
        let server = Server::start(Options::default()).await.context("failed to start the API server")?;
        let reader = client(&server.url())?;
        let cluster = Cluster { server, reader };
        for object in cast::scenery()? {
            cluster.create(object)?;
        }
        Ok(cluster)
    }

    /// How everybody reaches it.
    pub(super) fn kubectl(&self) -> String {
        format!("kubectl -s {}", self.server.addr())
    }

    /// A client, over HTTP like everybody's.
    pub(super) fn client(&self) -> anyhow::Result<kube::Client> {
        client(&self.server.url())
    }

    /// The object as `kubectl get -o json` shows it: read over HTTP, now.
    pub(super) async fn get(&self, part: Part) -> anyhow::Result<Value> {
        self.find(part).await?.with_context(|| format!("{} {} does not exist", part.kind, part.name))
    }

    /// The same; `None` where the server answers that there is none.
    pub(super) async fn find(&self, part: Part) -> anyhow::Result<Option<Value>> {
        let Part { api, kind, name } = part;
        let path = self.server.store().path(api, kind, NAMESPACE, name).map_err(|r| refused("find", &r))?;
        let request = http::Request::get(path).body(Vec::new())?;
        match self.reader.request(request).await {
            Ok(object) => Ok(Some(object)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error).with_context(|| format!("failed to get {kind} {name}")),
        }
    }

    /// Milliseconds since the Unix epoch.
    pub(super) fn now(&self) -> i64 {
        self.server.now()
    }

    /// Creates an object, with its status if it has one.
    pub(super) fn create(&self, object: Value) -> anyhow::Result<()> {
        let what = format!("create {} {}", object["kind"], object["metadata"]["name"]);
        let now = self.now();
        self.server.store().create_with_status(now, object).map(drop).map_err(|r| refused(&what, &r))
    }

    /// A merge patch.
    pub(super) fn patch(&self, part: Part, patch: &Value) -> anyhow::Result<()> {
        let (Part { api, kind, name }, now) = (part, self.now());
        let done = self.server.store().patch(now, api, kind, NAMESPACE, name, patch);
        done.map(drop).map_err(|r| refused(&format!("patch {kind} {name}"), &r))
    }

    /// Somebody holds it.
    pub(super) fn hold(&self, part: Part, manager: &str, finalizer: &str) -> anyhow::Result<()> {
        let (Part { api, kind, name }, now) = (part, self.now());
        let patch = serde_json::json!({ "metadata": { "finalizers": [finalizer] } });
        let mut store = self.server.store();
        let path = store
            .path(api, kind, NAMESPACE, name)
            .map_err(|r| refused(&format!("hold {kind} {name}"), &r))?;
        let request = Request::with("PATCH", &path, "application/merge-patch+json", &patch).by(manager);
        let answer = store.handle(now, &request);
        anyhow::ensure!(answer.is_success(), "failed to hold {kind} {name}: {}", answer.value());
        Ok(())
    }

    /// Its controller says this of it.
    pub(super) fn status(&self, part: Part, status: &Value) -> anyhow::Result<()> {
        let (Part { api, kind, name }, now) = (part, self.now());
        let patch = serde_json::json!({ "status": status });
        let done = self.server.store().patch_status(now, api, kind, NAMESPACE, name, &patch);
        done.map(drop).map_err(|r| refused(&format!("patch status of {kind} {name}"), &r))
    }

    /// Deletes it; what a finalizer holds stays and is marked.
    pub(super) fn delete(&self, part: Part) -> anyhow::Result<()> {
        let (Part { api, kind, name }, now) = (part, self.now());
        let done = self.server.store().delete(now, api, kind, NAMESPACE, name);
        done.map(drop).map_err(|r| refused(&format!("delete {kind} {name}"), &r))
    }

    /// Its uid.
    pub(super) fn uid(&self, part: Part) -> anyhow::Result<String> {
        let found = self.server.store().get(part.api, part.kind, NAMESPACE, part.name);
        let uid = found.as_ref().and_then(|object| object["metadata"]["uid"].as_str());
        uid.map(str::to_owned).ok_or_else(|| anyhow!("{} {} does not exist", part.kind, part.name))
    }

    /// How often somebody has written the status of this object over HTTP, which only Rollcall does.
    pub(super) fn writes(&self, part: Part) -> usize {
        let end = format!("/{}/status", part.name);
        let requests = self.server.requests();
        requests.iter().filter(|r| r.method == "PATCH" && r.path.ends_with(&end)).count()
    }

    /// From now on, and until it is lifted, watches of this kind stay open and say nothing.
    pub(super) fn silence(&self, group: &str, plural: &str) -> FaultHandle {
        self.server.faults().add(Fault::new(Act::DropEvent).kind(group, plural))
    }
}

/// What Rollcall's own listener says.
#[derive(Clone)]
pub(super) struct Meter(kube::Client);

impl Meter {
    /// Reads the metrics that are served there.
    pub(super) fn at(addr: SocketAddr) -> anyhow::Result<Meter> {
        // Who listens everywhere listens here.
        let ip = if addr.ip().is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { addr.ip() };
        client(&format!("http://{}", SocketAddr::new(ip, addr.port()))).map(Meter)
    }

    /// A series, written as Prometheus writes it; `None` where there is none.
    pub(super) async fn read(&self, series: &str) -> anyhow::Result<Option<f64>> {
        let request = http::Request::get("/metrics").body(Vec::new())?;
        let text = self.0.request_text(request).await.context("failed to get /metrics")?;
        Ok(text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok()))
    }
}

fn client(url: &str) -> anyhow::Result<kube::Client> {
    let url = url.parse().context("failed to read a server's address")?;
    watcher::client(kube::Config::new(url)).context("failed to make a client")
}

fn refused(what: &str, refusal: &Refusal) -> anyhow::Error {
    anyhow!("failed to {what}: {}", refusal.message())
}

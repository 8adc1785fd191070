//! An API server as a function: it lists and watches parents with one ready pod each, and fails what it is told to fail.

use std::convert::Infallible;
use std::fmt::Write;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use http_body_util::combinators::UnsyncBoxBody;
use kube::client::Body;
use serde_json::json;
use tokio::time::Instant;
use tower_service::Service;

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// How a request fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// This HTTP status, with `Retry-After` in seconds.
    Status(u16, Option<u64>),
    /// A 404 that names the object, as if it were gone.
    Gone,
    /// No answer.
    Silence,
    /// No connection.
    Refused,
    /// The write is accepted, and what it says is dropped.
    Pruned,
}

/// Which requests fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Writes of the parents' status.
    StatusWrites,
    /// All writes.
    Writes,
    /// Bindings of the roles that are listed; all rights lack meanwhile.
    Bindings,
    /// Whatever is asked about roles; all rights lack meanwhile.
    Roles,
    /// Everything, from the moment on at which all was listed.
    Everything,
}

/// The server.
#[derive(Clone)]
pub(crate) struct FailingServer(Arc<Parts>);

struct Parts {
    failure: Failure,
    scope: Scope,
    start: Instant,
    parents: Vec<String>,
    databases: Bytes,
    pods: Bytes,
    /// Requests so far: time, and what was asked.
    requests: Mutex<Vec<(Duration, String)>>,
}

impl FailingServer {
    pub(crate) fn new(parents: usize, scope: Scope, failure: Failure) -> FailingServer {
        let texts: Vec<String> = (0..parents).map(database).collect();
        let databases = list_of("example.com/v1", "DatabaseList", &texts);
        let pods = list_of("v1", "PodList", &(0..parents).map(pod).collect::<Vec<_>>());
        FailingServer(Arc::new(Parts {
            failure,
            scope,
            start: Instant::now(),
            parents: texts,
            databases,
            pods,
            requests: Mutex::default(),
        }))
    }

    /// Requests so far, with their times.
    pub(crate) fn requests(&self) -> Vec<(Duration, String)> {
        self.0.requests.lock().unwrap().clone()
    }
}

impl Parts {
    fn fails(&self, method: &Method, path: &str, at: Duration) -> bool {
        let writes = method != Method::GET;
        match self.scope {
            Scope::StatusWrites => writes && path.contains("/databases/"),
            Scope::Writes => writes && !path.contains("accessreviews"),
            Scope::Bindings => writes && path.contains("/clusterrolebindings"),
            Scope::Roles => path.contains("/clusterrole"),
            Scope::Everything => at > Duration::from_secs(20),
        }
    }

    fn answer(&self, path: &str, query: &str) -> Answer {
        if query.contains("watch=") {
            let seconds =
                query.split('&').find_map(|pair| pair.strip_prefix("timeoutSeconds=")?.parse().ok());
            return silence_for(Duration::from_secs(seconds.unwrap_or(60)));
        }
        if let Some(name) = path.strip_prefix("/apis/example.com/v1/namespaces/shop/databases/db-") {
            let number: usize = name.trim_end_matches("/status").parse().unwrap();
            return whole(200, None, self.parents[number].clone());
        }
        match path {
            "/apis/example.com" => whole(200, None, group("example.com", "v1")),
            "/apis/rollcall.dev" => whole(200, None, group("rollcall.dev", "v1alpha1")),
            "/apis/example.com/v1" => whole(200, None, resources("databases", "Database")),
            "/api/v1" => whole(200, None, resources("pods", "Pod")),
            "/apis/example.com/v1/databases" => whole(200, None, self.databases.clone()),
            "/api/v1/pods" => whole(200, None, self.pods.clone()),
            "/apis/rollcall.dev/v1alpha1/readinesspolicies" => {
                let policies = [policy()];
                whole(200, None, list_of("rollcall.dev/v1alpha1", "ReadinessPolicyList", &policies))
            }
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews" => {
                let allowed = !matches!(self.scope, Scope::Bindings | Scope::Roles);
                whole(201, None, json!({ "status": { "allowed": allowed } }).to_string())
            }
            "/apis/authentication.k8s.io/v1/selfsubjectreviews" => {
                let user = json!({ "username": "system:serviceaccount:home:rollcall" });
                whole(201, None, json!({ "status": { "userInfo": user } }).to_string())
            }
            _ if path.starts_with("/apis/rbac.authorization.k8s.io/v1/clusterroles/") => {
                let rule = json!({ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] });
                whole(200, None, json!({ "rules": [rule] }).to_string())
            }
            _ if path.starts_with("/apis/rollcall.dev/v1alpha1/readinesspolicies/") => {
                whole(200, None, policy())
            }
            _ if path.contains("/events") => whole(201, None, "{}"),
            _ => whole(404, None, format!("404 page not found: {path}")),
        }
    }

    async fn fail(&self, path: &str) -> Result<Answer, BoxError> {
        match self.failure {
            Failure::Status(code, retry_after) => {
                let message =
                    format!("the server could not take {path}: it is told to fail; {}", "x".repeat(200));
                let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure",
                    "message": message, "reason": "Failing", "code": code });
                Ok(whole(code, retry_after, status.to_string()))
            }
            Failure::Gone => {
                let name = path.trim_end_matches("/status").rsplit('/').next().unwrap_or_default();
                let status = json!({ "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404,
                    "details": { "name": name, "group": "example.com", "kind": "databases" } });
                Ok(whole(404, None, status.to_string()))
            }
            Failure::Silence => std::future::pending().await,
            Failure::Refused => Err("connection refused".into()),
            Failure::Pruned => Ok(self.answer(path, "")),
        }
    }
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

impl Service<Request<Body>> for FailingServer {
    type Response = Answer;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let parts = self.0.clone();
        Box::pin(async move {
            let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
            let at = Instant::now() - parts.start;
            let watch = if query.contains("watch=") { " watch" } else { "" };
            let asked = format!("{} {path}{watch}", request.method());
            parts.requests.lock().unwrap().push((at, asked));
            // A server is never faster than this.
            tokio::time::sleep(Duration::from_millis(2)).await;
            if parts.fails(request.method(), path, at) {
                return parts.fail(path).await;
            }
            Ok(parts.answer(path, query))
        })
    }
}

fn whole(status: u16, retry_after: Option<u64>, body: impl Into<Bytes>) -> Answer {
    let body = futures::stream::iter([Ok(Frame::data(body.into()))]);
    let mut response = Response::builder().status(status);
    if let Some(seconds) = retry_after {
        response = response.header("Retry-After", seconds);
    }
    response.body(UnsyncBoxBody::new(StreamBody::new(body))).unwrap()
}

/// A watch over which nothing comes for so long.
fn silence_for(span: Duration) -> Answer {
    let end = futures::stream::once(async move {
        tokio::time::sleep(span).await;
        Ok(Frame::data(Bytes::new()))
    });
    Response::new(UnsyncBoxBody::new(StreamBody::new(end)))
}

fn list_of(version: &str, kind: &str, items: &[String]) -> Bytes {
    let mut text = format!(
        r#"{{"apiVersion":"{version}","kind":"{kind}","metadata":{{"resourceVersion":"100"}},"items":["#
    );
    for (number, item) in items.iter().enumerate() {
        _ = write!(text, "{}{item}", if number == 0 { "" } else { "," });
    }
    text.push_str("]}");
    text.into()
}

fn database(number: usize) -> String {
    json!({ "apiVersion": "example.com/v1", "kind": "Database", "status": { "conditions": [] }, "metadata": {
        "name": format!("db-{number}"), "namespace": "shop", "uid": format!("db-{number}"), "resourceVersion": "1",
        "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z" } })
    .to_string()
}

fn pod(number: usize) -> String {
    let owner = json!({ "apiVersion": "example.com/v1", "kind": "Database", "controller": true,
        "name": format!("db-{number}"), "uid": format!("db-{number}") });
    json!({ "apiVersion": "v1", "kind": "Pod", "spec": {}, "metadata": {
        "name": format!("pod-{number}"), "namespace": "shop", "uid": format!("pod-{number}"), "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z", "ownerReferences": [owner] },
        "status": { "phase": "Running", "conditions": [{ "type": "Ready", "status": "True" }] } })
    .to_string()
}

fn policy() -> String {
    json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
        "metadata": { "name": "databases", "uid": "databases", "resourceVersion": "1", "generation": 1 },
        "spec": { "parent": { "group": "example.com", "kind": "Database" },
            "children": [{ "kind": { "group": "", "kind": "Pod" } }] } })
    .to_string()
}

fn group(name: &str, version: &str) -> String {
    let served = json!({ "groupVersion": format!("{name}/{version}"), "version": version });
    json!({ "kind": "APIGroup", "name": name, "versions": [served], "preferredVersion": served }).to_string()
}

fn resources(plural: &str, kind: &str) -> String {
    let resource = |name: String| json!({ "name": name, "kind": kind, "namespaced": true, "verbs": [] });
    json!({ "kind": "APIResourceList", "resources": [resource(plural.into()), resource(format!("{plural}/status"))] })
        .to_string()
}

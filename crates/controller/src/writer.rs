//! I/O out: patches the status of parents, a few at a time, and reports what became of each.

use std::sync::Arc;
use std::time::Duration;

use aggregator::{ObjectId, Outcome, PolicyId};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use http_body_util::BodyExt;
use kube::client::Body;
use readiness::rollup::Status;
use timer::Seed;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tracing::{debug, info, warn};
use watcher::reflector::Reflector;
use watcher::status::{MANAGER, patch_body};
use watcher::{ApiKind, Parent, look};

use crate::core::{Reply, Write, reply};
use crate::kinds::{Followed, Known};
use crate::lease::Mandate;

/// So many writes are under way at once.
const AT_ONCE: usize = 16;
/// A write that takes longer has an unknown end.
const PATIENCE: Duration = Duration::from_secs(15);

/// What became of a write.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    /// The parent.
    pub(crate) parent: ObjectId,
    /// The policies whose answers were in it.
    pub(crate) policies: Vec<PolicyId>,
    /// How it ended.
    pub(crate) outcome: Outcome,
    /// How it ended, as a metric's label.
    pub(crate) label: &'static str,
    /// The status that the first policy's condition turned to, where it was written and turned.
    pub(crate) turned_to: Option<Status>,
}

/// Writes what it is given.
#[derive(Clone)]
pub(crate) struct Writer {
    /// The client; retries are our own.
    pub(crate) client: kube::Client,
    /// Fed with what the server answers.
    pub(crate) reflector: Arc<Reflector>,
    /// Where kinds are served.
    pub(crate) known: Known,
    /// Whether a write may begin.
    pub(crate) mandate: Mandate,
    /// Spreads retries.
    pub(crate) seed: Seed,
}

impl Writer {
    /// Writes until there is nothing more to come, and then to the end what was begun.
    pub(crate) async fn run(self, mut writes: UnboundedReceiver<Write>, settled: UnboundedSender<Settled>) {
        let mut under_way = FuturesUnordered::new();
        loop {
            tokio::select! { biased;
                Some(done) = under_way.next(), if !under_way.is_empty() => { _ = settled.send(done); }
                write = writes.recv(), if under_way.len() < AT_ONCE => match write {
                    Some(write) => under_way.push(self.write(write)),
                    None => break,
                },
            }
        }
        while let Some(done) = under_way.next().await {
            _ = settled.send(done);
        }
    }

    async fn write(&self, write: Write) -> Settled {
        let known = self.known.get(&write.kind).map(|k| Arc::clone(&k));
        let (outcome, label) = match known {
            Some(followed) => self.patch(&followed, &write).await,
            // The kind was dropped in between; whoever follows it next asks anew.
            None => (Outcome::Retry(Duration::from_secs(1)), "dropped"),
        };
        let turned_to = write.turns_to.filter(|_| outcome == Outcome::Written);
        Settled { parent: write.parent, policies: write.policies, outcome, label, turned_to }
    }

    async fn patch(&self, followed: &Followed, write: &Write) -> (Outcome, &'static str) {
        let object = format!("{} {}/{}", followed.api, write.namespace, write.name);
        if !self.mandate.holds() {
            // It was decided while this one led. Whoever leads now decides for itself.
            return (Outcome::Retry(Duration::ZERO), "standby");
        }
        let patience = PATIENCE.min(self.mandate.lasts());
        let response = match tokio::time::timeout(patience, self.send(&followed.api, write)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                warn!(object, error = format!("{error:#}"), "failed to patch status");
                return (reply::retry(write, self.seed, Duration::ZERO), "error");
            }
            Err(_) => {
                warn!(object, "failed to patch status: no answer");
                return (reply::retry(write, self.seed, Duration::ZERO), "timeout");
            }
        };
        let Response { status, retry_after, body } = response;
        let reply = Reply::of(status);
        let outcome = reply.outcome(write, self.seed, retry_after);
        match reply {
            Reply::Accepted => self.written(followed, write, &object, &body),
            Reply::Gone => {
                debug!(object, "gone before it was written");
                self.look(followed, write).await;
                (outcome, "gone")
            }
            Reply::Conflict => {
                debug!(object, status, body = %String::from_utf8_lossy(&body), "guard failed; reading it anew");
                self.look(followed, write).await;
                (outcome, "conflict")
            }
            Reply::NotPermitted => {
                let api = &followed.api;
                let status = if api.has_status { "/status" } else { "" };
                let (group, plural) = (&api.group, &api.plural);
                warn!(
                    object,
                    detail = message(&body),
                    rule = format!("apiGroups: [{group:?}], resources: [{plural}{status}], verbs: [patch]"),
                    "not permitted to patch status: `rollcall rbac -f POLICY | kubectl apply -f -` grants that"
                );
                (outcome, "forbidden")
            }
            Reply::Failed => {
                warn!(object, status, detail = message(&body), "failed to patch status");
                (outcome, if status == 429 { "throttled" } else { "error" })
            }
        }
    }

    async fn send(&self, api: &ApiKind, write: &Write) -> anyhow::Result<Response> {
        let namespace = Some(write.namespace.as_str()).filter(|n| !n.is_empty());
        let status = if api.has_status { "/status" } else { "" };
        let target = format!("{}/{}{status}?fieldManager={MANAGER}", api.path(namespace), write.name);
        let request = Request::patch(target)
            .header(CONTENT_TYPE, "application/json-patch+json")
            .header(ACCEPT, "application/json")
            .body(Body::from(patch_body(&write.patch)))?;
        let response = self.client.send(request).await?;
        let status = response.status().as_u16();
        let retry_after =
            response.headers().get(RETRY_AFTER).and_then(|v| v.to_str().ok()?.trim().parse().ok());
        let body = response.into_body().collect().await?.to_bytes().to_vec();
        Ok(Response { status, retry_after: Duration::from_secs(retry_after.unwrap_or(0)), body })
    }

    /// The server accepted it: what it answers is what the parent says now, which may be less than what was sent.
    fn written(
        &self,
        followed: &Followed,
        write: &Write,
        object: &str,
        body: &[u8],
    ) -> (Outcome, &'static str) {
        let Some(parent) =
            std::str::from_utf8(body).ok().and_then(|b| serde_json::from_str::<Parent>(b).ok())
        else {
            return (Outcome::Written, "written");
        };
        let outcome = reply::accepted(&self.reflector, &followed.interest, write, &parent);
        if outcome == Outcome::Written {
            for entry in
                write.wanted.entries.iter().filter(|e| !matches!(&*e.r#type, "Reconciling" | "Stalled"))
            {
                info!(
                    object,
                    condition = entry.r#type,
                    status = entry.status,
                    reason = entry.reason,
                    entry.message,
                    "wrote"
                );
            }
            return (outcome, "written");
        }
        warn!(
            object,
            "the server dropped status.conditions: the schema of its CRD has no such field (it prunes)"
        );
        (outcome, "pruned")
    }

    /// Reads a parent live, so that what is decided next rests on what it says now.
    async fn look(&self, followed: &Followed, write: &Write) {
        let namespace = Some(write.namespace.as_str()).filter(|n| !n.is_empty());
        match look::<Parent>(&self.client, &followed.api, namespace, &write.name).await {
            Ok(live) => reply::reread(&self.reflector, &followed.interest, write, live.as_ref()),
            Err(error) => warn!(%error, "after a failed guard"),
        }
    }
}

struct Response {
    status: u16,
    retry_after: Duration,
    body: Vec<u8>,
}

/// What a `Status` object says.
fn message(body: &[u8]) -> String {
    let status: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    status["message"].as_str().map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned)
}

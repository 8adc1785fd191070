//! Requests to an API server with one identity, with plain JSON in and out.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use futures::{AsyncBufReadExt, Stream, StreamExt};
use http::{Method, Request};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::Status;
use serde_json::Value;

use crate::kind::{ManifestKind, ObjectAddress};

/// A client with one identity.
#[derive(Clone)]
pub struct ApiCaller {
    client: kube::Client,
}

/// An event of a watch.
#[derive(Clone, Debug, PartialEq)]
pub enum WatchedChange {
    /// Added or changed.
    There(Value),
    /// Deleted; the object is its last state.
    Gone(Value),
    /// No change, but the watch has reached this revision.
    Bookmark(u64),
}

/// An answer that is not 2xx.
#[derive(Debug)]
pub struct RefusedRequest(pub Box<Status>);

impl std::fmt::Display for RefusedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}: {}", self.0.code, self.0.reason, self.0.message)
    }
}

impl std::error::Error for RefusedRequest {}

/// Returns the HTTP status of a refused request, if the error is one.
pub fn code_of(error: &anyhow::Error) -> Option<u16> {
    error.downcast_ref::<RefusedRequest>().map(|RefusedRequest(status)| status.code)
}

fn is_initializing(error: &anyhow::Error) -> bool {
    let refused = error.downcast_ref::<RefusedRequest>();
    refused.is_some_and(|RefusedRequest(status)| {
        status.code == 429 && status.message.contains("(re)initializing")
    })
}

impl ApiCaller {
    /// Returns a client with the identity of a kubeconfig file.
    pub async fn from_kubeconfig(file: &Path) -> Result<Self> {
        let text = Kubeconfig::read_from(file)?;
        let mut config = kube::Config::from_custom_kubeconfig(text, &KubeConfigOptions::default()).await?;
        // A test needs the first answer, not the third.
        config.default_retry = false;
        Ok(Self { client: kube::Client::try_from(config)? })
    }

    /// The underlying client, for raw requests.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// Returns the object, or `None` if it does not exist.
    pub async fn get(&self, address: &ObjectAddress) -> Result<Option<Value>> {
        match self.send(Method::GET, &address.path(), "", Vec::new()).await {
            Err(error) if code_of(&error) == Some(404) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Creates an object.
    pub async fn create(&self, object: &Value) -> Result<Value> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        let path = ManifestKind::of(object)?.path(namespace);
        let body = serde_json::to_vec(object)?;
        let name = object["metadata"]["name"].as_str().unwrap_or("?");
        self.send(Method::POST, &path, "application/json", body)
            .await
            .with_context(|| format!("failed to create {} {name}", object["kind"]))
    }

    /// Deletes an object; its dependents are deleted in the background.
    pub async fn delete(&self, address: &ObjectAddress) -> Result<()> {
        let path = format!("{}?propagationPolicy=Background", address.path());
        self.send(Method::DELETE, &path, "", Vec::new())
            .await
            .with_context(|| format!("failed to delete {address}"))?;
        Ok(())
    }

    /// Sends a merge patch; `part` is empty or `/status`.
    pub async fn merge(&self, address: &ObjectAddress, part: &str, patch: &Value) -> Result<Value> {
        self.patch(address, part, "application/merge-patch+json", patch).await
    }

    /// Sends a JSON Patch; `part` is empty or `/status`.
    pub async fn json_patch(&self, address: &ObjectAddress, part: &str, patch: &Value) -> Result<Value> {
        self.patch(address, part, "application/json-patch+json", patch).await
    }

    /// Replaces the status with this object's, as most operators do.
    pub async fn put_status(&self, object: &Value) -> Result<Value> {
        let address = ObjectAddress::of(object)?;
        let path = format!("{}/status", address.path());
        self.send(Method::PUT, &path, "application/json", serde_json::to_vec(object)?)
            .await
            .with_context(|| format!("failed to replace the status of {address}"))
    }

    /// Lists a kind; also returns the resourceVersion of the list.
    pub async fn list(&self, kind: &ManifestKind, namespace: &str, query: &str) -> Result<(Vec<Value>, u64)> {
        let path = format!("{}?{query}", kind.path(namespace));
        let mut list = self.send(Method::GET, &path, "", Vec::new()).await?;
        let version = version_of(&list);
        let items = match list["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        // Items of a list do not have their own kind.
        let named = items.into_iter().map(|mut item| {
            item["apiVersion"] = Value::from(kind.api_version.clone());
            item["kind"] = Value::from(kind.kind.clone());
            item
        });
        Ok((named.collect(), version))
    }

    /// Returns the changes of a kind after `version`, until the server ends the watch.
    pub async fn watch(
        &self,
        kind: &ManifestKind,
        namespace: &str,
        query: &str,
        version: u64,
    ) -> Result<impl Stream<Item = Result<WatchedChange>> + use<>> {
        let path = format!(
            "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds=240&resourceVersion={version}&{query}",
            kind.path(namespace)
        );
        let request = Request::get(path).body(Vec::new())?;
        let body = self.client.request_stream(request).await.map_err(refused)?;
        Ok(body.lines().map(|line| seen(&line?)))
    }

    /// Sends any request. A server that has just taken up a changed CRD is asked again, for half a minute at most.
    pub async fn send(&self, method: Method, path: &str, content: &str, body: Vec<u8>) -> Result<Value> {
        for _ in 0..300 {
            match self.send_once(method.clone(), path, content, body.clone()).await {
                Err(error) if is_initializing(&error) => tokio::time::sleep(Duration::from_millis(100)).await,
                answer => return answer,
            }
        }
        self.send_once(method, path, content, body).await
    }

    async fn send_once(&self, method: Method, path: &str, content: &str, body: Vec<u8>) -> Result<Value> {
        let mut request = Request::builder().method(method).uri(path);
        if !content.is_empty() {
            request = request.header("content-type", content);
        }
        self.client.request(request.body(body)?).await.map_err(refused)
    }

    async fn patch(
        &self,
        address: &ObjectAddress,
        part: &str,
        content: &str,
        patch: &Value,
    ) -> Result<Value> {
        let url = format!("{}{part}", address.path());
        self.send(Method::PATCH, &url, content, serde_json::to_vec(patch)?)
            .await
            .with_context(|| format!("failed to patch {address}{part}"))
    }
}

/// Returns `metadata.resourceVersion`, which one etcd counts over all kinds.
pub fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn seen(line: &str) -> Result<WatchedChange> {
    let mut event: Value = serde_json::from_str(line).with_context(|| format!("in a watch: {line}"))?;
    let object = event["object"].take();
    match event["type"].as_str() {
        Some("ADDED" | "MODIFIED") => Ok(WatchedChange::There(object)),
        Some("DELETED") => Ok(WatchedChange::Gone(object)),
        Some("BOOKMARK") => Ok(WatchedChange::Bookmark(version_of(&object))),
        _ => Err(RefusedRequest(serde_json::from_value(object)?).into()),
    }
}

fn refused(error: kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => RefusedRequest(status).into(),
        other => other.into(),
    }
}

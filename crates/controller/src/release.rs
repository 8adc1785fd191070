//! `rollcall release`: takes our entries off the parents of policies, as an uninstall needs it.

use anyhow::Context;
use serde_json::Value;
use tracing::{info, warn};
use watcher::status::{Guarded, MANAGER, ParentStatus, Wanted, guarded_patch, patch_body};
use watcher::{ApiKind, Parent, look_all, resolve};

use crate::policies::{Compiled, Found};

/// What became of a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Released {
    /// Parents whose entries were taken off.
    pub released: usize,
    /// Parents on which that failed.
    pub failed: usize,
}

/// Releases every parent of these policies.
pub async fn release(
    client: &kube::Client,
    policies: &[Compiled],
    namespaces: &[String],
) -> anyhow::Result<Released> {
    let mut done = Released::default();
    for policy in policies {
        let parent = &policy.parent;
        let served = resolve(client, &parent.group, parent.version.as_deref(), &parent.kind).await?;
        let Some(api) = served else { continue };
        let scopes: Vec<Option<&str>> = if namespaces.is_empty() {
            vec![None]
        } else {
            namespaces.iter().map(|n| Some(n.as_str())).collect()
        };
        for scope in scopes {
            for object in look_all::<Parent>(client, &api, scope, None).await? {
                match release_one(client, &api, &object).await {
                    Ok(true) => done.released += 1,
                    Ok(false) => {}
                    Err(error) => {
                        done.failed += 1;
                        warn!(error = format!("{error:#}"), "release");
                    }
                }
            }
        }
    }
    Ok(done)
}

async fn release_one(client: &kube::Client, api: &ApiKind, object: &Parent) -> anyhow::Result<bool> {
    let meta = &object.child.meta;
    let said = ParentStatus::read(&object.text, &[]);
    let generation = (meta.generation > 0).then_some(meta.generation);
    let guarded = Guarded { uid: &meta.uid, generation, status: &said };
    let Some(patch) = guarded_patch(&guarded, &Wanted::default()) else { return Ok(false) };
    let name = format!("{api} {}/{}", meta.namespace, meta.name);
    send(client, api, &meta.namespace, &meta.name, &patch)
        .await
        .with_context(|| format!("failed to release {name}"))?;
    info!(object = name, "released");
    Ok(true)
}

async fn send(
    client: &kube::Client,
    api: &ApiKind,
    namespace: &str,
    name: &str,
    patch: &Value,
) -> anyhow::Result<()> {
    let status = if api.has_status { "/status" } else { "" };
    let path = api.path(Some(namespace).filter(|n| !n.is_empty()));
    let request = http::Request::patch(format!("{path}/{name}{status}?fieldManager={MANAGER}"))
        .header(http::header::CONTENT_TYPE, "application/json-patch+json")
        .body(patch_body(patch))?;
    client.request::<Value>(request).await?;
    Ok(())
}

/// Deletes the records in that namespace, of everything or of the parents of these policies alone: how many, and how many
/// could not be.
pub async fn forget(
    client: &kube::Client,
    namespace: &str,
    of: Option<&[Compiled]>,
) -> anyhow::Result<(usize, usize)> {
    let Some(api) = resolve(client, "rollcall.dev", None, "ReadinessRecord").await? else {
        return Ok((0, 0));
    };
    let (mut deleted, mut failed) = (0, 0);
    for record in look_all::<Parent>(client, &api, Some(namespace), None).await? {
        if !of.is_none_or(|policies| is_of(&record, policies)) {
            continue;
        }
        match delete(client, &api, &record).await {
            Ok(()) => deleted += 1,
            Err(error) => {
                failed += 1;
                warn!(error = format!("{error:#}"), "release");
            }
        }
    }
    Ok((deleted, failed))
}

/// It tells of a parent of one of these policies.
fn is_of(record: &Parent, policies: &[Compiled]) -> bool {
    let Ok(record) = serde_json::from_str::<Value>(record.text.get()) else { return false };
    let parent = &record["spec"]["parent"];
    let group = parent["group"].as_str().unwrap_or_default();
    policies.iter().any(|policy| policy.parent.group == group && parent["kind"] == *policy.parent.kind)
}

/// This very record: one that was made anew meanwhile is left alone.
async fn delete(client: &kube::Client, api: &ApiKind, record: &Parent) -> anyhow::Result<()> {
    let meta = &record.child.meta;
    let only = serde_json::json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": meta.uid } });
    let request = http::Request::delete(format!("{}/{}", api.path(Some(&meta.namespace)), meta.name))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(only.to_string().into_bytes())?;
    match client.request::<Value>(request).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
        Err(error) => return Err(error).with_context(|| format!("failed to delete {api} {}", meta.name)),
    }
    info!(object = format!("{api} {}/{}", meta.namespace, meta.name), "deleted");
    Ok(())
}

/// The policies of the cluster, as a release needs them.
pub async fn in_cluster(client: &kube::Client) -> anyhow::Result<Vec<Found>> {
    let Some(kind) = resolve(client, "rollcall.dev", None, "ReadinessPolicy").await? else {
        return Ok(Vec::new());
    };
    let policies = look_all::<Parent>(client, &kind, None, None).await?;
    Ok(policies.iter().map(crate::policies::found).collect())
}

//! `rollcall release`: removes Rollcall's entries from the parents of policies, before an uninstall.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Context;
use serde_json::Value;
use tokio::time::{Interval, MissedTickBehavior};
use tracing::{info, warn};
use watcher::plan::LabelMatcher;
use watcher::status::{
    FIELD_MANAGER, OwnTypes, ParentStatus, PatchGuard, WantedConditions, guarded_patch, patch_body,
    written_types,
};
use watcher::wire::WireMeta;
use watcher::{ApiKind, ParentObject, get_live, list_live, resolve_kind};

use crate::policies::namespace_kind;
use policy::{CompiledPolicy, FoundPolicy, GROUP_KIND, policies_of_groups, read_group};
use rollcall_core::write_reply;

/// Most times that the removal from one parent is sent, where others change its conditions meanwhile.
const MAX_RELEASE_ATTEMPTS: u32 = 5;
/// Shortest interval between two patches. 10 ms: other clients of the server go on.
const RELEASE_INTERVAL: Duration = Duration::from_millis(10);

/// Result of a release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReleaseReport {
    /// Number of parents whose entries were removed.
    pub released: usize,
    /// Number of parents on which the removal failed.
    pub failed: usize,
}

/// Releases every parent of these policies.
pub async fn release_parents(
    client: &kube::Client,
    policies: &[CompiledPolicy],
    namespaces: &[String],
) -> anyhow::Result<ReleaseReport> {
    let mut done = ReleaseReport::default();
    let mut pace = tokio::time::interval(RELEASE_INTERVAL);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for policy in policies {
        let parent = &policy.parent;
        let own = OwnTypes::of(written_types(&policy.condition, policy.fallback.as_deref()));
        let served = resolve_kind(client, &parent.group, parent.version.as_deref(), &parent.kind).await?;
        let Some(api) = served else { continue };
        let scopes: Vec<Option<&str>> = if namespaces.is_empty() {
            vec![None]
        } else {
            namespaces.iter().map(|n| Some(n.as_str())).collect()
        };
        let chosen = chosen_namespaces(client, policy).await?;
        let is_selected = |meta: &WireMeta| {
            policy.selector.matches(&meta.labels)
                && chosen.as_ref().is_none_or(|chosen| chosen.contains(&meta.namespace))
        };
        for scope in scopes {
            let objects = list_live::<ParentObject>(client, &api, scope, None).await?;
            for object in objects.into_iter().filter(|object| is_selected(&object.child.meta)) {
                match release_parent(client, &api, &object, &own, &mut pace).await {
                    Ok(true) => done.released += 1,
                    Ok(false) => {}
                    Err(error) => {
                        done.failed += 1;
                        warn!(error = format!("{error:#}"), "failed to release parent");
                    }
                }
            }
        }
    }
    Ok(done)
}

/// The namespaces that a policy selects; `None` for all.
async fn chosen_namespaces(
    client: &kube::Client,
    policy: &CompiledPolicy,
) -> anyhow::Result<Option<BTreeSet<Box<str>>>> {
    let Some(selector) = &policy.namespace_selector else { return Ok(None) };
    let namespaces = list_live::<ParentObject>(client, &namespace_kind(), None, None).await?;
    let chosen = namespaces.into_iter().map(|namespace| namespace.child.meta);
    Ok(Some(chosen.filter(|meta| selector.matches(&meta.labels)).map(|meta| meta.name).collect()))
}

async fn release_parent(
    client: &kube::Client,
    api: &ApiKind,
    object: &ParentObject,
    own: &OwnTypes<'_>,
    pace: &mut Interval,
) -> anyhow::Result<bool> {
    let WireMeta { namespace, name, uid, .. } = &object.child.meta;
    let title = format!("{api} {namespace}/{name}");
    let (mut requires_list, mut attempts) = (false, 0);
    let mut reread = None;
    loop {
        let Some(patch) = release_patch(reread.as_ref().unwrap_or(object), own, requires_list) else {
            return Ok(false);
        };
        attempts += 1;
        pace.tick().await;
        let refusal = match send_patch(client, api, namespace, name, &patch).await {
            Ok(()) => break,
            // It was changed since it was read, or its schema requires the list.
            Err(kube::Error::Api(status))
                if matches!(status.code, 409 | 422) && attempts < MAX_RELEASE_ATTEMPTS =>
            {
                status
            }
            Err(error) => return Err(error).with_context(|| format!("failed to release {title}")),
        };
        requires_list |= serde_json::to_vec(&refusal).is_ok_and(|body| write_reply::is_list_required(&body));
        let scope = Some(&**namespace).filter(|namespace| !namespace.is_empty());
        let live = get_live::<ParentObject>(client, api, scope, name).await?;
        reread = live.filter(|live| live.child.meta.uid == *uid);
        if reread.is_none() {
            return Ok(false);
        }
    }
    info!(object = title, "released parent");
    Ok(true)
}

/// The patch that removes our entries; `None` where there is none.
fn release_patch(object: &ParentObject, own: &OwnTypes<'_>, requires_list: bool) -> Option<Value> {
    let meta = &object.child.meta;
    let guarded = PatchGuard {
        uid: &meta.uid,
        generation: (meta.generation > 0).then_some(meta.generation),
        version: meta.resource_version,
        status: &ParentStatus::read(&object.text, own),
        requires_list,
    };
    guarded_patch(&guarded, &WantedConditions::default())
}

async fn send_patch(
    client: &kube::Client,
    api: &ApiKind,
    namespace: &str,
    name: &str,
    patch: &Value,
) -> Result<(), kube::Error> {
    let status = if api.has_status { "/status" } else { "" };
    let path = api.list_path(Some(namespace).filter(|n| !n.is_empty()));
    let request = http::Request::patch(format!("{path}/{name}{status}?fieldManager={FIELD_MANAGER}"))
        .header(http::header::CONTENT_TYPE, "application/json-patch+json")
        .body(patch_body(patch))
        .map_err(kube::Error::HttpError)?;
    client.request::<Value>(request).await?;
    Ok(())
}

/// Deletes the ReadinessRecords in that namespace, either all or only those of these policies' parents. Returns the
/// numbers deleted and failed.
pub async fn delete_records(
    client: &kube::Client,
    namespace: &str,
    of: Option<&[CompiledPolicy]>,
) -> anyhow::Result<(usize, usize)> {
    let Some(api) = resolve_kind(client, "rollcall.dev", None, "ReadinessRecord").await? else {
        return Ok((0, 0));
    };
    let (mut deleted, mut failed) = (0, 0);
    for record in list_live::<ParentObject>(client, &api, Some(namespace), None).await? {
        if !of.is_none_or(|policies| is_record_of(&record, policies)) {
            continue;
        }
        match delete_record(client, &api, &record).await {
            Ok(()) => deleted += 1,
            Err(error) => {
                failed += 1;
                warn!(error = format!("{error:#}"), "failed to delete record");
            }
        }
    }
    Ok((deleted, failed))
}

/// True if the record describes a parent of one of these policies.
fn is_record_of(record: &ParentObject, policies: &[CompiledPolicy]) -> bool {
    let Ok(record) = serde_json::from_str::<Value>(record.text.get()) else { return false };
    let parent = &record["spec"]["parent"];
    let group = parent["group"].as_str().unwrap_or_default();
    policies.iter().any(|policy| policy.parent.group == group && parent["kind"] == *policy.parent.kind)
}

/// Deletes this record by its uid: one created again in the meantime is left alone.
async fn delete_record(client: &kube::Client, api: &ApiKind, record: &ParentObject) -> anyhow::Result<()> {
    let meta = &record.child.meta;
    let only = serde_json::json!({ "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": meta.uid } });
    let request = http::Request::delete(format!("{}/{}", api.list_path(Some(&meta.namespace)), meta.name))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(only.to_string().into_bytes())?;
    match client.request::<Value>(request).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
        Err(error) => return Err(error).with_context(|| format!("failed to delete {api} {}", meta.name)),
    }
    info!(object = format!("{api} {}/{}", meta.namespace, meta.name), "deleted record");
    Ok(())
}

/// Lists the cluster's policies, and those that stand for its ReadinessGroups.
pub async fn list_policies(client: &kube::Client) -> anyhow::Result<Vec<FoundPolicy>> {
    let policies = list_own_kind(client, "ReadinessPolicy").await?;
    let groups: Vec<_> = list_own_kind(client, GROUP_KIND.1).await?.iter().map(read_group).collect();
    let of_groups = policies_of_groups(groups.iter(), &LabelMatcher::default());
    Ok(policies.iter().map(policy::read_policy).chain(of_groups).collect())
}

async fn list_own_kind(client: &kube::Client, kind: &str) -> anyhow::Result<Vec<ParentObject>> {
    match resolve_kind(client, GROUP_KIND.0, None, kind).await? {
        Some(kind) => Ok(list_live(client, &kind, None, None).await?),
        None => Ok(Vec::new()),
    }
}

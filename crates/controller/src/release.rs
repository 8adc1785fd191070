//! `rollcall release`: removes Rollcall's entries from the parents of policies, before an uninstall.

use std::collections::{BTreeMap, BTreeSet};
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
use watcher::{ApiFailureCause, ApiKind, LiveReadError, ParentObject, get_live, list_live, resolve_kind};

use crate::needed_kinds::read_needed_kinds;
use crate::policies::namespace_kind;
use policy::{
    CompiledPolicy, FoundPolicy, GROUP_KIND, GroupName, PolicySettings, WrittenPolicy, policies_of_groups,
    read_group,
};
use rollcall_core::refusal;

/// Most times that the removal from one parent is sent, where others change its conditions meanwhile.
const MAX_RELEASE_ATTEMPTS: u32 = 5;
/// Shortest interval between two patches. 10 ms: other clients of the server go on.
const RELEASE_INTERVAL: Duration = Duration::from_millis(10);

/// Number of parents that are named of those on which conditions were left.
const MAX_NAMED: usize = 3;

/// Result of a release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleaseReport {
    /// Number of parents whose entries were removed.
    pub released: usize,
    /// Number of parents on which the removal failed.
    pub failed: usize,
    /// Number of parents on which a condition of these types stands that nobody can be asked about: the list has one manager in
    /// all, and the words are not Rollcall's.
    pub left: usize,
    /// The first of them.
    pub left_on: Vec<String>,
}

impl ReleaseReport {
    fn count_left(&mut self, api: &ApiKind, object: &ParentObject, own: &OwnTypes<'_>) {
        if ParentStatus::read(&object.text, own).has_unattributed(own) {
            self.left += 1;
            if self.left_on.len() < MAX_NAMED {
                self.left_on.push(parent_title(api, &object.child.meta));
            }
        }
    }
}

/// Kind, namespace and name of a parent, for people.
fn parent_title(api: &ApiKind, WireMeta { namespace, name, .. }: &WireMeta) -> String {
    if namespace.is_empty() { format!("{api} {name}") } else { format!("{api} {namespace}/{name}") }
}

/// Releases every parent of these policies, each once however many of them select it.
pub async fn release_parents(
    client: &kube::Client,
    policies: &[WrittenPolicy],
    namespaces: &[String],
) -> anyhow::Result<ReleaseReport> {
    let mut done = ReleaseReport::default();
    let mut pace = tokio::time::interval(RELEASE_INTERVAL);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for policies in policies_by_kind(policies).values() {
        let Some(api) = served_kind(client, policies).await? else { continue };
        let scopes: BTreeSet<Option<&str>> = if namespaces.is_empty() || !api.namespaced {
            [None].into()
        } else {
            namespaces.iter().map(|n| Some(n.as_str())).collect()
        };
        let selections = parent_selections(client, policies).await?;
        for scope in scopes {
            for object in list_live::<ParentObject>(client, &api, scope, None).await? {
                let types: Vec<&str> = selections
                    .iter()
                    .filter(|of| of.is_for(&object))
                    .flat_map(ParentSelection::types)
                    .collect();
                if types.is_empty() {
                    continue;
                }
                let own = OwnTypes::of(types);
                done.count_left(&api, &object, &own);
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

/// A policy, and the only parent of it that is meant.
type ReleasedPolicy<'p> = (&'p CompiledPolicy, Option<&'p GroupName>);

fn policies_by_kind(policies: &[WrittenPolicy]) -> BTreeMap<(&str, &str), Vec<ReleasedPolicy<'_>>> {
    let mut kinds: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for written in policies {
        for policy in &written.compiled {
            let kind = (policy.parent.group.as_str(), policy.parent.kind.as_str());
            kinds.entry(kind).or_default().push((policy, written.only.as_ref()));
        }
    }
    kinds
}

/// The kind of these policies' parents, in a version that one of them names, or else in any that the server serves: what was
/// written is there in all of them.
async fn served_kind(
    client: &kube::Client,
    policies: &[ReleasedPolicy<'_>],
) -> anyhow::Result<Option<ApiKind>> {
    let versions: BTreeSet<_> = policies.iter().map(|(policy, _)| policy.parent.version.as_deref()).collect();
    let Some((CompiledPolicy { parent, .. }, _)) = policies.first() else { return Ok(None) };
    for version in versions.into_iter().chain([None]) {
        if let Some(api) = resolve_kind(client, &parent.group, version, &parent.kind).await? {
            return Ok(Some(api));
        }
    }
    Ok(None)
}

/// The parents that a policy selects.
struct ParentSelection<'p> {
    policy: &'p CompiledPolicy,
    only: Option<&'p GroupName>,
    /// Their namespaces; `None` for all.
    namespaces: Option<BTreeSet<Box<str>>>,
}

impl<'p> ParentSelection<'p> {
    fn is_for(&self, object: &ParentObject) -> bool {
        let WireMeta { namespace, name, labels, .. } = &object.child.meta;
        self.only.is_none_or(|only| is_named(only, namespace, name))
            && self.policy.selector.matches(labels)
            && self.namespaces.as_ref().is_none_or(|chosen| chosen.contains(namespace))
    }

    /// Types of the conditions that the policy writes on them.
    fn types(&self) -> impl Iterator<Item = &'p str> {
        written_types(&self.policy.condition, self.policy.fallback.as_deref())
    }
}

async fn parent_selections<'p>(
    client: &kube::Client,
    policies: &[ReleasedPolicy<'p>],
) -> anyhow::Result<Vec<ParentSelection<'p>>> {
    let mut labels = Vec::new();
    if policies.iter().any(|(policy, _)| policy.namespace_selector.is_some()) {
        let namespaces = list_live::<ParentObject>(client, &namespace_kind(), None, None).await?;
        labels.extend(namespaces.into_iter().map(|namespace| namespace.child.meta));
    }
    let chosen_by = |selector: &LabelMatcher| {
        labels.iter().filter(|meta| selector.matches(&meta.labels)).map(|meta| meta.name.clone()).collect()
    };
    let selection = |(policy, only): &ReleasedPolicy<'p>| ParentSelection {
        policy,
        only: *only,
        namespaces: policy.namespace_selector.as_ref().map(chosen_by),
    };
    Ok(policies.iter().map(selection).collect())
}

async fn release_parent(
    client: &kube::Client,
    api: &ApiKind,
    object: &ParentObject,
    own: &OwnTypes<'_>,
    pace: &mut Interval,
) -> anyhow::Result<bool> {
    let WireMeta { namespace, name, uid, .. } = &object.child.meta;
    let title = parent_title(api, &object.child.meta);
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
        requires_list |=
            serde_json::to_vec(&refusal).is_ok_and(|body| refusal::read_bounds(&body).requires_list);
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

fn is_named(group: &GroupName, namespace: &str, name: &str) -> bool {
    *group.name == *name && group.namespace.as_deref().is_none_or(|own| own == namespace)
}

/// Deletes the ReadinessRecords in that namespace: all of them, or only those of these policies' parents, and of parents in
/// these namespaces and cluster-scoped ones. Returns the numbers deleted and failed.
pub async fn delete_records(
    client: &kube::Client,
    namespace: &str,
    of: Option<&[WrittenPolicy]>,
    parent_namespaces: &[String],
) -> anyhow::Result<(usize, usize)> {
    let Some(api) = resolve_kind(client, "rollcall.dev", None, "ReadinessRecord").await? else {
        return Ok((0, 0));
    };
    let (mut deleted, mut failed) = (0, 0);
    for record in list_live::<ParentObject>(client, &api, Some(namespace), None).await? {
        if !is_record_of(&record, of, parent_namespaces) {
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

/// True if the record describes a parent of one of these policies, if they are given, in one of these namespaces, if any are. What
/// labels a parent had that is gone, nobody knows.
fn is_record_of(record: &ParentObject, of: Option<&[WrittenPolicy]>, namespaces: &[String]) -> bool {
    if of.is_none() && namespaces.is_empty() {
        return true;
    }
    let Ok(record) = serde_json::from_str::<Value>(record.text.get()) else { return false };
    let text = |field: &str| record["spec"]["parent"][field].as_str().unwrap_or_default();
    let (namespace, name) = (text("namespace"), text("name"));
    let is_there =
        namespaces.is_empty() || namespace.is_empty() || namespaces.iter().any(|other| other == namespace);
    let is_parent = |written: &WrittenPolicy| {
        let is_kind = |policy: &CompiledPolicy| {
            policy.parent.group == text("group") && policy.parent.kind == text("kind")
        };
        written.compiled.iter().any(is_kind)
            && written.only.as_ref().is_none_or(|only| is_named(only, namespace, name))
    };
    is_there && of.is_none_or(|policies| policies.iter().any(is_parent))
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

/// Policies of a cluster, as far as its user may read them.
#[derive(Debug, Default)]
pub struct ReadablePolicies {
    /// The policies, and those that stand for ReadinessGroups.
    pub policies: Vec<FoundPolicy>,
    /// Why there are none for ReadinessGroups: the user may not list these.
    pub unread_groups: Option<String>,
}

/// Lists the cluster's policies, and those that stand for its ReadinessGroups.
pub async fn list_policies(client: &kube::Client) -> anyhow::Result<ReadablePolicies> {
    list_selected_policies(client, &LabelMatcher::default()).await
}

/// Lists the policies that have these labels, and those that stand for ReadinessGroups that have them. Whoever may not list the groups
/// gets the policies.
pub async fn list_selected_policies(
    client: &kube::Client,
    selector: &LabelMatcher,
) -> anyhow::Result<ReadablePolicies> {
    let is_selected = |object: &&ParentObject| selector.matches(&object.child.meta.labels);
    let policies = list_own_kind(client, "ReadinessPolicy").await?;
    let (groups, unread_groups) = match list_own_kind(client, GROUP_KIND.1).await {
        Ok(groups) => (groups, None),
        Err(error) if error.cause == ApiFailureCause::Forbidden => {
            (Vec::new(), Some(watcher::error_text(&error)))
        }
        Err(error) => return Err(error.into()),
    };
    let groups: Vec<_> = groups.iter().filter(is_selected).map(read_group).collect();
    let served = read_needed_kinds(client, groups.iter()).await;
    // What it wrote, and which rights it needs, does not depend on the limits.
    let settings = PolicySettings::with_stuck_after(Duration::ZERO);
    let of_groups = policies_of_groups(groups.iter(), selector, &served, &settings);
    let policies = policies.iter().filter(is_selected).map(policy::read_policy).chain(of_groups).collect();
    Ok(ReadablePolicies { policies, unread_groups })
}

async fn list_own_kind(client: &kube::Client, kind: &str) -> Result<Vec<ParentObject>, LiveReadError> {
    match resolve_kind(client, GROUP_KIND.0, None, kind).await? {
        Some(kind) => list_live(client, &kind, None, None).await,
        None => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests;

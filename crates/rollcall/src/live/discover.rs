//! The kinds that a cluster serves.

use anyhow::Context;
use kube::discovery::{ApiGroup, Discovery, Scope, verbs};
use watcher::ApiKind;

/// Kinds without an owner, a finalizer or a status worth reading, and too many objects.
const UNINTERESTING_KINDS: [&str; 1] = ["Event"];

/// Discovers the API groups, in one request where the server supports that.
pub(super) async fn discover_apis(client: &kube::Client) -> anyhow::Result<Discovery> {
    match Discovery::new(client.clone()).run_aggregated().await {
        Ok(discovery) => Ok(discovery),
        Err(_) => Discovery::new(client.clone())
            .run()
            .await
            .context("failed to discover the kinds that the cluster serves"),
    }
}

/// Returns every kind that can be listed, in the version that the server recommends.
pub(super) async fn listable_kinds(client: &kube::Client) -> anyhow::Result<Vec<ApiKind>> {
    let discovery = discover_apis(client).await?;
    let mut kinds = Vec::new();
    for (resource, capabilities) in discovery.groups().flat_map(ApiGroup::recommended_resources) {
        if capabilities.supports_operation(verbs::LIST) && !UNINTERESTING_KINDS.contains(&&*resource.kind) {
            kinds.push(ApiKind {
                group: resource.group,
                version: resource.version,
                kind: resource.kind,
                plural: resource.plural,
                namespaced: capabilities.scope == Scope::Namespaced,
                has_status: capabilities.subresources.iter().any(|(sub, _)| sub.plural == "status"),
            });
        }
    }
    Ok(kinds)
}

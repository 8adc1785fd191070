//! The kinds that a cluster serves.

use std::collections::BTreeSet;

use kube::core::discovery::ApiResource;
use kube::discovery::{ApiCapabilities, Discovery, Scope, verbs};
use watcher::ApiKind;

/// Kinds without an owner, a finalizer or a status worth reading, and too many objects.
const UNINTERESTING_KINDS: [&str; 1] = ["Event"];

/// The kinds that the cluster serves could not be discovered.
#[derive(Debug, thiserror::Error)]
#[error("failed to discover the kinds that the cluster serves")]
pub struct DiscoveryError(#[from] kube::Error);

/// Discovers the API groups, in one request where the server supports that.
pub async fn discover_apis(client: &kube::Client) -> Result<Discovery, DiscoveryError> {
    match Discovery::new(client.clone()).run_aggregated().await {
        Ok(discovery) => Ok(discovery),
        Err(_) => Ok(Discovery::new(client.clone()).run().await?),
    }
}

/// Returns every kind that is served: in the version that its group prefers, else in the most stable one that has it.
pub fn served_kinds(discovery: &Discovery) -> Vec<(ApiResource, ApiCapabilities)> {
    let mut served = Vec::new();
    for group in discovery.groups() {
        let mut kinds = group.recommended_resources();
        let preferred: BTreeSet<String> = kinds.iter().map(|(resource, _)| resource.kind.clone()).collect();
        let mut others = group.resources_by_stability();
        others.retain(|(resource, _)| !preferred.contains(&resource.kind));
        others.sort_by(|(a, _), (b, _)| a.kind.cmp(&b.kind));
        kinds.append(&mut others);
        served.append(&mut kinds);
    }
    served
}

/// Returns every kind that can be listed.
pub async fn listable_kinds(client: &kube::Client) -> Result<Vec<ApiKind>, DiscoveryError> {
    let discovery = discover_apis(client).await?;
    let mut kinds = Vec::new();
    for (resource, capabilities) in served_kinds(&discovery) {
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

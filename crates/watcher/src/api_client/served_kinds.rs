//! Reads which kinds an API server serves, by its aggregated discovery: in two requests.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::api_client::live_read::{LiveReadError, decode_body, get_body};
use crate::event::ApiFailureCause;
use crate::served_kinds::{ServedKind, ServedKinds};

/// Aggregated discovery (KEP-3352): Kubernetes has had it since 1.26, in this version since 1.30. A server that does not
/// provide it refuses.
const ACCEPT_AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// `APIGroupDiscoveryList`.
#[derive(Deserialize)]
struct GroupDiscoveryList {
    #[serde(default)]
    items: Vec<GroupDiscovery>,
}

#[derive(Deserialize)]
struct GroupDiscovery {
    #[serde(default)]
    metadata: GroupName,
    /// The preferred one first.
    #[serde(default)]
    versions: Vec<VersionDiscovery>,
}

#[derive(Default, Deserialize)]
struct GroupName {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct VersionDiscovery {
    #[serde(default)]
    resources: Vec<ResourceDiscovery>,
    #[serde(default)]
    freshness: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceDiscovery {
    #[serde(default)]
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    categories: Vec<Box<str>>,
}

#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

/// Reads which kinds are served. A server that does not list categories is an error.
pub async fn read_served_kinds(client: &kube::Client) -> Result<ServedKinds, LiveReadError> {
    let (mut kinds, mut unread) = (Vec::new(), BTreeSet::new());
    for target in ["/api", "/apis"] {
        let what = format!("discover all kinds of {target}");
        let body = get_body(client, &what, target, ACCEPT_AGGREGATED).await?;
        let GroupDiscoveryList { items } = decode_body(&what, &body)?;
        for group in items {
            add_group(group, &mut kinds, &mut unread);
        }
    }
    if kinds.is_empty() {
        // A server that knows no aggregated discovery may answer with its plain one, which has no such items.
        let none = "the server lists no kinds in aggregated discovery".into();
        return Err(LiveReadError::from_source("discover all kinds", ApiFailureCause::Undecodable, none));
    }
    Ok(ServedKinds::of(kinds, unread))
}

fn add_group(
    group: GroupDiscovery,
    kinds: &mut Vec<((String, String), ServedKind)>,
    unread: &mut BTreeSet<Box<str>>,
) {
    let GroupDiscovery { metadata: GroupName { name }, versions } = group;
    for version in versions {
        // One that does not answer is listed without resources, or with those that it had when it last did.
        if version.freshness == "Stale" && version.resources.is_empty() {
            unread.insert(name.as_str().into());
        }
        for resource in version.resources {
            let Some(ResponseKind { kind }) = resource.response_kind else { continue };
            let has_verb = |verb: &str| resource.verbs.iter().any(|own| own == verb);
            let served = ServedKind {
                namespaced: resource.scope == "Namespaced",
                is_followable: has_verb("list") && has_verb("watch"),
                categories: resource.categories.clone(),
            };
            kinds.push(((name.clone(), kind), served));
        }
    }
}

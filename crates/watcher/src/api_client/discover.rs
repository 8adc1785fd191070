//! API discovery: from a group and kind to the resource that the server serves.

use serde::Deserialize;

use crate::api_client::live_read::{LiveReadError, decode_body, get_body};
use crate::event::ApiFailureCause;
use crate::kind::ApiKind;

const ACCEPT_JSON: &str = "application/json";

/// `APIGroup`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DiscoveredGroup {
    #[serde(default)]
    preferred_version: Option<DiscoveredVersion>,
    #[serde(default)]
    versions: Vec<DiscoveredVersion>,
}

#[derive(Deserialize)]
struct DiscoveredVersion {
    version: String,
}

/// `APIResourceList`.
#[derive(Deserialize)]
struct DiscoveredResourceList {
    #[serde(default)]
    resources: Vec<DiscoveredResource>,
}

/// `APIResource`.
#[derive(Deserialize)]
struct DiscoveredResource {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
}

/// `APIGroupList`.
#[derive(Deserialize)]
struct Groups {
    groups: Vec<GroupName>,
}

#[derive(Deserialize)]
struct GroupName {
    name: String,
}

/// What discovery says of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Discovered {
    /// It is served here.
    Served(ApiKind),
    /// It is not served where it was looked for, and yet it may be there.
    Unserved {
        /// Why that is not known, or where it is served.
        why: String,
        /// The kind in a version that was not asked for.
        elsewhere: Option<ApiKind>,
    },
    /// The server lists what it serves, and no version of the group has it.
    Absent,
}

/// Finds a kind, as [`resolve_kind`] does, and tells a kind that is not there from one that is only not served as asked for.
pub async fn discover(
    client: &kube::Client,
    group: &str,
    version: Option<&str>,
    kind: &str,
) -> Result<Discovered, LiveReadError> {
    if let Some(asked) = version
        && let InVersion::Served(found) = find_served_kind(client, group, asked, kind).await?
    {
        return Ok(Discovered::Served(found));
    }
    let versions = list_group_versions(client, group).await?;
    if versions.is_empty() {
        // The group's own page may be missing for a moment, as may any: only the list of all groups can lack it.
        let listed = is_group_listed(client, group).await?;
        let why = format!("API group {group} is listed and serves no version");
        let unserved = Discovered::Unserved { why, elsewhere: None };
        return Ok(if listed { unserved } else { Discovered::Absent });
    }
    let (mut doubt, mut elsewhere) = (None, None);
    for other in versions.iter().filter(|other| Some(other.as_str()) != version) {
        match find_served_kind(client, group, other, kind).await? {
            InVersion::Served(found) if version.is_none() => return Ok(Discovered::Served(found)),
            // The preferred version comes first.
            InVersion::Served(_) if elsewhere.is_some() => {}
            InVersion::Served(found) => {
                doubt =
                    Some(format!("it is served as {}, not in the version asked for", found.api_version()));
                elsewhere = Some(found);
            }
            InVersion::Lacking => {}
            InVersion::NoPage => doubt = Some(format!("the resources of {group}/{other} cannot be listed")),
        }
    }
    Ok(doubt.map_or(Discovered::Absent, |why| Discovered::Unserved { why, elsewhere }))
}

/// Whether the list of all groups has this one.
async fn is_group_listed(client: &kube::Client, group: &str) -> Result<bool, LiveReadError> {
    let what = "discover API groups";
    let body = get_body(client, what, "/apis", ACCEPT_JSON).await?;
    let Groups { groups } = decode_body(what, &body)?;
    Ok(groups.iter().any(|listed| listed.name == group))
}

/// Resolves a kind: in the given version, else in the preferred one, else in the first version that has it. `None` if
/// it is not installed, which may change.
pub async fn resolve_kind(
    client: &kube::Client,
    group: &str,
    version: Option<&str>,
    kind: &str,
) -> Result<Option<ApiKind>, LiveReadError> {
    let versions = match version {
        Some(version) => vec![version.to_owned()],
        None => list_group_versions(client, group).await?,
    };
    for version in versions {
        if let InVersion::Served(found) = find_served_kind(client, group, &version, kind).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Lists the versions of a group, the preferred one first; empty if the group does not exist.
async fn list_group_versions(client: &kube::Client, group: &str) -> Result<Vec<String>, LiveReadError> {
    if group.is_empty() {
        // The core group has had one version since 2015, and its discovery document has another shape.
        return Ok(vec!["v1".into()]);
    }
    let what = format!("discover API group {group}");
    let Some(body) =
        none_if_not_installed(get_body(client, &what, &format!("/apis/{group}"), ACCEPT_JSON).await)?
    else {
        return Ok(Vec::new());
    };
    let group: DiscoveredGroup = decode_body(&what, &body)?;
    let mut versions: Vec<_> = group.preferred_version.into_iter().map(|v| v.version).collect();
    for DiscoveredVersion { version } in group.versions {
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    Ok(versions)
}

/// What one version of a group says of a kind.
enum InVersion {
    Served(ApiKind),
    /// It lists its resources, and has no such kind.
    Lacking,
    /// There is no such version, or its resources are not listed for a moment.
    NoPage,
}

/// Looks for a kind in one version.
async fn find_served_kind(
    client: &kube::Client,
    group: &str,
    version: &str,
    kind: &str,
) -> Result<InVersion, LiveReadError> {
    let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    let what = format!("discover {kind} in {path}");
    let Some(body) = none_if_not_installed(get_body(client, &what, &path, ACCEPT_JSON).await)? else {
        return Ok(InVersion::NoPage);
    };
    let DiscoveredResourceList { resources } = decode_body(&what, &body)?;
    // Subresources have the kind of the object that they return: `deployments/scale` is a Scale, `pods/binding` a
    // Binding.
    let Some(resource) = resources.iter().find(|r| r.kind == kind && !r.name.contains('/')) else {
        return Ok(InVersion::Lacking);
    };
    let status = format!("{}/status", resource.name);
    Ok(InVersion::Served(ApiKind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: resource.name.clone(),
        namespaced: resource.namespaced,
        has_status: resources.iter().any(|r| r.name == status),
    }))
}

/// Treats 404 as an answer: the kind is not installed.
fn none_if_not_installed<T>(got: Result<T, LiveReadError>) -> Result<Option<T>, LiveReadError> {
    match got {
        Ok(body) => Ok(Some(body)),
        Err(error) if error.cause == ApiFailureCause::NotInstalled => Ok(None),
        Err(error) => Err(error),
    }
}

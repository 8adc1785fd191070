//! From what people write (a group and a kind) to what the server serves.

use serde::Deserialize;

use crate::event::Cause;
use crate::kind::ApiKind;
use crate::look::{LookError, decode, get};

const JSON: &str = "application/json";

/// `APIGroup`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    #[serde(default)]
    preferred_version: Option<Version>,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    version: String,
}

/// `APIResourceList`.
#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<Resource>,
}

/// `APIResource`.
#[derive(Deserialize)]
struct Resource {
    name: String,
    kind: String,
    #[serde(default)]
    namespaced: bool,
}

/// Finds a kind: in the version given, else in the preferred one, else in the first that has it. `None` where it is not
/// installed, which may change.
pub async fn resolve(
    client: &kube::Client,
    group: &str,
    version: Option<&str>,
    kind: &str,
) -> Result<Option<ApiKind>, LookError> {
    let versions = match version {
        Some(version) => vec![version.to_owned()],
        None => versions(client, group).await?,
    };
    for version in versions {
        if let Some(found) = served(client, group, &version, kind).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// The versions of a group, the preferred one first; empty where there is no such group.
async fn versions(client: &kube::Client, group: &str) -> Result<Vec<String>, LookError> {
    if group.is_empty() {
        // The core group has had one version since 2015, and discovery of it has another shape.
        return Ok(vec!["v1".into()]);
    }
    let what = format!("discover API group {group}");
    let Some(body) = found(get(client, &what, &format!("/apis/{group}"), JSON).await)? else {
        return Ok(Vec::new());
    };
    let group: Group = decode(&what, &body)?;
    let mut versions: Vec<_> = group.preferred_version.into_iter().map(|v| v.version).collect();
    for Version { version } in group.versions {
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    Ok(versions)
}

async fn served(
    client: &kube::Client,
    group: &str,
    version: &str,
    kind: &str,
) -> Result<Option<ApiKind>, LookError> {
    let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    let what = format!("discover {kind} in {path}");
    let Some(body) = found(get(client, &what, &path, JSON).await)? else { return Ok(None) };
    let Resources { resources } = decode(&what, &body)?;
    // Subresources have the kind of what they return: `deployments/scale` is a Scale, `pods/binding` a Binding.
    let Some(resource) = resources.iter().find(|r| r.kind == kind && !r.name.contains('/')) else {
        return Ok(None);
    };
    let status = format!("{}/status", resource.name);
    Ok(Some(ApiKind {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: resource.name.clone(),
        namespaced: resource.namespaced,
        has_status: resources.iter().any(|r| r.name == status),
    }))
}

/// 404 is an answer here: not installed.
fn found<T>(got: Result<T, LookError>) -> Result<Option<T>, LookError> {
    match got {
        Ok(body) => Ok(Some(body)),
        Err(error) if error.cause == Cause::NotInstalled => Ok(None),
        Err(error) => Err(error),
    }
}

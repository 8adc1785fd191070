//! Discovery: per group, and aggregated.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kind::SandboxKind;
use super::message::{StoreRequest, StoreResponse};
use super::refusal::StoreRefusal;
use super::registry::KindRegistry;

pub(super) fn version_info() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": "v1.36.3-sandbox", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
    })
}

pub(super) fn answer_discovery(
    registry: &KindRegistry,
    request: &StoreRequest,
    parts: &[&str],
) -> Result<StoreResponse, StoreRefusal> {
    let aggregated = request.accept.as_deref().is_some_and(|accept| {
        accept.split(',').next().is_some_and(|first| {
            first.contains("APIGroupDiscoveryList")
                && first.contains("v=v2;") | first.ends_with("v=v2") | first.contains("v=v2;as")
        })
    });
    let body = match parts {
        ["api"] if aggregated => return Ok(aggregated_discovery(registry, true)),
        ["apis"] if aggregated => return Ok(aggregated_discovery(registry, false)),
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ["apis"] => {
            let groups: Vec<Value> = list_groups(registry)
                .into_iter()
                .filter(|group| !group.is_empty())
                .filter_map(|group| describe_group(registry, &group))
                .collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        ["apis", group] => {
            let mut found = describe_group(registry, group).ok_or_else(StoreRefusal::no_such_path)?;
            found["kind"] = json!("APIGroup");
            found["apiVersion"] = json!("v1");
            found
        }
        ["api", version] => resource_list(registry, "", version)?,
        ["apis", group, version] => resource_list(registry, group, version)?,
        _ => return Err(StoreRefusal::no_such_path()),
    };
    Ok(StoreResponse::json(200, &body))
}

/// Returns the groups in the order of their registration.
fn list_groups(registry: &KindRegistry) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for kind in registry.all_kinds() {
        if !seen.contains(&kind.group) {
            seen.push(kind.group.clone());
        }
    }
    seen
}

/// Returns the versions of a group, the preferred one first.
fn list_versions(registry: &KindRegistry, group: &str) -> Vec<String> {
    let mut versions: Vec<String> = Vec::new();
    for kind in registry.all_kinds().filter(|kind| kind.group == group) {
        if !versions.contains(&kind.version) {
            versions.push(kind.version.clone());
        }
    }
    versions.sort_by_key(|version| std::cmp::Reverse(super::definition::version_priority(version)));
    versions
}

fn describe_group(registry: &KindRegistry, group: &str) -> Option<Value> {
    let versions: Vec<Value> = list_versions(registry, group)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    let preferred = versions.first()?.clone();
    Some(json!({"name": group, "versions": versions, "preferredVersion": preferred}))
}

fn kinds_of_version<'a>(
    registry: &'a KindRegistry,
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = &'a Arc<SandboxKind>> {
    registry.all_kinds().filter(move |kind| kind.group == group && kind.version == version)
}

fn kind_verbs(kind: &SandboxKind) -> Value {
    if kind.traits.review {
        return json!(["create"]);
    }
    if kind.traits.custom {
        return json!(["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]);
    }
    if kind.plural == "namespaces" {
        return json!(["create", "delete", "get", "list", "patch", "update", "watch"]);
    }
    json!(["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"])
}

fn resource_list(registry: &KindRegistry, group: &str, version: &str) -> Result<Value, StoreRefusal> {
    let mut list = Vec::new();
    for kind in kinds_of_version(registry, group, version) {
        let mut entry = json!({
            "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind, "verbs": kind_verbs(kind),
        });
        if !kind.short_names.is_empty() {
            entry["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            entry["categories"] = json!(kind.categories);
        }
        list.push(entry);
        if kind.status {
            let name = format!("{}/status", kind.plural);
            list.push(json!({"name": name, "singularName": "", "namespaced": kind.namespaced, "kind": kind.kind, "verbs": ["get", "patch", "update"]}));
        }
    }
    if list.is_empty() {
        let known = registry.group_exists(group) && !registry.is_custom(group);
        return Err(if known { StoreRefusal::no_such_resource() } else { StoreRefusal::no_such_path() });
    }
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut body = json!({"kind": "APIResourceList", "groupVersion": api_version, "resources": list});
    // The core group's list has no apiVersion.
    if !group.is_empty() {
        body["apiVersion"] = json!("v1");
    }
    Ok(body)
}

fn aggregated_discovery(registry: &KindRegistry, core: bool) -> StoreResponse {
    let items: Vec<Value> = list_groups(registry)
        .into_iter()
        .filter(|group| group.is_empty() == core)
        .map(|group| {
            let versions: Vec<Value> = list_versions(registry, &group)
                .into_iter()
                .map(|version| {
                    let resources: Vec<Value> = kinds_of_version(registry, &group, &version)
                        .map(|kind| describe_kind(kind))
                        .collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if core { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let body = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items});
    let mut response = StoreResponse::json(200, &body);
    response.headers[0].1 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList".into();
    response
}

fn describe_kind(kind: &SandboxKind) -> Value {
    // The real server omits fields that a built-in kind shares with its group and version.
    let (group, version) =
        if kind.traits.custom { (kind.group.as_str(), kind.version.as_str()) } else { ("", "") };
    let response_kind = json!({"group": group, "version": version, "kind": kind.kind});
    let mut entry = json!({
        "resource": kind.plural, "responseKind": response_kind, "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular, "verbs": kind_verbs(kind),
    });
    if !kind.short_names.is_empty() {
        entry["shortNames"] = json!(kind.short_names);
    }
    if !kind.categories.is_empty() {
        entry["categories"] = json!(kind.categories);
    }
    if kind.status {
        entry["subresources"] = json!([{"subresource": "status", "responseKind": response_kind, "verbs": ["get", "patch", "update"]}]);
    }
    entry
}

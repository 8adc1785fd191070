//! What is served, as clients ask for it: group by group, or all at once.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kind::Kind;
use super::message::{Request, Response};
use super::refusal::Refusal;
use super::registry::Registry;

pub(super) fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "emulationMajor": "1", "emulationMinor": "36",
        "minCompatibilityMajor": "1", "minCompatibilityMinor": "35",
        "gitVersion": "v1.36.3-sandbox", "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
    })
}

pub(super) fn answer(registry: &Registry, request: &Request, parts: &[&str]) -> Result<Response, Refusal> {
    let aggregated = request.accept.as_deref().is_some_and(|accept| {
        accept.split(',').next().is_some_and(|first| {
            first.contains("APIGroupDiscoveryList")
                && first.contains("v=v2;") | first.ends_with("v=v2") | first.contains("v=v2;as")
        })
    });
    let body = match parts {
        ["api"] if aggregated => return Ok(all_at_once(registry, true)),
        ["apis"] if aggregated => return Ok(all_at_once(registry, false)),
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ["apis"] => {
            let groups: Vec<Value> = groups(registry)
                .into_iter()
                .filter(|group| !group.is_empty())
                .filter_map(|group| one_group(registry, &group))
                .collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        ["apis", group] => {
            let mut found = one_group(registry, group).ok_or_else(Refusal::no_such_path)?;
            found["kind"] = json!("APIGroup");
            found["apiVersion"] = json!("v1");
            found
        }
        ["api", version] => resources(registry, "", version)?,
        ["apis", group, version] => resources(registry, group, version)?,
        _ => return Err(Refusal::no_such_path()),
    };
    Ok(Response::json(200, &body))
}

/// Groups in the order in which they came.
fn groups(registry: &Registry) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for kind in registry.all() {
        if !seen.contains(&kind.group) {
            seen.push(kind.group.clone());
        }
    }
    seen
}

/// Versions of a group, the preferred one first.
fn versions(registry: &Registry, group: &str) -> Vec<String> {
    let mut versions: Vec<String> = Vec::new();
    for kind in registry.all().filter(|kind| kind.group == group) {
        if !versions.contains(&kind.version) {
            versions.push(kind.version.clone());
        }
    }
    versions.sort_by_key(|version| std::cmp::Reverse(super::crd::priority(version)));
    versions
}

fn one_group(registry: &Registry, group: &str) -> Option<Value> {
    let versions: Vec<Value> = versions(registry, group)
        .into_iter()
        .map(|version| json!({"groupVersion": format!("{group}/{version}"), "version": version}))
        .collect();
    let preferred = versions.first()?.clone();
    Some(json!({"name": group, "versions": versions, "preferredVersion": preferred}))
}

fn of<'a>(registry: &'a Registry, group: &'a str, version: &'a str) -> impl Iterator<Item = &'a Arc<Kind>> {
    registry.all().filter(move |kind| kind.group == group && kind.version == version)
}

fn verbs(kind: &Kind) -> Value {
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

fn resources(registry: &Registry, group: &str, version: &str) -> Result<Value, Refusal> {
    let mut list = Vec::new();
    for kind in of(registry, group, version) {
        let mut entry = json!({
            "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced, "kind": kind.kind, "verbs": verbs(kind),
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
        return Err(if known { Refusal::no_such_resource() } else { Refusal::no_such_path() });
    }
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let mut body = json!({"kind": "APIResourceList", "groupVersion": api_version, "resources": list});
    // The core group's does not say it.
    if !group.is_empty() {
        body["apiVersion"] = json!("v1");
    }
    Ok(body)
}

fn all_at_once(registry: &Registry, core: bool) -> Response {
    let items: Vec<Value> = groups(registry)
        .into_iter()
        .filter(|group| group.is_empty() == core)
        .map(|group| {
            let versions: Vec<Value> = versions(registry, &group)
                .into_iter()
                .map(|version| {
                    let resources: Vec<Value> =
                        of(registry, &group, &version).map(|kind| described(kind)).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if core { json!({}) } else { json!({"name": group}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    let body = json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items});
    let mut response = Response::json(200, &body);
    response.headers[0].1 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList".into();
    response
}

fn described(kind: &Kind) -> Value {
    // The real server leaves out what a built-in kind shares with its group and version.
    let (group, version) =
        if kind.traits.custom { (kind.group.as_str(), kind.version.as_str()) } else { ("", "") };
    let response_kind = json!({"group": group, "version": version, "kind": kind.kind});
    let mut entry = json!({
        "resource": kind.plural, "responseKind": response_kind, "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular, "verbs": verbs(kind),
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

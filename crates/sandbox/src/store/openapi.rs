//! As much of `/openapi/v3` as kubectl asks before it writes: that fields are validated by the server. There is no
//! schema in it. Where a group has no document kubectl goes by that of Namespaces, so the core group's is enough.

use serde_json::{Map, Value, json};

use super::message::Response;
use super::refusal::Refusal;
use super::registry::Registry;

pub(super) fn answer(registry: &Registry, path: &[&str]) -> Result<Response, Refusal> {
    let body = match path {
        [] => json!({"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1"}}}),
        ["api", "v1"] => json!({
            "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1.36.3"}, "paths": paths(registry),
        }),
        _ => return Err(Refusal::no_such_path()),
    };
    Ok(Response::json(200, &body))
}

fn paths(registry: &Registry) -> Map<String, Value> {
    let core = registry.all().filter(|kind| kind.group.is_empty() && !kind.traits.review);
    core.map(|kind| {
        let space = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
        let patch = json!({
            "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": {"group": "", "version": kind.version, "kind": kind.kind},
        });
        (format!("/api/v1/{space}{}/{{name}}", kind.plural), json!({ "patch": patch }))
    })
    .collect()
}

//! As much of `/openapi/v3` as kubectl asks before it writes: that the server validates fields. There is no schema in it.

use serde_json::{Map, Value, json};

use super::kind::Kind;
use super::message::Response;
use super::refusal::Refusal;
use super::registry::Registry;

pub(super) fn answer(registry: &Registry, path: &[&str]) -> Result<Response, Refusal> {
    if path.is_empty() {
        let roots = registry.all().map(|kind| root(kind));
        let documents = roots.map(|root| {
            let document = json!({"serverRelativeURL": format!("/openapi/v3/{root}")});
            (root, document)
        });
        let documents: Map<String, Value> = documents.collect();
        return Ok(Response::json(200, &json!({ "paths": documents })));
    }
    let asked = path.join("/");
    let paths: Map<String, Value> =
        registry.all().filter(|kind| root(kind) == asked).map(|kind| patch(kind)).collect();
    if paths.is_empty() {
        return Err(Refusal::no_such_path());
    }
    let info = json!({"title": "Kubernetes", "version": "v1.36.3"});
    Ok(Response::json(200, &json!({"openapi": "3.0.0", "info": info, "paths": paths})))
}

/// Where a kind's version is served, without the first slash.
fn root(kind: &Kind) -> String {
    let above = if kind.group.is_empty() { "api" } else { "apis" };
    format!("{above}/{}", kind.api_version())
}

fn patch(kind: &Kind) -> (String, Value) {
    let space = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
    let patch = json!({
        "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
    });
    (format!("/{}/{space}{}/{{name}}", root(kind), kind.plural), json!({ "patch": patch }))
}

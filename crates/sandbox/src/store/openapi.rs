//! The part of `/openapi/v3` that kubectl reads before it writes: that the server validates fields. It contains no
//! schemas.

use serde_json::{Map, Value, json};

use super::kind::SandboxKind;
use super::message::StoreResponse;
use super::refusal::StoreRefusal;
use super::registry::KindRegistry;

pub(super) fn answer_openapi(registry: &KindRegistry, path: &[&str]) -> Result<StoreResponse, StoreRefusal> {
    if path.is_empty() {
        let roots = registry.all_kinds().map(|kind| version_root(kind));
        let documents = roots.map(|root| {
            let document = json!({"serverRelativeURL": format!("/openapi/v3/{root}")});
            (root, document)
        });
        let documents: Map<String, Value> = documents.collect();
        return Ok(StoreResponse::json(200, &json!({ "paths": documents })));
    }
    let asked = path.join("/");
    let paths: Map<String, Value> = registry
        .all_kinds()
        .filter(|kind| version_root(kind) == asked)
        .map(|kind| patch_entry(kind))
        .collect();
    if paths.is_empty() {
        return Err(StoreRefusal::no_such_path());
    }
    let info = json!({"title": "Kubernetes", "version": "v1.36.3"});
    Ok(StoreResponse::json(200, &json!({"openapi": "3.0.0", "info": info, "paths": paths})))
}

/// Returns the root path of a kind's version, without the leading slash.
fn version_root(kind: &SandboxKind) -> String {
    let above = if kind.group.is_empty() { "api" } else { "apis" };
    format!("{above}/{}", kind.api_version())
}

fn patch_entry(kind: &SandboxKind) -> (String, Value) {
    let space = if kind.namespaced { "namespaces/{namespace}/" } else { "" };
    let patch = json!({
        "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": {"group": kind.group, "version": kind.version, "kind": kind.kind},
    });
    (format!("/{}/{space}{}/{{name}}", version_root(kind), kind.plural), json!({ "patch": patch }))
}

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::reviews::review_server::ReviewServer;

const PARENTS: usize = 40;

/// Serves databases, each with a condition that Rollcall manages, and takes every patch.
fn serve_databases(path: &str, _: &Value) -> Value {
    let mut answer = match path {
        "/apis/example.com" => json!({ "versions": [{ "version": "v1" }] }),
        "/apis/example.com/v1" => json!({ "resources": [
            { "name": "databases", "kind": "Database", "namespaced": true },
            { "name": "databases/status", "kind": "Database", "namespaced": true },
        ] }),
        "/apis/example.com/v1/databases" => {
            json!({ "metadata": {}, "items": (0..PARENTS).map(database).collect::<Vec<_>>() })
        }
        _ => json!({}),
    };
    answer["code"] = json!(200);
    answer
}

fn database(number: usize) -> Value {
    let ours =
        json!({ "f:status": { "f:conditions": { "k:{\"type\":\"Ready\"}": { ".": {}, "f:type": {} } } } });
    json!({
        "apiVersion": "example.com/v1", "kind": "Database",
        "metadata": {
            "name": format!("db-{number}"), "namespace": "shop", "uid": format!("u-{number}"), "resourceVersion": "7",
            "generation": 1, "managedFields": [{ "manager": FIELD_MANAGER, "operation": "Update", "subresource": "status",
                "apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": ours }],
        },
        "status": { "conditions": [{ "type": "Ready", "status": "True", "reason": "AllChildrenReady",
            "message": "all 1 are ready", "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z" }] },
    })
}

#[tokio::test(start_paused = true)]
async fn a_release_of_many_parents_leaves_the_server_to_others_between_its_patches() {
    let spec = json!({ "parent": { "group": "example.com", "kind": "Database" }, "children": [{ "kind": { "kind": "Pod" } }] });
    let compiled = policy::compile(&serde_json::from_value(spec).unwrap(), Duration::from_mins(10)).unwrap();
    let written = WrittenPolicy { compiled: vec![compiled], only: None, unknown: None };
    let server = ReviewServer::new(serve_databases);
    let begun = Instant::now();
    let report = release_parents(&server.client(), &[written], &[]).await.unwrap();
    assert_eq!(report, ReleaseReport { released: PARENTS, ..ReleaseReport::default() });
    assert_eq!(server.asked(), 3 + PARENTS);
    // The first patch waits for nobody: a hundred a second.
    let intervals = u32::try_from(PARENTS - 1).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(10) * intervals, "{:?}", begun.elapsed());
}

//! Objects that are stored as another server returned them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use sandbox::{SandboxOptions, SandboxServer};
use serde_json::{Value, json};

fn recorded(kind: &str, uid: &str, owners: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": kind, "spec": { "replicas": 2 }, "status": { "observedGeneration": 7 },
        "metadata": {
            "name": uid, "namespace": "shop", "uid": uid, "generation": 7, "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": owners,
            "managedFields": [{ "manager": "operator", "operation": "Update", "subresource": "status" }],
        },
    })
}

#[tokio::test]
async fn what_is_restored_stays_as_it_was_and_goes_with_its_owner() {
    let server = SandboxServer::start(SandboxOptions::default()).await.unwrap();
    let owner = json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "u-1", "uid": "u-1" }]);
    let objects = [recorded("Deployment", "u-1", &json!([])), recorded("ReplicaSet", "u-2", &owner)];
    let now = server.now();
    for object in &objects {
        let mut stored = (*server.lock_store().restore_object(now, object.clone()).unwrap()).clone();
        assert!(stored["metadata"]["resourceVersion"].is_string());
        let metadata = stored["metadata"].as_object_mut().unwrap();
        metadata.remove("resourceVersion");
        metadata.entry("ownerReferences").or_insert(json!([]));
        assert_eq!(&stored, object);
    }
    let mut store = server.lock_store();
    store.delete_object(now, "apps/v1", "Deployment", "shop", "u-1").unwrap();
    assert!(store.get("apps/v1", "ReplicaSet", "shop", "u-2").is_none());
}

//! Requests for features that the sandbox does not implement are refused with a 501 that names the feature.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on has failed")]

use sandbox::store::{SandboxStore, StoreRequest};
use serde_json::{Value, json};

const NOTES: &str = "/api/v1/namespaces/default/configmaps";

fn answer(method: &str, target: &str, content_type: &str, body: &[u8]) -> (u16, Value) {
    let mut store = SandboxStore::new(1);
    let note = json!({"metadata": {"name": "a"}});
    assert!(
        store
            .handle_request(0, &StoreRequest::with_body("POST", NOTES, "application/json", &note))
            .is_success()
    );
    let revision = store.revision();
    let request = StoreRequest {
        body: body.to_vec(),
        content_type: Some(content_type.into()),
        ..StoreRequest::new(method, target)
    };
    let response = store.handle_request(0, &request);
    assert_eq!(store.revision(), revision, "{method} {target} changed something");
    (response.status, response.body_value())
}

#[test]
fn what_is_not_implemented_is_501_and_named() {
    const POD: &str = "/api/v1/namespaces/default/pods/a";
    let apply = br#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}"#.as_slice();
    let note = format!("{NOTES}/a");
    let cases = [
        (
            "PATCH",
            format!("{note}?fieldManager=me&force=true"),
            "application/apply-patch+yaml",
            apply,
            "server-side apply",
        ),
        ("PATCH", note, "application/apply-patch+cbor", apply, "server-side apply"),
        (
            "POST",
            NOTES.to_owned(),
            "application/yaml",
            b"metadata:\n  name: b\n",
            "bodies in application/yaml",
        ),
        (
            "POST",
            NOTES.to_owned(),
            "application/vnd.kubernetes.protobuf",
            b"k8s\0",
            "vnd.kubernetes.protobuf",
        ),
        ("GET", "/apis/batch/v1/namespaces/default/jobs/a/scale".to_owned(), "", b"", "jobs/scale"),
        ("GET", format!("{POD}/log"), "", b"", "pods/log"),
        ("POST", format!("{POD}/exec"), "", b"", "pods/exec"),
        ("POST", format!("{POD}/eviction"), "application/json", b"{}", "pods/eviction"),
        ("POST", format!("{POD}/binding"), "application/json", b"{}", "pods/binding"),
    ];
    for (method, target, content_type, body, named) in cases {
        let (status, refused) = answer(method, &target, content_type, body);
        assert_eq!(status, 501, "{method} {target}: {refused}");
        assert_eq!((&refused["kind"], &refused["reason"]), (&json!("Status"), &json!("NotImplemented")));
        let message = refused["message"].as_str().unwrap();
        assert!(
            message.starts_with("the sandbox does not implement ") && message.contains(named),
            "{message}"
        );
    }
}

const BODIES: [&[u8]; 16] = [
    b"",
    b"null",
    b"7",
    b"\"x\"",
    b"[]",
    b"{}",
    b"[null]",
    b"[[]]",
    b"[7]",
    b"\xff\xfe",
    b"{\"metadata\":7}",
    b"{\"metadata\":{\"name\":\"b\"},\"spec\":\"x\",\"status\":[]}",
    b"{\"metadata\":{\"ownerReferences\":[7,null,{}],\"finalizers\":[7],\"managedFields\":7}}",
    b"[{\"op\":7}]",
    b"[{\"op\":\"add\",\"path\":\"\",\"value\":null}]",
    b"[{\"op\":\"add\",\"path\":\"/metadata\",\"value\":7}]",
];
const KINDS: [&str; 6] = [
    "application/json",
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "",
    ";;",
];
const TARGETS: [&str; 17] = [
    "/",
    "//",
    "/api",
    "/apis/",
    "/api/v1/namespaces",
    "/api/v1/namespaces/default",
    "/api/v1/namespaces/default/",
    NOTES,
    "/api/v1/namespaces/default/configmaps/a",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces/default/services",
    "/api/v1/namespaces/default/events",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/authentication.k8s.io/v1/tokenreviews",
    "/api/v1/namespaces/default/configmaps?limit=-1&continue=00&labelSelector=,,&fieldSelector===&resourceVersion=-1",
];

#[test]
fn no_input_brings_the_store_down() {
    let mut store = SandboxStore::new(1);
    store.handle_request(
        0,
        &StoreRequest::with_body("POST", NOTES, "application/json", &json!({"metadata": {"name": "a"}})),
    );
    for method in ["GET", "POST", "PUT", "PATCH", "HEAD", "OPTIONS", "", "DELETE"] {
        for target in TARGETS {
            for kind in KINDS {
                for body in BODIES {
                    let content_type = Some(kind.to_owned());
                    let request = StoreRequest {
                        body: body.to_vec(),
                        content_type,
                        ..StoreRequest::new(method, target)
                    };
                    let response = store.handle_request(0, &request);
                    let status = response.status;
                    assert!((200..600).contains(&status), "{method} {target} {kind} {body:?}");
                    assert!(
                        status < 500 || status == 501,
                        "{method} {target} {kind} {body:?}: {}",
                        response.body_value()
                    );
                }
            }
        }
    }
}

//! Specs of groups that break each rule of their CRD, and some bounds of its schema.

use serde_json::{Value, json};

/// A spec of one member.
#[expect(clippy::needless_pass_by_value, reason = "a part is written where it is passed")]
fn of(member: Value) -> Value {
    json!({ "members": [member] })
}

fn with_setting(field: &str, value: Value) -> Value {
    let mut spec = of(json!({ "kinds": [{ "kind": "Pod" }], "labels": { "a": "b" } }));
    spec[field] = value;
    spec
}

#[expect(clippy::needless_pass_by_value, reason = "a part is written where it is passed")]
fn of_kind(kind: Value) -> Value {
    of(json!({ "kinds": [kind], "labels": { "a": "b" } }))
}

#[expect(clippy::needless_pass_by_value, reason = "a part is written where it is passed")]
fn ignoring(expression: Value) -> Value {
    let selector = json!({ "selector": { "matchExpressions": [expression] } });
    of(json!({ "kinds": [{ "kind": "Pod" }], "labels": { "a": "b" }, "ignore": selector }))
}

#[expect(clippy::needless_pass_by_value, reason = "a part is written where it is passed")]
fn judged(ready: Value) -> Value {
    of(json!({ "kinds": [{ "kind": "Pod" }], "labels": { "a": "b" }, "ready": ready }))
}

/// Members in other namespaces.
fn namespace_cases() -> Vec<Value> {
    let (pods, jobs) = (json!([{ "kind": "Pod" }]), json!([{ "group": "batch", "kind": "Job" }]));
    let web = json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" }]);
    vec![
        of(json!({ "objects": web, "namespaces": ["bank"] })),
        of(json!({ "objects": [{ "apiVersion": "v1", "kind": "Pod", "namespace": "Bank", "name": "x" }] })),
        of(json!({ "kinds": pods, "labels": { "a": "b" }, "namespaces": ["ba*"] })),
        of(json!({ "kinds": pods, "labels": { "a": "b" }, "namespaces": vec!["a"; 17] })),
        of(
            json!({ "kinds": jobs, "labels": { "a": "b" }, "namespaces": ["bank"], "afterDeletion": "remember" }),
        ),
    ]
}

/// Members with rules of their own.
fn rule_cases() -> Vec<Value> {
    let jobs = json!([{ "group": "batch", "kind": "Job" }]);
    vec![
        judged(json!({})),
        judged(json!({ "lua": "return nil", "profile": "flux" })),
        judged(json!({ "rules": "argocd-cm" })),
        judged(json!({ "cel": { "current": "" } })),
        judged(json!({ "cel": { "current": "x".repeat(4_097) } })),
        judged(json!({ "lua": "x".repeat(65_537) })),
        of(json!({ "kinds": jobs, "labels": { "a": "b" }, "afterDeletion": "remember",
            "ready": { "profile": "flux" } })),
    ]
}

/// Each is refused, and for one reason.
pub(crate) fn group_cases() -> Vec<Value> {
    let (pods, jobs) = (json!([{ "kind": "Pod" }]), json!([{ "group": "batch", "kind": "Job" }]));
    let web = json!([{ "apiVersion": "apps/v1", "kind": "Deployment", "name": "web" }]);
    let mut cases = vec![
        json!({ "members": [] }),
        of(json!({ "kinds": pods })),
        of(json!({ "kinds": pods, "labels": { "a": "b" }, "helmRelease": "x" })),
        of(json!({ "kinds": pods, "applySet": "x", "kustomization": { "name": "x" } })),
        of(json!({ "kinds": pods, "application": "x", "inventory": "x" })),
        of(json!({ "kinds": pods, "application": "" })),
        of(json!({ "kinds": pods, "application": "x".repeat(318) })),
        of(json!({ "kinds": pods, "inventory": "" })),
        of(json!({ "kinds": pods, "inventory": "x".repeat(318) })),
        of(json!({ "kinds": pods, "application": "shop:books" })),
        of(json!({ "kinds": pods, "inventory": "shop/books" })),
        of(json!({ "kinds": pods, "helmRelease": "my release" })),
        of(json!({ "kinds": pods, "applySet": "-x" })),
        of(json!({ "labels": { "a": "b" } })),
        of(json!({ "kinds": pods, "labels": { ("k".repeat(318)): "b" } })),
        of(json!({ "kinds": pods, "labels": { "a": "b" },
            "ignore": { "selector": { "matchLabels": { ("k".repeat(318)): "b" } } } })),
        of(json!({ "kinds": pods, "objects": web })),
        of(json!({ "objects": web, "expect": { "min": 1 } })),
        of(json!({ "objects": web, "afterDeletion": "remember" })),
        of(json!({ "kinds": pods, "labels": { "a": "b" }, "afterDeletion": "remember" })),
        of(json!({ "kinds": jobs, "labels": { "a": "b" }, "expect": { "min": 2, "max": 1 } })),
        of(json!({ "kinds": pods, "helmRelease": "" })),
        of(json!({ "kinds": pods, "helmRelease": "x".repeat(54) })),
        of(json!({ "kinds": pods, "labels": { "a": "b" }, "quorum": "150%" })),
        of(json!({ "objects": [{ "apiVersion": "/v1", "kind": "Pod", "name": "x" }] })),
        of(json!({ "objects": [{ "apiVersion": "v1", "kind": "x/y", "name": "x" }] })),
        of(json!({ "objects": [{ "apiVersion": "v1", "kind": "Pod", "name": "" }] })),
        of(json!({ "category": "all" })),
        of(json!({ "category": "all", "kinds": pods, "labels": { "a": "b" } })),
        of(json!({ "category": "all", "objects": web })),
        of(json!({ "category": "all", "labels": { "a": "b" }, "quorum": "50%" })),
        of(json!({ "category": "all", "labels": { "a": "b" }, "afterDeletion": "remember" })),
        of(json!({ "category": "All", "labels": { "a": "b" } })),
        of(json!({ "category": "", "labels": { "a": "b" } })),
        of(json!({ "category": "x".repeat(64), "labels": { "a": "b" } })),
        of_kind(json!({ "group": "*", "kind": "Pod" })),
        of_kind(json!({ "kind": "x/y" })),
        ignoring(json!({ "key": "-", "operator": "Exists" })),
        ignoring(json!({ "key": "a", "operator": "In" })),
        of(json!({ "category": "all", "labels": { "a": "b" }, "expect": { "cel": "1" } })),
        of(json!({ "kinds": pods, "labels": { "a": "b" }, "expect": { "cel": "" } })),
        of(json!({ "kinds": pods, "labels": { "a": "b" }, "expect": { "cel": "1".repeat(4_097) } })),
        with_setting("after", json!([{ "name": "" }])),
        with_setting("debounce", json!({ "quiet": "99ms" })),
        with_setting("debounce", json!({ "cap": "999ms" })),
        with_setting("debounce", json!({ "quiet": "3s", "cap": "2s" })),
        with_setting("debounce", json!({ "quiet": "soon" })),
    ];
    cases.extend(namespace_cases().into_iter().chain(rule_cases()));
    cases.extend(["settle", "hold", "grace"].map(|field| with_setting(field, json!("soon"))));
    let limits = ["pending", "progress", "terminating", "deadline"];
    cases.extend(limits.map(|limit| with_setting("limits", json!({ limit: "soon" }))));
    cases
}

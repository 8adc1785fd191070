//! Specs of policies, right and wrong, that the API server and `rollcall check` are asked about.

use serde_json::{Map, Value, json};

/// Specs that are wrong in one way, or in none.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(crate) fn cases() -> Vec<Value> {
    let mut cases = Vec::new();
    let parent = |more: Value| {
        with(json!({ "parent": { "group": "example.com", "kind": "Database" } }), "parent", more)
    };
    let child = |more: Value| {
        with(
            json!({ "parent": { "kind": "Database" }, "children": [{ "kind": { "kind": "Pod" } }] }),
            "children/0",
            more,
        )
    };
    let spec = |more: Value| with(json!({ "parent": { "kind": "Database" } }), "", more);
    let job = json!({ "group": "batch", "kind": "Job" });
    cases.push(spec(json!({})));
    cases.push(json!({}));
    cases.push(json!({ "parent": { "group": "example.com" } }));
    for group in [
        "",
        "example.com",
        "a-b.example.com",
        "*",
        "Example.com",
        "x\"]\n verbs: [\"*\"",
        "a..b",
        "-a.b",
        "rollcall.dev",
        &"a.".repeat(127),
    ] {
        cases.push(parent(json!({ "group": group })));
        cases.push(child(json!({ "kind": { "group": group, "kind": "Pod" } })));
    }
    for kind in ["Pod", "Pod2", "x-y", "", "*", "Po d", "pods/status", "2Pod", "P\u{1b}[31m", &"P".repeat(64)]
    {
        cases.push(parent(json!({ "kind": kind })));
        cases.push(child(json!({ "kind": { "kind": kind } })));
    }
    for version in ["v1", "v1alpha1", "", "1", "V1", "v1/x"] {
        cases.push(parent(json!({ "version": version })));
        cases.push(child(json!({ "kind": { "kind": "Pod", "version": version } })));
    }
    for duration in [
        "0s",
        "100ms",
        "5s",
        "1h30m",
        "87600h",
        "87601h",
        "soon",
        "5",
        "",
        "-5s",
        "1d",
        "99999999999999h",
        "1.5s",
        " 5s",
    ] {
        cases.push(spec(json!({ "settle": duration })));
        cases.push(spec(json!({ "hold": duration })));
        cases.push(spec(json!({ "debounce": { "quiet": "0s", "cap": duration } })));
        cases.push(spec(json!({ "debounce": { "quiet": duration, "cap": "87600h" } })));
        cases.push(spec(json!({ "limits": { "pending": duration } })));
        cases.push(spec(json!({ "limits": { "terminating": duration } })));
        cases.push(spec(json!({ "limits": { "deadline": duration } })));
    }
    cases.push(spec(json!({ "debounce": { "quiet": "2s", "cap": "1s" } })));
    cases.push(spec(json!({ "debounce": { "quiet": "1000ms", "cap": "1s" } })));
    for kind in
        ["Ready", "example.com/Ready", "Reconciling", "Stalled", "", "no spaces", "a/b/c", "Ready\u{7}"]
    {
        cases.push(spec(json!({ "condition": { "type": kind } })));
        cases.push(spec(json!({ "condition": { "fallback": kind } })));
    }
    for (operator, values) in [
        ("In", json!(["a"])),
        ("In", json!([])),
        ("Exists", json!(["a"])),
        ("DoesNotExist", json!([])),
        ("NotIn", json!(["x".repeat(64)])),
    ] {
        for key in ["app", "app.kubernetes.io/name", "no key"] {
            let wrong =
                json!({ "matchExpressions": [{ "key": key, "operator": operator, "values": values }] });
            // One mistake at a time.
            if key == "no key" && !(operator == "In" && values == json!(["a"])) {
                continue;
            }
            cases.push(parent(json!({ "selector": wrong })));
            cases.push(parent(json!({ "namespaceSelector": wrong })));
            cases.push(child(json!({ "ignore": { "selector": wrong } })));
        }
    }
    let many = |count: usize| (0..count).map(|n| (format!("k{n}"), json!("v"))).collect::<Map<_, _>>();
    for labels in [many(64), many(65), Map::from_iter([("a".to_owned(), json!("x".repeat(64)))])] {
        cases.push(parent(json!({ "selector": { "matchLabels": labels } })));
    }
    for quorum in [
        json!("all"),
        json!(1),
        json!("2"),
        json!("100%"),
        json!(0),
        json!(-1),
        json!("0"),
        json!("0%"),
        json!("101%"),
        json!("most"),
        json!(1_000_000),
    ] {
        cases.push(child(json!({ "quorum": quorum })));
    }
    for expect in [
        json!({ "min": 1, "max": 2 }),
        json!({ "min": 2, "max": 1 }),
        json!({ "max": 0 }),
        json!({ "min": 1_000_001 }),
        json!({ "min": -1 }),
        json!({ "names": [""] }),
        json!({ "names": ["x".repeat(1_025)] }),
        json!({ "cel": "" }),
    ] {
        cases.push(child(json!({ "expect": expect })));
    }
    for find in [
        json!({ "labels": { "a": "b" } }),
        json!({ "refs": "spec.refs[*]" }),
        json!({ "labels": { "a": "b" }, "refs": "spec.refs[*]" }),
        json!({ "namespaces": ["shop"] }),
        json!({ "labels": { "a": "b" }, "namespaces": ["shop", "{parent.metadata.namespace}"] }),
        json!({ "labels": { "a": "b" }, "namespaces": ["Shop"] }),
        json!({ "labels": { "a": "b" }, "namespaces": [""] }),
        json!({ "labels": {}, "namespaces": ["shop"] }),
        json!({ "labels": { "a": "b" }, "namespaces": ["{parent.spec.ns}"] }),
        json!({ "labels": { "a": "b" }, "namespaces": ["{parent.spec.ns}"], "allowedNamespaces": ["shop", "team-*"] }),
        json!({ "labels": { "a": "b" }, "namespaces": ["x-{parent.metadata.namespace}"], "allowedNamespaces": [] }),
        json!({ "allowedNamespaces": ["shop"] }),
        json!({ "allowedNamespaces": ["*"] }),
        json!({ "allowedNamespaces": ["Shop"] }),
        json!({ "allowedNamespaces": ["-*"] }),
        json!({ "labels": { "a": "x".repeat(1_025) } }),
    ] {
        cases.push(child(json!({ "find": find })));
    }
    for ready in [
        json!({}),
        json!({ "profile": "flux" }),
        json!({ "profile": "flux", "lua": "return {}" }),
        json!({ "rules": "argocd-cm" }),
        json!({ "rules": "gitops/rules.v1" }),
        json!({ "rules": "a/b/c" }),
        json!({ "rules": "Argo" }),
        json!({ "rules": "../x" }),
        json!({ "lua": "" }),
        json!({ "cel": { "current": "x".repeat(4_097) } }),
    ] {
        cases.push(child(json!({ "ready": ready })));
    }
    for after in ["forget", "remember", "rememberGeneration"] {
        cases.push(child(json!({ "afterDeletion": after })));
        cases.push(child(json!({ "kind": job, "afterDeletion": after })));
        cases.push(child(json!({ "kind": job, "afterDeletion": after, "find": { "labels": { "a": "b" } } })));
        cases.push(child(json!({ "kind": job, "afterDeletion": after, "ready": { "profile": "flux" } })));
    }
    for count in [64, 65] {
        cases.push(spec(json!({ "children": vec![json!({ "kind": { "kind": "Pod" } }); count] })));
    }
    cases
}

/// This spec with other fields at a path.
fn with(mut spec: Value, path: &str, fields: Value) -> Value {
    let at = if path.is_empty() { String::new() } else { format!("/{path}") };
    let into = spec.pointer_mut(&at).and_then(Value::as_object_mut);
    if let (Some(into), Value::Object(fields)) = (into, fields) {
        into.extend(fields);
    }
    spec
}

/// This spec with these fields of its only child.
fn with_child(fields: Value) -> Value {
    with(
        json!({ "parent": { "kind": "Database" }, "children": [{ "kind": { "kind": "Pod" } }] }),
        "children/0",
        fields,
    )
}

/// Specs that are wrong in several ways at once: of fields that have nothing to do with each other, of one and what rests on
/// it, and twice of the same one.
pub(crate) fn wrong_twice() -> Vec<Value> {
    let spec = |more: Value| with(json!({ "parent": { "kind": "Database" } }), "", more);
    let rival = json!({ "refs": "spec.refs[*]", "labels": { "a": "b" }, "namespaces": ["", "Shop"], "allowedNamespaces": ["*"] });
    let key = json!({ "key": "no key", "operator": "Exists", "values": ["a"] });
    let job = json!({ "group": "batch", "kind": "Cron Job" });
    vec![
        spec(
            json!({ "settle": "soon", "hold": "later", "condition": { "type": "Stalled", "fallback": "" } }),
        ),
        spec(json!({ "debounce": { "quiet": "soon", "cap": "1d" } })),
        spec(json!({ "debounce": { "quiet": "99999999999999h", "cap": "1s" } })),
        spec(json!({ "debounce": { "quiet": "87601h", "cap": "1s" } })),
        json!({ "parent": { "group": "*", "version": "", "kind": "", "selector": { "matchExpressions": [key] } } }),
        json!({ "parent": { "kind": "Database", "group": "rollcall.dev", "version": "V1" }, "settle": "1d" }),
        with_child(json!({ "find": rival, "quorum": "most", "expect": { "min": 2, "max": 1 } })),
        with_child(json!({ "expect": { "min": 1_000_001, "max": 0, "names": [""] }, "quorum": 0 })),
        with_child(
            json!({ "kind": job, "afterDeletion": "remember", "ready": { "profile": "flux", "lua": "" },
            "find": { "labels": { "a": "b" } } }),
        ),
        with_child(json!({ "ready": { "rules": "Argo", "cel": { "current": "" } } })),
    ]
}

/// Specs with a value that is too large for the rules of the schema to be evaluated, and another mistake.
pub(crate) fn too_large_and_wrong() -> Vec<Value> {
    let long = "a".repeat(64);
    vec![
        json!({ "parent": { "kind": long }, "settle": "soon" }),
        json!({ "parent": { "kind": "Database", "selector": { "matchLabels": { "a": long } } }, "hold": "1d" }),
        json!({ "parent": { "kind": "*" }, "children": vec![json!({ "kind": { "kind": "Pod" } }); 65] }),
    ]
}

/// Specs that no schema can refuse, with the field to blame: each for the reason that stands beside it.
pub(crate) fn beyond_a_schema() -> Vec<(Value, &'static str)> {
    let secrets = json!({ "kind": "Secret" });
    vec![
        // A schema compiles no expression, script, template or path in a text.
        (
            with_child(json!({ "ready": { "cel": { "current": "nonsense(" } } })),
            "spec.children[0].ready.cel.current",
        ),
        (with_child(json!({ "ready": { "lua": "return {" } })), "spec.children[0].ready.lua"),
        (with_child(json!({ "expect": { "cel": "nonsense(" } })), "spec.children[0].expect.cel"),
        (with_child(json!({ "expect": { "names": ["{child.a}"] } })), "spec.children[0].expect.names[0]"),
        (with_child(json!({ "find": { "labels": { "a": "{parent" } } })), "spec.children[0].find.labels[a]"),
        (with_child(json!({ "find": { "refs": "spec..refs" } })), "spec.children[0].find.refs"),
        // Which kinds are protected, the administrator says by a flag, for each release.
        (
            with_child(json!({ "kind": secrets, "ready": { "cel": { "current": "true" } } })),
            "spec.children[0].ready",
        ),
        (
            with(with_child(json!({ "find": { "refs": "spec.refs[*]" } })), "", json!({ "parent": secrets })),
            "spec.children[0].find.refs",
        ),
    ]
}

/// Specs that are no policy at all, with the field to blame. Both refuse them, each in the words of its own decoder.
pub(crate) fn not_decoded() -> Vec<(Value, &'static str)> {
    let spec = |more: Value| with(json!({ "parent": { "kind": "Database" } }), "", more);
    vec![
        (json!({ "parent": "Database" }), "spec.parent"),
        (spec(json!({ "settle": 5 })), "spec.settle"),
        (spec(json!({ "mode": "dry-run" })), "spec.mode"),
        (spec(json!({ "frobnicate": 1 })), "spec.frobnicate"),
        (spec(json!({ "children": {} })), "spec.children"),
        (with_child(json!({ "expect": { "min": "1" } })), "spec.children[0].expect.min"),
        (with_child(json!({ "role": "vital" })), "spec.children[0].role"),
        (with_child(json!({ "ready": { "profile": "helm" } })), "spec.children[0].ready.profile"),
    ]
}

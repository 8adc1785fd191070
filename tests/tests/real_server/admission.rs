//! What is wrong with a policy is said by the API server at once, and `rollcall check` says the same without one.

use std::collections::BTreeSet;
use std::process::Command;

use acceptance::places;
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall_command::rollcall;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

/// Specs that are wrong in one way, or in none.
#[expect(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<Value> {
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

/// What `rollcall check` finds wrong with these policies, by name.
fn checked(tenant: &TestTenant, policies: &[Value]) -> Result<Vec<Value>> {
    let file = tenant.policies_file(policies)?;
    let output = Command::new(places::rollcall()?).args(["check", "-o", "json", "-f"]).arg(&file).output()?;
    let findings: Vec<Value> = serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())?;
    // Of two policies that name the same parent and condition, the later one is refused; that is no matter of a schema.
    let rivals = |f: &Value| f["message"].as_str().is_some_and(|m| m.contains("has the same parent"));
    Ok(findings.into_iter().filter(|finding| finding["severity"] == "error" && !rivals(finding)).collect())
}

#[tokio::test]
async fn check_says_of_every_policy_what_the_server_says() -> Result<()> {
    let tenant = TestTenant::start("admission").await?;
    // Installs the CRDs.
    tenant.crd(&acceptance::crd::CrdBuilder::new("Database")).await?;
    tenant.policy("first", "Database", json!({})).await?;
    let policies: Vec<Value> = cases()
        .into_iter()
        .enumerate()
        .map(|(at, spec)| {
            json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
                "metadata": { "name": format!("{}-case-{at}", tenant.name) }, "spec": spec })
        })
        .collect();
    let findings = checked(&tenant, &policies)?;
    let (mut differences, mut broken) = (Vec::new(), BTreeSet::new());
    for policy in &policies {
        let name = policy["metadata"]["name"].as_str().context("no name")?;
        let found: Vec<_> = findings.iter().filter(|finding| finding["policy"] == name).collect();
        let said = match tenant.admin.create(policy).await {
            Ok(_) => String::new(),
            Err(error) => format!("{error:#}"),
        };
        let words = |key: &str, finding: &Value| finding[key].as_str().unwrap_or_default().to_owned();
        let differs = |finding: &&Value| {
            let field = words("field", finding).replace("[a]", ".a");
            !said.contains(&field) || !said.contains(&words("message", finding))
        };
        if said.is_empty() != found.is_empty() || found.iter().any(differs) {
            differences.push(format!("{}\n  check: {found:?}\n  server: {said}", policy["spec"]));
        }
        broken.extend(found.iter().map(|finding| words("message", finding)));
    }
    ensure!(
        differences.is_empty(),
        "{} of {}:\n{}",
        differences.len(),
        policies.len(),
        differences.join("\n")
    );
    // Each rule of the CRD was broken by one of them.
    let crds = rollcall(&["crd"])?;
    let mut rules = Vec::new();
    for crd in serde_saphyr::from_multiple::<Value>(&crds)? {
        collect_messages(&crd, &mut rules);
    }
    let unbroken: Vec<_> = rules.iter().filter(|rule| !broken.contains(*rule)).collect();
    ensure!(rules.len() > 30 && unbroken.is_empty(), "no case breaks {unbroken:?}");
    println!("{} policies, {} rules", policies.len(), rules.len());
    Ok(())
}

fn collect_messages(schema: &Value, messages: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
            messages.extend(rules.filter_map(|rule| Some(rule["message"].as_str()?.to_owned())));
            fields.values().for_each(|field| collect_messages(field, messages));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_messages(item, messages)),
        _ => {}
    }
}

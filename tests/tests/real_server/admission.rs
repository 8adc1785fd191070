//! What is wrong with a policy is said by the API server at once, and `rollcall check` says the same without one.

use std::collections::BTreeSet;
use std::process::Command;

use acceptance::caller::{RefusedRequest, code_of};
use acceptance::places;
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall_command::rollcall;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::admission_specs::{beyond_a_schema, cases, not_decoded, too_large_and_wrong, wrong_twice};
use super::group_admission_specs::group_cases;

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

/// What is wrong with a policy: fields, and what is said of each. Both sides say each thing once.
type Complaints = BTreeSet<(String, String)>;

/// What the API server says of its own answer, and of no field: a value was too large for rules to be evaluated.
const NOT_ALL_CHECKED: &str = "some validation rules were not checked because the object was invalid; correct the \
    existing errors to complete validation";

/// What the API server says is wrong, cause by cause, and whether that is all.
fn complaints_of_server(answer: Result<Value>) -> Result<(Complaints, bool)> {
    let Err(error) = answer else { return Ok((Complaints::new(), true)) };
    let refused = error.downcast_ref::<RefusedRequest>().with_context(|| format!("{error:#}"))?;
    let causes: Vec<_> = refused.0.details.iter().flat_map(|details| &details.causes).collect();
    let (notes, said): (Vec<_>, Vec<_>) =
        causes.into_iter().partition(|cause| cause.message.ends_with(NOT_ALL_CHECKED));
    let complaints: Complaints = said
        .iter()
        .map(|cause| (plain_path(&cause.field), plain_words(&cause.field, &cause.message)))
        .collect();
    ensure!(!complaints.is_empty() && complaints.len() == said.len(), "{refused}");
    Ok((complaints, notes.is_empty()))
}

/// The server writes an entry of a map as `.a` where a bound of the schema is broken; `rollcall check` as `[a]`.
fn plain_path(field: &str) -> String {
    field.replace("[a]", ".a")
}

/// The words without the value that they are said of, a text or a number, and without the path that stands beside them.
fn plain_words(field: &str, message: &str) -> String {
    let Some(rest) = message.strip_prefix("Invalid value: ") else { return message.to_owned() };
    let value = match rest.strip_prefix('"') {
        Some(text) => {
            let mut is_escaped = false;
            let end = text.find(|c| {
                let ends = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                ends
            });
            end.map_or(0, |end| end + 2)
        }
        None => rest.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(0),
    };
    let words = rest[value..].strip_prefix(": ").unwrap_or(rest);
    words.strip_prefix(&format!("{field} in body ")).unwrap_or(words).to_owned()
}

fn complaints_of_check(findings: &[Value], policy: &str) -> Complaints {
    let words = |key: &str, finding: &Value| finding[key].as_str().unwrap_or_default().to_owned();
    let of_policy = findings.iter().filter(|finding| finding["policy"] == policy);
    of_policy.map(|finding| (plain_path(&words("field", finding)), words("message", finding))).collect()
}

/// A tenant with the CRDs, and a policy of each spec.
async fn policies_of(word: &str, specs: Vec<Value>) -> Result<(TestTenant, Vec<Value>)> {
    let tenant = TestTenant::start(word).await?;
    // Installs the CRDs.
    tenant.crd(&acceptance::crd::CrdBuilder::new("Database")).await?;
    tenant.policy("first", "Database", json!({})).await?;
    let policies = specs
        .into_iter()
        .enumerate()
        .map(|(at, spec)| {
            json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessPolicy",
                "metadata": { "name": format!("{}-case-{at}", tenant.name) }, "spec": spec })
        })
        .collect();
    Ok((tenant, policies))
}

/// A group of each spec.
fn groups_of(tenant: &TestTenant, specs: Vec<Value>) -> Vec<Value> {
    let group = |(at, spec): (usize, Value)| {
        json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessGroup",
            "metadata": { "name": format!("{}-group-{at}", tenant.name), "namespace": tenant.name }, "spec": spec })
    };
    specs.into_iter().enumerate().map(group).collect()
}

/// Creates a policy or a group as `kubectl apply` does, which has the server refuse fields that no schema knows.
async fn create_strictly(tenant: &TestTenant, policy: &Value) -> Result<Value> {
    let kind = tenant.kind(policy["kind"].as_str().context("a kind")?);
    let namespace = policy["metadata"]["namespace"].as_str().unwrap_or_default();
    let path = format!("{}?fieldValidation=Strict", kind.path(namespace));
    tenant.admin.send(Method::POST, &path, "application/json", serde_json::to_vec(policy)?).await
}

fn name_of(policy: &Value) -> &str {
    policy["metadata"]["name"].as_str().unwrap_or_default()
}

/// The messages of all rules of the CRDs.
fn rule_messages() -> Result<Vec<String>> {
    let mut rules = Vec::new();
    for crd in serde_saphyr::from_multiple::<Value>(&rollcall(&["crd"])?)? {
        collect_messages(&crd, &mut rules);
    }
    Ok(rules)
}

#[tokio::test]
async fn check_and_the_server_say_the_same_of_every_policy_and_group_and_no_more() -> Result<()> {
    let specs = [cases(), wrong_twice(), too_large_and_wrong()].concat();
    let (tenant, mut policies) = policies_of("admission", specs).await?;
    policies.extend(groups_of(&tenant, group_cases()));
    let findings = checked(&tenant, &policies)?;
    let rules = rule_messages()?;
    let (mut differences, mut broken, mut unevaluated) = (Vec::new(), BTreeSet::new(), 0);
    for policy in &policies {
        let by_check = complaints_of_check(&findings, name_of(policy));
        let (by_server, is_all) = complaints_of_server(create_strictly(&tenant, policy).await)?;
        let server_alone: Vec<_> = by_server.difference(&by_check).collect();
        let mut check_alone: Vec<_> = by_check.difference(&by_server).collect();
        if !is_all {
            // Rules that the server did not evaluate, for their cost: `rollcall check` has no reason to wait with them.
            unevaluated += check_alone.len();
            check_alone.retain(|(_, words)| !rules.contains(words));
        }
        if !check_alone.is_empty() || !server_alone.is_empty() {
            differences.push(format!(
                "{}\n  check alone: {check_alone:?}\n  server alone: {server_alone:?}",
                policy["spec"]
            ));
        }
        broken.extend(by_check.into_iter().map(|(_, words)| words));
    }
    let (count, of) = (differences.len(), policies.len());
    ensure!(differences.is_empty(), "{count} of {of}:\n{}", differences.join("\n"));
    assert_eq!(unevaluated, too_large_and_wrong().len(), "each has a rule that the server did not evaluate");
    // Each rule of the CRD was broken by one of them.
    let unbroken: Vec<_> = rules.iter().filter(|rule| !broken.contains(*rule)).collect();
    ensure!(rules.len() > 30 && unbroken.is_empty(), "no case breaks {unbroken:?}");
    Ok(())
}

#[tokio::test]
async fn what_no_schema_can_refuse_check_refuses_alone_and_what_is_no_policy_both_by_the_same_field()
-> Result<()> {
    let compiled = beyond_a_schema();
    let specs: Vec<_> = compiled.iter().chain(&not_decoded()).map(|(spec, _)| spec.clone()).collect();
    let (tenant, policies) = policies_of("decoded", specs).await?;
    let findings = checked(&tenant, &policies)?;
    let fields = |policy: &Value| -> BTreeSet<String> {
        complaints_of_check(&findings, name_of(policy)).into_iter().map(|(field, _)| field).collect()
    };
    let (beyond, broken) = policies.split_at(compiled.len());
    for (policy, (spec, field)) in beyond.iter().zip(&compiled) {
        assert_eq!(fields(policy), BTreeSet::from([plain_path(field)]), "{spec}");
        create_strictly(&tenant, policy).await.with_context(|| spec.to_string())?;
    }
    for (policy, (spec, field)) in broken.iter().zip(not_decoded()) {
        assert_eq!(fields(policy), BTreeSet::from([field.to_owned()]), "{spec}");
        let refused = create_strictly(&tenant, policy).await.err().with_context(|| spec.to_string())?;
        if code_of(&refused) == Some(400) {
            // Of a field that it does not know, it says so before it looks at any other.
            ensure!(
                format!("{refused:#}").ends_with(&format!("unknown field \"{field}\"")),
                "{spec}: {refused:#}"
            );
            continue;
        }
        let (by_server, _) = complaints_of_server(Err(refused))?;
        assert_eq!(by_server.iter().map(|(at, _)| at.as_str()).collect::<Vec<_>>(), [field], "{spec}");
    }
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

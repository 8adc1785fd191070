//! Schemas, rules of definitions and admission policies that bound what a status may say. What is too long for them is said in
//! fewer words: a True that a refusal keeps standing is a lie.

use std::time::Duration;

use acceptance::caller::version_of;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, says};
use acceptance::objects::{job, owned_by};
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::memory::{record, records, remembering};

/// How an operator says at length why its object fails.
const LONG: &str = "every replica of it has failed again and again, for longer than anybody would wait, and for good: its disk is gone";

async fn set_shard(tenant: &TestTenant, name: &str, status: &str, reason: &str, message: &str) -> Result<()> {
    let entry = json!({ "type": "Ready", "status": status, "reason": reason, "message": message,
        "observedGeneration": 1 });
    tenant.change_status(&format!("Shard/{name}"), json!({ "conditions": [entry] })).await?;
    Ok(())
}

/// A tenant whose Database has such a status; and one of them with its Shard.
async fn tenant_with(word: &str, crd: &CrdBuilder) -> Result<TestTenant> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(crd).await?;
    tenant.crd(&CrdBuilder::new("Shard")).await?;
    let children = json!([tenant.child("Shard")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    Ok(tenant)
}

async fn create_pair(tenant: &TestTenant, name: &str) -> Result<()> {
    let db = tenant.create(tenant.custom("Database", name)).await?;
    tenant.create(owned_by(&db, tenant.custom("Shard", name))).await?;
    Ok(())
}

/// Admits in the tenant's namespace only what satisfies this. The server takes it up a moment later.
async fn admit(tenant: &TestTenant, rule: &Value, validation: &Value) -> Result<()> {
    let (api, name) = ("admissionregistration.k8s.io/v1", format!("{}-words", tenant.name));
    let here = json!({ "matchLabels": { "kubernetes.io/metadata.name": tenant.name } });
    for object in [
        json!({ "kind": "ValidatingAdmissionPolicy", "spec": { "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [rule] }, "validations": [validation] } }),
        json!({ "kind": "ValidatingAdmissionPolicyBinding", "spec": { "policyName": name,
            "validationActions": ["Deny"], "matchResources": { "namespaceSelector": here } } }),
    ] {
        let mut object = object;
        object["apiVersion"] = json!(api);
        object["metadata"] = json!({ "name": name });
        tenant.plane.admin().await?.create(&object).await?;
    }
    Ok(())
}

/// A Database is ready, its Shard fails at length, is mended, and fails again; then Rollcall starts anew, and has nothing to say.
async fn turns_within(tenant: &TestTenant) -> Result<()> {
    let mut running = tenant.rollcall(&[]).await?;
    for name in ["a", "b"] {
        create_pair(tenant, name).await?;
        set_shard(tenant, name, "True", "Up", "").await?;
        tenant.until(&format!("Database/{name}"), says("Ready", "True")).await?;
    }
    for (status, reason, message, expected) in [
        ("False", "Failed", LONG, "ChildrenFailed"),
        ("True", "Up", "", "AllChildrenReady"),
        ("False", "Failed", LONG, "ChildrenFailed"),
    ] {
        for name in ["a", "b"] {
            set_shard(tenant, name, status, reason, message).await?;
        }
        for name in ["a", "b"] {
            tenant.until(&format!("Database/{name}"), because("Ready", expected)).await?;
        }
    }
    let invalid = running.metric("rollcall_writes_total", &[r#"outcome="invalid""#]).await?;
    assert!(invalid < 1.0, "what can be said otherwise is no failure");
    let before = version_of(&tenant.get("Database/a").await?);
    running.kill()?;
    running.again().await?;
    running.until_metric("rollcall_parents", &[r#"verdict="Failed""#], |parents| parents >= 2.0).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(version_of(&tenant.get("Database/a").await?), before, "a restart has nothing to say");
    Ok(())
}

fn conditions(field: &str) -> String {
    format!("/properties/conditions{field}")
}

#[tokio::test]
async fn a_false_replaces_a_true_however_a_schema_bounds_its_words() -> Result<()> {
    let database = || CrdBuilder::new("Database");
    let item = |field: &str| conditions(&format!("/items/properties/{field}"));
    let rule = json!([{ "rule": "self.all(c, !has(c.message) || size(c.message) <= 80)" }]);
    for (word, crd) in [
        ("bound-length", database().with_schema(&item("message/maxLength"), json!(40))),
        ("bound-types", database().with_schema(&item("type/enum"), json!(["Ready", "Healthy"]))),
        ("bound-count", database().with_schema(&conditions("/maxItems"), json!(1))),
        ("bound-rule", database().with_schema(&conditions("/x-kubernetes-validations"), rule)),
    ] {
        turns_within(&tenant_with(word, &crd).await?).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_false_replaces_a_true_where_an_admission_policy_bounds_its_words() -> Result<()> {
    // The server answers 422 or, where the policy says so, 403: that is no right that lacks.
    for (word, reason) in [("bound-admission", "Invalid"), ("bound-forbidden", "Forbidden")] {
        turns_within_admission(word, reason).await?;
    }
    Ok(())
}

async fn turns_within_admission(word: &str, reason: &str) -> Result<()> {
    let tenant = tenant_with(word, &CrdBuilder::new("Database")).await?;
    let expression = "!has(object.status.conditions) || object.status.conditions.all(c, !has(c.message) || size(c.message) <= 80)";
    let rule = json!({ "apiGroups": [tenant.group], "apiVersions": ["v1"], "operations": ["UPDATE"],
        "resources": ["databases/status"] });
    admit(&tenant, &rule, &json!({ "expression": expression, "reason": reason })).await?;
    tenant.create(tenant.custom("Database", "probe")).await?;
    let long = json!({ "conditions": [{ "type": "Said", "status": "False", "message": LONG }] });
    while tenant.change_status("Database/probe", long.clone()).await.is_ok() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tenant.delete("Database/probe").await?;
    turns_within(&tenant).await
}

/// A status that needs a field of its operator's can hold no condition before that is there.
#[tokio::test]
async fn the_first_word_is_said_as_soon_as_the_status_is_valid() -> Result<()> {
    let crd = CrdBuilder::new("Database").with_schema("/required", json!(["phase"]));
    let tenant = tenant_with("bound-phase", &crd).await?;
    let running = tenant.rollcall(&[]).await?;
    create_pair(&tenant, "a").await?;
    set_shard(&tenant, "a", "True", "Up", "").await?;
    // The next try is some 16 s away by then, and would be a minute later on.
    running.until_metric("rollcall_writes_total", &[r#"outcome="invalid""#], |writes| writes >= 5.0).await?;
    running.until_printed("let its definition, or the admission policy, allow them").await?;
    tenant.change_status("Database/a", json!({ "phase": "Up" })).await?;
    let told = tenant.until("Database/a", says("Ready", "True"));
    timeout(Duration::from_secs(8), told).await.context("told as late as if nothing had changed")??;
    Ok(())
}

/// What an admission refuses is no conflict with another writer: to try it again at once would never end, and nobody would know.
#[tokio::test]
async fn outcomes_that_an_admission_policy_refuses_are_reported_and_kept_once_it_does_not() -> Result<()> {
    let tenant = remembering("bound-records", "remember").await?;
    let rule = json!({ "apiGroups": ["rollcall.dev"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
        "resources": ["readinessrecords"] });
    admit(&tenant, &rule, &json!({ "expression": "false", "message": "no records are kept here" })).await?;
    let running = tenant.rollcall(&[]).await?;
    let own = json!({ "apiVersion": "rollcall.dev/v1alpha1", "kind": "ReadinessRecord", "metadata": { "name": "probe" },
        "spec": { "parent": { "kind": "Database", "name": "probe", "uid": "probe" }, "outcomes": [] } });
    let own = serde_json::to_vec(&own)?;
    let path = format!("{}?dryRun=All", tenant.kind("ReadinessRecord").path(&tenant.name));
    let refused =
        |answer: Result<_>| answer.is_err_and(|why| format!("{why:#}").contains("no records are kept here"));
    while !refused(tenant.admin.send(Method::POST, &path, "application/json", own.clone()).await) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, job("migrate"))).await?;
    running.until_metric("rollcall_records_failing", &[], |failing| failing > 0.5).await?;
    running.until_printed("cannot save Job outcomes").await?;
    let name = format!("{}-words", tenant.name);
    tenant.plane.kubectl(&["delete", "validatingadmissionpolicybinding", &name])?;
    tenant.until_at(&record(&tenant, &db)?, &records("migrate", "Complete")).await?;
    running.until_metric("rollcall_records_failing", &[], |failing| failing < 0.5).await?;
    Ok(())
}

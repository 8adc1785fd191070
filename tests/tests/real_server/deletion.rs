//! The deletion of a parent: what it says it waits for, that it is stuck beyond its limit, and how it is released.

use acceptance::expectation::{StateExpectation, because, gone, mentions, says};
use acceptance::objects::{deployment, owned_by};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::explain::shell;
use super::live::run;
use super::stuck::{hold, limited};

#[tokio::test]
async fn a_parent_held_in_deletion_says_by_whom_is_stuck_beyond_its_limit_and_goes_when_released()
-> Result<()> {
    let (tenant, running, _db) = limited("parentheld", &["Deployment"]).await?;
    hold(&tenant, "Database/db", "backup-controller", "backup.example.com/hold").await?;
    hold(&tenant, "Database/db", "shop-operator", "kopf.zalando.org/KopfFinalizerMarker").await?;
    let object = format!("database.{}/db", tenant.group);
    let (code, out, _) = run(&tenant, &["wait", &object, "--for=delete", "--timeout=1s"]).await?;
    ensure!(code == 124 && out.contains("its deletion was not requested yet"), "{out}");
    tenant.delete("Database/db").await?;
    let stuck = says("Ready", "False").and(because("Ready", "DeletionStuck")).and(says("Stalled", "True"));
    let both = stuck
        .and(mentions(
            "Ready",
            "being deleted: finalizers backup.example.com/hold (set by backup-controller)",
        ))
        .and(mentions("Ready", "kopf.zalando.org/KopfFinalizerMarker (likely a Kopf operator)"));
    let parent = tenant.until("Database/db", both).await?;
    let since = parent["metadata"]["deletionTimestamp"].as_str().context("not being deleted")?;
    let terminating = "rollcall_parent_terminating_since_timestamp_seconds";
    running.until_metric(terminating, &["name=\"db\""], |at| at > 1e9).await?;
    let stuck = ["name=\"db\"", "reason=\"DeletionStuck\"", "verdict=\"Stuck\""];
    running.until_metric("rollcall_parent_not_ready_info", &stuck, |one| one > 0.0).await?;
    // Each is released by the command that is printed beside it; what is said follows.
    for finalizer in ["backup.example.com/hold", "kopf.zalando.org/KopfFinalizerMarker"] {
        let (_, out, err) = run(&tenant, &["explain", &object, "-o", "json"]).await?;
        let told: Value = serde_json::from_str(&out).with_context(|| format!("{out}{err}"))?;
        let holder = &told[0]["causes"][0]["holders"][0];
        ensure!(told[0]["verdict"] == "Stuck" && holder["finalizer"] == finalizer, "{told:#}");
        ensure!(holder["since"] == since && holder["lastWrite"].is_string(), "{holder:#}");
        ensure!(holder["signs"]["state"] == "Ownerless", "nothing of that name runs here: {holder:#}");
        shell(&tenant, holder["release"].as_str().context("no command")?)?;
        if finalizer.starts_with("backup") {
            let rest = mentions("Ready", "being deleted: finalizer kopf.zalando.org/KopfFinalizerMarker");
            tenant.until("Database/db", rest).await?;
        }
    }
    tenant.until("Database/db", gone()).await?;
    let (code, out, err) = run(&tenant, &["wait", &object, "--for=delete", "--timeout=10s"]).await?;
    ensure!(code == 0 && out.ends_with(": deleted\n"), "{out}{err}");
    Ok(())
}

#[tokio::test]
async fn a_parent_that_is_deleted_in_the_foreground_names_the_child_that_it_waits_for() -> Result<()> {
    let (tenant, _running, db) = limited("foreground", &["Deployment"]).await?;
    for name in ["web", "api"] {
        let mut child = owned_by(&db, deployment(name, 1));
        child["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = json!(true);
        tenant.create(child).await?;
    }
    tenant.until("Database/db", says("Ready", "True")).await?;
    hold(&tenant, "Deployment/web", "backup-controller", "backup.example.com/hold").await?;
    let (kind, namespace) = (format!("database.{}", tenant.group), &tenant.name);
    shell(&tenant, &format!("kubectl delete {kind} db -n {namespace} --cascade=foreground --wait=false"))?;
    // The other one goes, and then its pods have: what is waited for is what is there.
    let waits = mentions("Ready", "finalizer foregroundDeletion")
        .and(mentions("Ready", "waits for 1 child: Deployment web (finalizer backup.example.com/hold"));
    let stuck = because("Ready", "DeletionStuck").and(says("Stalled", "True"));
    tenant.until("Database/db", waits.and(stuck)).await?;
    tenant.change("Deployment/web", json!({ "metadata": { "finalizers": null } })).await?;
    tenant.until("Database/db", gone()).await?;
    Ok(())
}

#[tokio::test]
async fn a_condition_is_waited_for_as_kubectl_waits_for_it() -> Result<()> {
    let (tenant, _running, db) = limited("waitfor", &["Deployment"]).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let object = format!("database.{}/db", tenant.group);
    for (goal, holds) in
        [("condition=Ready=Unknown", false), ("condition=ready=TRUE", true), ("condition=Ready", true)]
    {
        let goal = format!("--for={goal}");
        let kubectl = ["wait", &object, &goal, "--timeout=3s", "-n", &tenant.name];
        let by_kubectl = tenant.plane.kubectl(&kubectl).is_ok();
        let (code, out, err) = run(&tenant, &["wait", &object, &goal, "--timeout=3s"]).await?;
        let same = (code == 0) == holds && by_kubectl == holds;
        ensure!(same, "{goal}: kubectl {by_kubectl}, {code} {out}{err}");
    }
    Ok(())
}

#[tokio::test]
async fn the_finalizers_of_a_cluster_are_counted_with_who_sets_them_and_who_waits() -> Result<()> {
    let (tenant, _running, _db) = limited("inventory", &["Deployment"]).await?;
    let finalizer = format!("{}.example.com/guard", tenant.name);
    hold(&tenant, "Database/db", "guard-controller", &finalizer).await?;
    tenant.delete("Database/db").await?;
    tenant.until("Database/db", mentions("Ready", "(set by guard-controller)")).await?;
    let (code, out, err) = run(&tenant, &["doctor", "--finalizers", "-o", "json"]).await?;
    ensure!(code == 1, "an object waits for nobody: {err}");
    let all: Vec<Value> = serde_json::from_str(&out).with_context(|| format!("{out}{err}"))?;
    let entry = all.iter().find(|entry| entry["finalizer"] == *finalizer).context("not counted")?;
    ensure!(entry["objects"] == 1 && entry["waiting"] == 1, "{entry:#}");
    ensure!(entry["setBy"] == json!(["guard-controller"]), "{entry:#}");
    ensure!(entry["holder"]["state"] == "Ownerless", "{entry:#}");
    let waiter = &entry["waiters"][0];
    ensure!(waiter["object"] == format!("Database {}/db", tenant.name), "{waiter:#}");
    shell(&tenant, waiter["release"].as_str().context("no command")?)?;
    tenant.until("Database/db", gone()).await?;
    Ok(())
}

/// The Lease of a controller, renewed so many seconds ago.
fn lease(name: &str, seconds_ago: i64) -> Value {
    let renewed = Timestamp::now() - SignedDuration::from_secs(seconds_ago);
    json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": name },
        "spec": { "holderIdentity": format!("{name}-0_1"), "leaseDurationSeconds": 15,
            "renewTime": format!("{renewed:.6}") } })
}

/// What `explain` says of the life of who holds the parent, and whether `doctor` finds that it waits for nobody.
async fn signs_of_life(tenant: &TestTenant, finalizer: &str) -> Result<(Value, bool)> {
    let object = format!("database.{}/db", tenant.group);
    let (_, out, err) = run(tenant, &["explain", &object, "-o", "json"]).await?;
    let told: Value = serde_json::from_str(&out).with_context(|| format!("{out}{err}"))?;
    let (_, out, err) = run(tenant, &["doctor", "--finalizers", "-o", "json"]).await?;
    let all: Vec<Value> = serde_json::from_str(&out).with_context(|| format!("{out}{err}"))?;
    let entry = all.iter().find(|entry| entry["finalizer"] == *finalizer).context("not counted")?;
    let signs = told[0]["causes"][0]["holders"][0]["signs"].clone();
    ensure!(entry["holder"]["state"] == signs["state"], "doctor and explain differ: {entry:#} {signs:#}");
    Ok((signs, entry["holder"]["state"] == "Ownerless"))
}

/// A Lease counts for a minute after it was renewed last, and a pod for as long as it runs: from then on the holder is gone.
#[tokio::test]
async fn a_finalizer_whose_controller_dies_is_ownerless_a_minute_after_its_last_sign_and_by_which_signs()
-> Result<()> {
    let (tenant, _running, _db) = limited("holderdies", &["Deployment"]).await?;
    let name = format!("{}-guard", tenant.name);
    let finalizer = format!("{}.example.com/guard", tenant.name);
    tenant.create(lease(&name, 0)).await?;
    tenant.create(deployment(&name, 1)).await?;
    tenant.until(&format!("Deployment/{name}"), says("Available", "True")).await?;
    hold(&tenant, "Database/db", &name, &finalizer).await?;
    tenant.delete("Database/db").await?;
    let stuck = because("Ready", "DeletionStuck").and(mentions("Ready", &format!("(set by {name})")));
    tenant.until("Database/db", stuck).await?;

    let place = format!("Lease/{name}");
    let renew = |seconds_ago: i64| json!({ "spec": lease(&name, seconds_ago)["spec"] });
    let expect = async |is_gone: bool, parts: &[&str]| {
        let (signs, gone) = signs_of_life(&tenant, &finalizer).await?;
        let evidence = signs["evidence"].as_str().unwrap_or_default();
        ensure!(gone == is_gone && parts.iter().all(|part| evidence.contains(part)), "{parts:?}: {signs:#}");
        anyhow::Ok(())
    };
    tenant.change(&place, renew(0)).await?;
    expect(false, &["Lease", "was renewed at"]).await?;
    // Its Lease has run out, and its pod runs: it may have lost a connection.
    tenant.change(&place, renew(61)).await?;
    expect(false, &["has not been renewed since", "1 running pod"]).await?;
    tenant.change(&format!("Deployment/{name}"), json!({ "spec": { "replicas": 0 } })).await?;
    let none = StateExpectation::new("without pods", |web| web["status"]["replicas"].is_null());
    tenant.until(&format!("Deployment/{name}"), none).await?;
    let last_write = format!("field manager {name} last wrote this object at 20");
    tenant.change(&place, renew(61)).await?;
    let without_pod = format!("no running pod with the name {name}");
    expect(true, &[&without_pod, "has not been renewed since", &last_write]).await?;
    // One that ends in order lets its Lease go: nobody waits for a minute.
    let mut released = renew(0);
    released["spec"]["holderIdentity"] = json!("");
    tenant.change(&place, released).await?;
    expect(true, &[&without_pod, &last_write]).await?;
    tenant.delete(&place).await?;
    expect(true, &[&format!("no Lease and no running pod with the name {name}"), &last_write]).await?;
    let object = format!("database.{}/db", tenant.group);
    let (code, out, err) = run(&tenant, &["wait", &object, "--for=delete", "--timeout=1s"]).await?;
    ensure!(code == 124 && out.contains(&format!("{finalizer} is ownerless")), "{out}{err}");

    // It is started again, and does what it has to.
    tenant.change(&format!("Deployment/{name}"), json!({ "spec": { "replicas": 1 } })).await?;
    tenant.until(&format!("Deployment/{name}"), says("Available", "True")).await?;
    expect(false, &["1 running pod"]).await?;
    tenant.change("Database/db", json!({ "metadata": { "finalizers": null } })).await?;
    tenant.until("Database/db", gone()).await?;
    Ok(())
}

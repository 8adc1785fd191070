//! Real Helm waits for a parent: with the defaults of `crd-defaults` never too short, and never past what is stalled.

use std::time::Duration;

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, current, has, says, there};
use acceptance::helm::HelmChart;
use acceptance::objects::{condition, deployment, job, owned_by, playing};
use acceptance::peers;
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::rollcall_command::rollcall;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::readers::no_reader_is_early;

pub(crate) async fn tenant_with_defaults(word: &str) -> Result<(TestTenant, HelmChart)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd_with_defaults(&CrdBuilder::new("Database")).await?;
    let chart = HelmChart::new(&tenant, tenant.custom("Database", ""))?;
    Ok((tenant, chart))
}

async fn over(tenant: &TestTenant, kind: &str) -> Result<(Value, RollcallProcess)> {
    let policy =
        tenant.policy("db", "Database", json!({ "children": [tenant.child(kind)], "settle": "1s" })).await?;
    Ok((policy, tenant.rollcall(&[]).await?))
}

#[tokio::test]
async fn helm_waits_for_all_of_it_at_install_and_at_upgrade() -> Result<()> {
    let (tenant, chart) = tenant_with_defaults("helm").await?;
    let (policy, running) = over(&tenant, "Deployment").await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;

    let mut install = chart.begin("install", "db", &["--timeout", "100s"])?;
    let db = tenant.until("Database/db", there()).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    tenant.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
    install.still_waits("a child is not ready")?;
    tenant.play("web", None).await?;
    install.succeeds().await?;
    assert_true_now(&tenant.get("Database/db").await?)?;

    let mut upgrade = chart.begin("upgrade", "db", &["--timeout", "100s", "--set", "size=2"])?;
    let handled_by_nobody = because("Ready", "ChildrenPending").and(current("Ready"));
    tenant.until("Database/db", handled_by_nobody).await?;
    upgrade.still_waits("nobody has handled the new generation")?;
    // Its pods begin held, as those before them did.
    let anew = json!({ "spec": { "template": { "metadata": { "labels": { "round": "2" } } } } });
    tenant.change("Deployment/web", anew).await?;
    tenant.until("Database/db", says("Ready", "False").and(current("Ready"))).await?;
    upgrade.still_waits("its rollout is under way")?;
    tenant.play("web", None).await?;
    upgrade.succeeds().await?;
    let after = tenant.get("Database/db").await?;
    assert_true_now(&after)?;
    assert_eq!(after["metadata"]["generation"], 2);
    assert!(running.metric("rollcall_parents_without_default", &[]).await?.abs() < 0.5);

    let (recording, parent) = (recorder.stop().await?, tenant.address("Database/db")?);
    recording.no_false_ready(&parent, "Ready", &[("Deployment", 1)])?;
    no_reader_is_early(&tenant, &policy, &recording, &parent)
}

pub(crate) fn assert_true_now(db: &Value) -> Result<()> {
    let ready = condition(db, "Ready").cloned().unwrap_or_default();
    ensure!(ready["status"] == "True", "Helm was content with {}", db["status"]);
    ensure!(ready["observedGeneration"] == db["metadata"]["generation"], "of an older generation: {ready}");
    Ok(())
}

#[tokio::test]
async fn helm_gives_up_at_once_on_what_is_stalled() -> Result<()> {
    let (tenant, chart) = tenant_with_defaults("stalled").await?;
    let (policy, _rollcall) = over(&tenant, "Job").await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Job"]).await?;
    let install = chart.begin("install", "db", &["--timeout", "100s"])?;
    let db = tenant.until("Database/db", there()).await?;
    tenant.create(owned_by(&db, playing("fail", job("migrate")))).await?;
    tenant.until("Database/db", says("Stalled", "True")).await?;
    let output = timeout(Duration::from_secs(30), install.end()).await.context("it waits on")??;
    assert!(!output.status.success(), "it succeeded");
    let recording = recorder.stop().await?;
    no_reader_is_early(&tenant, &policy, &recording, &tenant.address("Database/db")?)
}

#[tokio::test]
async fn an_upgrade_whose_child_fails_ends_at_once_too() -> Result<()> {
    let (tenant, chart) = tenant_with_defaults("downgrade").await?;
    let (policy, _rollcall) = over(&tenant, "Job").await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Job"]).await?;
    let install = chart.begin("install", "db", &["--timeout", "100s"])?;
    let db = tenant.until("Database/db", there()).await?;
    tenant.create(owned_by(&db, job("first"))).await?;
    install.succeeds().await?;
    let mut upgrade = chart.begin("upgrade", "db", &["--timeout", "100s", "--set", "size=2"])?;
    tenant.until("Database/db", because("Ready", "ChildrenPending").and(current("Ready"))).await?;
    upgrade.still_waits("nobody has handled the new generation")?;
    tenant.create(owned_by(&db, playing("fail", job("second")))).await?;
    let stalled = says("Stalled", "True").and(because("Ready", "ChildrenFailed")).and(current("Ready"));
    tenant.until("Database/db", stalled).await?;
    let output = timeout(Duration::from_secs(30), upgrade.end()).await.context("it waits on")??;
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "it succeeded: {words}");
    assert!(!words.contains("deadline exceeded"), "it waited for its timeout: {words}");
    let recording = recorder.stop().await?;
    no_reader_is_early(&tenant, &policy, &recording, &tenant.address("Database/db")?)
}

/// Without the default, what stands before Rollcall's first word passes for done, and so does a changed spec below the word
/// about the old one: whether Helm sees these states or those a moment later is a matter of chance.
#[tokio::test]
async fn without_the_default_helm_may_take_for_done_what_is_not() -> Result<()> {
    let tenant = TestTenant::start("undefaulted").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let chart = HelmChart::new(&tenant, tenant.custom("Database", ""))?;
    let (_, running) = over(&tenant, "Deployment").await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let install = chart.begin("install", "db", &["--timeout", "100s"])?;
    let db = tenant.until("Database/db", there()).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    install.succeeds().await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    running.until_metric("rollcall_parents_without_default", &[], |parents| parents >= 1.0).await?;
    chart.begin("upgrade", "db", &["--timeout", "100s", "--set", "size=2"])?.succeeds().await?;
    let content_with = tenant.get("Database/db").await?["status"].take();
    eprintln!("Helm was content with {content_with:#}");
    tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;

    let recording = recorder.stop().await?;
    let states: Vec<Value> = recording.entries().iter().filter_map(|entry| entry.state.clone()).collect();
    let mut early = Vec::new();
    for (state, (status, _)) in states.iter().zip(peers::kstatus(&states)?) {
        let ready = condition(state, "Ready").cloned().unwrap_or_default();
        let (generation, of) = (&state["metadata"]["generation"], &ready["observedGeneration"]);
        let word = ready["reason"].as_str().unwrap_or("-");
        eprintln!("generation {generation}: {status}: Ready={} {word} of {of}", ready["status"]);
        if status == "Current" && (ready["status"] != "True" || of != generation) {
            early.push((generation.as_i64(), of.as_i64()));
        }
    }
    early.dedup();
    assert_eq!(
        early,
        [(Some(1), None), (Some(2), Some(1))],
        "nothing said yet, and what was said of the old"
    );
    Ok(())
}

/// Every shape of status that can have the default, as operators ship them: the server takes what is printed, and says
/// it of an object that nobody has touched.
#[tokio::test]
async fn the_server_takes_the_defaults_for_every_shape_of_status() -> Result<()> {
    let tenant = TestTenant::start("shapely").await?;
    let shapes = [
        CrdBuilder::new("Database"),
        CrdBuilder::new("Atomic").atomic(),
        CrdBuilder::new("Shapeless").shapeless(),
        CrdBuilder::new("Older").without_fields_of_conditions(&["observedGeneration"]),
    ];
    for (kind, crd) in ["Database", "Atomic", "Shapeless", "Older"].into_iter().zip(&shapes) {
        tenant.crd_with_defaults(crd).await?;
        let first = tenant.create(tenant.custom(kind, "first")).await?;
        let ready = condition(&first, "Ready").with_context(|| format!("{kind}: {}", first["status"]))?;
        assert_eq!((&ready["reason"], &ready["observedGeneration"]), (&json!("ChildrenPending"), &json!(0)));
        assert_eq!(first["status"]["observedGeneration"], 0, "{kind}");
        // An operator that writes a status of its own does not lose it.
        tenant.change_status(&format!("{kind}/first"), json!({ "phase": "Busy" })).await?;
        tenant.until(&format!("{kind}/first"), because("Ready", "ChildrenPending")).await?;
    }
    Ok(())
}

#[tokio::test]
async fn while_nobody_looks_after_it_the_default_alone_holds_helm_back() -> Result<()> {
    let (tenant, chart) = tenant_with_defaults("alone").await?;
    let output = chart.begin("install", "db", &["--timeout", "4s"])?.end().await?;
    assert!(!output.status.success(), "nobody ever said that it is ready");
    let db = tenant.until("Database/db", has("Ready", true)).await?;
    assert_eq!(condition(&db, "Ready").map(|c| &c["reason"]), Some(&json!("ChildrenPending")));

    // What it is for: without the default the same release is done before anybody could have said a word.
    let tenant = TestTenant::start("bare").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let chart = HelmChart::new(&tenant, tenant.custom("Database", ""))?;
    chart.begin("install", "db", &["--timeout", "100s"])?.succeeds().await
}

/// A parent that has become ready under a policy that says this of `observedGeneration`.
async fn ready_under(tenant: &TestTenant, mode: &str) -> Result<(Value, Value, RollcallProcess)> {
    let children = json!([tenant.child("Deployment")]);
    let spec = json!({ "children": children, "settle": "100ms", "observedGeneration": mode });
    let policy = tenant.policy("db", "Database", spec).await?;
    let running = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    Ok((policy, tenant.until("Database/db", says("Ready", "True")).await?, running))
}

#[tokio::test]
async fn the_observed_generation_is_kept_where_a_policy_says_so_and_left_behind_by_none() -> Result<()> {
    let tenant = TestTenant::start("written").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let (policy, db, mut running) = ready_under(&tenant, "write").await?;
    assert_eq!(db["status"]["observedGeneration"], 1, "kept without a default");
    // It moves with a verdict about the new generation, and not before.
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;
    let recording = recorder.stop().await?;
    for state in recording.entries().iter().filter_map(|entry| entry.state.as_ref()) {
        let pending = condition(state, "Ready").is_some_and(|c| c["reason"] == "ChildrenPending");
        let observed = &state["status"]["observedGeneration"];
        ensure!(!pending || *observed == 1, "{observed} while it is pending: {}", state["status"]);
    }
    assert!(running.terminate().await?.success());
    let (file, kubeconfig) = (tenant.policies_file(&[policy])?, tenant.kubeconfig(tenant.plane.url()).await?);
    let (file, kubeconfig) = (file.to_string_lossy(), kubeconfig.to_string_lossy());
    rollcall(&["release", "--kubeconfig", &kubeconfig, "-f", &file])?;
    let left = tenant.get("Database/db").await?;
    assert!(left["status"]["observedGeneration"].is_null(), "{}", left["status"]);
    Ok(())
}

#[tokio::test]
async fn the_observed_generation_is_left_alone_where_a_policy_says_so_or_its_operator_keeps_it() -> Result<()>
{
    let tenant = TestTenant::start("never").await?;
    tenant.crd_with_defaults(&CrdBuilder::new("Database")).await?;
    let (_, db, _running) = ready_under(&tenant, "never").await?;
    assert_eq!(db["status"]["observedGeneration"], 0, "as the default says");

    let tenant = TestTenant::start("theirs").await?;
    tenant.crd_with_defaults(&CrdBuilder::new("Database")).await?;
    let (_, db, _running) = ready_under(&tenant, "auto").await?;
    assert_eq!(db["status"]["observedGeneration"], 1, "kept where the default supplies it");
    let theirs = tenant.create(tenant.custom("Database", "theirs")).await?;
    tenant.change_status("Database/theirs", json!({ "observedGeneration": 1 })).await?;
    tenant.create(owned_by(&theirs, deployment("shop", 1))).await?;
    tenant.until("Database/theirs", says("Ready", "True")).await?;
    // The operator handles the next one late: nobody speaks for it.
    tenant.change("Database/theirs", json!({ "spec": { "size": 2 } })).await?;
    let pending = because("Ready", "ChildrenPending").and(current("Ready"));
    let waiting = tenant.until("Database/theirs", pending).await?;
    assert_eq!(waiting["status"]["observedGeneration"], 1);
    tenant.change_status("Database/theirs", json!({ "observedGeneration": 2 })).await?;
    tenant.until("Database/theirs", says("Ready", "True").and(current("Ready"))).await?;
    Ok(())
}

//! Groups beside real Helm: one that counts its hooks, and one that it waits for itself.

use acceptance::expectation::{because, gone, mentions, says, there};
use acceptance::groups::TenantGroups as _;
use acceptance::helm::HelmChart;
use acceptance::objects::{deployment, job, playing};
use acceptance::recorder::StateRecorder;
use acceptance::tenant::TestTenant;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::helm::assert_true_now;
use super::readers::no_reader_is_early;

const PART_OF: &str = "app.kubernetes.io/part-of";

/// A Deployment, and a hook that Helm runs after an install or an upgrade and takes away once it has succeeded. What its pod does is
/// the value `play`.
fn release_with_hook() -> String {
    let mut hook = playing("PLAY", job("shop-migrate"));
    hook["metadata"]["annotations"] = json!({
        "helm.sh/hook": "post-install,post-upgrade",
        "helm.sh/hook-delete-policy": "before-hook-creation,hook-succeeded",
    });
    let play = r#"{{ with .Values.play }}"play":{{ . | quote }},{{ end }}"told":"yes""#;
    let hook = hook.to_string().replace(r#""play":"PLAY""#, play);
    format!("{}\n---\n{hook}\n", deployment("web", 1))
}

#[tokio::test]
async fn a_hook_that_helm_runs_and_takes_away_counts_for_its_group_through_a_kill_in_its_midst() -> Result<()>
{
    let tenant = TestTenant::start("helmhooks").await?;
    let hook = json!([{ "apiVersion": "batch/v1", "kind": "Job", "name": "shop-migrate" }]);
    let spec = json!({ "settle": "100ms", "members": [
        { "kinds": [{ "group": "apps", "kind": "Deployment" }], "helmRelease": "shop" },
        { "objects": hook, "afterDeletion": "remember" },
    ] });
    let mut running = tenant.rollcall_for_groups(&[tenant.group_manifest("g", spec.clone())]).await?;
    tenant.readiness_group("shop", spec).await?;
    tenant.until("ReadinessGroup/shop", because("Ready", "ChildrenMissing")).await?;
    let recorder = StateRecorder::start(&tenant, &["ReadinessGroup"]).await?;
    let chart = HelmChart::of_template(&tenant, &release_with_hook())?;

    let mut install = chart.begin("install", "shop", &["--timeout", "150s", "--set", "play=hold"])?;
    let under_way = says("Ready", "False").and(mentions("Ready", "Job shop-migrate progressing"));
    tenant.until("ReadinessGroup/shop", under_way).await?;
    running.kill()?;
    install.still_waits("its hook is under way")?;
    running.again().await?;
    running.until_ready().await?;
    tenant.play("shop-migrate", None).await?;
    install.succeeds().await?;
    tenant.until("Job/shop-migrate", gone()).await?;
    tenant.until("ReadinessGroup/shop", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;

    // An upgrade whose hook fails, which Helm leaves in place.
    let upgrade = chart.begin("upgrade", "shop", &["--timeout", "150s", "--set", "play=fail"])?;
    let failed = because("Ready", "ChildrenFailed").and(mentions("Ready", "Job shop-migrate"));
    tenant.until("ReadinessGroup/shop", failed).await?;
    ensure!(!upgrade.end().await?.status.success(), "an upgrade whose hook failed is a success");
    // The next one replaces it.
    chart.begin("upgrade", "shop", &["--timeout", "150s", "--reset-values"])?.succeeds().await?;
    tenant.until("Job/shop-migrate", gone()).await?;
    tenant.until("ReadinessGroup/shop", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    let (recording, group) = (recorder.stop().await?, tenant.address("ReadinessGroup/shop")?);
    println!("{}", recording.transcript(&group, "Ready"));
    let told = recording.statuses(&group, "Ready");
    ensure!(told.first().is_some_and(|first| first == "False"), "{told:?}");
    let trues = told.iter().filter(|status| *status == "True").count();
    ensure!(
        trues == 2,
        "ready once the hook of the install has ended, and once that of the last upgrade has: {told:?}"
    );
    Ok(())
}

#[tokio::test]
async fn helm_waits_for_a_group_and_every_reader_takes_it_as_it_says() -> Result<()> {
    let tenant = TestTenant::start("helmgroup").await?;
    let spec = json!({ "settle": "100ms", "members": [
        { "kinds": [{ "group": "apps", "kind": "Deployment" }], "labels": { PART_OF: "shop" } },
        { "kinds": [{ "group": "batch", "kind": "Job" }], "labels": { PART_OF: "shop" }, "expect": { "min": 0 } },
    ] });
    let manifest = tenant.group_manifest("db", spec.clone());
    let _running = tenant.rollcall_for_groups(std::slice::from_ref(&manifest)).await?;
    let recorder = StateRecorder::start(&tenant, &["ReadinessGroup"]).await?;
    let chart = HelmChart::of_template(&tenant, &manifest.to_string())?;
    let mut install = chart.begin("install", "db", &["--timeout", "150s"])?;
    tenant.until("ReadinessGroup/db", there()).await?;
    let labelled = |mut object: Value| {
        object["metadata"]["labels"] = json!({ PART_OF: "shop" });
        object
    };
    tenant.create(labelled(playing("hold", deployment("web", 1)))).await?;
    tenant.until("ReadinessGroup/db", because("Ready", "ChildrenProgressing")).await?;
    install.still_waits("a member is not ready")?;
    tenant.play("web", None).await?;
    install.succeeds().await?;
    assert_true_now(&tenant.get("ReadinessGroup/db").await?)?;
    tenant.create(labelled(playing("fail", job("migrate")))).await?;
    tenant.until("ReadinessGroup/db", says("Stalled", "True")).await?;
    tenant.delete("Job/migrate").await?;
    tenant.until("ReadinessGroup/db", says("Ready", "True")).await?;
    let recording = recorder.stop().await?;
    no_reader_is_early(&tenant, &manifest, &recording, &tenant.address("ReadinessGroup/db")?)
}

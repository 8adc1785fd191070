//! Rollouts that do not go straight on: taken back half way, left to whoever deletes pods, and over nodes that are cordoned.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, current, mentions, says};
use acceptance::objects::{deployment, owned_by, stateful_set};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::evictions::{cordon, nodes_of_its_own, on_own_nodes};

/// A ready `Database` whose operator says which generation it has handled, over these workloads.
async fn ready_over(
    word: &str,
    kind: &str,
    workloads: &[Value],
    nodes: u32,
) -> Result<(TestTenant, RollcallProcess)> {
    let tenant = TestTenant::start(word).await?;
    nodes_of_its_own(&tenant, nodes).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child(kind)], "settle": "200ms" });
    tenant.policy("db", "Database", spec).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    for workload in workloads {
        tenant.create(owned_by(&db, on_own_nodes(&tenant, workload.clone()))).await?;
    }
    tenant.change_status("Database/db", json!({ "observedGeneration": 1 })).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok((tenant, rollcall))
}

/// The operator handles a new generation of the parent: the template of its workload gets this label.
async fn roll_out(tenant: &TestTenant, place: &str, generation: i64, play: Option<&str>) -> Result<()> {
    tenant.change("Database/db", json!({ "spec": { "size": generation } })).await?;
    // A null takes the label away: the template is again what it was.
    let labels = json!({ "metadata": { "labels": { "play": play } } });
    tenant.change(place, json!({ "spec": { "template": labels } })).await?;
    tenant.change_status("Database/db", json!({ "observedGeneration": generation })).await?;
    Ok(())
}

/// Fails unless kubectl says of the workload that its rollout is over.
fn is_rolled_out(tenant: &TestTenant, place: &str) -> Result<()> {
    let place = place.to_lowercase();
    let said = tenant.plane.kubectl(&["rollout", "status", &place, "-n", &tenant.name, "--watch=false"])?;
    ensure!(!said.contains("aiting"), "{said}");
    Ok(())
}

async fn a_rollout_taken_back_half_way(word: &str, workload: Value) -> Result<()> {
    let kind = workload["kind"].as_str().context("no kind")?.to_owned();
    let place = format!("{kind}/app");
    let (tenant, _rollcall) = ready_over(word, &kind, &[workload], 1).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", &kind]).await?;
    roll_out(&tenant, &place, 2, Some("hold")).await?;
    let stuck = StateExpectation::new("a pod of the new template waits", |app| {
        let status = &app["status"];
        let whole = status["replicas"] == status["readyReplicas"];
        status["updatedReplicas"] == 1
            && !whole
            && status["observedGeneration"] == app["metadata"]["generation"]
    });
    tenant.until(&place, stuck).await?;
    let named = mentions("Ready", &format!("{kind} app"));
    tenant.until("Database/db", says("Ready", "False").and(current("Ready")).and(named)).await?;

    roll_out(&tenant, &place, 3, None).await?;
    tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;
    is_rolled_out(&tenant, &place)?;
    let (recording, parent) = (recorder.stop().await?, tenant.address("Database/db")?);
    let transcript = recording.transcript(&parent, "Ready");
    eprintln!("{transcript}");
    recording.no_false_ready(&parent, "Ready", &[(&kind, 1)])?;
    let of_second = recording.said(&parent, "Ready").into_iter().filter(|said| said.generation == 2);
    let truths =
        of_second.filter(|said| said.entry["status"] == "True" && said.entry["observedGeneration"] == 2);
    ensure!(truths.count() == 0, "the second generation was never ready: {transcript}");
    Ok(())
}

#[tokio::test]
async fn a_deployment_that_is_rolled_back_half_way_is_ready_when_the_old_template_is_whole_again()
-> Result<()> {
    a_rollout_taken_back_half_way("undone", deployment("app", 4)).await
}

#[tokio::test]
async fn a_stateful_set_that_is_rolled_back_half_way_is_ready_when_the_old_template_is_whole_again()
-> Result<()> {
    a_rollout_taken_back_half_way("undone-set", stateful_set("app", 3)).await
}

/// As kstatus and Argo CD have it: it is for people to delete the pods, and until they do nothing is under way.
#[tokio::test]
async fn a_stateful_set_of_on_delete_is_ready_between_the_deletions_of_its_pods_and_not_in_them() -> Result<()>
{
    let mut app = stateful_set("app", 3);
    app["spec"]["updateStrategy"] = json!({ "type": "OnDelete" });
    let (tenant, _rollcall) = ready_over("on-delete", "StatefulSet", &[app], 1).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "StatefulSet"]).await?;
    let template = json!({ "metadata": { "labels": { "round": "2" } } });
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    tenant.change("StatefulSet/app", json!({ "spec": { "template": template } })).await?;
    tenant.change_status("Database/db", json!({ "observedGeneration": 2 })).await?;
    let observed = StateExpectation::new("its controller has seen the template", |app| {
        app["status"]["currentRevision"] != app["status"]["updateRevision"]
    });
    tenant.until("StatefulSet/app", observed).await?;
    tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;
    // Its successor finds no node: what a person has begun is not ready.
    cordon(&tenant, "cordon", 1)?;
    tenant.delete("Pod/app-1").await?;
    tenant.until("Database/db", says("Ready", "False").and(mentions("Ready", "StatefulSet app"))).await?;
    cordon(&tenant, "uncordon", 1)?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    for pod in ["app-0", "app-2"] {
        let before = tenant.get(&format!("Pod/{pod}")).await?["metadata"]["uid"].clone();
        tenant.delete(&format!("Pod/{pod}")).await?;
        let anew = StateExpectation::new("another pod of its name is ready", move |pod| {
            pod["metadata"]["uid"] != before && pod["status"]["phase"] == "Running"
        });
        tenant.until(&format!("Pod/{pod}"), anew).await?;
    }
    let all = StateExpectation::new("every pod has the new template", |app| {
        app["status"]["updatedReplicas"] == 3 && app["status"]["availableReplicas"] == 3
    });
    tenant.until("StatefulSet/app", all).await?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "1 of 1 ready"))).await?;
    let (recording, parent) = (recorder.stop().await?, tenant.address("Database/db")?);
    eprintln!("{}", recording.transcript(&parent, "Ready"));
    Ok(())
}

#[tokio::test]
async fn a_daemon_set_is_told_nothing_of_a_cordoned_and_drained_node_and_rolls_out_there_all_the_same()
-> Result<()> {
    let mut agent = deployment("agent", 1);
    agent["kind"] = json!("DaemonSet");
    agent["spec"].as_object_mut().context("no spec")?.remove("replicas");
    let (tenant, _rollcall) = ready_over("cordoned", "DaemonSet", &[agent], 3).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "DaemonSet"]).await?;
    cordon(&tenant, "cordon", 1)?;
    let node = format!("{}-2", tenant.name);
    tenant.plane.kubectl(&["drain", &node, "--ignore-daemonsets", "--timeout=60s"])?;
    // The nodes have taken it up, and the DaemonSet has seen something since.
    tenant.change("DaemonSet/agent", json!({ "metadata": { "labels": { "round": "1" } } })).await?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "1 of 1 ready"))).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    let template = json!({ "metadata": { "labels": { "round": "2" } } });
    tenant.change("DaemonSet/agent", json!({ "spec": { "template": template } })).await?;
    tenant.change_status("Database/db", json!({ "observedGeneration": 2 })).await?;
    tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;
    is_rolled_out(&tenant, "DaemonSet/agent")?;
    let agent = tenant.get("DaemonSet/agent").await?;
    ensure!(agent["status"]["updatedNumberScheduled"] == 3, "{:#}", agent["status"]);
    let (recording, parent) = (recorder.stop().await?, tenant.address("Database/db")?);
    let transcript = recording.transcript(&parent, "Ready");
    eprintln!("{transcript}");
    recording.no_false_ready(&parent, "Ready", &[("DaemonSet", 1)])?;
    let of_first = recording.said(&parent, "Ready").into_iter().filter(|said| said.generation == 1);
    let statuses: Vec<Value> = of_first.map(|said| said.entry["status"].clone()).collect();
    ensure!(statuses.iter().all(|status| status == "True"), "a node that is cordoned was told: {transcript}");
    Ok(())
}

//! What autoscalers and drains do to workloads that were rolled out whole: through the scale subresource and the Eviction API,
//! with the real controllers, scheduler and budgets.

use acceptance::caller::code_of;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, has, mentions, says};
use acceptance::kind::ManifestKind;
use acceptance::objects::{condition, deployment, owned_by, stateful_set};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::{StateRecorder, StateRecording};
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::churn::{available, disruption_budget, whole};
use super::clocks::moment;

/// So many nodes on which nobody else's pods are scheduled.
pub(crate) async fn nodes_of_its_own(tenant: &TestTenant, nodes: u32) -> Result<()> {
    for number in 1..=nodes {
        let name = format!("{}-{number}", tenant.name);
        let labels = json!({ "kubernetes.io/hostname": name, "pool": tenant.name });
        let taints = json!([{ "key": tenant.name, "effect": "NoSchedule" }]);
        let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": labels },
            "spec": { "taints": taints } });
        tenant.admin.create(&node).await?;
    }
    Ok(())
}

/// A ready `Database` over a Deployment of four pods, one of which its maxUnavailable spares, and a StatefulSet of three, on nodes
/// of their own; evictions may take one pod of each.
async fn ready_on_nodes(word: &str, mut policy: Value, nodes: u32) -> Result<(TestTenant, RollcallProcess)> {
    let tenant = TestTenant::start(word).await?;
    nodes_of_its_own(&tenant, nodes).await?;
    for app in ["web", "store"] {
        tenant.create(disruption_budget(app, "maxUnavailable", &json!(1))).await?;
    }
    tenant.crd(&CrdBuilder::new("Database")).await?;
    policy["children"] = json!([tenant.child("Deployment"), tenant.child("StatefulSet")]);
    policy["settle"] = json!("200ms");
    tenant.policy("db", "Database", policy).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    for workload in [deployment("web", 4), stateful_set("store", 3)] {
        tenant.create(owned_by(&db, on_own_nodes(&tenant, workload))).await?;
    }
    tenant.until("Database/db", says("Ready", "True")).await?;
    for app in ["web", "store"] {
        let spares = StateExpectation::new("the budget allows one disruption", |budget| {
            budget["status"]["disruptionsAllowed"] == 1
        });
        let budget = acceptance::kind::ObjectAddress::of(&in_tenant(&tenant, app))?;
        tenant.until_at(&budget, &spares).await?;
    }
    Ok((tenant, rollcall))
}

fn in_tenant(tenant: &TestTenant, app: &str) -> Value {
    let mut budget = disruption_budget(app, "maxUnavailable", &json!(1));
    budget["metadata"]["namespace"] = json!(tenant.name);
    budget
}

/// Lets its pods be scheduled there, and nowhere else.
pub(crate) fn on_own_nodes(tenant: &TestTenant, mut workload: Value) -> Value {
    let pod = &mut workload["spec"]["template"]["spec"];
    pod["nodeSelector"] = json!({ "pool": tenant.name });
    pod["tolerations"] = json!([{ "key": tenant.name, "operator": "Exists" }]);
    workload
}

/// Names of the pods of a workload that are bound to a node.
async fn running_pods(tenant: &TestTenant, app: &str) -> Result<Vec<String>> {
    let (pods, _) =
        tenant.admin.list(&tenant.kind("Pod"), &tenant.name, &format!("labelSelector=app={app}")).await?;
    let bound = pods.iter().filter(|pod| pod["spec"]["nodeName"].is_string());
    Ok(bound.filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned)).collect())
}

/// Asks the server to evict a pod, as `kubectl drain` does. Returns whether it did; a budget that allows no more answers 429.
async fn evict(tenant: &TestTenant, pod: &str) -> Result<bool> {
    let path = format!("{}/{pod}/eviction", ManifestKind::new("v1", "Pod").path(&tenant.name));
    let eviction = json!({ "apiVersion": "policy/v1", "kind": "Eviction",
        "metadata": { "name": pod, "namespace": tenant.name } });
    match tenant.admin.send(Method::POST, &path, "application/json", serde_json::to_vec(&eviction)?).await {
        Ok(_) => Ok(true),
        Err(error) if code_of(&error) == Some(429) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Evicts one pod of a workload that has so many, and waits until its controller has seen that: its successor finds no node.
async fn evict_one(tenant: &TestTenant, app: &str, workload: &str, of: i64) -> Result<()> {
    let pods = running_pods(tenant, app).await?;
    let pod = pods.first().with_context(|| format!("no pod of {app} runs"))?;
    ensure!(evict(tenant, pod).await?, "the budget lets none go");
    tenant.until(workload, available(of - 1, of)).await?;
    Ok(())
}

pub(crate) fn cordon(tenant: &TestTenant, word: &str, number: u32) -> Result<()> {
    tenant.plane.kubectl(&[word, &format!("{}-{number}", tenant.name)])?;
    Ok(())
}

/// Seconds from a workload's condition to that of the parent, by their own words, at the first moment that the parent says so.
fn seconds_between(
    recording: &StateRecording,
    of: &str,
    (kind, status): (&str, &str),
    told: &Value,
) -> Result<i64> {
    let turned = recording.entries().iter().filter_map(|entry| entry.state.as_ref()).find_map(|state| {
        let entry = condition(state, kind).filter(|entry| entry["status"] == *status)?;
        (state["kind"] == *of).then(|| entry["lastTransitionTime"].clone())
    });
    let turned = moment(&turned.with_context(|| format!("{of} never said {kind}={status}"))?)?;
    Ok(moment(&told["lastTransitionTime"])?.duration_since(turned).as_secs())
}

#[tokio::test]
async fn evictions_within_the_budgets_are_told_nobody_and_what_is_lost_beyond_them_within_two_seconds()
-> Result<()> {
    let (tenant, rollcall) = ready_on_nodes("evicted", json!({}), 1).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment", "StatefulSet"]).await?;
    cordon(&tenant, "cordon", 1)?;
    evict_one(&tenant, "store", "StatefulSet/store", 3).await?;
    evict_one(&tenant, "web", "Deployment/web", 4).await?;
    let named = mentions("Ready", "0 of 2 ready")
        .and(mentions("Ready", "Deployment web"))
        .and(mentions("Ready", "StatefulSet store"));
    tenant.until("Database/db", says("Ready", "True").and(named)).await?;
    rollcall.until_metric("rollcall_available_children", &[], |children| children >= 2.0).await?;
    // The budgets let no more go.
    for app in ["store", "web"] {
        for pod in running_pods(&tenant, app).await? {
            ensure!(!evict(&tenant, &pod).await?, "{pod} was evicted");
        }
    }
    tenant.until("Database/db", says("Ready", "True").and(has("Reconciling", false))).await?;

    // One that is lost all the same: the Deployment says that it is not available.
    let lost = running_pods(&tenant, "web").await?.into_iter().next().context("no pod of web runs")?;
    tenant.delete(&format!("Pod/{lost}")).await?;
    let told =
        tenant.until("Database/db", says("Ready", "False").and(mentions("Ready", "Deployment web"))).await?;
    cordon(&tenant, "uncordon", 1)?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;

    let (recording, parent) = (recorder.stop().await?, tenant.address("Database/db")?);
    let transcript = recording.transcript(&parent, "Ready");
    eprintln!("{transcript}");
    assert_eq!(recording.statuses(&parent, "Ready"), ["True", "False", "True"], "{transcript}");
    let told = condition(&told, "Ready").context("no Ready")?;
    let late = seconds_between(&recording, "Deployment", ("Available", "False"), told)?;
    eprintln!("told {late} s after the Deployment's own word");
    // Both times are whole seconds.
    ensure!((0..=2).contains(&late), "told after {late} s");
    Ok(())
}

#[tokio::test]
async fn under_a_strict_policy_the_first_eviction_is_told() -> Result<()> {
    let (tenant, _rollcall) =
        ready_on_nodes("evicted-strict", json!({ "availability": "strict" }), 1).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    cordon(&tenant, "cordon", 1)?;
    evict_one(&tenant, "store", "StatefulSet/store", 3).await?;
    tenant.until("Database/db", says("Ready", "False").and(mentions("Ready", "StatefulSet store"))).await?;
    cordon(&tenant, "uncordon", 1)?;
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    let (recording, parent) = (recorder.stop().await?, tenant.address("Database/db")?);
    let transcript = recording.transcript(&parent, "Ready");
    assert_eq!(recording.statuses(&parent, "Ready"), ["True", "False", "True"], "{transcript}");
    Ok(())
}

#[tokio::test]
async fn a_node_that_is_drained_onto_another_is_told_nobody() -> Result<()> {
    let (tenant, _rollcall) = ready_on_nodes("drained", json!({}), 2).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    // One after the other, as in an upgrade of nodes: in the end every pod has moved.
    for number in [1, 2] {
        let node = format!("{}-{number}", tenant.name);
        let mut drain = tenant.plane.kubectl_command()?;
        drain.args(["drain", &node, "--timeout=150s", "--delete-emptydir-data"]);
        let output = tokio::task::spawn_blocking(move || drain.output()).await??;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        tenant.until("Deployment/web", whole(4)).await?;
        tenant.until("StatefulSet/store", whole(3)).await?;
        cordon(&tenant, "uncordon", number)?;
    }
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    let (recording, parent) = (recorder.stop().await?, tenant.address("Database/db")?);
    let transcript = recording.transcript(&parent, "Ready");
    eprintln!("{transcript}");
    assert_eq!(recording.statuses(&parent, "Ready"), ["True"], "{transcript}");
    Ok(())
}

/// Writes the number of replicas through the subresource: in place as a client that patches, or with the whole object as a
/// HorizontalPodAutoscaler does.
async fn scale_by_subresource(
    tenant: &TestTenant,
    place: &str,
    manager: &str,
    replicas: i64,
    method: &Method,
) -> Result<()> {
    let path = format!("{}/scale", tenant.address(place)?.path());
    let written = format!("{path}?fieldManager={manager}");
    if *method == Method::PATCH {
        let patch = serde_json::to_vec(&json!({ "spec": { "replicas": replicas } }))?;
        tenant.admin.send(Method::PATCH, &written, "application/merge-patch+json", patch).await?;
        return Ok(());
    }
    loop {
        let mut scale = tenant.admin.send(Method::GET, &path, "", Vec::new()).await?;
        scale["spec"]["replicas"] = json!(replicas);
        let put = tenant.admin.send(Method::PUT, &written, "application/json", serde_json::to_vec(&scale)?);
        match put.await {
            Err(error) if code_of(&error) == Some(409) => {}
            other => return other.map(|_| ()),
        }
    }
}

#[tokio::test]
async fn autoscalers_that_scale_and_two_that_fight_over_it_are_told_nobody() -> Result<()> {
    // Beside other tests the workloads' controllers take seconds to see a number.
    let (tenant, _rollcall) = ready_on_nodes("autoscaled", json!({}), 1).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment", "StatefulSet"]).await?;
    let places = [("Deployment/web", 4), ("StatefulSet/store", 3)];
    for (place, at_first) in places {
        for (by, method) in [(1, Method::PATCH), (2, Method::PUT), (1, Method::PUT), (0, Method::PATCH)] {
            let replicas = at_first + by;
            scale_by_subresource(&tenant, place, "kube-controller-manager", replicas, &method).await?;
            tenant.until(place, whole(replicas)).await?;
        }
    }
    // Far more than there is room for: nothing that was there is lost.
    cordon(&tenant, "cordon", 1)?;
    for (place, at_first) in places {
        scale_by_subresource(&tenant, place, "kube-controller-manager", at_first + 6, &Method::PUT).await?;
        tenant.until(place, available(at_first, at_first + 6)).await?;
    }
    let named = mentions("Ready", "Deployment web").and(mentions("Ready", "StatefulSet store"));
    tenant.until("Database/db", says("Ready", "True").and(named)).await?;
    cordon(&tenant, "uncordon", 1)?;
    for (place, at_first) in places {
        tenant.until(place, whole(at_first + 6)).await?;
        scale_by_subresource(&tenant, place, "kube-controller-manager", at_first, &Method::PUT).await?;
        tenant.until(place, whole(at_first)).await?;
    }
    // Each undoes what the other has done as soon as the workload's controller has seen it, faster than pods can follow.
    for _ in 0..15 {
        for (manager, by) in [("keda-operator", 1), ("kube-controller-manager", 0)] {
            for (place, at_first) in places {
                scale_by_subresource(&tenant, place, manager, at_first + by, &Method::PUT).await?;
                let observed = StateExpectation::new("its controller has seen the number", |workload| {
                    workload["status"]["observedGeneration"] == workload["metadata"]["generation"]
                });
                tenant.until(place, observed).await?;
            }
        }
    }
    for (place, at_first) in places {
        tenant.until(place, whole(at_first)).await?;
    }
    tenant.until("Database/db", says("Ready", "True").and(mentions("Ready", "2 of 2 ready"))).await?;
    let (recording, parent) = (recorder.stop().await?, tenant.address("Database/db")?);
    let transcript = recording.transcript(&parent, "Ready");
    eprintln!("{transcript}");
    assert_eq!(recording.statuses(&parent, "Ready"), ["True"], "{transcript}");
    let reconciling = recording.said(&parent, "Reconciling");
    ensure!(reconciling.iter().all(|said| said.entry.is_null()), "{reconciling:#?}");
    Ok(())
}

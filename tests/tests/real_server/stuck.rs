//! What waits beyond its limit, by the word of the real scheduler and volume controller; and what hangs in deletion.

use std::time::Duration;

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, gone, mentions, says};
use acceptance::kind::ObjectAddress;
use acceptance::objects::{condition, deployment, job, owned_by, playing, stateful_set};
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use http::Method;
use serde_json::{Value, json};

use super::explain::shell;
use super::live::run;

/// A Database with these kinds of children, all of them limited to a few seconds, and a quick pass over it.
pub(crate) async fn limited(word: &str, kinds: &[&str]) -> Result<(TestTenant, RollcallProcess, Value)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let child = |kind: &&str| {
        let mut child = tenant.child(kind);
        child["expect"] = json!({ "min": 0 });
        child
    };
    let children: Vec<Value> = kinds.iter().map(child).collect();
    let limits = json!({ "pending": "3s", "terminating": "2s" });
    tenant
        .policy("db", "Database", json!({ "children": children, "settle": "100ms", "limits": limits }))
        .await?;
    let running = tenant.rollcall(&["--resync=1s"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    Ok((tenant, running, db))
}

/// Waits until the parent says that it is stuck, in these words, for good as far as its readers go.
pub(crate) async fn until_stuck(tenant: &TestTenant, words: &[&str]) -> Result<String> {
    let mut expectation =
        says("Ready", "False").and(because("Ready", "ChildrenStuck")).and(says("Stalled", "True"));
    for part in words {
        expectation = expectation.and(mentions("Ready", part));
    }
    let parent = tenant.until("Database/db", expectation.and(mentions("Stalled", words[0]))).await?;
    let message = condition(&parent, "Ready").context("no Ready")?["message"].as_str().unwrap_or_default();
    eprintln!("{message}");
    Ok(message.to_owned())
}

#[tokio::test]
async fn a_job_whose_pod_no_node_takes_is_stuck_in_the_schedulers_words() -> Result<()> {
    let (tenant, _running, db) = limited("nonode", &["Job"]).await?;
    let mut seed = job("seed");
    seed["spec"]["template"]["spec"]["nodeSelector"] = json!({ "disk": "none-such" });
    tenant.create(owned_by(&db, seed)).await?;
    until_stuck(&tenant, &["Job seed stuck", "Pod seed-", "unschedulable: 0/", "nodes are available"])
        .await?;
    Ok(())
}

/// Its controller has no deadline, and nothing that it counts moves; a restart of Rollcall begins nothing anew.
#[tokio::test]
async fn a_stateful_set_that_crash_loops_is_stuck_once_nothing_has_moved_for_the_limit() -> Result<()> {
    let tenant = TestTenant::start("noprogress").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("StatefulSet")], "settle": "100ms",
        "limits": { "pending": "1h", "progress": "8s" } });
    tenant.policy("db", "Database", spec).await?;
    let mut running = tenant.rollcall(&["--resync=1s"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("crash", stateful_set("store", 2)))).await?;
    tenant.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
    until_stuck(&tenant, &["StatefulSet store stuck", "without progress", "Pod store-0"]).await?;

    // The pod is named again once it is read.
    let said = |parent: &Value| {
        let of =
            |kind| condition(parent, kind).map(|c| (c["reason"].clone(), c["lastTransitionTime"].clone()));
        [of("Ready"), of("Stalled")]
    };
    let before = said(&tenant.get("Database/db").await?);
    // What the objects say of when they moved is rounded to seconds: within that one a restart may count the limit anew.
    tokio::time::sleep(Duration::from_secs(2)).await;
    running.kill()?;
    running.again().await?;
    running.until_metric("rollcall_stuck_children", &[], |children| children >= 1.0).await?;
    assert_eq!(said(&tenant.get("Database/db").await?), before, "a restart took it back");
    tenant.play("store", None).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}

/// Its controller counts more and fewer of them for ever: something moves all the time.
#[tokio::test]
async fn a_workload_whose_pods_run_for_a_moment_between_crashes_is_stuck_all_the_same() -> Result<()> {
    let tenant = TestTenant::start("flicker").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("StatefulSet")], "settle": "100ms", "hold": "1m",
        "limits": { "pending": "1h", "progress": "12s" } });
    tenant.policy("db", "Database", spec).await?;
    let _running = tenant.rollcall(&["--resync=1s"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("flicker", stateful_set("store", 2)))).await?;
    tenant.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
    until_stuck(&tenant, &["StatefulSet store stuck", "CrashLoopBackOff", "Pod store-0"]).await?;
    tenant.play("store", None).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}

/// Whichever policy is planned first does not decide for the other.
#[tokio::test]
async fn each_policy_says_when_what_lies_below_a_workload_is_stuck() -> Result<()> {
    let tenant = TestTenant::start("patience").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let policies = [("a-late", "Ready", "1h"), ("b-soon", "SoonReady", "3s"), ("c-late", "LateReady", "2h")];
    for (name, condition, pending) in policies {
        let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms",
            "limits": { "pending": pending }, "condition": { "type": condition } });
        tenant.policy(name, "Database", spec).await?;
    }
    let _running = tenant.rollcall(&["--resync=1s"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    let mut web = deployment("web", 1);
    web["spec"]["template"]["spec"]["nodeSelector"] = json!({ "disk": "none-has-it" });
    tenant.create(owned_by(&db, web)).await?;
    let told = tenant.until("Database/db", because("SoonReady", "ChildrenStuck")).await?;
    for (_, of, _) in policies {
        let entry = condition(&told, of).cloned().unwrap_or_default();
        let reason = if of == "SoonReady" { "ChildrenStuck" } else { "ChildrenProgressing" };
        assert_eq!(entry["reason"], reason, "{entry:#}");
        assert!(entry["message"].as_str().is_some_and(|m| m.contains("unschedulable: 0/")), "{entry:#}");
    }
    Ok(())
}

/// What a kubelet writes of a container whose image cannot be had.
async fn cannot_pull(tenant: &TestTenant, app: &str, reason: &str) -> Result<()> {
    let query = format!("labelSelector=app={app}");
    let (pods, _) = tenant.admin.list(&tenant.kind("Pod"), &tenant.name, &query).await?;
    let waiting = json!({ "waiting": { "reason": reason, "message": "Back-off pulling image \"example.com/main:1\"" } });
    let container = json!({ "name": "main", "image": "example.com/main:1", "imageID": "", "ready": false,
        "restartCount": 0, "state": waiting });
    let status = json!({ "status": { "phase": "Pending", "containerStatuses": [container] } });
    for pod in &pods {
        tenant.admin.merge(&ObjectAddress::of(pod)?, "/status", &status).await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_makes_its_workload_stuck_and_a_pod_that_comes_up_frees_it()
-> Result<()> {
    let (tenant, _running, db) = limited("noimage", &["Deployment"]).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    tenant.until_pods("web", 1).await?;
    cannot_pull(&tenant, "web", "ErrImagePull").await?;
    tenant.until("Database/db", mentions("Ready", "ErrImagePull")).await?;
    // Kubelets say the one and the other in turn.
    cannot_pull(&tenant, "web", "ImagePullBackOff").await?;
    until_stuck(&tenant, &["Deployment web stuck", "Pod web-", "ImagePullBackOff"]).await?;
    tenant.play("web", None).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_claim_that_nobody_binds_makes_itself_and_what_waits_for_it_stuck_until_there_is_a_volume()
-> Result<()> {
    let (tenant, _running, db) = limited("nobind", &["StatefulSet", "PersistentVolumeClaim"]).await?;
    let class = json!({ "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": tenant.name },
        "provisioner": "example.com/nobody", "volumeBindingMode": "Immediate" });
    tenant.admin.create(&class).await?;
    let claim = json!({ "accessModes": ["ReadWriteOnce"], "storageClassName": tenant.name,
        "resources": { "requests": { "storage": "1Gi" } } });
    let mut store = stateful_set("store", 1);
    store["spec"]["volumeClaimTemplates"] = json!([{ "metadata": { "name": "data" }, "spec": claim }]);
    tenant.create(owned_by(&db, store)).await?;
    let cache = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "cache" }, "spec": claim });
    tenant.create(owned_by(&db, cache)).await?;
    let why = [
        "PersistentVolumeClaim cache stuck",
        "StatefulSet store stuck",
        "Pod store-0",
        "unbound immediate PersistentVolumeClaims",
    ];
    until_stuck(&tenant, &why).await?;
    for (name, claim) in [("data", "data-store-0"), ("cache", "cache")] {
        let volume = json!({ "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": { "name": format!("{}-{name}", tenant.name) },
            "spec": { "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "storageClassName": tenant.name,
                "claimRef": { "namespace": tenant.name, "name": claim }, "hostPath": { "path": "/nowhere" } } });
        tenant.admin.create(&volume).await?;
    }
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}

/// Puts one more finalizer on it, in the name of a controller.
pub(crate) async fn hold(tenant: &TestTenant, place: &str, manager: &str, finalizer: &str) -> Result<()> {
    let address = tenant.address(place)?;
    let mut held = tenant.get(place).await?["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    held.push(json!(finalizer));
    let patch = json!({ "metadata": { "finalizers": held } });
    let path = format!("{}?fieldManager={manager}", address.path());
    tenant
        .admin
        .send(Method::PATCH, &path, "application/merge-patch+json", serde_json::to_vec(&patch)?)
        .await?;
    Ok(())
}

#[tokio::test]
async fn what_hangs_in_deletion_names_each_finalizer_since_when_and_whose_it_is() -> Result<()> {
    let (tenant, _running, db) = limited("heldby", &["Deployment"]).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let held = [
        ("argocd-controller", "argocd.argoproj.io/hook-finalizer"),
        ("kopf", "kopf.zalando.org/KopfFinalizerMarker"),
        ("backup-controller", "backup.example.com/hold"),
    ];
    for (manager, finalizer) in held {
        hold(&tenant, "Deployment/web", manager, finalizer).await?;
    }
    tenant.delete("Deployment/web").await?;
    let told = until_stuck(&tenant, &["Deployment web stuck"]).await?;
    let since = tenant.get("Deployment/web").await?["metadata"]["deletionTimestamp"].clone();
    for part in [
        "argocd.argoproj.io/hook-finalizer (likely Argo CD)",
        "kopf.zalando.org/KopfFinalizerMarker (likely a Kopf operator)",
        // No table knows this one: the server does.
        "backup.example.com/hold (set by backup-controller)",
        since.as_str().context("not being deleted")?,
    ] {
        ensure!(told.contains(part), "no {part} in {told}");
    }
    // Each is released by the command that is printed beside it, the first one first; after the last it is gone.
    for (manager, finalizer) in held {
        let object = format!("database.{}/db", tenant.group);
        let (_, out, err) = run(&tenant, &["explain", &object, "-o", "json"]).await?;
        let told: Value = serde_json::from_str(&out).with_context(|| format!("{out}{err}"))?;
        let holder = &told[0]["causes"][0]["holders"][0];
        ensure!(holder["finalizer"] == finalizer && holder["manager"] == manager, "{holder:#}");
        ensure!(holder["since"] == since && holder["warning"].is_string(), "{holder:#}");
        shell(&tenant, holder["release"].as_str().context("no command")?)?;
    }
    tenant.until("Deployment/web", gone()).await?;
    Ok(())
}

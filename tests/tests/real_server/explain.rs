//! `explain`, against what a real scheduler, quota and garbage collector say.

use std::process::Command;
use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, gone, says};
use acceptance::kind::ObjectAddress;
use acceptance::objects::{deployment, job, owned_by, playing, stateful_set};
use acceptance::policies::TenantPolicies as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::live::run;

/// A Database of this tenant.
async fn database(tenant: &TestTenant) -> Result<Value> {
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.create(tenant.custom("Database", "db")).await
}

/// What `explain` says of it, and its exit code.
async fn explained(tenant: &TestTenant) -> Result<(i32, Value)> {
    let object = format!("database.{}/db", tenant.group);
    let (code, out, err) = run(tenant, &["explain", &object, "-o", "json"]).await?;
    let told: Value = serde_json::from_str(&out).with_context(|| format!("{out}{err}"))?;
    Ok((code, told[0].clone()))
}

#[tokio::test]
async fn a_pod_that_no_node_takes_is_explained_in_the_schedulers_own_words() -> Result<()> {
    let tenant = TestTenant::start("explain-node").await?;
    let db = database(&tenant).await?;
    let mut web = deployment("web", 1);
    web["spec"]["template"]["spec"]["nodeSelector"] = json!({ "disk": "none-such" });
    tenant.create(owned_by(&db, web)).await?;
    tenant.until_pods("web", 1).await?;
    let (pods, _) = tenant.admin.list(&tenant.kind("Pod"), &tenant.name, "labelSelector=app=web").await?;
    let pod = pods[0]["metadata"]["name"].as_str().context("a pod without a name")?.to_owned();
    tenant.until(&format!("Pod/{pod}"), says("PodScheduled", "False")).await?;

    let (code, told) = explained(&tenant).await?;
    let cause = &told["causes"][0];
    assert_eq!((code, &cause["object"]["name"]), (1, &json!("web")), "{told:#}");
    assert_eq!(cause["path"], json!(["Database db", "Deployment web"]));
    let below = cause["owns"][0].to_string();
    assert!(below.contains(&pod) && below.contains("not scheduled") && below.contains("node"), "{below}");
    // Since when, by the field of the object itself that says so.
    let web = tenant.get("Deployment/web").await?;
    let turned = acceptance::objects::condition(&web, "Available").context("no Available")?;
    assert_eq!(cause["since"], turned["lastTransitionTime"], "{web:#}");
    for part in ["rule", "branch", "changes"] {
        assert!(cause[part].as_str().is_some_and(|text| !text.is_empty()), "no {part}: {cause:#}");
    }
    let fields: Vec<_> =
        cause["values"].as_array().into_iter().flatten().map(|v| v["field"].clone()).collect();
    assert!(fields.contains(&json!("spec.replicas")), "{fields:?}");
    let object = format!("database.{}/db", tenant.group);
    let (_, out, _) = run(&tenant, &["explain", &object]).await?;
    let since = format!("since     {} (", cause["since"].as_str().context("no moment")?);
    for part in ["1. Deployment", "not scheduled", "branch", &since, "changes", "kubectl -n"] {
        assert!(out.contains(part), "no {part} in:\n{out}");
    }
    Ok(())
}

#[tokio::test]
async fn a_quota_that_is_used_up_is_named() -> Result<()> {
    let tenant = TestTenant::start("explain-quota").await?;
    let db = database(&tenant).await?;
    let quota = json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "small", "namespace": tenant.name },
        "spec": { "hard": { "pods": "0" } } });
    let quota = tenant.admin.create(&quota).await?;
    let counted = StateExpectation::new("counted", |quota| quota["status"]["hard"]["pods"] == "0");
    tenant.until_at(&ObjectAddress::of(&quota)?, &counted).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Deployment/web", says("ReplicaFailure", "True")).await?;
    let (_, told) = explained(&tenant).await?;
    let cause = &told["causes"][0];
    assert!(cause["owns"].to_string().contains("exceeded quota: small"), "{told:#}");
    assert!(cause["changes"].to_string().contains("its pods must be created: check for a quota"), "{told:#}");
    assert!(cause["tries"].to_string().contains("describe resourcequota"), "{told:#}");
    Ok(())
}

#[tokio::test]
async fn so_is_one_of_which_only_events_tell_though_one_pod_is_there() -> Result<()> {
    let tenant = TestTenant::start("explain-events").await?;
    let db = database(&tenant).await?;
    let quota = json!({ "apiVersion": "v1", "kind": "ResourceQuota", "metadata": { "name": "small", "namespace": tenant.name },
        "spec": { "hard": { "pods": "1" } } });
    let quota = tenant.admin.create(&quota).await?;
    let counted = StateExpectation::new("counted", |quota| quota["status"]["hard"]["pods"] == "1");
    tenant.until_at(&ObjectAddress::of(&quota)?, &counted).await?;
    tenant.create(owned_by(&db, stateful_set("store", 3))).await?;
    // What it says in the second of the creation counts for nothing; it says so again.
    let told = async {
        loop {
            let (_, told) = explained(&tenant).await?;
            if told["causes"][0]["owns"].to_string().contains("exceeded quota: small") {
                return Ok::<_, anyhow::Error>(told);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    let told = timeout(TEST_TIMEOUT, told).await.context("no quota is named")??;
    let tries = told["causes"][0]["tries"].to_string();
    assert!(
        tries.contains("describe statefulset.apps store") && tries.contains("describe resourcequota"),
        "{told:#}"
    );
    Ok(())
}

#[tokio::test]
async fn whoever_holds_a_child_is_named_with_a_command_that_lets_go() -> Result<()> {
    let tenant = TestTenant::start("explain-held").await?;
    let db = database(&tenant).await?;
    let mut seed = job("seed");
    seed["metadata"]["finalizers"] = json!(["argocd.argoproj.io/hook-finalizer"]);
    tenant.create(owned_by(&db, seed)).await?;
    tenant.until("Job/seed", says("Complete", "True")).await?;
    tenant.delete("Job/seed").await?;
    let leaving =
        StateExpectation::new("to be deleted", |job| job["metadata"]["deletionTimestamp"].is_string());
    tenant.until("Job/seed", leaving).await?;

    let (code, told) = explained(&tenant).await?;
    let holder = &told["causes"][0]["holders"][0];
    assert_eq!((code, &holder["likely"]), (1, &json!("Argo CD")), "{told:#}");
    assert!(holder["manager"].is_string() && holder["warning"].is_string(), "{holder:#}");
    assert!(tenant.get("Job/seed").await.is_ok(), "it is named, and nothing is done");
    // The command is for people; it has to be one that works.
    shell(&tenant, holder["release"].as_str().context("no command")?)?;
    tenant.until("Job/seed", gone()).await?;
    Ok(())
}

#[tokio::test]
async fn what_is_not_there_or_not_known_is_said() -> Result<()> {
    let tenant = TestTenant::start("explain-none").await?;
    database(&tenant).await?;
    let object = format!("database.{}/other", tenant.group);
    let (code, _, err) = run(&tenant, &["explain", &object]).await?;
    assert!(code == 2 && err.contains("there is no Database other"), "{code} {err}");
    Ok(())
}

/// Runs a printed command as its reader would, against this control plane.
pub(crate) fn shell(tenant: &TestTenant, command: &str) -> Result<()> {
    let kubectl = acceptance::places::program("kubectl")?;
    let folder = kubectl.parent().context("kubectl is nowhere")?.to_path_buf();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("sh")
        .args(["-c", command])
        .env("PATH", path)
        .env("KUBECONFIG", tenant.plane.kubeconfig())
        .output()
        .context("failed to run a shell")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{command}: {errors}");
    Ok(())
}

/// What `explain` prints for people.
async fn page(tenant: &TestTenant, object: &str, more: &[&str]) -> Result<String> {
    let object = format!("{object}.{}/db", tenant.group);
    let (_, out, err) = run(tenant, &[&["explain", &object], more].concat()).await?;
    eprintln!("{out}{err}");
    Ok(out)
}

/// The one pod of an app, as `Pod/NAME`.
async fn pod_of(tenant: &TestTenant, app: &str) -> Result<String> {
    tenant.until_pods(app, 1).await?;
    let (pods, _) =
        tenant.admin.list(&tenant.kind("Pod"), &tenant.name, &format!("labelSelector=app={app}")).await?;
    Ok(format!("Pod/{}", pods[0]["metadata"]["name"].as_str().context("a pod without a name")?))
}

fn tells(page: &str, parts: &[&str]) {
    for part in parts {
        assert!(page.contains(part), "no {part:?} in:\n{page}");
    }
}

#[tokio::test]
async fn a_crash_loop_and_an_image_that_cannot_be_pulled_are_explained_by_their_containers() -> Result<()> {
    let tenant = TestTenant::start("explain-pods").await?;
    let db = database(&tenant).await?;
    tenant.create(owned_by(&db, playing("crash", deployment("web", 1)))).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("shop", 1)))).await?;
    let web = pod_of(&tenant, "web").await?;
    tenant
        .until(
            &web,
            StateExpectation::new("crash-looping", |pod| pod["status"].to_string().contains("CrashLoop")),
        )
        .await?;
    let shop = pod_of(&tenant, "shop").await?;
    tenant.until(&shop, says("PodScheduled", "True")).await?;
    let state = json!({ "waiting": { "reason": "ImagePullBackOff", "message": "Back-off pulling image \"example.com/shop:2\"" } });
    let main = json!([{ "name": "main", "image": "example.com/shop:2", "imageID": "", "ready": false, "restartCount": 0, "state": state }]);
    tenant.change_status(&shop, json!({ "containerStatuses": main })).await?;
    let told = page(&tenant, "database", &[]).await?;
    let (web, shop) = (web.trim_start_matches("Pod/"), shop.trim_start_matches("Pod/"));
    tells(
        &told,
        &[
            "container main waits: CrashLoopBackOff",
            "before that it ended with code 1 (Error)",
            &format!("changes   container main of Pod {web} must keep running"),
            &format!("try       kubectl -n {} logs pod/{web} -c main --previous", tenant.name),
            "container main waits: ImagePullBackOff: Back-off pulling image \"example.com/shop:2\"",
            "changes   correct the image of container main",
            &format!("try       kubectl -n {} describe pod {shop}", tenant.name),
        ],
    );
    Ok(())
}

#[tokio::test]
async fn a_claim_that_waits_is_explained_by_itself_and_by_the_pod_that_wants_it() -> Result<()> {
    let tenant = TestTenant::start("explain-claim").await?;
    let db = database(&tenant).await?;
    let claim = json!({ "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": { "name": "data" },
        "spec": { "accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": { "requests": { "storage": "1Gi" } } } });
    tenant.create(owned_by(&db, claim)).await?;
    let mut web = deployment("web", 1);
    web["spec"]["template"]["spec"]["volumes"] =
        json!([{ "name": "data", "persistentVolumeClaim": { "claimName": "data" } }]);
    tenant.create(owned_by(&db, web)).await?;
    let pod = pod_of(&tenant, "web").await?;
    tenant.until(&pod, says("PodScheduled", "False")).await?;
    let told = page(&tenant, "database", &[]).await?;
    let events = ["events", "FailedScheduling Pod web-"];
    tells(
        &told,
        &["not scheduled: 0/", "PersistentVolumeClaim data: not bound (Pending), storage class fast"],
    );
    tells(&told, &["changes   provide a node with free capacity", "or bind the pod's claims"]);
    tells(&told, &events);
    Ok(())
}

#[tokio::test]
async fn a_child_that_says_nothing_and_a_condition_that_belongs_to_another_are_explained() -> Result<()> {
    let tenant = TestTenant::start("explain-silent").await?;
    tenant.crd(&CrdBuilder::new("Part")).await?;
    let db = database(&tenant).await?;
    tenant.create(owned_by(&db, tenant.custom("Part", "part"))).await?;
    let policy = tenant.policy_manifest("db", "Database", json!({ "children": [tenant.child("Part")] }));
    let file = tenant.policies_file(&[policy])?.display().to_string();
    let told = page(&tenant, "database", &["-f", &file]).await?;
    tells(
        &told,
        &[
            "1. Part",
            "Unknown  NoSignal",
            "rule      the conventions of custom resources",
            "branch    no condition or field reports readiness",
            "or add a rule for it to the policy (children[].ready)",
        ],
    );
    assert!(!told.contains("written"), "nobody else has its condition: {told}");
    let entry = json!({ "type": "Ready", "status": "True", "reason": "OperatorSays", "message": "all good" });
    tenant.change_status("Database/db", json!({ "conditions": [entry] })).await?;
    let told = page(&tenant, "database", &["-f", &file]).await?;
    tells(&told, &["written   no: condition Ready belongs to", "spec.condition.fallback"]);
    Ok(())
}

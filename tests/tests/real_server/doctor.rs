//! `doctor`, over a namespace in which nearly everything is wrong, and over one in which nothing is.

use std::process::Command;
use std::sync::Arc;

use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, says};
use acceptance::kopf::{KopfVersion, TenantKopf as _};
use acceptance::objects::{deployment, job, owned_by};
use acceptance::policies::TenantPolicies as _;
use acceptance::rights::TenantRights as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

use super::explain::shell;
use super::live::run;

/// A finding that has to be there: check, severity, part of its object, part of its evidence.
pub(super) type Expected<'e> = (&'e str, &'e str, &'e str, &'e str);

pub(super) async fn findings(
    tenant: &TestTenant,
    policies: &[Value],
    more: &[&str],
) -> Result<(i32, Vec<Value>)> {
    let file = tenant.policies_file(policies)?.display().to_string();
    let args = [&["doctor", "-o", "json", "-f", &file], more].concat();
    let (code, out, err) = run(tenant, &args).await?;
    let found: Value = serde_json::from_str(&out).with_context(|| format!("{out}{err}"))?;
    Ok((code, found.as_array().cloned().unwrap_or_default()))
}

pub(super) fn find<'f>(
    found: &'f [Value],
    (check, severity, object, evidence): &Expected<'_>,
) -> Option<&'f Value> {
    let has = |finding: &Value, key: &str, part: &str| {
        finding[key].as_str().is_some_and(|text| text.contains(part))
    };
    found.iter().find(|finding| {
        finding["check"] == *check
            && finding["severity"] == *severity
            && has(finding, "object", object)
            && has(finding, "evidence", evidence)
    })
}

/// Kinds in shapes that hurt, each with a policy that would write.
async fn shapes(tenant: &TestTenant) -> Result<Vec<Value>> {
    let shapes = [
        CrdBuilder::new("Listed"),
        CrdBuilder::new("Atomic").atomic(),
        CrdBuilder::new("Pruned").pruning(),
        CrdBuilder::new("Flat").without_status_subresource(),
        CrdBuilder::new("Shapeless").shapeless(),
        CrdBuilder::new("ClusterWide"),
    ];
    for crd in &shapes {
        tenant.crd(crd).await?;
    }
    let kinds = ["Listed", "Atomic", "Pruned", "Flat", "Shapeless", "ClusterWide"];
    let policy = |kind: &&str| tenant.policy_manifest(&kind.to_lowercase(), kind, json!({}));
    Ok(kinds.iter().map(policy).collect())
}

/// Objects that are too large, stale, overwritten, left behind, or hang.
async fn troubles(tenant: &TestTenant) -> Result<()> {
    let mut large = tenant.custom("Listed", "large");
    large["metadata"]["annotations"] =
        json!({ "kopf.zalando.org/last-handled-configuration": "x".repeat(240_000) });
    tenant.create(large).await?;
    let mut heavy = tenant.custom("Listed", "heavy");
    heavy["spec"]["notes"] = json!("x".repeat(1_300_000));
    tenant.create(heavy).await?;
    tenant.create(tenant.custom("Shapeless", "odd")).await?;
    let odd = json!({ "observedGeneration": "1", "kopf": { "progress": { "create_fn": { "retries": 3 } } } });
    tenant.change_status("Shapeless/odd", odd).await?;
    tenant.create(tenant.custom("Listed", "taken")).await?;
    let taken = json!({ "type": "Ready", "status": "True", "reason": "Created" });
    tenant.change_status("Listed/taken", json!({ "conditions": [taken] })).await?;
    let mut argo = deployment("argocd-server", 0);
    argo["spec"]["template"]["spec"]["containers"][0]["image"] = json!("quay.io/argoproj/argocd:v3.1.2");
    tenant.create(argo).await?;
    let mut hook = job("hook");
    hook["metadata"]["annotations"] = json!({ "argocd.argoproj.io/hook": "PreSync" });
    hook["metadata"]["finalizers"] = json!(["argocd.argoproj.io/hook-finalizer"]);
    tenant.create(hook).await?;
    tenant.until("Job/hook", says("Complete", "True")).await?;
    tenant.delete("Job/hook").await
}

#[tokio::test]
async fn what_would_hurt_is_found_with_evidence() -> Result<()> {
    let tenant = TestTenant::start("doctor").await?;
    let policies = shapes(&tenant).await?;
    troubles(&tenant).await?;
    let (code, found) = findings(&tenant, &policies, &[]).await?;
    assert_eq!(code, 1);
    let expected: [Expected<'_>; 14] = [
        ("crd", "warning", "listeds.", "no default"),
        ("crd", "warning", "atomics.", "atomic list"),
        ("crd", "error", "pruneds.", "drops them"),
        ("crd", "warning", "flats.", "no status subresource"),
        ("crd", "warning", "shapelesses.", "atomic list"),
        ("size", "error", "large", "last-handled-configuration"),
        ("size", "warning", "heavy", "etcd"),
        ("observed-generation", "warning", "odd", "not a number"),
        ("kopf", "warning", "Shapeless.", "status.kopf.progress"),
        ("condition-owner", "error", "taken", "belongs to"),
        ("argocd-version", "error", "argocd-server", "v3.1.2"),
        ("stuck-deletion", "error", "hook", "likely Argo CD"),
        ("policy", "warning", "clusterwide", "matches none"),
        ("crd", "warning", "clusterwides.", "no default"),
    ];
    for expected in &expected {
        assert!(find(&found, expected).is_some(), "{expected:?} is not in {found:#?}");
    }
    assert!(tenant.get("Job/hook").await.is_ok(), "it looks, and changes nothing");
    Ok(())
}

/// On a cluster without a garbage collector: with one, what is told here would already be gone.
#[tokio::test]
async fn what_a_garbage_collector_or_argo_cd_would_delete_is_foretold() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let (tenant, other) = (
        TestTenant::start_on(plane.clone(), "owners").await?,
        TestTenant::start_on(plane, "elsewhere").await?,
    );
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let here = || async { tenant.create(labelled(tenant.custom("Database", "here"))).await };
    let db = here().await?;
    let mut far = tenant.custom("Database", "far");
    far["metadata"]["namespace"] = json!(other.name);
    let far = tenant.admin.create(&far).await?;
    tenant.create(owned_by(&far, deployment("across", 1))).await?;
    tenant.create(owned_by(&db, deployment("before", 1))).await?;
    tenant.delete("Database/here").await?;
    let db = here().await?;
    tenant.create(owned_by(&db, deployment("well", 1))).await?;
    let mut none = db.clone();
    (none["metadata"]["name"], none["metadata"]["uid"]) = (json!("none"), json!("0-0-0-0"));
    tenant.create(owned_by(&none, deployment("dangling", 1))).await?;
    let mut copy = labelled(deployment("copy", 1));
    copy["metadata"]["namespace"] = json!(tenant.name);
    let path = format!("/apis/apps/v1/namespaces/{}/deployments?fieldManager=kopf", tenant.name);
    tenant.admin.send(Method::POST, &path, "application/json", serde_json::to_vec(&copy)?).await?;

    let file = tenant.policies_file(&[tenant.policy_manifest("db", "Database", json!({}))])?;
    let mut command = Command::new(acceptance::places::rollcall()?);
    command.args(["doctor", "-o", "json", "-f", &file.to_string_lossy()]);
    command.args(["--kubeconfig", &tenant.plane.kubeconfig().to_string_lossy()]);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let found: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    assert_eq!(output.status.code(), Some(1));
    let expected: [Expected<'_>; 4] = [
        ("owner-reference", "error", "across", "is in namespace elsewhere"),
        ("owner-reference", "error", "before", "recreated with another UID"),
        ("owner-reference", "error", "dangling", "does not exist"),
        ("copied-label", "warning", "copy", "prunes it"),
    ];
    for expected in &expected {
        assert!(find(&found, expected).is_some(), "{expected:?} is not in {found:#?}");
    }
    let about = |name: &str| {
        found.iter().any(|finding| finding["object"].as_str().is_some_and(|o| o.ends_with(name)))
    };
    assert!(!about("/well"), "{found:#?}");
    Ok(())
}

fn labelled(mut object: Value) -> Value {
    object["metadata"]["labels"] = json!({ "app.kubernetes.io/instance": "shop" });
    object
}

#[tokio::test]
async fn an_entry_that_nobody_keeps_is_found_and_the_printed_patch_takes_it_off() -> Result<()> {
    let tenant = TestTenant::start("doctor-orphan").await?;
    tenant.crd(&CrdBuilder::new("Listed")).await?;
    tenant.crd(&CrdBuilder::new("Other")).await?;
    tenant.create(tenant.custom("Listed", "left")).await?;
    let entry = json!({ "type": "Ready", "status": "True", "reason": "AllChildrenReady", "message": "1 of 1 ready",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1 });
    let status = json!({ "status": { "conditions": [entry] } });
    let left = tenant.address("Listed/left")?;
    tenant.admin.merge(&left, "/status?fieldManager=rollcall", &status).await?;
    let other = [tenant.policy_manifest("other", "Other", json!({}))];
    let orphan: Expected<'_> = ("orphaned-entry", "warning", "left", "Ready");
    let (_, found) = findings(&tenant, &other, &[]).await?;
    let patch = find(&found, &orphan).with_context(|| format!("{found:#?}"))?["patch"].clone();
    shell(&tenant, patch.as_str().context("no patch")?)?;
    let clean = StateExpectation::new("without the list", |left| left["status"] == json!({}));
    tenant.until("Listed/left", clean).await?;
    let (_, found) = findings(&tenant, &other, &[]).await?;
    assert_eq!(find(&found, &orphan), None);
    let file = tenant.policies_file(&other)?.display().to_string();
    let (_, script, _) = run(&tenant, &["doctor", "-f", &file, "--fix"]).await?;
    assert!(script.contains("kubectl patch crd others."), "the defaults as a patch: {script}");
    Ok(())
}

#[tokio::test]
async fn rights_that_the_service_lacks_are_found_and_are_gone_once_granted() -> Result<()> {
    let tenant = TestTenant::start("doctor-rights").await?;
    tenant.crd(&CrdBuilder::new("Listed")).await?;
    let policy =
        tenant.policy_manifest("listed", "Listed", json!({ "children": [tenant.child("Deployment")] }));
    let account = format!("{}/rollcall", tenant.name);
    let more = ["--service-account", &account];
    let (code, found) = findings(&tenant, std::slice::from_ref(&policy), &more).await?;
    let lacking: Expected<'_> = ("rights", "error", "ServiceAccount", "may not patch listeds/status");
    assert!(code == 1 && find(&found, &lacking).is_some(), "{found:#?}");
    tenant.grant_for(std::slice::from_ref(&policy))?;
    let (code, found) = findings(&tenant, std::slice::from_ref(&policy), &more).await?;
    assert_eq!(find(&found, &lacking), None);
    assert_eq!(code, 0, "warnings are not serious: {found:#?}");
    Ok(())
}

/// An operator with everything as it comes, which needs a second try.
const OPERATOR: &str = r#"
import kopf

@kopf.on.create("GROUP", "v1", "KINDs")
def create(retry, **_):
    if retry == 0:
        raise kopf.TemporaryError("not yet", delay=0.1)

@kopf.on.delete("GROUP", "v1", "KINDs")
def delete(**_):
    pass
"#;

#[tokio::test]
async fn an_operator_in_kopf_before_1_44_is_told_from_a_current_one_by_what_it_leaves() -> Result<()> {
    let tenant = TestTenant::start("doctor-kopf").await?;
    let mut operators = Vec::new();
    // The third is as old as the first, and what it keeps in the status the server drops.
    for (kind, kopf) in [
        ("Aged", KopfVersion::Before144),
        ("Fresh", KopfVersion::Current),
        ("Pruned", KopfVersion::Before144),
    ] {
        let crd = CrdBuilder::new(kind);
        tenant.crd(&if kind == "Pruned" { crd.pruning() } else { crd.shapeless() }).await?;
        let script = OPERATOR.replace("KIND", &kind.to_lowercase());
        let operator = tenant.script(kind, kopf, &script, &[])?;
        tenant.create(tenant.custom(kind, "one")).await?;
        operators.push(operator);
    }
    let handled = || {
        StateExpectation::new("handled", |object| {
            let annotations = &object["metadata"]["annotations"];
            annotations["kopf.zalando.org/last-handled-configuration"].is_string()
        })
    };
    let kinds = ["Aged", "Fresh", "Pruned"];
    for kind in kinds {
        tenant.until(&format!("{kind}/one"), handled()).await?;
    }
    // An Event is posted beside the work, not before it.
    posted(&tenant, "Pruned").await?;
    let policies = kinds.map(|kind| tenant.policy_manifest(&kind.to_lowercase(), kind, json!({})));
    let (_, found) = findings(&tenant, &policies, &[]).await?;
    let about_kopf: Vec<&Value> = found.iter().filter(|finding| finding["check"] == "kopf").collect();
    assert_eq!(about_kopf.len(), 2, "{about_kopf:#?}");
    let hint: Expected<'_> = ("kopf", "info", "Pruned.", "posts its log as Events");
    assert!(find(&found, &hint).is_some(), "{about_kopf:#?}");
    // At rest, with all handlers done.
    let aged: Expected<'_> = ("kopf", "warning", "Aged.", "only Kopf before 1.44 writes it (last at 2");
    assert!(find(&found, &aged).is_some(), "{about_kopf:#?}");
    Ok(())
}

/// Waits until its operator has posted a line of its log.
async fn posted(tenant: &TestTenant, kind: &str) -> Result<()> {
    let query = format!("fieldSelector=reason%3DLogging%2CinvolvedObject.kind%3D{kind}&limit=1");
    tenant.until_listed("Event", &tenant.name, &query).await.map(drop)
}

/// It looks at every event until it is let go on, and wants its finalizer on what it looks at.
const SLOW: &str = r#"
import os, time, kopf

@kopf.on.event("GROUP", "v1", "databases")
def look(logger, **_):
    logger.info("looks")
    while not os.path.exists(os.environ["GATE"]):
        time.sleep(0.02)

@kopf.on.delete("GROUP", "v1", "databases")
def release(**_):
    pass
"#;

#[tokio::test]
async fn a_finalizer_that_an_old_list_of_kopf_brought_back_carries_its_name() -> Result<()> {
    let tenant = TestTenant::start("doctor-back").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let gate = tenant.folder.join("gate");
    let env = [("GATE", &*gate.to_string_lossy())];
    let operator = tenant.script("old", KopfVersion::Before144, SLOW, &env)?;
    let mut db = tenant.custom("Database", "db");
    db["metadata"]["finalizers"] = json!(["argocd.argoproj.io/hook-finalizer"]);
    tenant.create(db).await?;
    // While it still holds the object as it was, Argo CD lets go of it.
    operator.until_logged("looks", 1).await?;
    let none = json!({ "metadata": { "finalizers": null } });
    tenant.admin.merge(&tenant.address("Database/db")?, "?fieldManager=argocd-controller", &none).await?;
    let back = StateExpectation::new("held again", |db| {
        let held = db["metadata"]["finalizers"].to_string();
        held.contains("argocd") && held.contains("kopf")
    });
    // Its next write may drop it again: what `doctor` goes by is in the object as it is at this moment.
    let opened = async { Ok(std::fs::write(&gate, "")?) };
    let held = tenant.until_after(opened, &tenant.address("Database/db")?, back).await?;
    let key = "/fieldsV1/f:metadata/f:finalizers/v:\"argocd.argoproj.io~1hook-finalizer\"";
    let entries = held["metadata"]["managedFields"].as_array().context("no managedFields")?;
    let owners: Vec<_> =
        entries.iter().filter(|entry| entry.pointer(key).is_some()).map(|e| &e["manager"]).collect();
    assert_eq!(owners, ["kopf"], "{:#}", held["metadata"]);
    Ok(())
}

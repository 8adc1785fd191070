//! `doctor`, over what operators leave in single objects, and over what it leaves alone itself.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::kind::ObjectAddress;
use acceptance::objects::{config_map, deployment, owner_reference};
use acceptance::policies::TenantPolicies as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

use super::doctor::{Expected, find, findings};
use super::explain::shell;
use super::live::run;

/// By which Argo CD knows its own, where it tracks by label.
fn labelled(mut object: Value) -> Value {
    object["metadata"]["labels"] = json!({ "app.kubernetes.io/instance": "shop" });
    object
}

/// Created under the name of a field manager.
async fn create_as(tenant: &TestTenant, manager: &str, mut object: Value) -> Result<Value> {
    object["metadata"]["namespace"] = json!(tenant.name);
    let path = format!("{}?fieldManager={manager}", ObjectAddress::of(&object)?.kind.path(&tenant.name));
    tenant.admin.send(Method::POST, &path, "application/json", serde_json::to_vec(&object)?).await
}

/// A parent, and what its operator gave its label to. What is well is named so.
async fn copies(tenant: &TestTenant) -> Result<()> {
    let parent = create_as(tenant, "argocd-controller", labelled(tenant.custom("Listed", "from"))).await?;
    let secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "copied" },
        "stringData": { "password": "a word that nobody is told" } });
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "copied" },
        "spec": { "ports": [{ "port": 80 }] } });
    for object in [config_map("copied"), secret, service] {
        create_as(tenant, "kopf", labelled(object)).await?;
    }
    let mut owned = labelled(config_map("well-owned"));
    owned["metadata"]["ownerReferences"] = json!([owner_reference(&parent)]);
    create_as(tenant, "kopf", owned).await?;
    create_as(tenant, "argocd-controller", labelled(config_map("well-installed"))).await?;
    Ok(())
}

#[tokio::test]
async fn of_secrets_config_maps_and_services_the_metadata_is_looked_at() -> Result<()> {
    let tenant = TestTenant::start("doctor-heads").await?;
    tenant.crd(&CrdBuilder::new("Listed")).await?;
    tenant.crd(&CrdBuilder::new("Other")).await?;
    copies(&tenant).await?;
    let mut large = config_map("large");
    large["metadata"]["annotations"] = json!({ "notes": "x".repeat(200 * 1024) });
    tenant.create(large).await?;
    // What copies labels needs no policy.
    let other = [tenant.policy_manifest("other", "Other", json!({}))];
    let (_, found) = findings(&tenant, &other, &[]).await?;
    let large: Expected<'_> = ("size", "warning", "ConfigMap", "notes alone has 200 KiB");
    assert!(find(&found, &large).is_some_and(|f| f["fix"] == "change its writer to store less in it"));
    let name = tenant.name.as_str();
    for kind in ["ConfigMap", "Secret", "Service"] {
        let object = format!("{kind} {name}/copied");
        let copied: Expected<'_> = ("copied-label", "warning", &object, "prunes it");
        let patch = &find(&found, &copied).with_context(|| format!("{found:#?}"))?["patch"];
        shell(&tenant, patch.as_str().context("no patch")?)?;
        let (_, found) = findings(&tenant, &other, &[]).await?;
        assert_eq!(find(&found, &copied), None, "the printed command took the label off");
    }
    assert!(!serde_json::to_string(&found)?.contains("/well-"), "{found:#?}");
    Ok(())
}

/// Its generation was handled once, and then, long ago by all that managedFields say, no more.
async fn stale(tenant: &TestTenant) -> Result<()> {
    tenant.create(tenant.custom("Listed", "stale")).await?;
    tenant.change_status("Listed/stale", json!({ "observedGeneration": 1 })).await?;
    let changed = tenant.change("Listed/stale", json!({ "spec": { "size": 2 } })).await?;
    let mut fields = changed["metadata"]["managedFields"].clone();
    for entry in fields.as_array_mut().into_iter().flatten() {
        entry["time"] = json!("2026-01-01T00:00:00Z");
    }
    // Times alone are not taken over: something has to change with them.
    let aged = json!({ "metadata": { "labels": { "aged": "yes" }, "managedFields": fields } });
    // By somebody else, or it would be a change by whoever changed the spec.
    tenant.admin.merge(&tenant.address("Listed/stale")?, "?fieldManager=restore", &aged).await?;
    tenant.create(tenant.custom("Listed", "fresh")).await?;
    tenant.change_status("Listed/fresh", json!({ "observedGeneration": 1 })).await?;
    tenant.change("Listed/fresh", json!({ "spec": { "size": 2 } })).await?;
    Ok(())
}

/// The same owner twice: the server itself drops only what is the same in every field.
async fn twice(tenant: &TestTenant) -> Result<()> {
    let parent = tenant.create(tenant.custom("Listed", "parent")).await?;
    let (once, mut again) = (owner_reference(&parent), owner_reference(&parent));
    again["blockOwnerDeletion"] = json!(true);
    for (name, owners) in [("twice", [&once, &again]), ("well-once", [&once, &once])] {
        let mut child = deployment(name, 0);
        child["metadata"]["ownerReferences"] = json!(owners);
        tenant.create(child).await?;
    }
    Ok(())
}

/// Two operators by their marks, one finalizer; and the same on a kind of another group.
async fn shared(tenant: &TestTenant) -> Result<()> {
    let finalizers = json!(["kopf.zalando.org/KopfFinalizerMarker"]);
    let mut both = tenant.custom("Listed", "both");
    both["metadata"]["finalizers"] = finalizers.clone();
    both["metadata"]["annotations"] = json!({
        "kopf.zalando.org/last-handled-configuration": "{}",
        "team.example.com/last-handled-configuration": "{}",
    });
    tenant.create(both).await?;
    let mut child = config_map("held");
    child["metadata"]["finalizers"] = finalizers;
    tenant.create(child).await?;
    Ok(())
}

/// Our entry, and then the list with it and one more, written as one piece by somebody else.
async fn rewritten(tenant: &TestTenant) -> Result<()> {
    let entry = |kind: &str, reason: &str| {
        json!({ "type": kind, "status": "True", "reason": reason, "message": "1 of 1 ready", "observedGeneration": 1,
            "lastTransitionTime": "2026-01-01T00:00:00Z" })
    };
    let ours = entry("Ready", "AllChildrenReady");
    let lists = [("rollcall", vec![ours.clone()]), ("kopf", vec![ours, entry("Synced", "Done")])];
    tenant.create(tenant.custom("Atomic", "rewritten")).await?;
    for (manager, list) in lists {
        let status = json!({ "status": { "conditions": list } });
        let part = format!("/status?fieldManager={manager}");
        tenant.admin.merge(&tenant.address("Atomic/rewritten")?, &part, &status).await?;
    }
    Ok(())
}

#[tokio::test]
async fn what_operators_leave_in_an_object_is_found() -> Result<()> {
    let tenant = TestTenant::start("doctor-objects").await?;
    tenant.crd(&CrdBuilder::new("Listed")).await?;
    tenant.crd(&CrdBuilder::new("Atomic").atomic()).await?;
    stale(&tenant).await?;
    twice(&tenant).await?;
    shared(&tenant).await?;
    rewritten(&tenant).await?;
    let policies =
        ["Listed", "Atomic"].map(|kind| tenant.policy_manifest(&kind.to_lowercase(), kind, json!({})));
    let (_, found) = findings(&tenant, &policies, &[]).await?;
    let expected: [Expected<'_>; 5] = [
        ("observed-generation", "error", "/stale", "not changed since 2026-01-01T00:00:00Z"),
        ("owner-reference", "warning", "/twice", "several ownerReferences"),
        ("kopf", "warning", "/both", "(kopf.zalando.org, team.example.com)"),
        ("kopf", "info", "finalizer kopf.zalando.org/KopfFinalizerMarker", "several API groups (core, "),
        (
            "condition-owner",
            "warning",
            "/rewritten",
            "field manager kopf writes status.conditions as one list",
        ),
    ];
    for expected in &expected {
        assert!(find(&found, expected).is_some(), "{expected:?} is not in {found:#?}");
    }
    let text = serde_json::to_string(&found)?;
    assert!(!text.contains("/well-") && !text.contains("/fresh"), "{found:#?}");
    Ok(())
}

/// The version of every object in the cluster, but for what its server renews by itself.
fn versions(tenant: &TestTenant) -> Result<BTreeMap<String, String>> {
    let kinds = tenant.plane.kubectl(&["api-resources", "--verbs=list", "-o", "name"])?;
    let kinds: Vec<_> =
        kinds.lines().filter(|kind| !kind.starts_with("events") && !kind.starts_with("leases")).collect();
    let line = r#"{range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name} {.metadata.uid}-{.metadata.resourceVersion}{"\n"}{end}"#;
    let all = tenant.plane.kubectl(&["get", &kinds.join(","), "-A", "-o", &format!("jsonpath={line}")])?;
    Ok(all.lines().filter_map(|line| line.split_once(' ')).map(|(k, v)| (k.into(), v.into())).collect())
}

/// The same once the server has done what it does after its start and after a new CRD.
async fn at_rest(tenant: &TestTenant) -> Result<BTreeMap<String, String>> {
    let rest = async {
        let mut last = versions(tenant)?;
        loop {
            tokio::time::sleep(Duration::from_millis(500)).await;
            let now = versions(tenant)?;
            if now == last {
                return anyhow::Ok(now);
            }
            last = now;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, rest).await.context("the server does not come to rest")?
}

/// On a cluster where nobody else is: what changes there, it changed.
#[tokio::test]
async fn what_fix_prints_changes_nothing_before_somebody_runs_it() -> Result<()> {
    let tenant =
        TestTenant::start_on(Arc::new(ControlPlane::start(ClusterParts::Storage).await?), "doctor-fix")
            .await?;
    tenant.crd(&CrdBuilder::new("Listed")).await?;
    tenant.crd(&CrdBuilder::new("Flat").without_status_subresource()).await?;
    tenant.crd(&CrdBuilder::new("Atomic").atomic()).await?;
    copies(&tenant).await?;
    let kinds = ["Listed", "Flat", "Atomic"];
    let policies = kinds.map(|kind| tenant.policy_manifest(&kind.to_lowercase(), kind, json!({})));
    let (_, found) = findings(&tenant, &policies, &[]).await?;
    let mendable = |found: &[Value]| found.iter().filter(|finding| finding["patch"].is_string()).count();
    assert!(mendable(&found) >= 6, "{found:#?}");

    let before = at_rest(&tenant).await?;
    assert!(before.len() > 20, "{before:?}");
    let file = tenant.policies_file(&policies)?.display().to_string();
    let (_, script, _) = run(&tenant, &["doctor", "-f", &file, "--fix"]).await?;
    assert_eq!(versions(&tenant)?, before);

    // Each patch is taken by the server, and mends what it was printed for; a mended shape may ask for the default next.
    let mut script = script;
    for _ in 0..2 {
        shell(&tenant, &script)?;
        script = run(&tenant, &["doctor", "-f", &file, "--fix"]).await?.1;
    }
    let (code, found) = findings(&tenant, &policies, &[]).await?;
    assert_eq!((code, mendable(&found)), (0, 0), "{found:#?}");
    assert!(!found.iter().any(|finding| finding["check"] == "crd"), "{found:#?}");
    Ok(())
}

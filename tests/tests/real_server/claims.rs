//! Volume claims of a real StatefulSet, bound by the real controllers: they have no ownerReference, and count all the same.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, mentions, says, there};
use acceptance::objects::{owned_by, stateful_set};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::Result;
use serde_json::{Value, json};

/// Its pods wait for their claims, and these for a volume that somebody makes for them.
fn claiming(name: &str) -> Value {
    let mut set = stateful_set(name, 1);
    set["spec"]["volumeClaimTemplates"] = json!([{
        "metadata": { "name": "web" },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "storageClassName": "",
            "resources": { "requests": { "storage": "1Gi" } },
        },
    }]);
    set
}

/// A volume for this claim alone.
async fn volume(tenant: &TestTenant, claim: &str) -> Result<()> {
    tenant.until(&format!("PersistentVolumeClaim/{claim}"), there()).await?;
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume", "metadata": { "name": format!("{}-{claim}", tenant.name) },
        "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": { "storage": "1Gi" }, "storageClassName": "",
            "hostPath": { "path": "/nowhere" }, "claimRef": { "namespace": tenant.name, "name": claim },
        },
    });
    tenant.create(volume).await?;
    let bound = StateExpectation::new("bound", |claim| claim["status"]["phase"] == "Bound");
    tenant.until(&format!("PersistentVolumeClaim/{claim}"), bound).await?;
    Ok(())
}

#[tokio::test]
async fn volume_claims_of_a_stateful_set_count_for_its_parent() -> Result<()> {
    let tenant = TestTenant::start("claims").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let children = json!([tenant.child("StatefulSet"), tenant.child("PersistentVolumeClaim")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder =
        StateRecorder::start(&tenant, &["Database", "StatefulSet", "PersistentVolumeClaim"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    // Nobody's: one claims `web-web-db-0`, the other `web-my-db-0`, and nobody makes volumes for them.
    tenant.create(claiming("web-db")).await?;
    tenant.create(claiming("my-db")).await?;
    tenant.create(owned_by(&db, claiming("db"))).await?;
    let lacking = says("Ready", "False").and(mentions("Ready", "PersistentVolumeClaim web-db-0"));
    let waiting = tenant.until("Database/db", lacking).await?;
    let said = waiting["status"]["conditions"].to_string();
    assert!(said.contains("of 2 not ready") && !said.contains("my-db"), "{said}");

    volume(&tenant, "web-db-0").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.change("StatefulSet/db", json!({ "spec": { "replicas": 2 } })).await?;
    tenant.until("Database/db", mentions("Ready", "PersistentVolumeClaim web-db-1")).await?;
    // Scaled down again, it leaves its claim behind: that one is nobody's any more.
    tenant.change("StatefulSet/db", json!({ "spec": { "replicas": 1 } })).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let left = tenant.get("PersistentVolumeClaim/web-db-1").await?;
    assert_eq!(left["status"]["phase"], "Pending");
    let recording = recorder.stop().await?;
    recording.no_false_ready(&tenant.address("Database/db")?, "Ready", &[("StatefulSet", 1)])
}

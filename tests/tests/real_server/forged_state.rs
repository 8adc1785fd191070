//! What those can cause who write what Rollcall keeps outside of its process while it does not run, or fill it.

use std::sync::Arc;
use std::time::Duration;

use acceptance::caller::code_of;
use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, gone, has, mentions, says, there};
use acceptance::groups::TenantGroups as _;
use acceptance::kind::ObjectAddress;
use acceptance::objects::{condition, deployment, job, owned_by, playing, uid};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::memory::{ENDS, events, fleeting, forget, record, records, remembering, remembering_on};

const INVENTORY: &str = "ConfigMap/rollcall-inventory";

/// A parent of this kind with a Deployment that is ready, under a policy of its own.
async fn ready_parent(tenant: &TestTenant, kind: &str) -> Result<()> {
    let name = kind.to_lowercase();
    tenant.crd(&CrdBuilder::new(kind)).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.policy(&name, kind, spec).await?;
    let parent = tenant.create(tenant.custom(kind, "one")).await?;
    tenant.create(owned_by(&parent, deployment(&name, 1))).await?;
    Ok(())
}

/// A Database that was told that it is ready, and whose policy was then made such that it is refused, while nothing runs.
pub(crate) async fn refused_while_away(word: &str) -> Result<(TestTenant, RollcallProcess)> {
    let tenant = TestTenant::start(word).await?;
    ready_parent(&tenant, "Database").await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    tenant.until("Database/one", says("Ready", "True")).await?;
    let policy = policy_address(&tenant, "database")?;
    tenant.until_at(&policy, &says("Ready", "True")).await?;
    rollcall.kill()?;
    let broken = json!({ "spec": { "children": [{ "kind": { "group": "apps", "kind": "Deployment" },
        "ready": { "cel": { "current": "nonsense(" } } }] } });
    tenant.admin.merge(&policy, "", &broken).await?;
    Ok((tenant, rollcall))
}

#[tokio::test]
async fn who_writes_the_status_of_a_refused_policy_decides_what_is_in_force_after_a_start() -> Result<()> {
    let (tenant, mut rollcall) = refused_while_away("forged-spec").await?;
    let policy = policy_address(&tenant, "database")?;
    let forge = async |spec: &Value| {
        let found = tenant.admin.get(&policy).await?.context("no policy")?;
        let mut forged = found["status"]["accepted"].clone();
        forged["spec"] = json!(spec.to_string());
        tenant.admin.merge(&policy, "/status", &json!({ "status": { "accepted": forged } })).await?;
        anyhow::Ok(())
    };
    let mut other = tenant.policy_manifest("database", "Database", json!({}))["spec"].clone();
    other["condition"] = json!({ "type": "Forged" });
    other["children"] = json!([tenant.child("Deployment")]);
    forge(&other).await?;
    rollcall.again().await?;
    tenant.until("Database/one", says("Forged", "True")).await?;
    tenant.until_at(&policy, &says("Accepted", "False")).await?;

    // It is held to what any spec is held to: nothing is judged by a rule that is refused.
    rollcall.kill()?;
    let mut secrets = tenant.child("Secret");
    secrets["ready"] = json!({ "cel": { "current": "true", "message": "string(data)" } });
    other["children"] = json!([secrets]);
    forge(&other).await?;
    rollcall.again().await?;
    tenant.until("Database/one", because("Forged", "PolicyRefused")).await?;
    Ok(())
}

#[tokio::test]
async fn who_empties_the_status_of_a_refused_policy_takes_a_true_back_after_two_minutes() -> Result<()> {
    let (tenant, mut rollcall) = refused_while_away("emptied").await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let policy = policy_address(&tenant, "database")?;
    tenant.admin.merge(&policy, "/status", &json!({ "status": { "accepted": null } })).await?;
    rollcall.again().await?;
    tenant.until("Database/one", says("Ready", "Unknown").and(because("Ready", "PolicyRefused"))).await?;
    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/one")?;
    ensure!(recording.statuses(&parent, "Ready") == ["True", "Unknown"], "it was left as it stood till then");
    Ok(())
}

#[tokio::test]
async fn who_writes_the_inventory_removes_what_no_policy_writes_and_nothing_else() -> Result<()> {
    let tenant = TestTenant::start("forged-list").await?;
    ready_parent(&tenant, "Database").await?;
    ready_parent(&tenant, "Cache").await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    for place in ["Database/one", "Cache/one"] {
        tenant.until(place, says("Ready", "True")).await?;
    }
    let neighbour = json!([
        { "op": "add", "path": "/status/conditions/0", "value": { "type": "Neighbour", "status": "True" } },
    ]);
    for place in ["Database/one", "Cache/one"] {
        tenant.admin.json_patch(&tenant.address(place)?, "/status", &neighbour).await?;
    }
    tenant.until(INVENTORY, there()).await?;

    // Emptied, it tells of nobody whose policy is gone by the next start.
    rollcall.kill()?;
    let policy = policy_address(&tenant, "cache")?;
    tenant.admin.delete(&policy).await?;
    tenant.until_at(&policy, &gone()).await?;
    tenant.change(INVENTORY, json!({ "data": null })).await?;
    rollcall.again().await?;
    let kept = StateExpectation::new("one policy is kept", |map: &Value| {
        map["data"].as_object().is_some_and(|data| data.len() == 1)
    });
    tenant.until(INVENTORY, kept).await?;
    tenant.play("database", Some("crash")).await?;
    let before = tenant.until("Database/one", says("Ready", "False")).await?;
    tenant.until("Cache/one", says("Ready", "True")).await?;

    // Forged, it takes off what nobody writes, and nothing of a policy or a neighbour.
    rollcall.kill()?;
    let on = |kind: &str| json!({ "group": tenant.group, "kind": kind, "types": ["Ready", "Neighbour"] });
    let forged = json!({ "policy": "nobody", "written": [on("Database"), on("Cache")] });
    tenant.change(INVENTORY, json!({ "data": { "forged": forged.to_string() } })).await?;
    rollcall.again().await?;
    let left = tenant.until("Cache/one", has("Ready", false)).await?;
    ensure!(condition(&left, "Neighbour").is_some(), "{left}");
    let emptied =
        StateExpectation::new("nothing is left of it", |map: &Value| map["data"]["forged"].is_null());
    tenant.until(INVENTORY, emptied).await?;
    let after = tenant.get("Database/one").await?;
    ensure!(after["status"]["conditions"] == before["status"]["conditions"], "{after}");
    Ok(())
}

#[tokio::test]
async fn a_record_that_is_deleted_while_nothing_runs_takes_its_outcomes_along() -> Result<()> {
    let tenant = remembering("burnt", "remember").await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let mut places = Vec::new();
    for name in ["burnt", "kept"] {
        let db = tenant.create(tenant.custom("Database", name)).await?;
        tenant.create(owned_by(&db, fleeting(&format!("job-{name}")))).await?;
        tenant.until(&format!("Database/{name}"), says("Ready", "True")).await?;
        tenant.until(&format!("Job/job-{name}"), gone()).await?;
        let place = record(&tenant, &db)?;
        tenant.until_at(&place, &records(&format!("job-{name}"), "Complete")).await?;
        places.push(place);
    }
    let kept = tenant.get("Database/kept").await?;
    rollcall.kill()?;
    tenant.admin.delete(&places[0]).await?;
    rollcall.again().await?;
    tenant.until("Database/burnt", because("Ready", "ChildrenMissing")).await?;
    ensure!(tenant.get("Database/kept").await? == kept, "no other outcome went with it");
    Ok(())
}

/// An Event in the words of the controller of Jobs, written by somebody else.
fn forged_event(tenant: &TestTenant, name: &str, job: &str, job_uid: &str, version: &str) -> Value {
    let now = k8s_openapi::jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    json!({
        "apiVersion": "v1", "kind": "Event", "metadata": { "name": name },
        "involvedObject": { "apiVersion": "batch/v1", "kind": "Job", "namespace": tenant.name, "name": job,
            "uid": job_uid, "resourceVersion": version },
        "reason": "Completed", "message": "Job completed", "type": "Normal", "count": 1,
        "source": { "component": "job-controller" }, "reportingComponent": "job-controller",
        "firstTimestamp": now, "lastTimestamp": now,
    })
}

#[tokio::test]
async fn who_creates_events_forges_the_end_that_nobody_saw_and_no_other() -> Result<()> {
    let tenant = remembering("gossip", "remember").await?;
    let mut rollcall = tenant.rollcall(&[]).await?;
    let mut jobs = Vec::new();
    for (name, part) in [("well", None), ("ill", Some("fail")), ("missed", Some("hold"))] {
        let db = tenant.create(tenant.custom("Database", name)).await?;
        let run = fleeting(&format!("job-{name}"));
        let run = part.into_iter().fold(run, |run, part| playing(part, run));
        jobs.push(uid(&tenant.create(owned_by(&db, run)).await?).to_owned());
        let outcome = match name {
            "well" => "Complete",
            "ill" => "Failed",
            _ => "Running",
        };
        tenant.until_at(&record(&tenant, &db)?, &records(&format!("job-{name}"), outcome)).await?;
    }
    tenant.create(tenant.custom("Database", "never")).await?;
    for name in ["ill", "missed", "never"] {
        tenant.until(&format!("Database/{name}"), says("Ready", "False")).await?;
    }
    rollcall.kill()?;
    tenant.play("job-missed", Some("fail")).await?;
    tenant.until("Job/job-missed", gone()).await?;
    for name in ["job-ill", "job-missed"] {
        forget(&tenant, &events(&tenant, name, &ENDS).await?).await?;
    }
    let newest = tenant.create(job("newest")).await?["metadata"]["resourceVersion"].clone();
    let newest = newest.as_str().context("no version")?;
    for (name, of) in [("well", "another-run"), ("ill", &jobs[1]), ("missed", &jobs[2]), ("never", "no-run")]
    {
        tenant.create(forged_event(&tenant, name, &format!("job-{name}"), of, newest)).await?;
    }
    rollcall.again().await?;
    // What can be forged is the end of a run that was seen to begin and not to end.
    tenant.until("Database/missed", says("Ready", "True")).await?;
    // And that what is known was not the last.
    let unseen = says("Ready", "Unknown").and(because("Ready", "ChildrenUnknown"));
    tenant.until("Database/well", unseen).await?;
    tenant.until("Database/ill", because("Ready", "ChildrenFailed")).await?;
    tenant.until("Database/never", because("Ready", "ChildrenMissing")).await?;
    Ok(())
}

/// Creates a quota of one object of each of Rollcall's kinds, and waits until they are counted. The controller learns of new kinds
/// every half minute, and takes ever longer to look at a quota again that it could not count.
async fn until_counted(tenant: &TestTenant, plurals: &[&str]) -> Result<ObjectAddress> {
    let hard: Map<String, Value> =
        plurals.iter().map(|plural| (format!("count/{plural}.rollcall.dev"), json!("1"))).collect();
    for attempt in 0..9 {
        let quota = json!({ "apiVersion": "v1", "kind": "ResourceQuota",
            "metadata": { "name": format!("few-{attempt}"), "namespace": tenant.name }, "spec": { "hard": hard } });
        let address = ObjectAddress::of(&quota)?;
        tenant.admin.create(&quota).await?;
        let all = hard.len();
        let counted = StateExpectation::new("counted", move |quota: &Value| {
            quota["status"]["used"].as_object().is_some_and(|used| used.len() == all)
        });
        if timeout(Duration::from_secs(20), tenant.until_at(&address, &counted)).await.is_ok() {
            return Ok(address);
        }
        tenant.admin.delete(&address).await?;
    }
    bail!("no quota of {plurals:?} is counted")
}

#[tokio::test]
async fn a_quota_bounds_groups_and_records() -> Result<()> {
    // Of its own, without kinds that come and go: each begins anew what the controller of quotas has to list before it counts.
    let plane = Arc::new(ControlPlane::start(ClusterParts::Everything).await?);
    let tenant = remembering_on(plane, "quota", "remember").await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let quota = until_counted(&tenant, &["readinessgroups", "readinessrecords"]).await?;
    let of_jobs =
        json!({ "members": [{ "kinds": [{ "group": "batch", "kind": "Job" }], "labels": { "a": "b" } }] });
    tenant.readiness_group("first", of_jobs.clone()).await?;
    let refused = tenant.readiness_group("second", of_jobs).await.expect_err("there is room for one");
    ensure!(code_of(&refused) == Some(403), "{refused:#}");

    let mut parents = Vec::new();
    for name in ["a", "b"] {
        let db = tenant.create(tenant.custom("Database", name)).await?;
        tenant.create(owned_by(&db, fleeting(&format!("job-{name}")))).await?;
        tenant.until(&format!("Database/{name}"), says("Ready", "True")).await?;
        parents.push(db);
    }
    let policy = policy_address(&tenant, "db")?;
    let named = says("Ready", "False").and(because("Ready", "RecordsNotSaved"));
    tenant.until_at(&policy, &named.and(mentions("Ready", "outcomes of Jobs are not saved"))).await?;
    tenant.admin.delete(&quota).await?;
    for (db, name) in parents.iter().zip(["a", "b"]) {
        tenant.until_at(&record(&tenant, db)?, &records(&format!("job-{name}"), "Complete")).await?;
    }
    tenant.until_at(&policy, &says("Ready", "True")).await?;
    rollcall.until_metric("rollcall_records_failing", &[], |failing| failing < 0.5).await?;
    Ok(())
}

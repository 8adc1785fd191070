//! The dangerous moment: the parent's spec is new, its children still look ready for the old one.

use acceptance::caller::code_of;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, current, mentions, says};
use acceptance::kind::ObjectAddress;
use acceptance::objects::{condition, deployment, owned_by, playing};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

/// A tenant with a policy over Deployments, `more` added to its spec.
async fn tenant_with(word: &str, more: Value) -> Result<TestTenant> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let mut spec = json!({ "children": [tenant.child("Deployment")] });
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    tenant.policy("db", "Database", spec).await?;
    Ok(tenant)
}

#[tokio::test]
async fn after_a_spec_change_it_is_unknown_until_the_operator_has_acted() -> Result<()> {
    let tenant = tenant_with("acted", json!({ "settle": "200ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.change_status("Database/db", json!({ "observedGeneration": 1 })).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;

    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    let waits = says("Ready", "Unknown").and(because("Ready", "ChildrenPending")).and(current("Ready"));
    tenant.until("Database/db", waits).await?;
    // Many times the settling span, made of real events: an operator that marks generations is waited for.
    for round in 0..20 {
        tenant
            .change("Deployment/web", json!({ "metadata": { "labels": { "round": format!("{round}") } } }))
            .await?;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    tenant.until("Database/db", says("Ready", "Unknown")).await?;
    tenant.change("Deployment/web", json!({ "spec": { "replicas": 2 } })).await?;
    tenant.change_status("Database/db", json!({ "observedGeneration": 2 })).await?;
    tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;

    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    recording.first_word_is_unknown(&parent, "Ready")?;
    recording.no_false_ready(&parent, "Ready", &[("Deployment", 1)])?;
    Ok(())
}

#[tokio::test]
async fn an_operator_that_stays_silent_never_becomes_ready() -> Result<()> {
    let more = json!({ "settle": "100ms", "limits": { "pending": "2s" } });
    let tenant = tenant_with("silent", more).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.change_status("Database/db", json!({ "observedGeneration": 1 })).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    let silent = because("Ready", "OperatorSilent").and(current("Ready")).and(says("Stalled", "True"));
    tenant.until("Database/db", silent).await?;

    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    let late = recording.said(&parent, "Ready").into_iter().filter(|said| said.generation == 2);
    let statuses: Vec<Value> = late.map(|said| said.entry["status"].clone()).collect();
    assert!(!statuses.is_empty() && statuses.iter().all(|status| status == "Unknown"), "{statuses:?}");
    Ok(())
}

#[tokio::test]
async fn where_an_operator_leaves_no_mark_quiet_decides() -> Result<()> {
    let tenant = tenant_with("quiet", json!({ "settle": "1s" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    tenant.until("Database/db", because("Ready", "ChildrenPending").and(current("Ready"))).await?;
    // The operator acts within the settling span: its rollout is then what decides.
    tenant.change("Deployment/web", json!({ "spec": { "replicas": 3 } })).await?;
    tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;
    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    recording.first_word_is_unknown(&parent, "Ready")?;
    recording.no_false_ready(&parent, "Ready", &[("Deployment", 1)])?;
    Ok(())
}

#[tokio::test]
async fn nothing_that_a_policy_expects_is_ever_ready_by_its_absence() -> Result<()> {
    let tenant = tenant_with("absent", json!({ "settle": "100ms", "limits": { "pending": "2s" } })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    tenant.create(tenant.custom("Database", "db")).await?;
    let missing = says("Ready", "False").and(because("Ready", "ChildrenMissing"));
    tenant.until("Database/db", missing.and(says("Stalled", "True"))).await?;
    Ok(())
}

#[tokio::test]
async fn a_parent_that_is_not_ready_in_time_is_stalled_until_it_is() -> Result<()> {
    let tenant = tenant_with("late", json!({ "settle": "100ms", "limits": { "deadline": "3s" } })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    let late = says("Ready", "False").and(because("Ready", "DeadlineExceeded"));
    let named = mentions("Ready", "Deployment web");
    tenant.until("Database/db", late.and(named).and(says("Stalled", "True"))).await?;
    tenant.play("web", None).await?;
    let now = tenant.until("Database/db", says("Ready", "True")).await?;
    assert!(condition(&now, "Stalled").is_none(), "{}", now["status"]);
    Ok(())
}

#[tokio::test]
async fn a_parent_that_was_ready_for_longer_than_its_deadline_has_all_of_it_again() -> Result<()> {
    let tenant = tenant_with("blip", json!({ "settle": "100ms", "limits": { "deadline": "10s" } })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    // Its generation is older than the deadline by now.
    tokio::time::sleep(std::time::Duration::from_secs(11)).await;
    tenant.play("web", Some("crash")).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    tenant.play("web", None).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    let said = recording.said(&parent, "Ready");
    let late = said.iter().any(|said| said.entry["reason"] == "DeadlineExceeded");
    assert!(!late, "{}", recording.transcript(&parent, "Ready"));
    Ok(())
}

#[tokio::test]
async fn a_generation_that_its_operator_does_not_handle_in_time_is_stalled() -> Result<()> {
    let limits = json!({ "deadline": "2s", "pending": "10m" });
    let tenant = tenant_with("unhandled", json!({ "settle": "100ms", "limits": limits })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.change_status("Database/db", json!({ "observedGeneration": 1 })).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    let late = says("Ready", "Unknown").and(because("Ready", "OperatorSilent"));
    let named = mentions("Ready", "the operator has not handled generation 2");
    tenant.until("Database/db", late.and(named).and(says("Stalled", "True")).and(current("Ready"))).await?;
    tenant.change_status("Database/db", json!({ "observedGeneration": 2 })).await?;
    let now = tenant.until("Database/db", says("Ready", "True")).await?;
    assert!(condition(&now, "Stalled").is_none(), "{}", now["status"]);
    Ok(())
}

/// How an operator writes its status: a merge patch of what it keeps, all of it, or an apply of what it keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StatusWrite {
    Merge,
    Put,
    Apply,
}

/// The operator says that it has handled this generation.
pub(crate) async fn observe(tenant: &TestTenant, by: StatusWrite, generation: i64) -> Result<()> {
    match by {
        StatusWrite::Merge => {
            tenant.change_status("Database/db", json!({ "observedGeneration": generation })).await?;
        }
        StatusWrite::Put => loop {
            let mut db = tenant.get("Database/db").await?;
            db["status"]["observedGeneration"] = json!(generation);
            match tenant.admin.put_status(&db).await {
                Err(error) if code_of(&error) == Some(409) => {}
                other => return other.map(|_| ()),
            }
        },
        StatusWrite::Apply => {
            let db = tenant.address("Database/db")?;
            let path = format!("{}/status?fieldManager=operator&force=true", db.path());
            let body = json!({ "apiVersion": format!("{}/v1", tenant.group), "kind": "Database",
                "metadata": { "name": "db" }, "status": { "observedGeneration": generation } });
            let apply = "application/apply-patch+yaml";
            tenant.admin.send(Method::PATCH, &path, apply, body.to_string().into_bytes()).await?;
        }
    }
    Ok(())
}

pub(crate) fn observed(generation: i64) -> StateExpectation {
    StateExpectation::new("status.observedGeneration", move |db| {
        db["status"]["observedGeneration"] == generation
    })
}

/// Ten times the settling span, made of real events that are no new spec of a child.
pub(crate) async fn nothing_is_done(tenant: &TestTenant) -> Result<()> {
    for round in 0..30 {
        let label = json!({ "metadata": { "labels": { "round": format!("{round}") } } });
        tenant.change("Deployment/web", label).await?;
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    Ok(())
}

/// The server drops a write of what stands there already, and with it the trace of its writer: an operator that handled the
/// first generation later than we supplied the field for those who read by kstatus looks like one that never writes it.
async fn an_operator_behind_our_own_word_is_awaited(by: StatusWrite) -> Result<()> {
    let tenant = TestTenant::start("behind").await?;
    tenant.crd_with_defaults(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "300ms" });
    tenant.policy("db", "Database", spec).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True").and(observed(1))).await?;
    observe(&tenant, by, 1).await?;

    // It is as slow with the next one.
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    let waits = because("Ready", "ChildrenPending").and(current("Ready")).and(observed(1));
    tenant.until("Database/db", waits).await?;
    nothing_is_done(&tenant).await?;
    tenant.until("Database/db", because("Ready", "ChildrenPending").and(observed(1))).await?;
    tenant.change("Deployment/web", json!({ "spec": { "replicas": 2 } })).await?;
    observe(&tenant, by, 2).await?;
    tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;

    // From now on it is known to keep the field: nothing but its word counts, here and on every other parent of the kind.
    tenant.change("Database/db", json!({ "spec": { "size": 3 } })).await?;
    tenant.until("Database/db", because("Ready", "ChildrenPending").and(current("Ready"))).await?;
    tenant.change("Deployment/web", json!({ "spec": { "replicas": 3 } })).await?;
    let other = tenant.create(tenant.custom("Database", "other")).await?;
    tenant.create(owned_by(&other, deployment("shop", 1))).await?;
    nothing_is_done(&tenant).await?;
    tenant.until("Database/db", because("Ready", "ChildrenPending").and(observed(2))).await?;
    tenant.until("Database/other", because("Ready", "ChildrenPending").and(observed(0))).await?;
    observe(&tenant, by, 3).await?;
    tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;

    let (recording, parent) = (recorder.stop().await?, tenant.address("Database/db")?);
    eprintln!("{}", recording.transcript(&parent, "Ready"));
    recording.no_false_ready(&parent, "Ready", &[("Deployment", 1)])?;
    let replicas = |state: &Value| state["spec"]["replicas"].as_i64();
    let mut web = None;
    for state in recording.entries().iter().filter_map(|entry| entry.state.as_ref()) {
        if state["kind"] == "Deployment" && state["metadata"]["name"] == "web" {
            web = replicas(state);
        }
        let ready = condition(state, "Ready").filter(|c| c["status"] == "True").cloned();
        if let Some(ready) = ready.filter(|_| state["metadata"]["name"] == "db") {
            let of = ready["observedGeneration"].as_i64().context("no generation")?;
            assert!(web >= Some(of), "True about generation {of} while the Deployment has {web:?} replicas");
        }
    }
    Ok(())
}

#[tokio::test]
async fn an_operator_that_patches_its_status_is_awaited_behind_our_own_word() -> Result<()> {
    an_operator_behind_our_own_word_is_awaited(StatusWrite::Merge).await
}

#[tokio::test]
async fn an_operator_that_replaces_its_status_is_awaited_behind_our_own_word() -> Result<()> {
    an_operator_behind_our_own_word_is_awaited(StatusWrite::Put).await
}

#[tokio::test]
async fn an_operator_that_applies_its_status_is_awaited_behind_our_own_word() -> Result<()> {
    an_operator_behind_our_own_word_is_awaited(StatusWrite::Apply).await
}

/// An operator that writes a status may keep the field in it: it is left to it, unless the policy says otherwise.
#[tokio::test]
async fn the_field_is_left_to_whoever_writes_the_status_unless_a_policy_says_otherwise() -> Result<()> {
    let tenant = TestTenant::start("writers").await?;
    tenant.crd_with_defaults(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "300ms" });
    let policy = tenant.policy("db", "Database", spec).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True").and(observed(1))).await?;
    // It says something about the generation, and what it says of the field changes nothing.
    tenant.change_status("Database/db", json!({ "phase": "Done", "observedGeneration": 1 })).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    tenant.until("Database/db", because("Ready", "ChildrenPending").and(current("Ready"))).await?;
    tenant.change("Deployment/web", json!({ "spec": { "replicas": 2 } })).await?;
    nothing_is_done(&tenant).await?;
    tenant.until("Database/db", because("Ready", "ChildrenPending").and(observed(1))).await?;
    // One that writes its status first is left alone from the start.
    let other = tenant.create(tenant.custom("Database", "other")).await?;
    tenant.change_status("Database/other", json!({ "phase": "Busy" })).await?;
    tenant.create(owned_by(&other, deployment("shop", 1))).await?;
    tenant.until("Database/other", says("Ready", "True").and(observed(0))).await?;

    let address = ObjectAddress::of(&policy)?;
    tenant.admin.merge(&address, "", &json!({ "spec": { "observedGeneration": "write" } })).await?;
    tenant.until("Database/db", says("Ready", "True").and(current("Ready")).and(observed(2))).await?;
    tenant.until("Database/other", says("Ready", "True").and(observed(1))).await?;
    Ok(())
}

/// Scales a Deployment as an autoscaler does, through the subresource.
async fn scale_beside(tenant: &TestTenant, replicas: u32) -> Result<()> {
    let path =
        format!("{}/scale?fieldManager=kube-controller-manager", tenant.address("Deployment/web")?.path());
    let body = json!({ "spec": { "replicas": replicas } }).to_string().into_bytes();
    tenant.admin.send(Method::PATCH, &path, "application/merge-patch+json", body).await?;
    let scaled = StateExpectation::new("scaled", move |web| {
        web["status"]["observedGeneration"] == web["metadata"]["generation"]
            && web["status"]["readyReplicas"] == json!(replicas)
    });
    tenant.until("Deployment/web", scaled).await?;
    Ok(())
}

#[tokio::test]
async fn what_an_autoscaler_does_to_a_child_is_no_deed_of_the_operator() -> Result<()> {
    let tenant = TestTenant::start("scaled-beside").await?;
    tenant.crd_with_defaults(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "300ms" });
    tenant.policy("db", "Database", spec).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True").and(observed(1))).await?;
    // Behind our own word its own leaves no trace: what it does to its children is what shows that it acts.
    observe(&tenant, StatusWrite::Merge, 1).await?;
    let waits = || because("Ready", "ChildrenPending").and(current("Ready"));
    let image = |image: &str| {
        let containers = json!([{ "name": "main", "image": image }]);
        json!({ "spec": { "template": { "spec": { "containers": containers } } } })
    };
    for (size, deed) in [(2, image("example.test/app:2")), (3, json!({ "spec": { "replicas": 4 } }))] {
        let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
        tenant.change("Database/db", json!({ "spec": { "size": size } })).await?;
        tenant.until("Database/db", waits()).await?;
        for replicas in [2, 3, 1] {
            scale_beside(&tenant, replicas).await?;
        }
        nothing_is_done(&tenant).await?;
        tenant.until("Database/db", waits().and(observed(size - 1))).await?;
        let recording = recorder.stop().await?;
        let parent = tenant.address("Database/db")?;
        let said = recording.said(&parent, "Ready").into_iter().filter(|said| said.generation == size);
        let statuses: Vec<Value> = said.map(|said| said.entry["status"].clone()).collect();
        assert!(statuses.iter().all(|status| status == "Unknown"), "{statuses:?}");
        // What the operator does is, be it another template or another number.
        tenant.change("Deployment/web", deed).await?;
        tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;
        // Our word about this generation may hide the operator's again.
        tenant.until("Database/db", observed(size)).await?;
    }
    Ok(())
}

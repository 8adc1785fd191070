//! Others write conditions too: their words stay theirs.

use std::ops::Range;

use acceptance::caller::{ApiCaller, code_of};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, has, mentions, says};
use acceptance::kind::ObjectAddress;
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::rollcall_command::rollcall;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, bail};
use http::Method;
use serde_json::{Value, json};

/// A neighbour that counts in its own entry, in these rounds, through the same list that Rollcall writes; each
/// round it must find its last word where it left it.
async fn count_beside(admin: &ApiCaller, parent: &ObjectAddress, rounds: Range<u32>) -> Result<()> {
    let word_of = |round: u32| format!("round {round}");
    let mut last = rounds.start.checked_sub(1).map(word_of);
    for round in rounds {
        let word = word_of(round);
        loop {
            let now = admin.get(parent).await?.context("the parent is gone")?;
            let mut list = now["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let own = list.iter().position(|entry| entry["type"] == "Neighbour");
            let found = own.map(|at| list[at]["message"].as_str().unwrap_or_default().to_owned());
            if found != last {
                bail!("round {round}: left {last:?}, found {found:?} in {list:?}");
            }
            let entry = json!({ "type": "Neighbour", "status": "True", "message": word });
            match own {
                Some(at) => list[at] = entry,
                None => list.push(entry),
            }
            // As operators do: the whole list, guarded by the version that was read.
            let mut status = now.clone();
            status["status"]["conditions"] = Value::from(list);
            match admin.put_status(&status).await {
                Ok(_) => break,
                Err(error) if code_of(&error) == Some(409) => {}
                Err(error) => return Err(error),
            }
        }
        last = Some(word);
    }
    Ok(())
}

/// How often the child turns, and how many words the neighbour writes each time: a thousand in all.
const FLIPS: u32 = 40;
const ROUNDS: u32 = 25;

async fn survives(word: &str, crd: CrdBuilder) -> Result<()> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&crd).await?;
    tenant.crd(&CrdBuilder::new("Shard")).await?;
    let shards = json!([tenant.child("Shard")]);
    let fast = json!({ "quiet": "5ms", "cap": "20ms" });
    let spec = json!({ "children": shards, "settle": "0s", "debounce": fast });
    tenant.policy("db", "Database", spec).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, tenant.custom("Shard", "one"))).await?;
    tenant.until("Database/db", has("Ready", true)).await?;

    // The child turns, and the neighbour counts meanwhile: what Rollcall says of it comes between two of the neighbour's words.
    let parent = tenant.address("Database/db")?;
    let mut round = 0_u32;
    for flip in 0..FLIPS {
        let status = if flip % 2 == 0 { "True" } else { "False" };
        let entry = json!({ "type": "Ready", "status": status, "observedGeneration": 1 });
        tenant.change_status("Shard/one", json!({ "conditions": [entry] })).await?;
        count_beside(&tenant.admin, &parent, round..round + ROUNDS).await?;
        round += ROUNDS;
        tenant.until("Database/db", says("Ready", status)).await?;
    }
    let written = rollcall.metric("rollcall_writes_total", &["outcome=\"written\""]).await?;
    eprintln!("{written} writes beside {round} of the neighbour's");
    assert!(written >= f64::from(FLIPS), "only {written} writes interleaved");
    let done = json!({ "type": "Ready", "status": "True", "observedGeneration": 1 });
    tenant.change_status("Shard/one", json!({ "conditions": [done] })).await?;
    let last = format!("round {}", round - 1);
    let both = StateExpectation::new("Neighbour at its last word", move |db| {
        condition(db, "Neighbour").is_some_and(|entry| entry["message"] == last.as_str())
    });
    tenant.until("Database/db", says("Ready", "True").and(both)).await?;
    Ok(())
}

#[tokio::test]
async fn a_thousand_writes_of_a_neighbour_survive_in_a_list_map() -> Result<()> {
    survives("neighbour", CrdBuilder::new("Database")).await
}

#[tokio::test]
async fn a_thousand_writes_of_a_neighbour_survive_in_an_atomic_list() -> Result<()> {
    survives("atomicneighbour", CrdBuilder::new("Database").atomic()).await
}

/// A `Ready` that an operator wrote under its own name.
async fn written_by_operator(tenant: &TestTenant, place: &str) -> Result<()> {
    let address = tenant.address(place)?;
    let entry = json!({
        "type": "Ready", "status": "True", "reason": "UpAndRunning", "message": "the operator says so",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let patch = json!({ "status": { "conditions": [entry] } });
    let path = format!("{}/status?fieldManager=database-operator", address.path());
    let body = serde_json::to_vec(&patch)?;
    tenant.admin.send(Method::PATCH, &path, "application/merge-patch+json", body).await?;
    Ok(())
}

/// A condition of an operator's own in a word that Rollcall uses too, put beside whatever stands there.
async fn report_backup(tenant: &TestTenant, place: &str) -> Result<()> {
    let address = tenant.address(place)?;
    loop {
        let now = tenant.get(place).await?;
        let mut list = now["status"]["conditions"].as_array().cloned().unwrap_or_default();
        list.push(json!({
            "type": "BackupFailed", "status": "True", "reason": "DeadlineExceeded", "message": "it took too long",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }));
        let version = &now["metadata"]["resourceVersion"];
        let patch = json!({ "metadata": { "resourceVersion": version }, "status": { "conditions": list } });
        let path = format!("{}/status?fieldManager=db-operator", address.path());
        let body = serde_json::to_vec(&patch)?;
        match tenant.admin.send(Method::PATCH, &path, "application/merge-patch+json", body).await {
            Err(error) if code_of(&error) == Some(409) => {}
            put => return put.map(drop),
        }
    }
}

/// `BackupFailed` as its operator wrote it, and so many entries in all.
fn backup_beside(others: usize) -> StateExpectation {
    StateExpectation::new("BackupFailed as it was written, and nothing twice", move |db: &Value| {
        let whole = condition(db, "BackupFailed").is_some_and(|entry| entry["message"] == "it took too long");
        whole && db["status"]["conditions"].as_array().map(Vec::len) == Some(others + 1)
    })
}

#[tokio::test]
async fn a_condition_of_an_operator_in_a_word_of_ours_outlives_a_run_its_policy_and_a_release() -> Result<()>
{
    let tenant = TestTenant::start("backup").await?;
    tenant.crd(&CrdBuilder::new("Database").atomic()).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    let policy = tenant.policy("db", "Database", spec.clone()).await?;
    let mut running = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    report_backup(&tenant, "Database/db").await?;
    tenant.play("web", Some("crash")).await?;
    tenant.until("Database/db", says("Ready", "False").and(has("BackupFailed", true))).await?;
    tenant.play("web", None).await?;
    tenant.until("Database/db", says("Ready", "True").and(backup_beside(1))).await?;
    tenant.admin.delete(&acceptance::policies::policy_address(&tenant, "db")?).await?;
    tenant.until("Database/db", has("Ready", false).and(backup_beside(0))).await?;
    tenant.policy("db", "Database", spec).await?;
    tenant.until("Database/db", says("Ready", "True").and(backup_beside(1))).await?;
    assert!(running.terminate().await?.success());
    let file = tenant.policies_file(&[policy])?;
    let kubeconfig = tenant.kubeconfig(tenant.plane.url()).await?;
    let (file, kubeconfig) = (file.to_string_lossy(), kubeconfig.to_string_lossy());
    rollcall(&["release", "--kubeconfig", &kubeconfig, "-f", &file])?;
    tenant.until("Database/db", has("Ready", false).and(backup_beside(0))).await?;
    Ok(())
}

/// Server-side apply of these conditions as an operator's.
async fn apply_conditions(tenant: &TestTenant, place: &str, conditions: Value) -> Result<()> {
    let (now, address) = (tenant.get(place).await?, tenant.address(place)?);
    let object = json!({
        "apiVersion": now["apiVersion"], "kind": now["kind"], "metadata": { "name": now["metadata"]["name"] },
        "status": { "conditions": conditions },
    });
    let path = format!("{}/status?fieldManager=database-operator&force=true", address.path());
    let body = serde_json::to_vec(&object)?;
    tenant.admin.send(Method::PATCH, &path, "application/apply-patch+yaml", body).await?;
    Ok(())
}

/// The server takes away what only the operator had: half of an entry is left, in nobody's name but Rollcall's.
#[tokio::test]
async fn what_an_operator_that_lets_go_of_a_condition_leaves_of_it_is_set_right() -> Result<()> {
    let tenant = TestTenant::start("letgo").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let claimed = json!([{ "type": "Ready", "status": "True", "reason": "UpAndRunning", "message": "x",
        "lastTransitionTime": "2026-01-01T00:00:00Z" }]);
    apply_conditions(&tenant, "Database/db", claimed).await?;
    apply_conditions(&tenant, "Database/db", json!([])).await?;
    tenant.until("Database/db", says("Ready", "True").and(because("Ready", "AllChildrenReady"))).await?;
    tenant.play("web", Some("crash")).await?;
    tenant.until("Database/db", says("Ready", "False")).await?;
    Ok(())
}

/// The Event with this reason.
async fn until_event(tenant: &TestTenant, reason: &str) -> Result<Value> {
    tenant.until_listed("Event", &tenant.name, &format!("fieldSelector=reason={reason}")).await
}

#[tokio::test]
async fn a_ready_of_somebody_else_is_not_taken() -> Result<()> {
    let tenant = TestTenant::start("foreign").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    written_by_operator(&tenant, "Database/db").await?;
    let children = json!([tenant.child("Deployment")]);
    tenant.policy("db", "Database", json!({ "children": children, "settle": "100ms" })).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let policy = acceptance::policies::policy_address(&tenant, "db")?;
    let named = because("Ready", "ConditionOwned").and(mentions("Ready", "1 parents by database-operator"));
    tenant.until_at(&policy, &named).await?;
    rollcall.until_metric("rollcall_parents_owned", &[], |parents| parents >= 1.0).await?;
    let told = until_event(&tenant, "ConditionOwned").await?;
    assert_eq!(
        (&told["involvedObject"]["name"], &told["type"]),
        (&json!("db"), &json!("Warning")),
        "{told:#}"
    );
    let note = told["message"].as_str().unwrap_or_default();
    assert!(note.contains(&policy.name) && note.contains("belongs to database-operator"), "{note}");
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Deployment/web", says("Available", "True")).await?;
    let counted =
        StateExpectation::new("judged all the same", |policy: &Value| policy["status"]["ready"] == 1);
    tenant.until_at(&policy, &counted).await?;
    let now = tenant.get("Database/db").await?;
    let entry = condition(&now, "Ready").context("Ready is gone")?;
    assert_eq!(entry["reason"], "UpAndRunning", "{now:#}");
    assert_eq!(now["status"]["conditions"].as_array().map(Vec::len), Some(1), "{now:#}");
    // Its answer has turned since, and its owner has spoken again: that is told once.
    written_by_operator(&tenant, "Database/db").await?;
    let told = until_event(&tenant, "ConditionOwned").await?;
    assert!(told["count"].is_null() && told["series"].is_null(), "{told:#}");
    Ok(())
}

#[tokio::test]
async fn where_ready_is_somebody_elses_the_fallback_is_used() -> Result<()> {
    let tenant = TestTenant::start("fallback").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    written_by_operator(&tenant, "Database/db").await?;
    let condition_of = json!({ "type": "Ready", "fallback": "ChildrenReady" });
    let children = json!([tenant.child("Deployment")]);
    let spec = json!({ "children": children, "settle": "100ms", "condition": condition_of });
    tenant.policy("db", "Database", spec).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    let now = tenant.until("Database/db", says("ChildrenReady", "True")).await?;
    assert_eq!(condition(&now, "Ready").context("Ready is gone")?["reason"], "UpAndRunning");
    Ok(())
}

#[tokio::test]
async fn two_policies_on_one_parent_do_not_fight() -> Result<()> {
    let tenant = TestTenant::start("two").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let web = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    let mut store = json!({ "children": [tenant.child("StatefulSet")], "settle": "100ms" });
    store["condition"] = json!({ "type": "StoreReady" });
    tenant.policy("web", "Database", web).await?;
    tenant.policy("store", "Database", store).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.create(owned_by(&db, acceptance::objects::stateful_set("store", 1))).await?;
    tenant.until("Database/db", says("Ready", "True").and(says("StoreReady", "True"))).await?;
    tenant.play("store", Some("crash")).await?;
    tenant.until("Database/db", says("Ready", "True").and(says("StoreReady", "False"))).await?;
    tenant.play("store", None).await?;
    tenant.until("Database/db", says("Ready", "True").and(says("StoreReady", "True"))).await?;
    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    assert_eq!(recording.statuses(&parent, "Ready").last().map(String::as_str), Some("True"));
    let store = recording.transcript(&parent, "StoreReady");
    assert!(!recording.statuses(&parent, "StoreReady").contains(&"gone".to_owned()), "{store}");
    assert!(!recording.statuses(&parent, "Ready").contains(&"gone".to_owned()));
    let written = rollcall.metric("rollcall_writes_total", &["outcome=\"written\""]).await?;
    assert!(written < 30.0, "{written} writes for a handful of changes");
    Ok(())
}

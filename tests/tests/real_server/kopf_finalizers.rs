//! Controllers that take off and put back each other's finalizers.

use acceptance::caller::code_of;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, gone, has, mentions, says};
use acceptance::kind::ObjectAddress;
use acceptance::kopf::{KopfOperator, KopfVersion, TenantKopf as _};
use acceptance::objects::{deployment, owned_by};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::{StateRecorder, StateRecording};
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use http::Method;
use serde_json::{Value, json};

/// An operator that wants its finalizer on what has its own label, and is slow where it is told to be: it goes by what an
/// object was when its turn came.
const OPERATOR: &str = r#"
import os, time, kopf

NAME = os.environ["NAME"]

@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.finalizer = f"{NAME}.example.com/guard"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=f"{NAME}.example.com")
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=f"{NAME}.example.com")
    settings.posting.enabled = False

@kopf.on.event("GROUP", "v1", "databases")
def look(**_):
    time.sleep(float(os.environ["SLOW"]))

@kopf.on.delete("GROUP", "v1", "databases", labels={NAME: "yes"})
def release(**_):
    pass
"#;

fn finalizers(object: &Value) -> Vec<&str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn has_finalizers(names: &'static [&'static str]) -> StateExpectation {
    StateExpectation::new(&format!("held by {names:?}"), move |object| {
        let mut held = finalizers(object);
        held.sort_unstable();
        held == names
    })
}

async fn told(tenant: &TestTenant, running: &RollcallProcess, place: &str, words: &str) -> Result<String> {
    let parent = tenant.until(place, mentions("Ready", words)).await?;
    running.until_metric("rollcall_finalizer_flaps_total", &[], |times| times >= 2.0).await?;
    let address = tenant.address(place)?;
    let named = format!("name=\"{}\"", address.name);
    running.until_metric("rollcall_parent_finalizers_flapping_info", &[&named], |one| one > 0.0).await?;
    let event = async || {
        let (events, _) = tenant.admin.list(&tenant.kind("Event"), &tenant.name, "").await?;
        let of_it =
            |e: &&Value| e["reason"] == "FinalizerFlapping" && e["involvedObject"]["name"] == *address.name;
        anyhow::Ok(events.iter().find(of_it).map(|event| event["message"].to_string()))
    };
    let mut note = event().await?;
    for _ in 0..500 {
        if note.is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        note = event().await?;
    }
    assert!(note.as_ref().is_some_and(|note| note.contains("taken off and put back")), "{note:?}");
    let entry = acceptance::objects::condition(&parent, "Ready").cloned().unwrap_or_default();
    eprintln!("{entry:#}");
    Ok(entry["message"].as_str().unwrap_or_default().to_owned())
}

const OLD: &str = "old.example.com/guard";
const NEW: &str = "new.example.com/guard";

/// Two operators over one kind, of which the second puts its finalizer on whatever `new` is said of; both at work.
async fn two_operators(
    word: &str,
    first: KopfVersion,
) -> Result<(TestTenant, RollcallProcess, [KopfOperator; 2])> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database").shapeless()).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    let running = tenant.rollcall(&[]).await?;
    let old = tenant.script("old", first, OPERATOR, &[("NAME", "old"), ("SLOW", "1")])?;
    let new = tenant.script("new", KopfVersion::Current, OPERATOR, &[("NAME", "new"), ("SLOW", "0.2")])?;
    guarded(&tenant, "warm").await?;
    tenant.until("Database/warm", has_finalizers(&[NEW, OLD])).await?;
    Ok((tenant, running, [old, new]))
}

async fn guarded(tenant: &TestTenant, name: &str) -> Result<()> {
    let mut db = tenant.custom("Database", name);
    db["metadata"]["labels"] = json!({ "old": "yes", "new": "yes" });
    tenant.create(db).await?;
    Ok(())
}

/// What the finalizers of an object were, each run of equal ones once.
fn history(recording: &StateRecording, name: &str) -> Vec<Vec<String>> {
    let states = recording.entries().iter().filter_map(|entry| entry.state.as_ref());
    let of_it = states.filter(|state| state["metadata"]["name"] == *name);
    let mut all: Vec<Vec<String>> =
        of_it.map(|state| finalizers(state).into_iter().map(str::to_owned).collect()).collect();
    all.dedup();
    all
}

/// How often this was there and then was not.
fn lost(history: &[Vec<String>], finalizer: &str) -> usize {
    let there: Vec<bool> = history.iter().map(|held| held.iter().any(|f| f == finalizer)).collect();
    there.windows(2).filter(|pair| pair[0] && !pair[1]).count()
}

/// The old one goes by what it saw before the new one had put its finalizer there, and writes the whole list: so it drops what
/// nobody has given up.
#[tokio::test]
async fn an_operator_in_old_kopf_that_drops_the_finalizer_of_one_in_new_kopf_is_found_out() -> Result<()> {
    let (tenant, running, _operators) = two_operators("finalizers", KopfVersion::Before144).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    guarded(&tenant, "db").await?;
    // While the new one is about to put it back, the old one has its next list to write, of what it sees now.
    tenant.until("Database/db", has_finalizers(&[OLD])).await?;
    tenant.change("Database/db", json!({ "metadata": { "labels": { "old": null } } })).await?;
    let message = told(&tenant, &running, "Database/db", "finalizer").await?;
    let named = "finalizer new.example.com/guard is taken off and put back several times a minute since 20";
    assert!(message.contains(named), "{message}");
    assert!(!message.contains(OLD), "that one was put on once, and taken off by its own: {message}");
    assert!(!message.contains("managers"), "both are called kopf, which tells nobody apart: {message}");
    tenant.until("Database/db", has_finalizers(&[NEW])).await?;
    let history = history(&recorder.stop().await?, "db");
    eprintln!("{history:?}");
    assert!(lost(&history, NEW) >= 2 && lost(&history, OLD) == 1, "{history:?}");
    tenant.delete("Database/db").await?;
    tenant.until("Database/db", gone()).await?;
    Ok(())
}

/// The same where both are in the new Kopf, which writes its own alone.
#[tokio::test]
async fn of_two_operators_in_new_kopf_neither_drops_the_finalizer_of_the_other() -> Result<()> {
    let (tenant, running, _operators) = two_operators("sparing", KopfVersion::Current).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    guarded(&tenant, "db").await?;
    for (old, held) in [(Some("yes"), &[NEW, OLD][..]), (None, &[NEW]), (Some("yes"), &[NEW, OLD])] {
        tenant.change("Database/db", json!({ "metadata": { "labels": { "old": old } } })).await?;
        tenant.until("Database/db", has_finalizers(held)).await?;
    }
    // Rollcall has seen all of it: what is put back is counted.
    running.until_metric("rollcall_finalizer_flaps_total", &[], |times| times >= 1.0).await?;
    tenant.create(tenant.custom("Database", "after")).await?;
    tenant.until("Database/after", has("Ready", true)).await?;
    let put_back = running.metric("rollcall_finalizer_flaps_total", &[]).await?;
    assert!(put_back < 1.5, "{put_back}: only what the test has put back");
    let recording = recorder.stop().await?;
    let history = history(&recording, "db");
    assert_eq!((lost(&history, NEW), lost(&history, OLD)), (0, 1), "{history:?}");
    let said = recording.transcript(&tenant.address("Database/db")?, "Ready");
    assert!(!said.contains("taken off"), "{said}");
    Ok(())
}

/// A controller in Go's fashion: it updates the whole object to what it wants of it, with its own finalizer alone.
async fn put_own(tenant: &TestTenant, address: &ObjectAddress) -> Result<()> {
    put_as(tenant, address, "shop-controller", |_| json!(["shop-controller.example.com/lock"])).await
}

async fn put_as(
    tenant: &TestTenant,
    address: &ObjectAddress,
    manager: &str,
    finalizers: impl Fn(&Value) -> Value,
) -> Result<()> {
    let path = format!("{}?fieldManager={manager}", address.path());
    loop {
        let mut read = tenant.admin.get(address).await?.context("it is gone")?;
        read["metadata"]["finalizers"] = finalizers(&read["metadata"]["finalizers"]);
        match tenant.admin.send(Method::PUT, &path, "application/json", serde_json::to_vec(&read)?).await {
            Ok(_) => return Ok(()),
            Err(error) if code_of(&error) == Some(409) => {}
            Err(error) => return Err(error),
        }
    }
}

#[tokio::test]
async fn a_controller_that_puts_the_whole_object_is_found_out_beside_kopf_and_named() -> Result<()> {
    let tenant = TestTenant::start("putback").await?;
    tenant.crd(&CrdBuilder::new("Database").shapeless()).await?;
    tenant.crd(&CrdBuilder::new("Platform")).await?;
    let web = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    let databases = json!({ "children": [tenant.child("Database")], "settle": "100ms" });
    tenant.policy("db", "Database", web).await?;
    tenant.policy("all", "Platform", databases).await?;
    let running = tenant.rollcall(&[]).await?;
    let _kopf = tenant.script("new", KopfVersion::Current, OPERATOR, &[("NAME", "new"), ("SLOW", "0")])?;
    let platform = tenant.create(tenant.custom("Platform", "all")).await?;
    let mut db = owned_by(&platform, tenant.custom("Database", "db"));
    db["metadata"]["labels"] = json!({ "new": "yes" });
    tenant.create(db).await?;
    let address = tenant.address("Database/db")?;
    tenant.until("Database/db", has_finalizers(&["new.example.com/guard"])).await?;
    for _ in 0..3 {
        put_own(&tenant, &address).await?;
        let both: &[&str] = &["new.example.com/guard", "shop-controller.example.com/lock"];
        tenant.until("Database/db", has_finalizers(both)).await?;
    }
    let message = told(&tenant, &running, "Database/db", "new.example.com/guard").await?;
    assert!(message.contains("(managers kopf, shop-controller)"), "{message}");
    assert!(!message.contains("lock"), "the lock was never taken off: {message}");
    told(&tenant, &running, "Platform/all", "Database db: finalizer new.example.com/guard").await?;
    Ok(())
}

#[tokio::test]
async fn who_fights_over_a_finalizer_of_a_child_that_is_no_parent_is_named_too() -> Result<()> {
    let tenant = TestTenant::start("childlock").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.policy("db", "Database", spec).await?;
    let running = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let web = tenant.address("Deployment/web")?;
    for _ in 0..3 {
        let both = |held: &Value| {
            let mut held = held.as_array().cloned().unwrap_or_default();
            held.push(json!("backup.example.com/hold"));
            json!(held)
        };
        put_as(&tenant, &web, "backup-controller", both).await?;
        put_own(&tenant, &web).await?;
    }
    let message =
        told(&tenant, &running, "Database/db", "Deployment web: finalizer backup.example.com/hold").await?;
    assert!(message.contains("(managers backup-controller, shop-controller)"), "{message}");
    assert!(!message.contains("lock"), "the lock was never taken off: {message}");
    Ok(())
}

//! The very first try of a handler, of which nothing is to be seen on its object.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, says};
use acceptance::kopf::{KopfVersion, TenantKopf as _};
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::{StateRecorder, StateRecording};
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::kopf::handled;

/// An operator whose children are there long before its handler is through, where its object says so.
const SLOW: &str = r#"
import asyncio, kopf

@kopf.on.create("GROUP", "v1", "databases")
@kopf.on.create("GROUP", "v1", "caches")
@kopf.on.create("GROUP", "v1", "shelfs")
async def create(name, **_):
    if name == "slow":
        await asyncio.sleep(20)
"#;

/// An operator that handles no change: it looks in now and then.
const TIMER: &str = r#"
import kopf

@kopf.timer("GROUP", "v1", "databases", interval=1.0)
def tick(**_):
    pass

@kopf.on.event("GROUP", "v1", "databases")
def look(**_):
    pass
"#;

async fn policy(tenant: &TestTenant, kind: &str, evidence: &str) -> Result<()> {
    tenant.crd(&CrdBuilder::new(kind)).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "1s", "evidence": evidence });
    tenant.policy(&kind.to_lowercase(), kind, spec).await?;
    Ok(())
}

/// A parent with a child that becomes ready at once.
async fn parent(tenant: &TestTenant, kind: &str, name: &str) -> Result<()> {
    let parent = tenant.create(tenant.custom(kind, name)).await?;
    let child = format!("{}-{name}", kind.to_lowercase());
    tenant.create(owned_by(&parent, deployment(&child, 1))).await?;
    Ok(())
}

/// How often something was said of an object that Kopf had not handled: True, and that it is waited for.
fn before_handled(recording: &StateRecording, kind: &str, name: &str) -> (usize, usize) {
    let (mut early, mut pending) = (0, 0);
    for state in recording.entries().iter().filter_map(|entry| entry.state.as_ref()) {
        if state["kind"] == kind && state["metadata"]["name"] == name && !handled(state) {
            let ready = condition(state, "Ready").cloned().unwrap_or_default();
            early += usize::from(ready["status"] == "True");
            pending += usize::from(ready["reason"] == "ChildrenPending");
        }
    }
    (early, pending)
}

fn is_handled() -> StateExpectation {
    StateExpectation::new("handled by Kopf", |state: &Value| handled(state))
}

async fn the_first_try_is_waited_for(word: &str, kopf: KopfVersion) -> Result<()> {
    let tenant = TestTenant::start(word).await?;
    for (kind, evidence) in [("Database", "auto"), ("Cache", "kopf"), ("Shelf", "own")] {
        policy(&tenant, kind, evidence).await?;
    }
    let _running = tenant.rollcall(&[]).await?;
    let operator = tenant.script("slow", kopf, SLOW, &[])?;
    // What the operator leaves on one of them tells what it will leave on others.
    parent(&tenant, "Database", "quick").await?;
    tenant.until("Database/quick", says("Ready", "True").and(is_handled())).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Cache", "Shelf"]).await?;
    for kind in ["Database", "Cache", "Shelf"] {
        parent(&tenant, kind, "slow").await?;
    }
    for child in ["database-slow", "cache-slow", "shelf-slow"] {
        tenant.until(&format!("Deployment/{child}"), says("Available", "True")).await?;
    }
    // Where the absence of a mark says nothing, quiet decides, and is wrong: so this is what it is about.
    let early = tenant.until("Shelf/slow", says("Ready", "True")).await?;
    ensure!(!handled(&early), "the handler was quicker than the test: {early:#}");
    for place in ["Database/slow", "Cache/slow"] {
        let waiting = tenant.until(place, because("Ready", "ChildrenPending")).await?;
        ensure!(!handled(&waiting), "{waiting:#}");
    }
    for place in ["Database/slow", "Cache/slow"] {
        tenant.until(place, says("Ready", "True").and(is_handled())).await?;
    }
    let recording = recorder.stop().await?;
    for kind in ["Database", "Cache"] {
        let (early, pending) = before_handled(&recording, kind, "slow");
        ensure!(early == 0 && pending > 0, "{kind}: {early} times early, {pending} times pending");
    }
    let (early, _) = before_handled(&recording, "Shelf", "slow");
    ensure!(early > 0, "the recording shows what it should");
    operator.never_stumbled()
}

#[tokio::test]
async fn a_handler_in_its_very_first_try_is_waited_for_however_ready_the_children_are() -> Result<()> {
    the_first_try_is_waited_for("firsttry", KopfVersion::Current).await
}

#[tokio::test]
async fn a_handler_of_an_older_kopf_in_its_very_first_try_is_waited_for_too() -> Result<()> {
    the_first_try_is_waited_for("firstold", KopfVersion::Before144).await
}

#[tokio::test]
async fn an_operator_that_leaves_no_marks_is_not_waited_for_though_its_finalizer_is_there() -> Result<()> {
    let tenant = TestTenant::start("unmarked").await?;
    policy(&tenant, "Database", "auto").await?;
    let _running = tenant.rollcall(&[]).await?;
    let _operator = tenant.script("timer", KopfVersion::Current, TIMER, &[])?;
    for name in ["one", "two"] {
        parent(&tenant, "Database", name).await?;
        let place = format!("Database/{name}");
        let finalizer = StateExpectation::new("held by Kopf", |state: &Value| {
            state["metadata"]["finalizers"][0] == "kopf.zalando.org/KopfFinalizerMarker"
        });
        let ready = tenant.until(&place, says("Ready", "True").and(finalizer)).await?;
        ensure!(!handled(&ready), "a timer left a mark: {ready:#}");
    }
    Ok(())
}

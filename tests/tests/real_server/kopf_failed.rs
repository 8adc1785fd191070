//! Handlers that fail for good: what Kopf leaves of that, and what the shipped module keeps.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, current, mentions, says};
use acceptance::kopf::{KopfVersion, TenantKopf as _};
use acceptance::objects::{condition, deployment, owned_by};
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::StateRecorder;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::kopf::handled;

/// An operator that cannot have odd sizes, and says so once; with another handler that is not through where it is told so.
const FAILS: &str = r#"
import os, kopf

@kopf.on.startup()
def configure(settings, **_):
    if os.environ["KEEPS"] == "yes":
        import rollcall_kopf
        rollcall_kopf.keep_outcomes(settings)

@kopf.on.create("GROUP", "v1", "databases")
@kopf.on.update("GROUP", "v1", "databases")
def set_up(spec, **_):
    if spec["size"] % 2:
        raise kopf.PermanentError("an odd size is <never> to be had")

@kopf.on.update("GROUP", "v1", "databases", field="spec.held")
def hold(new, **_):
    if new == "yes":
        raise kopf.TemporaryError("held", delay=1)

@kopf.on.update("GROUP", "v1", "databases", field="spec.tries", retries=3)
def try_often(new, retry, **_):
    if new == "in vain":
        raise kopf.TemporaryError(f"attempt {retry} in vain", delay=0.2)
"#;

fn ready_and_handled() -> StateExpectation {
    let handled = StateExpectation::new("handled by Kopf", handled);
    says("Ready", "True").and(current("Ready")).and(handled)
}

/// A parent of size 2 with a ready child, below this operator and a policy that says `evidence: kopf`.
async fn tenant_of(
    word: &str,
    kopf: KopfVersion,
    keeps: bool,
    pending: &str,
) -> Result<(TestTenant, RunningOperator)> {
    tenant_with(word, kopf, keeps, json!({ "evidence": "kopf", "limits": { "pending": pending } })).await
}

/// The same below a policy with `more` in its spec.
async fn tenant_with(
    word: &str,
    kopf: KopfVersion,
    keeps: bool,
    more: Value,
) -> Result<(TestTenant, RunningOperator)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let mut spec = more;
    spec["children"] = json!([tenant.child("Deployment")]);
    spec["settle"] = json!("200ms");
    tenant.policy("db", "Database", spec).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let installed = if keeps { Some(tenant.pip_install_module(kopf)?) } else { None };
    let installed = installed.map(|folder| folder.to_string_lossy().into_owned());
    let path = installed.as_deref().map(|folder| ("PYTHONPATH", folder));
    let env: Vec<_> = [("KEEPS", if keeps { "yes" } else { "no" })].into_iter().chain(path).collect();
    let operator = tenant.script("fails", kopf, FAILS, &env)?;
    let mut db = tenant.custom("Database", "db");
    db["spec"] = json!({ "size": 2 });
    let db = tenant.create(db).await?;
    tenant.create(owned_by(&db, deployment("web", 2))).await?;
    tenant.until("Database/db", ready_and_handled()).await?;
    Ok((tenant, RunningOperator { rollcall, operator }))
}

struct RunningOperator {
    rollcall: acceptance::rollcall::RollcallProcess,
    operator: acceptance::kopf::KopfOperator,
}

async fn a_failure_is_told_and_forgotten_when_it_is_mended(word: &str, kopf: KopfVersion) -> Result<()> {
    let (tenant, running) = tenant_of(word, kopf, true, "10m").await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 3 } })).await?;
    let failed = because("Ready", "OperatorFailed").and(says("Ready", "False")).and(says("Stalled", "True"));
    let named = mentions("Ready", "failed to handle generation 2")
        .and(mentions("Ready", "an odd size is <never> to be had"));
    tenant.until("Database/db", failed.and(named).and(current("Ready"))).await?;
    // No child has moved, and none has to: its handlers said that they succeeded.
    tenant.change("Database/db", json!({ "spec": { "size": 4 } })).await?;
    let db = tenant.until("Database/db", ready_and_handled()).await?;
    ensure!(condition(&db, "Stalled").is_none(), "{}", db["status"]);
    tenant.change("Database/db", json!({ "spec": { "size": 5 } })).await?;
    tenant.until("Database/db", because("Ready", "OperatorFailed").and(current("Ready"))).await?;
    let (recording, parent) = (recorder.stop().await?, tenant.address("Database/db")?);
    eprintln!("{}", recording.transcript(&parent, "Ready"));
    let said = recording.said(&parent, "Ready");
    let early = said.iter().filter(|said| said.entry["status"] == "True" && said.generation % 2 == 0);
    ensure!(early.count() == 0, "a generation that failed was ready");
    running.operator.never_stumbled()
}

#[tokio::test]
async fn with_the_module_a_failed_handler_is_told_and_forgotten_when_it_is_mended() -> Result<()> {
    a_failure_is_told_and_forgotten_when_it_is_mended("keeps", KopfVersion::Current).await
}

#[tokio::test]
async fn with_the_module_a_failed_handler_of_an_older_kopf_is_told_too() -> Result<()> {
    a_failure_is_told_and_forgotten_when_it_is_mended("keepsold", KopfVersion::Before144).await
}

#[tokio::test]
async fn with_the_module_a_handler_that_has_used_up_its_retries_is_told_as_one_that_failed() -> Result<()> {
    let (tenant, running) = tenant_of("retries", KopfVersion::Current, true, "10m").await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    tenant.change("Database/db", json!({ "spec": { "tries": "in vain" } })).await?;
    let failed = because("Ready", "OperatorFailed").and(says("Ready", "False")).and(says("Stalled", "True"));
    let named =
        mentions("Ready", "handler try_often").and(mentions("Ready", "failed to handle generation 2"));
    tenant.until("Database/db", failed.and(named).and(current("Ready"))).await?;
    tenant.change("Database/db", json!({ "spec": { "tries": "no more" } })).await?;
    let db = tenant.until("Database/db", ready_and_handled()).await?;
    ensure!(condition(&db, "Stalled").is_none(), "{}", db["status"]);
    let recording = recorder.stop().await?;
    let said = recording.said(&tenant.address("Database/db")?, "Ready");
    let early = said.iter().filter(|said| said.entry["status"] == "True" && said.generation == 2);
    ensure!(early.count() == 0, "a generation that failed was ready");
    running.operator.never_stumbled()
}

/// Kopf's mark equals the spec though nothing was done.
async fn an_equal_mark_is_no_proof(word: &str, kopf: KopfVersion) -> Result<()> {
    let (tenant, running) = tenant_of(word, kopf, false, "3s").await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 3 } })).await?;
    let marked = StateExpectation::new("handled by Kopf", handled);
    tenant.until("Database/db", marked).await?;
    let policy = policy_address(&tenant, "db")?;
    tenant.until_at(&policy, &mentions("OutcomesHidden", "spec.proof")).await?;
    let silent = because("Ready", "OperatorSilent").and(mentions("Ready", "rollcall_kopf.py"));
    tenant.until("Database/db", silent.and(says("Ready", "Unknown")).and(current("Ready"))).await?;
    // It does something for the next one.
    tenant.change("Database/db", json!({ "spec": { "size": 4 } })).await?;
    tenant.until("Database/db", because("Ready", "ChildrenPending").and(current("Ready"))).await?;
    tenant.change("Deployment/web", json!({ "spec": { "replicas": 3 } })).await?;
    tenant.until("Database/db", ready_and_handled()).await?;
    let recording = recorder.stop().await?;
    let said = recording.said(&tenant.address("Database/db")?, "Ready");
    let early = said.iter().filter(|said| said.entry["status"] == "True" && said.generation == 2);
    ensure!(early.count() == 0, "True of a generation with which nothing was done");
    running.operator.never_stumbled()
}

#[tokio::test]
async fn an_equal_mark_of_kopf_is_no_proof_that_its_handlers_succeeded() -> Result<()> {
    an_equal_mark_is_no_proof("noproof", KopfVersion::Current).await
}

/// An older Kopf posts its log as Events.
#[tokio::test]
async fn a_failed_handler_of_an_older_kopf_is_told_by_its_events_though_a_child_has_changed() -> Result<()> {
    let (tenant, running) = tenant_of("logged", KopfVersion::Before144, false, "10m").await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;
    // Something was done before the handler failed.
    tenant.change("Deployment/web", json!({ "spec": { "minReadySeconds": 1 } })).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 3 } })).await?;
    tenant.change("Deployment/web", json!({ "spec": { "minReadySeconds": 2 } })).await?;
    let failed =
        || because("Ready", "OperatorFailed").and(says("Ready", "False")).and(says("Stalled", "True"));
    let named = |generation: u32| {
        mentions("Ready", &format!("failed to handle generation {generation}"))
            .and(mentions("Ready", "handler set_up failed: an odd size is <never> to be had"))
    };
    tenant.until("Database/db", failed().and(named(2)).and(current("Ready"))).await?;
    // Nobody mends it by a word of its own.
    tenant.change("Database/db", json!({ "spec": { "size": 5 } })).await?;
    tenant.change("Deployment/web", json!({ "spec": { "minReadySeconds": 3 } })).await?;
    tenant.until("Database/db", failed().and(named(3)).and(current("Ready"))).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 4 } })).await?;
    tenant.change("Deployment/web", json!({ "spec": { "minReadySeconds": 4 } })).await?;
    let db = tenant.until("Database/db", ready_and_handled()).await?;
    ensure!(condition(&db, "Stalled").is_none(), "{}", db["status"]);
    let (recording, parent) = (recorder.stop().await?, tenant.address("Database/db")?);
    eprintln!("{}", recording.transcript(&parent, "Ready"));
    running.operator.never_stumbled()
}

#[tokio::test]
async fn the_first_handler_of_an_older_kopf_that_fails_is_told_by_its_events_though_rollcall_was_down()
-> Result<()> {
    let (tenant, mut running) = tenant_of("loggedfirst", KopfVersion::Before144, false, "10m").await?;
    running.rollcall.kill()?;
    let mut odd = tenant.custom("Database", "odd");
    odd["spec"] = json!({ "size": 1 });
    let odd = tenant.create(odd).await?;
    tenant.create(owned_by(&odd, deployment("part", 1))).await?;
    tenant.until("Database/odd", StateExpectation::new("handled by Kopf", handled)).await?;
    running.operator.until_logged("is processed: ", 2).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    running.rollcall.again().await?;
    let failed = because("Ready", "OperatorFailed").and(mentions("Ready", "failed to handle generation 1"));
    tenant.until("Database/odd", failed.and(says("Ready", "False"))).await?;
    let recording = recorder.stop().await?;
    let said = recording.said(&tenant.address("Database/odd")?, "Ready");
    ensure!(said.iter().all(|said| said.entry["status"] != "True"), "a generation that failed was ready");
    running.operator.never_stumbled()
}

#[tokio::test]
async fn a_policy_that_says_nothing_of_evidence_takes_an_equal_mark_and_tells_that_a_failure_leaves_it_too()
-> Result<()> {
    let (tenant, running) = tenant_with("marks", KopfVersion::Current, false, json!({})).await?;
    let hidden = || mentions("Ready", "whether its Kopf operator succeeded cannot be seen");
    tenant.until("Database/db", hidden()).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 3 } })).await?;
    let db = tenant.until("Database/db", ready_and_handled().and(hidden())).await?;
    ensure!(db["metadata"]["generation"] == 2, "{db}");
    running.operator.never_stumbled()
}

#[tokio::test]
async fn a_policy_that_asks_for_a_proof_believes_no_mark_though_a_child_has_changed() -> Result<()> {
    let proof =
        json!({ "proof": "children.size() == 1 && children.all(c, c.spec.replicas == parent.spec.size)" });
    let (tenant, running) = tenant_with("proven", KopfVersion::Current, false, proof).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;
    // It fails, after something else has touched a child.
    tenant.change("Database/db", json!({ "spec": { "size": 3 } })).await?;
    tenant.change("Deployment/web", json!({ "spec": { "minReadySeconds": 1 } })).await?;
    tenant.until("Database/db", StateExpectation::new("handled by Kopf", handled)).await?;
    let waits =
        because("Ready", "ChildrenPending").and(mentions("Ready", "the policy's proof does not hold yet"));
    tenant.until("Database/db", waits.and(current("Ready"))).await?;
    tenant.change("Deployment/web", json!({ "spec": { "replicas": 3 } })).await?;
    tenant.until("Database/db", ready_and_handled()).await?;
    let recording = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    eprintln!("{}", recording.transcript(&parent, "Ready"));
    recording.no_false_ready(&parent, "Ready", &[("Deployment", 1)])?;
    running.operator.never_stumbled()
}

#[tokio::test]
async fn a_handler_that_failed_beside_one_that_is_still_tried_is_told_without_giving_up() -> Result<()> {
    let (tenant, running) = tenant_of("beside", KopfVersion::Current, false, "10m").await?;
    tenant.change("Database/db", json!({ "spec": { "size": 3, "held": "yes" } })).await?;
    let failed =
        because("Ready", "OperatorFailed").and(mentions("Ready", "an odd size is <never> to be had"));
    let db =
        tenant.until("Database/db", failed.and(says("Reconciling", "True")).and(current("Ready"))).await?;
    ensure!(condition(&db, "Stalled").is_none(), "{}", db["status"]);
    // Once the other is through, Kopf takes all traces away: what was seen stands.
    tenant.change("Database/db", json!({ "spec": { "held": "no" } })).await?;
    running.operator.until_logged("is processed: ", 1).await?;
    tenant.until("Database/db", StateExpectation::new("handled by Kopf", handled)).await?;
    Ok(())
}

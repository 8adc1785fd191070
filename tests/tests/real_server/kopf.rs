//! The shipped example, run by real Kopf: it creates and adopts children and says nothing of readiness.

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, current, gone, mentions, says};
use acceptance::kopf::{KopfExample, KopfOperator, KopfVersion, TenantKopf as _};
use acceptance::objects::{condition, config_map, deployment, owned_by, uid};
use acceptance::peers;
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::{ConditionWrite, RecordedState, StateRecorder, StateRecording};
use acceptance::rollcall::TenantRollcall as _;
use acceptance::rollcall_command::rollcall;
use acceptance::tenant::TestTenant;
use anyhow::{Result, ensure};
use serde_json::{Value, json};

const KINDS: [&str; 5] = ["Shop", "Store", "Deployment", "StatefulSet", "Job"];
const CHILDREN: [(&str, usize); 3] = [("Deployment", 1), ("Job", 1), ("Store", 1)];

/// A Shop whose pods do not run before they are told to: Kopf copies its labels, down to the pods.
fn shop(tenant: &TestTenant, name: &str, replicas: u32) -> Value {
    let mut shop = tenant.custom("Shop", name);
    shop["metadata"]["labels"] = json!({ "play": "hold" });
    shop["spec"] = json!({ "replicas": replicas });
    shop
}

fn shop_operator(tenant: &TestTenant, example: &KopfExample) -> Result<KopfOperator> {
    let env = [("SHOP_RETRY_SECONDS", "1")];
    tenant.operator("operator", KopfVersion::Current, &example.script, &example.kubeconfig, &env)
}

async fn let_all_run(tenant: &TestTenant, shop: &str) -> Result<()> {
    for app in ["web", "store", "setup"] {
        tenant.play(&format!("{shop}-{app}"), None).await?;
    }
    Ok(())
}

fn well() -> StateExpectation {
    says("Ready", "True").and(because("Ready", "AllChildrenReady")).and(current("Ready"))
}

/// Whether Kopf's own mark says that the spec which an object has was handled.
pub(crate) fn handled(state: &Value) -> bool {
    let mark = &state["metadata"]["annotations"]["kopf.zalando.org/last-handled-configuration"];
    let handled: Value = mark.as_str().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    handled["spec"] == state["spec"]
}

/// Whenever a Shop turns True, its spec and that of its Store were handled; how often it turned.
fn true_only_when_handled(recording: &StateRecording) -> Result<usize> {
    let (mut store, mut was_true, mut turns) = (Value::Null, false, 0);
    for state in recording.entries().iter().filter_map(|entry| entry.state.as_ref()) {
        if state["kind"] == "Store" {
            store = state.clone();
        }
        if state["kind"] != "Shop" {
            continue;
        }
        let ready = condition(state, "Ready").cloned().unwrap_or_default();
        let of_now = ready["observedGeneration"] == state["metadata"]["generation"];
        let is_true = ready["status"] == "True" && of_now;
        if is_true && !was_true {
            ensure!(handled(state), "True for a spec that was not handled: {state:#}");
            ensure!(handled(&store), "True though the Store was not handled: {store:#}");
            ensure!(
                store["spec"]["replicas"] == state["spec"]["replicas"],
                "True with an old Store: {store:#}"
            );
            turns += 1;
        }
        was_true = is_true;
    }
    Ok(turns)
}

/// Argo CD's own code over every step of the Shops: Healthy never before all is handled and ready, and in the end.
fn argocd_is_never_early(recording: &StateRecording, example: &KopfExample) -> Result<()> {
    let there = |entry: &&RecordedState| entry.state.as_ref().is_some_and(|state| state["kind"] == "Shop");
    let steps: Vec<&RecordedState> = recording.entries().iter().filter(there).collect();
    let states: Vec<Value> = steps.iter().filter_map(|entry| entry.state.clone()).collect();
    let healths = peers::argocd(Some(&example.argocd), &states)?;
    ensure!(healths.len() == states.len() && states.len() > 10, "{} steps", states.len());
    let mut words: Vec<String> = Vec::new();
    for ((entry, state), (health, message)) in steps.iter().zip(&states).zip(healths) {
        let health = health.unwrap_or_else(|| "None".to_owned());
        if health == "Healthy" {
            let fault = recording.unready_at(entry.version, &entry.uid, &CHILDREN)?;
            ensure!(fault.is_none() && handled(state), "Healthy at {}: {fault:?} {state:#}", entry.version);
        }
        ensure!(health != "None" && health != "Unknown", "{health} at {}: {message}", entry.version);
        words.push(health);
    }
    words.dedup();
    eprintln!("Argo CD over {} steps: {words:?}", states.len());
    ensure!(words.contains(&"Healthy".to_owned()) && words[0] == "Progressing", "{words:?}");
    Ok(())
}

#[tokio::test]
async fn a_parent_of_kopf_is_never_ready_early_and_its_operator_never_notices() -> Result<()> {
    let tenant = TestTenant::start("kopf").await?;
    let example = tenant.kopf_example().await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &KINDS).await?;
    let first = tenant.create(shop(&tenant, "books", 2)).await?;
    assert_eq!(first["status"]["conditions"][0]["status"], "Unknown", "the schema's default: {first:#}");
    let mut operator = shop_operator(&tenant, &example)?;
    for (app, pods) in [("web", 2), ("store", 2), ("setup", 1)] {
        tenant.until_pods(&format!("books-{app}"), pods).await?;
    }
    let three = says("Ready", "False").and(mentions("Ready", "3 of 3 not ready"));
    tenant.until("Shop/books", three).await?;
    let_all_run(&tenant, "books").await?;
    tenant.until("Shop/books", well()).await?;

    // A new spec: the new pods wait to be told to run.
    tenant.change("Shop/books", json!({ "spec": { "replicas": 3 } })).await?;
    tenant.until_pods("books-web", 3).await?;
    tenant.until_pods("books-store", 3).await?;
    tenant.until("Shop/books", says("Ready", "False").and(current("Ready"))).await?;
    let_all_run(&tenant, "books").await?;
    tenant.until("Shop/books", well()).await?;

    // Deleted and created again under the same name.
    tenant.delete("Shop/books").await?;
    tenant.until("Shop/books", gone()).await?;
    for place in ["Deployment/books-web", "Store/books-store", "StatefulSet/books-store", "Job/books-setup"] {
        tenant.until(place, gone()).await?;
    }
    let second = tenant.create(shop(&tenant, "books", 1)).await?;
    assert_ne!(uid(&first), uid(&second));
    tenant.until("Shop/books", says("Ready", "False").and(mentions("Ready", "3 of 3 not ready"))).await?;
    let_all_run(&tenant, "books").await?;
    tenant.until("Shop/books", well()).await?;

    let recording = recorder.stop().await?;
    let (parent, store) = (tenant.address("Shop/books")?, tenant.address("Store/books-store")?);
    eprintln!("{}", recording.transcript(&parent, "Ready"));
    recording.first_word_is_unknown(&parent, "Ready")?;
    recording.no_false_ready(&parent, "Ready", &CHILDREN)?;
    recording.no_false_ready(&store, "Ready", &[("StatefulSet", 1)])?;
    assert!(true_only_when_handled(&recording)? >= 3);
    argocd_is_never_early(&recording, &example)?;
    operator.never_stumbled()?;
    // Once for each Shop and each change of a spec, and not once for any word of ours.
    for (what, times) in
        [("create of Shop", 2), ("update of Shop", 1), ("create of Store", 2), ("update of Store", 1)]
    {
        assert_eq!(operator.logged(&format!("handling {what}")), times, "{what}");
    }
    operator.stop().await
}

#[tokio::test]
async fn with_its_operator_stopped_a_parent_stays_truthful() -> Result<()> {
    let tenant = TestTenant::start("stopped").await?;
    let example = tenant.kopf_example().await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &KINDS).await?;
    tenant.create(shop(&tenant, "books", 1)).await?;
    // Nobody handles it, and its policy says that whoever does leaves a mark.
    tenant.until("Shop/books", says("Ready", "Unknown").and(because("Ready", "ChildrenPending"))).await?;
    let mut operator = shop_operator(&tenant, &example)?;
    tenant.until("Shop/books", mentions("Ready", "3 of 3 not ready")).await?;
    let_all_run(&tenant, "books").await?;
    tenant.until("Shop/books", well()).await?;
    operator.stop().await?;

    tenant.play("books-store", Some("crash")).await?;
    let broken = mentions("Ready", "Store books-store").and(mentions("Ready", "StatefulSet books-store"));
    tenant.until("Shop/books", says("Ready", "False").and(broken)).await?;
    tenant.play("books-store", None).await?;
    tenant.until("Shop/books", well()).await?;

    // It stays away for longer than its policy takes for a pause.
    let policy = policy_address(&tenant, "shops")?;
    let pause = async |pending: &str| {
        let limits = json!({ "spec": { "limits": { "pending": pending } } });
        tenant.admin.merge(&policy, "", &limits).await?;
        tenant.until_at(&policy, &says("Ready", "True").and(current("Ready"))).await
    };
    pause("1s").await?;
    tenant.until("Shop/books", well()).await?;
    tenant.change("Shop/books", json!({ "spec": { "replicas": 2 } })).await?;
    let unhandled = says("Ready", "Unknown").and(because("Ready", "ChildrenPending")).and(current("Ready"));
    tenant.until("Shop/books", unhandled).await?;
    let silent = says("Ready", "Unknown").and(because("Ready", "OperatorSilent")).and(current("Ready"));
    tenant.until("Shop/books", silent.and(mentions("Ready", "has not handled generation 2"))).await?;
    pause("10m").await?;
    operator.again()?;
    tenant.until_pods("books-web", 2).await?;
    tenant.until_pods("books-store", 2).await?;
    let_all_run(&tenant, "books").await?;
    tenant.until("Shop/books", well()).await?;

    // Its finalizer keeps it while nobody is there to take it off.
    operator.stop().await?;
    tenant.delete("Shop/books").await?;
    tenant.until("Shop/books", says("Ready", "False").and(because("Ready", "Terminating"))).await?;
    operator.again()?;
    tenant.until("Shop/books", gone()).await?;

    let recording = recorder.stop().await?;
    let parent = tenant.address("Shop/books")?;
    eprintln!("{}", recording.transcript(&parent, "Ready"));
    recording.first_word_is_unknown(&parent, "Ready")?;
    recording.no_false_ready(&parent, "Ready", &CHILDREN)?;
    assert!(true_only_when_handled(&recording)? >= 3);
    argocd_is_never_early(&recording, &example)?;
    operator.never_stumbled()
}

#[tokio::test]
async fn a_handler_that_is_tried_again_says_why_on_its_parent() -> Result<()> {
    let tenant = TestTenant::start("retrying").await?;
    let example = tenant.kopf_example().await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &KINDS).await?;
    let operator = shop_operator(&tenant, &example)?;
    let mut books = shop(&tenant, "books", 1);
    books["spec"]["settings"] = json!("hours");
    tenant.create(books).await?;
    let why = "handler open_shop is retrying: ConfigMap hours does not exist yet";
    let pending = says("Ready", "Unknown").and(because("Ready", "ChildrenPending"));
    tenant.until("Shop/books", pending.and(mentions("Ready", why))).await?;
    // Beyond the settle time of an operator that leaves no marks at all: this one is under way.
    operator.until_logged("handling create of Shop books", 7).await?;
    tenant.until("Shop/books", because("Ready", "ChildrenPending")).await?;
    let policy = acceptance::policies::policy_address(&tenant, "shops")?;
    tenant.admin.merge(&policy, "", &json!({ "spec": { "limits": { "pending": "1s" } } })).await?;
    tenant.until("Shop/books", because("Ready", "OperatorSilent").and(mentions("Ready", why))).await?;
    tenant.create(config_map("hours")).await?;
    let_all_run(&tenant, "books").await?;
    tenant.until("Shop/books", well()).await?;

    // Notes that are none, and one as long as the server takes it.
    let notes =
        json!({ "kopf.zalando.org/open_shop": "not json", "kopf.zalando.org/long": "x".repeat(200_000) });
    tenant.change("Shop/books", json!({ "metadata": { "annotations": notes } })).await?;
    tenant.play("books-web", Some("crash")).await?;
    tenant.until("Shop/books", says("Ready", "False").and(mentions("Ready", "Deployment books-web"))).await?;
    tenant.play("books-web", None).await?;
    tenant.until("Shop/books", well()).await?;

    let recording = recorder.stop().await?;
    let parent = tenant.address("Shop/books")?;
    eprintln!("{}", recording.transcript(&parent, "Ready"));
    recording.no_false_ready(&parent, "Ready", &CHILDREN)?;
    // Before the operator had begun, nobody could know that it would.
    let said = recording.said(&parent, "Ready");
    let begun =
        |said: &&ConditionWrite| said.entry["message"].as_str().is_some_and(|words| words.contains(why));
    let missing = |said: &&ConditionWrite| said.entry["reason"] == "ChildrenMissing";
    assert_eq!(said.iter().skip_while(|s| !begun(s)).filter(missing).count(), 0, "under way is not missing");
    Ok(())
}

/// An operator that keeps its notes where its environment says, and is held up until it is let go.
const HELD_UP: &str = r#"
import os, kopf

@kopf.on.startup()
def configure(settings, **_):
    if os.environ["NOTES"] == "status":
        settings.persistence.progress_storage = kopf.StatusProgressStorage(field="status.kopf.progress")
        settings.persistence.diffbase_storage = kopf.StatusDiffBaseStorage(
            field="status.kopf.last-handled-configuration")
    else:
        settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix="ops.example.com")
        settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix="ops.example.com")

@kopf.on.create("GROUP", "v1", "databases")
@kopf.on.update("GROUP", "v1", "databases")
def set_up(spec, **_):
    if spec["size"] % 2:
        raise kopf.TemporaryError("an odd size is not to be had today", delay=1)
"#;

async fn notes_are_read(word: &str, kopf: KopfVersion, notes: &str) -> Result<()> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database").shapeless()).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "2s" });
    tenant.policy("db", "Database", spec).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;
    let operator = tenant.script("held-up", kopf, HELD_UP, &[("NOTES", notes)])?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    let why = "handler set_up is retrying: an odd size is not to be had today";
    tenant.until("Database/db", because("Ready", "ChildrenPending").and(mentions("Ready", why))).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.until("Deployment/web", says("Available", "True")).await?;
    // Longer than the settle time of an operator that leaves no notes.
    operator.until_logged("an odd size", 8).await?;
    tenant.until("Database/db", because("Ready", "ChildrenPending")).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    tenant.until("Database/db", well()).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 3 } })).await?;
    let pending = because("Ready", "ChildrenPending").and(current("Ready"));
    tenant.until("Database/db", pending.and(mentions("Ready", why))).await?;
    tenant.change("Database/db", json!({ "spec": { "size": 4 } })).await?;
    tenant.until("Database/db", well()).await?;
    let recording = recorder.stop().await?;
    let trues = recording.said(&tenant.address("Database/db")?, "Ready");
    let odd = |said: &&ConditionWrite| said.entry["status"] == "True" && said.generation % 2 == 1;
    assert_eq!(trues.iter().filter(odd).count(), 0, "the odd generations were never handled");
    operator.never_stumbled()
}

#[tokio::test]
async fn notes_under_a_prefix_of_the_operators_own_are_read() -> Result<()> {
    notes_are_read("prefix", KopfVersion::Current, "annotations").await
}

#[tokio::test]
async fn notes_in_status_of_an_older_kopf_are_read() -> Result<()> {
    notes_are_read("instatus", KopfVersion::Before144, "status").await
}

#[tokio::test]
async fn the_example_asks_for_the_kopf_that_is_tested() -> Result<()> {
    let read = |file: &str| std::fs::read_to_string(acceptance::places::repository().join(file));
    let tested = read("tests/control-plane/kopf/kopf.txt")?;
    for line in read("deploy/examples/kopf/requirements.txt")?.lines() {
        assert!(tested.lines().any(|pinned| pinned == line), "{line} is not what is tested");
    }
    Ok(())
}

#[tokio::test]
async fn the_example_has_what_the_generators_print() -> Result<()> {
    let place = |file: &str| acceptance::places::repository().join("deploy/examples/kopf").join(file);
    let policies = place("policies.yaml");
    let printed = rollcall(&["health-lua", "-f", &policies.to_string_lossy()])?;
    assert_eq!(std::fs::read_to_string(place("argocd-cm.yaml"))?, printed);
    let defaults = rollcall(&["crd-defaults", "-f", &place("crds.yaml").to_string_lossy()])?;
    assert!(defaults.contains("patches: []"), "the CRDs have all defaults: {defaults}");
    Ok(())
}

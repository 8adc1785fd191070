//! Who reads a parent's status: the own code of Argo CD and Flux, kstatus, kubectl. None of them is ready before it is.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use acceptance::control_plane::{ClusterParts, ControlPlane};
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, current, says};
use acceptance::helm::HelmCommand;
use acceptance::kind::ObjectAddress;
use acceptance::objects::{condition, deployment, owned_by, playing};
use acceptance::policies::TenantPolicies as _;
use acceptance::recorder::{StateRecorder, StateRecording};
use acceptance::rollcall::TenantRollcall as _;
use acceptance::rollcall_command::rollcall;
use acceptance::tenant::TestTenant;
use acceptance::{peers, places};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// Argo CD's ConfigMap as `rollcall health-lua` prints it for these policies.
fn config_map(tenant: &TestTenant, policies: &[Value], options: &[&str]) -> Result<PathBuf> {
    let (policies, file) = (tenant.policies_file(policies)?, tenant.folder.join("argocd-cm.yaml"));
    let policies = policies.to_string_lossy();
    let args = [&["health-lua", "-f", &*policies], options].concat();
    fs::write(&file, rollcall(&args)?)?;
    Ok(file)
}

/// Flux's check of the parents of these policies, as `rollcall readers` prints it.
pub(super) fn flux_check(tenant: &TestTenant, policies: &[Value]) -> Result<Value> {
    let policies = tenant.policies_file(policies)?;
    let printed = rollcall(&["readers", "--for", "flux", "-f", &policies.to_string_lossy()])?;
    let printed: Value = serde_saphyr::from_str(&printed)?;
    Ok(printed["healthCheckExprs"][0].clone())
}

/// Fails if Argo CD, Flux or kstatus took the parent for ready in a recorded state that does not say so itself, for its own
/// generation.
pub(crate) fn no_reader_is_early(
    tenant: &TestTenant,
    policy: &Value,
    recording: &StateRecording,
    parent: &ObjectAddress,
) -> Result<()> {
    let is = |state: &&Value| state["kind"] == parent.kind.kind && state["metadata"]["name"] == parent.name;
    let states: Vec<Value> =
        recording.entries().iter().filter_map(|entry| entry.state.as_ref()).filter(is).cloned().collect();
    ensure!(states.len() >= 3, "only {} states were recorded", states.len());
    let rules = config_map(tenant, std::slice::from_ref(policy), &[])?;
    let (argocd, kstatus) = (peers::argocd(Some(&rules), &states)?, peers::kstatus(&states)?);
    let flux = peers::flux(&flux_check(tenant, std::slice::from_ref(policy))?, &states)?;
    for (((state, (health, said)), (status, why)), flux) in states.iter().zip(argocd).zip(kstatus).zip(flux) {
        let ready = condition(state, "Ready").cloned().unwrap_or_default();
        let true_now =
            ready["status"] == "True" && ready["observedGeneration"] == state["metadata"]["generation"];
        let stalled = condition(state, "Stalled").is_some();
        let health = health.unwrap_or_default();
        ensure!((health == "Healthy") == true_now, "Argo CD: {health} ({said}) of {}", state["status"]);
        ensure!((health == "Degraded") == stalled, "Argo CD: {health} ({said}) of {}", state["status"]);
        let flux = flux.unwrap_or_default();
        ensure!((flux == "Current") == true_now, "Flux: {flux} of {}", state["status"]);
        ensure!((flux == "Failed") == stalled, "Flux: {flux} of {}", state["status"]);
        ensure!((status == "Current") == true_now, "kstatus: {status} ({why}) of {}", state["status"]);
        ensure!((status == "Failed") == stalled, "kstatus: {status} ({why}) of {}", state["status"]);
    }
    Ok(())
}

const REASONS: [(&str, &str); 20] = [
    ("AllChildrenReady", "True"),
    ("ChildrenPending", "Unknown"),
    ("ChildrenSettling", "False"),
    ("ChildrenProgressing", "False"),
    ("ChildrenTerminating", "False"),
    ("ChildrenFailed", "False"),
    ("ChildrenStuck", "False"),
    ("ChildrenMissing", "False"),
    ("TooManyChildren", "False"),
    ("ChildrenUnknown", "Unknown"),
    ("ChildrenSuspended", "False"),
    ("OperatorSilent", "Unknown"),
    ("OperatorFailed", "False"),
    ("KindNotVisible", "Unknown"),
    ("WatchStale", "Unknown"),
    ("RuleChanged", "Unknown"),
    ("PolicyRefused", "Unknown"),
    ("TemplateFailed", "Unknown"),
    ("Terminating", "False"),
    ("DeadlineExceeded", "False"),
];

/// An object that says this, and what Argo CD is to make of it.
pub(super) struct ReaderCase {
    pub(super) object: Value,
    health: &'static str,
}

/// Reasons that Argo CD is told are Degraded, where the condition is not Ready itself.
pub(super) const DEGRADED: [&str; 5] =
    ["ChildrenFailed", "ChildrenStuck", "DeadlineExceeded", "OperatorFailed", "OperatorSilent"];

/// Every state that a parent of generation 2 can be in: each reason, about the present generation, an older one or none,
/// with and without Stalled, being deleted or not; and statuses that nobody should write.
pub(super) fn states(group: &str, of: &str) -> Vec<ReaderCase> {
    let object = |status: Value, deleted: bool| {
        let mut object = json!({
            "apiVersion": format!("{group}/v1"), "kind": "Database",
            "metadata": { "name": "db", "namespace": "default", "generation": 2 },
            "status": status,
        });
        if deleted {
            object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
            // Without it Argo CD does not ask the script any more.
            object["metadata"]["finalizers"] = json!(["argocd.argoproj.io/hook-finalizer"]);
        }
        object
    };
    let mut all = Vec::new();
    for (reason, status) in REASONS {
        for (generation, stalled, deleted) in (0..3).flat_map(|generation| {
            [(generation, false, false), (generation, true, false), (generation, true, true)]
        }) {
            let mut entry = json!({ "type": of, "status": status, "reason": reason, "message": format!("it is {reason}") });
            if generation > 0 {
                entry["observedGeneration"] = json!(generation);
            }
            let mut beside = entry.clone();
            beside["type"] = json!("Stalled");
            beside["status"] = json!("True");
            let conditions = if stalled { json!([entry, beside]) } else { json!([entry]) };
            let by_reason = of != "Ready" && DEGRADED.contains(&reason);
            let health = match (generation, reason) {
                _ if deleted => "Progressing",
                (0 | 2, _) if stalled => "Degraded",
                (2, _) if by_reason => "Degraded",
                (2, "AllChildrenReady") => "Healthy",
                (2, "ChildrenSuspended") => "Suspended",
                _ => "Progressing",
            };
            all.push(ReaderCase { object: object(json!({ "conditions": conditions }), deleted), health });
        }
    }
    let odd = [
        Value::Null,
        json!({}),
        json!({ "conditions": null }),
        json!({ "conditions": [] }),
        json!({ "conditions": {} }),
        json!({ "conditions": "none" }),
        json!({ "conditions": [null, 1, "x", [], {}] }),
        json!({ "phase": "Ready" }),
        json!("Ready"),
        json!({ "conditions": [{ "type": of, "status": "True", "reason": "OperatorSays", "observedGeneration": 2 }] }),
        json!({ "conditions": [{ "type": of, "status": "True", "observedGeneration": 2 }] }),
        json!({ "conditions": [{ "type": of, "status": true, "reason": "AllChildrenReady", "observedGeneration": 2 }] }),
        json!({ "conditions": [{ "type": of, "status": "True", "reason": "AllChildrenReady", "observedGeneration": "2" }] }),
        json!({ "conditions": [{ "type": of, "status": "False", "reason": 7, "message": [], "observedGeneration": 2 }] }),
    ];
    all.extend(odd.map(|status| ReaderCase { object: object(status, false), health: "Progressing" }));
    all
}

/// Argo CD's own code and Rollcall's, over the same objects and the same script.
fn ask_both(tenant: &TestTenant, rules: &str, states: &[ReaderCase]) -> Result<()> {
    let objects: Vec<Value> = states.iter().map(|state| state.object.clone()).collect();
    let file = tenant.folder.join("objects.json");
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": objects });
    fs::write(&file, list.to_string())?;
    let file = file.to_string_lossy();
    let judged = Command::new(places::rollcall()?)
        .args(["eval", "-o", "json", "--profile", "argocd", "--rules", rules, "-f", &file])
        .output()?;
    let judged: Vec<Value> = serde_json::from_slice(&judged.stdout)
        .with_context(|| String::from_utf8_lossy(&judged.stderr).into_owned())?;
    ensure!(judged.len() == states.len(), "{} judged of {}", judged.len(), states.len());
    let asked = peers::argocd(Some(rules.as_ref()), &objects)?;
    for ((state, (health, message)), judged) in states.iter().zip(asked).zip(judged) {
        let object = &state.object;
        ensure!(health.as_deref() == Some(state.health), "Argo CD: {health:?} ({message}): {object}");
        ensure!(judged["profile"]["status"] == state.health, "rollcall eval: {judged}: {object}");
        ensure!(judged["profile"]["message"] == message, "other words: {message:?} and {judged}");
    }
    Ok(())
}

#[tokio::test]
async fn argo_cd_reads_every_state_of_a_parent() -> Result<()> {
    let tenant = TestTenant::start("states").await?;
    let policy = |spec| tenant.policy_manifest("db", "Database", spec);
    let states_of_ready = states(&tenant.group, "Ready");
    let plain = policy(json!({}));
    let rules = config_map(&tenant, std::slice::from_ref(&plain), &[])?;
    ask_both(&tenant, &rules.to_string_lossy(), &states_of_ready)?;

    let (file, folder) = (tenant.policies_file(&[plain])?, tenant.folder.join("customizations"));
    let (file, folder) = (file.to_string_lossy(), folder.to_string_lossy());
    rollcall(&["health-lua", "-f", &file, "--format", "directory", "--to", &folder])?;
    ask_both(&tenant, &folder, &states_of_ready)?;

    let named = policy(json!({ "condition": { "type": "example.com/All_Well.v1" } }));
    let rules = config_map(&tenant, &[named], &[])?;
    ask_both(&tenant, &rules.to_string_lossy(), &states(&tenant.group, "example.com/All_Well.v1"))
}

/// Whatever the definition does not know would be dropped without a word, or refused where that is asked for.
#[tokio::test]
async fn the_argo_cd_operator_takes_what_is_printed_for_it() -> Result<()> {
    let plane = Arc::new(ControlPlane::start(ClusterParts::Storage).await?);
    let tenant = TestTenant::start_on(plane, "operator").await?;
    let definition = places::program("argocds.yaml")?;
    tenant.plane.kubectl(&["create", "-f", &definition.to_string_lossy()])?;
    let crd = "CustomResourceDefinition/argocds.argoproj.io";
    tenant.until(crd, says("Established", "True")).await?;
    let two = ["Database", "Cache"].map(|kind| tenant.policy_manifest(&kind.to_lowercase(), kind, json!({})));
    let policies = tenant.policies_file(&two)?;
    let args = ["health-lua", "-f", &policies.to_string_lossy(), "--format", "operator", "-n", &tenant.name];
    let file = tenant.folder.join("argocd.yaml");
    fs::write(&file, rollcall(&args)?)?;
    tenant.plane.kubectl(&["create", "--validate=strict", "-f", &file.to_string_lossy()])?;
    let kept =
        tenant.plane.kubectl(&["get", "argocds.argoproj.io/argocd", "-n", &tenant.name, "-o", "json"])?;
    let kept: Value = serde_json::from_str(&kept)?;
    // What the operator makes of it is the key that Argo CD reads: `resource.customizations.health.` + group + `_` + kind.
    let checks = kept["spec"]["resourceHealthChecks"].as_array().context("no checks")?;
    let data: serde_json::Map<String, Value> = checks
        .iter()
        .map(|check| {
            let word = |key: &str| check[key].as_str().unwrap_or_default();
            let key = format!("resource.customizations.health.{}_{}", word("group"), word("kind"));
            (key, check["check"].clone())
        })
        .collect();
    let printed = fs::read_to_string(config_map(&tenant, &two, &[])?)?;
    let printed: Value = serde_saphyr::from_str(&printed)?;
    assert_eq!(Value::Object(data), printed["data"], "the operator and the ConfigMap say the same");
    Ok(())
}

#[tokio::test]
async fn argo_cd_looks_where_rollcall_falls_back_to_and_at_every_policy() -> Result<()> {
    let tenant = TestTenant::start("several").await?;
    let entry = |kind: &str, status: &str, reason: &str| json!({ "type": kind, "status": status, "reason": reason, "message": reason, "observedGeneration": 1 });
    let object = |conditions: &[Value]| {
        json!({
            "apiVersion": format!("{}/v1", tenant.group), "kind": "Database",
            "metadata": { "name": "db", "generation": 1 }, "status": { "conditions": conditions },
        })
    };
    let health = |policies: &[Value], options: &[&str], conditions: &[Value]| -> Result<String> {
        let rules = config_map(&tenant, policies, options)?;
        let (health, _) = peers::argocd(Some(&rules), &[object(conditions)])?.remove(0);
        health.context("no health")
    };
    let foreign = entry("Ready", "True", "OperatorSays");
    let (well, failed) = (
        entry("ChildrenReady", "True", "AllChildrenReady"),
        entry("ChildrenReady", "False", "ChildrenFailed"),
    );
    let falls_back = json!({ "condition": { "fallback": "ChildrenReady" } });
    let falls_back = [tenant.policy_manifest("db", "Database", falls_back)];
    assert_eq!(health(&falls_back, &[], std::slice::from_ref(&foreign))?, "Progressing");
    assert_eq!(health(&falls_back, &[], &[foreign.clone(), well.clone()])?, "Healthy");
    assert_eq!(health(&falls_back, &[], &[foreign, failed.clone()])?, "Degraded");
    let ours = entry("Ready", "True", "AllChildrenReady");
    assert_eq!(health(&falls_back, &[], std::slice::from_ref(&ours))?, "Healthy");

    let second = json!({ "condition": { "type": "ChildrenReady" } });
    let both = [
        tenant.policy_manifest("db", "Database", json!({})),
        tenant.policy_manifest("second", "Database", second),
    ];
    assert_eq!(health(&both, &[], std::slice::from_ref(&ours))?, "Progressing", "the other has not spoken");
    assert_eq!(health(&both, &[], &[ours.clone(), well])?, "Healthy");
    assert_eq!(health(&both, &[], &[ours, failed])?, "Degraded");

    let crash = entry("Ready", "False", "ChildrenFailed");
    let plain = [tenant.policy_manifest("db", "Database", json!({}))];
    assert_eq!(health(&plain, &[], std::slice::from_ref(&crash))?, "Progressing", "it may yet recover");
    assert_eq!(health(&plain, &["--degraded-on-failed"], &[crash])?, "Degraded");
    Ok(())
}

#[tokio::test]
async fn kubectl_waits_for_it_and_shows_it() -> Result<()> {
    let tenant = TestTenant::start("kubectl").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "1s" });
    let policy = tenant.policy("db", "Database", spec).await?;
    let running = tenant.rollcall(&[]).await?;
    let recorder = StateRecorder::start(&tenant, &["Database", "Deployment"]).await?;
    let resource = format!("databases.{}/db", tenant.group);
    let wait = || -> Result<HelmCommand> {
        let mut command = tenant.plane.kubectl_command()?;
        command.args(["wait", "--for=condition=Ready", &resource, "-n", &tenant.name, "--timeout=100s"]);
        HelmCommand::on(command)
    };
    let columns = || tenant.plane.kubectl(&["get", &resource, "-n", &tenant.name]);

    let db = tenant.create(tenant.custom("Database", "db")).await?;
    let mut waiting = wait()?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    tenant.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
    waiting.still_waits("a child is not ready")?;
    let shown = columns()?;
    assert!(
        shown.contains("READY") && shown.contains("ChildrenProgressing") && shown.contains("web"),
        "{shown}"
    );
    tenant.play("web", None).await?;
    waiting.succeeds().await?;
    assert!(columns()?.contains("AllChildrenReady"));
    // What this CRD lacks can be seen.
    running.until_metric("rollcall_parents_without_default", &[], |count| count > 0.5).await?;

    // The old True is still there when the second one begins: it is about an older generation.
    tenant.change("Database/db", json!({ "spec": { "size": 2 } })).await?;
    let waiting = wait()?;
    waiting.succeeds().await?;
    let after = tenant.until("Database/db", says("Ready", "True").and(current("Ready"))).await?;
    assert_eq!(after["metadata"]["generation"], 2);
    let statuses = recorder.stop().await?;
    let parent = tenant.address("Database/db")?;
    statuses.no_false_ready(&parent, "Ready", &[("Deployment", 1)])?;
    let states: Vec<Value> = statuses.entries().iter().filter_map(|entry| entry.state.clone()).collect();
    let first = states.iter().find(|state| state["kind"] == "Database").context("no Database")?;
    // What `crd-defaults` is for.
    assert_eq!(peers::kstatus(std::slice::from_ref(first))?[0].0, "Current");
    let argocd = peers::argocd(Some(&config_map(&tenant, &[policy], &[])?), std::slice::from_ref(first))?;
    assert_eq!(argocd[0].0.as_deref(), Some("Progressing"));
    Ok(())
}

#[tokio::test]
async fn kubectl_finds_it_as_a_plugin() -> Result<()> {
    let tenant = TestTenant::start("plugin").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("web", 1)))).await?;
    let plugins = tenant.folder.join("plugins");
    fs::create_dir_all(&plugins)?;
    std::os::unix::fs::symlink(places::rollcall()?, plugins.join("kubectl-rollcall"))?;
    let complete = plugins.join("kubectl_complete-rollcall");
    fs::write(&complete, "#!/bin/sh\nexec kubectl-rollcall __complete \"$@\"\n")?;
    fs::set_permissions(&complete, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let kubectl = |args: &[&str]| -> Result<(Option<i32>, String)> {
        let path = format!("{}:{}", plugins.display(), std::env::var("PATH")?);
        let mut command = Command::new(places::program("kubectl")?);
        command.args(args).env("PATH", path).env("KUBECONFIG", tenant.plane.kubeconfig());
        let output = command.output()?;
        let text = [output.stdout, output.stderr].concat();
        Ok((output.status.code(), String::from_utf8_lossy(&text).into_owned()))
    };
    let object = format!("database.{}/db", tenant.group);
    let (code, tree) = kubectl(&["rollcall", "tree", &object, "-n", &tenant.name])?;
    ensure!(code == Some(1) && tree.contains("Deployment") && tree.contains("web"), "{code:?}: {tree}");
    let (_, help) = kubectl(&["rollcall", "tree", "--help"])?;
    assert!(help.contains("Usage: kubectl rollcall tree"), "{help}");
    let (_, completed) = kubectl(&["__complete", "rollcall", "tre"])?;
    assert!(completed.lines().any(|line| line.starts_with("tree\t")), "{completed}");
    Ok(())
}

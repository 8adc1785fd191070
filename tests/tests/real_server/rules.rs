//! Rules that policies bring: CEL, Lua, a peer's, and the scripts of a live ConfigMap.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use acceptance::crd::CrdBuilder;
use acceptance::expectation::{because, mentions, says};
use acceptance::kind::ObjectAddress;
use acceptance::objects::owned_by;
use acceptance::places;
use acceptance::policies::{TenantPolicies as _, policy_address};
use acceptance::recorder::StateRecorder;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};

/// `Database` over `Shard`s that are judged by `ready`; one of each exists once Rollcall runs.
async fn judged_by(word: &str, ready: &Value) -> Result<(TestTenant, RollcallProcess)> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Shard").shapeless()).await?;
    let mut child = tenant.child("Shard");
    child["ready"] = ready.clone();
    tenant.policy("db", "Database", json!({ "children": [child], "settle": "100ms" })).await?;
    let rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, tenant.custom("Shard", "one"))).await?;
    Ok((tenant, rollcall))
}

pub(crate) async fn phase(tenant: &TestTenant, phase: &str) -> Result<()> {
    tenant.change_status("Shard/one", json!({ "phase": phase })).await?;
    Ok(())
}

#[tokio::test]
async fn expressions_decide_and_one_that_cannot_be_evaluated_is_unknown() -> Result<()> {
    let cel = json!({ "current": "status.phase == 'Up'", "failed": "status.phase == 'Broken'" });
    let (tenant, rollcall) = judged_by("cel", &json!({ "cel": cel })).await?;
    // There is no status yet: to Flux, and so here, that is an error and not "in progress".
    tenant.until("Database/db", says("Ready", "Unknown").and(mentions("Ready", "Shard one unknown"))).await?;
    phase(&tenant, "Starting").await?;
    tenant.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
    phase(&tenant, "Up").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    phase(&tenant, "Broken").await?;
    tenant.until("Database/db", because("Ready", "ChildrenFailed")).await?;
    // How often it was asked, and that it took its time, can be seen.
    rollcall.until_metric("rollcall_rule_evaluations_total", &[], |times| times >= 4.0).await?;
    rollcall.until_metric("rollcall_rule_seconds_total", &[], |took| took > 0.0).await?;
    Ok(())
}

#[tokio::test]
async fn a_script_decides_in_its_own_words() -> Result<()> {
    let script = "hs = {}\nif obj.status ~= nil and obj.status.phase == 'Up' then\n  hs.status = 'Healthy'\n\
                  else\n  hs.status = 'Degraded'\n  hs.message = 'no quorum'\nend\nreturn hs";
    let (tenant, _rollcall) = judged_by("lua", &json!({ "lua": script })).await?;
    tenant
        .until("Database/db", because("Ready", "ChildrenFailed").and(mentions("Ready", "no quorum")))
        .await?;
    phase(&tenant, "Up").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_peer_decides_as_it_does_at_home() -> Result<()> {
    // Nothing in its status: kstatus calls that Current, the native rules would not.
    let (tenant, _rollcall) = judged_by("peer", &json!({ "profile": "kstatus" })).await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let stalled = json!([{ "type": "Stalled", "status": "True", "reason": "Quota", "message": "no room" }]);
    tenant.change_status("Shard/one", json!({ "conditions": stalled })).await?;
    tenant.until("Database/db", because("Ready", "ChildrenFailed")).await?;
    Ok(())
}

#[tokio::test]
async fn scripts_of_a_config_map_are_followed_as_it_changes() -> Result<()> {
    let tenant = TestTenant::start("library").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Shard").shapeless()).await?;
    let key = format!("resource.customizations.health.{}_Shard", tenant.group);
    let script = |healthy: &str| {
        format!(
            "if obj.status.phase == '{healthy}' then return {{ status = 'Healthy' }} end\nreturn {{ status = 'Progressing' }}"
        )
    };
    let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "argocd-cm" }, "data": { (&*key): script("Up") } });
    tenant.create(map).await?;
    let mut child = tenant.child("Shard");
    child["ready"] = json!({ "rules": format!("{}/argocd-cm", tenant.name) });
    tenant.policy("db", "Database", json!({ "children": [child], "settle": "100ms" })).await?;
    let _rollcall = tenant.rollcall(&[]).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, tenant.custom("Shard", "one"))).await?;
    phase(&tenant, "Up").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    tenant.change("ConfigMap/argocd-cm", json!({ "data": { (&*key): script("Serving") } })).await?;
    tenant.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
    phase(&tenant, "Serving").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}

/// A database that is ready, and one whose child is not, by the script of a ConfigMap.
struct ScriptedDatabases {
    tenant: TestTenant,
    rollcall: RollcallProcess,
    map: Value,
    policy: ObjectAddress,
}

impl ScriptedDatabases {
    const NAMES: [&str; 2] = ["Database/db", "Database/failing"];

    async fn start(name: &str) -> Result<ScriptedDatabases> {
        let tenant = TestTenant::start(name).await?;
        tenant.crd(&CrdBuilder::new("Database")).await?;
        tenant.crd(&CrdBuilder::new("Shard").shapeless()).await?;
        let key = format!("resource.customizations.health.{}_Shard", tenant.group);
        let script = "if obj.status ~= nil and obj.status.phase == 'Up' then return { status = 'Healthy' } end\nreturn { status = 'Progressing' }";
        let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "argocd-cm" }, "data": { (&*key): script } });
        tenant.create(map.clone()).await?;
        let mut child = tenant.child("Shard");
        child["ready"] = json!({ "rules": format!("{}/argocd-cm", tenant.name) });
        tenant.policy("db", "Database", json!({ "children": [child], "settle": "100ms" })).await?;
        let rollcall = tenant.rollcall(&[]).await?;
        let db = tenant.create(tenant.custom("Database", "db")).await?;
        tenant.create(owned_by(&db, tenant.custom("Shard", "one"))).await?;
        let plain = tenant.create(tenant.custom("Database", "failing")).await?;
        tenant.create(owned_by(&plain, tenant.custom("Shard", "two"))).await?;
        phase(&tenant, "Up").await?;
        tenant.until("Database/db", says("Ready", "True")).await?;
        tenant.until("Database/failing", because("Ready", "ChildrenProgressing")).await?;
        let policy = policy_address(&tenant, "db")?;
        tenant.until_at(&policy, &says("Accepted", "True")).await?;
        Ok(ScriptedDatabases { tenant, rollcall, map, policy })
    }

    /// The scripts go while it runs, which goes on judging by them.
    async fn delete_scripts(&self) -> Result<Value> {
        self.tenant.delete("ConfigMap/argocd-cm").await?;
        self.tenant.until_at(&self.policy, &because("Accepted", "RulesUnavailable")).await
    }

    async fn versions(&self) -> Result<Vec<Value>> {
        let mut versions = Vec::new();
        for name in Self::NAMES {
            versions.push(self.tenant.get(name).await?["metadata"]["resourceVersion"].clone());
        }
        Ok(versions)
    }
}

#[tokio::test]
async fn a_restart_without_the_config_map_of_scripts_goes_on_judging_by_those_that_were_in_force()
-> Result<()> {
    let mut world = ScriptedDatabases::start("library-kept").await?;
    world.delete_scripts().await?;
    let before = world.versions().await?;
    world.rollcall.kill()?;
    world.rollcall.again().await?;
    world.rollcall.until_metric("rollcall_policy_refused", &[], |refused| refused > 0.0).await?;
    let tenant = &world.tenant;
    tenant
        .until_at(&world.policy, &mentions("Accepted", "the rules that were last read stay in force"))
        .await?;
    assert_eq!(world.versions().await?, before, "nothing is written at rest");
    phase(tenant, "Down").await?;
    tenant.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
    phase(tenant, "Up").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;

    let before = world.versions().await?;
    tenant.create(world.map.clone()).await?;
    tenant.until_at(&world.policy, &says("Accepted", "True")).await?;
    assert_eq!(world.versions().await?, before, "the same scripts say the same");
    Ok(())
}

#[tokio::test]
async fn where_nobody_kept_the_scripts_either_a_restart_takes_no_answer_back_for_two_minutes() -> Result<()> {
    let mut world = ScriptedDatabases::start("library-gone").await?;
    let accepted = world.delete_scripts().await?;
    let before = world.versions().await?;
    let recorder = StateRecorder::start(&world.tenant, &["Database"]).await?;
    world.rollcall.kill()?;
    world.tenant.delete("ConfigMap/rollcall-inventory").await?;
    world.rollcall.again().await?;
    world.rollcall.until_metric("rollcall_policy_refused", &[], |refused| refused > 0.0).await?;
    let tenant = &world.tenant;
    let refused = tenant.until_at(&world.policy, &mentions("Accepted", "nothing is judged by it")).await?;
    assert_eq!(refused["status"]["acceptedGeneration"], accepted["status"]["acceptedGeneration"]);
    phase(tenant, "Down").await?;
    assert_eq!(world.versions().await?, before);
    tenant.until("Database/db", because("Ready", "PolicyRefused")).await?;
    let recording = recorder.stop().await?;
    assert_eq!(recording.statuses(&tenant.address("Database/db")?, "Ready"), ["True", "Unknown"]);
    assert_eq!(world.versions().await?[1], before[1]);

    tenant.create(world.map.clone()).await?;
    tenant.until_at(&world.policy, &says("Accepted", "True")).await?;
    tenant.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
    phase(tenant, "Up").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    Ok(())
}

#[tokio::test]
async fn a_changed_rule_judges_its_kind_anew_without_a_moment_of_false_ready() -> Result<()> {
    let rule = |phase: &str| json!({ "cel": { "current": format!("has(status.phase) && status.phase == '{phase}'") } });
    let (tenant, mut rollcall) = judged_by("changed-rule", &rule("Up")).await?;
    phase(&tenant, "Up").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let recorder = StateRecorder::start(&tenant, &["Database"]).await?;
    let policy = policy_address(&tenant, "db")?;
    let child = |ready: Value| {
        let mut child = tenant.child("Shard");
        child["ready"] = ready;
        json!({ "spec": { "children": [child] } })
    };
    tenant.admin.merge(&policy, "", &child(rule("Serving"))).await?;
    tenant.until("Database/db", because("Ready", "ChildrenProgressing")).await?;
    // By the new rule it is not ready; nothing may say so until it is.
    phase(&tenant, "Serving").await?;
    tenant.until("Database/db", says("Ready", "True")).await?;
    let recording = recorder.stop().await?;
    let statuses = recording.statuses(&tenant.address("Database/db")?, "Ready");
    assert_eq!(statuses.iter().filter(|status| *status == "True").count(), 2, "{statuses:?}");
    assert!(rollcall.runs()?, "without a restart");
    Ok(())
}

#[tokio::test]
async fn a_rule_that_does_not_compile_is_refused_with_its_place() -> Result<()> {
    let tenant = TestTenant::start("bad-rule").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let mut child = tenant.child("Deployment");
    child["ready"] = json!({ "cel": { "current": "status.phase ==\n  frobnicate(1)" } });
    tenant.policy("db", "Database", json!({ "children": [child] })).await?;
    tenant.apply_rights(&[])?;
    let _rollcall = tenant.rollcall_at(tenant.plane.url(), &[]).await?;
    let policy = policy_address(&tenant, "db")?;
    let place = mentions("Accepted", "spec.children[0].ready.cel.current")
        .and(mentions("Accepted", "line 2, column"));
    tenant
        .until_at(&policy, &says("Accepted", "False").and(place).and(mentions("Accepted", "frobnicate")))
        .await?;
    Ok(())
}

/// `rollcall eval` of a manifest by the scripts of a ConfigMap in the cluster: exit code, verdicts, errors.
fn eval(kubeconfig: &Path, rules: &str, manifest: &Value) -> Result<(Option<i32>, String, String)> {
    let mut eval = Command::new(places::rollcall()?);
    eval.arg("eval").arg("--kubeconfig").arg(kubeconfig);
    eval.args(["-f", "-", "-o", "json", "--profile", "argocd", "--rules", rules]);
    let mut eval = eval.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    eval.stdin.take().context("a pipe")?.write_all(manifest.to_string().as_bytes())?;
    let output = eval.wait_with_output()?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((output.status.code(), text(output.stdout), text(output.stderr)))
}

#[tokio::test]
async fn eval_judges_by_the_scripts_of_a_live_config_map() -> Result<()> {
    let tenant = TestTenant::start("eval-live").await?;
    // As Argo CD has it: its other settings beside, split keys, and the older block, in which wildcards stand.
    let block = "cache.example.com/Cache:\n  health.lua: |\n    return { status = 'Suspended', message = 'by the block' }\n\
                 '*.other.example.com/*':\n  health.lua: |\n    return { status = 'Healthy', message = 'by ' .. obj.kind }\n";
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": "argocd-cm", "labels": { "app.kubernetes.io/part-of": "argocd" } },
        "data": {
            "url": "https://argocd.example.com", "admin.enabled": "false", "resource.exclusions": "- kinds: [Event]\n",
            "resource.customizations": block,
            "resource.customizations.health.example.com_Shard": "return { status = 'Degraded', message = 'by ' .. obj.kind }",
            "resource.customizations.ignoreDifferences.example.com_Shard": "jsonPointers: [/status]\n",
        },
    });
    tenant.create(map).await?;
    let kubeconfig = tenant.plane.kubeconfig();
    let object = |group: &str, kind: &str| json!({ "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": { "name": "x" } });
    let rules = format!("{}/argocd-cm", tenant.name);
    for (group, kind, status, message) in [
        ("example.com", "Shard", "Degraded", "by Shard"),
        ("a.other.example.com", "Thing", "Healthy", "by Thing"),
        ("cache.example.com", "Cache", "Suspended", "by the block"),
    ] {
        let (_, said, errors) = eval(&kubeconfig, &rules, &object(group, kind))?;
        let said: Value = serde_json::from_str(&said).with_context(|| errors)?;
        assert_eq!(
            (&said[0]["profile"]["status"], &said[0]["profile"]["message"]),
            (&json!(status), &json!(message))
        );
    }
    let missing = format!("{}/nothing", tenant.name);
    let (code, said, errors) = eval(&kubeconfig, &missing, &object("example.com", "Shard"))?;
    assert_eq!((code, &*said), (Some(2), ""), "{errors}");
    assert!(errors.contains(&missing) && errors.contains("nor such a ConfigMap"), "{errors}");
    Ok(())
}

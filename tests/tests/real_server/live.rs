//! `tree` and `wait`, with a user's own rights and without a running service.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use acceptance::crd::CrdBuilder;
use acceptance::objects::{config_map, deployment, owned_by, playing};
use acceptance::policies::TenantPolicies as _;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use serde_json::{Value, json};

/// A parent with one workload that is ready and one that is not; a policy in a file alone.
async fn tenant_with_shop(word: &str) -> Result<TestTenant> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, deployment("web", 1))).await?;
    tenant.create(owned_by(&db, playing("hold", deployment("slow", 1)))).await?;
    tenant.until("Deployment/web", acceptance::expectation::says("Available", "True")).await?;
    Ok(tenant)
}

/// Runs the binary as the administrator in this tenant: exit code, standard output, standard error.
pub(crate) async fn run(tenant: &TestTenant, args: &[&str]) -> Result<(i32, String, String)> {
    let admin = tenant.plane.kubeconfig();
    let mut command = Command::new(acceptance::places::rollcall()?);
    command.args(args).args(["--kubeconfig", &admin.to_string_lossy(), "-n", &tenant.name]);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((output.status.code().context("killed")?, text(&output.stdout), text(&output.stderr)))
}

#[tokio::test]
async fn a_tree_needs_neither_a_service_nor_a_policy() -> Result<()> {
    let tenant = tenant_with_shop("tree").await?;
    let object = format!("database.{}/db", tenant.group);
    let (code, out, err) = run(&tenant, &["tree", &object]).await?;
    assert_eq!(code, 1, "{out}{err}");
    for part in ["Database", "Deployment", "slow", "web", "Progressing", "Ready"] {
        assert!(out.contains(part), "no {part} in:\n{out}");
    }
    let (_, out, _) = run(&tenant, &["tree", &object, "-o", "json"]).await?;
    let trees: Value = serde_json::from_str(&out)?;
    assert_eq!(trees[0]["children"].as_array().map(Vec::len), Some(2), "{out}");
    assert_eq!(trees[0]["children"][0]["name"], "slow", "the worst comes first");
    let turned = "conditions[Available].lastTransitionTime";
    assert_eq!(trees[0]["children"][1]["sinceFrom"], turned, "since when, and who says so: {out}");
    let (code, _, err) = run(&tenant, &["tree", "nonsense/db"]).await?;
    assert_eq!(code, 2);
    assert!(err.contains("nonsense") && err.contains("kubectl api-resources"), "{err}");
    Ok(())
}

#[tokio::test]
async fn wait_returns_when_all_of_it_is_ready_and_not_before() -> Result<()> {
    let tenant = tenant_with_shop("wait").await?;
    let object = format!("database.{}/db", tenant.group);
    let admin = tenant.plane.kubeconfig();
    let mut command = Command::new(acceptance::places::rollcall()?);
    command.args(["wait", &object, "--timeout", "10m", "-n", &tenant.name]);
    command.args(["--kubeconfig", &admin.to_string_lossy()]);
    let mut waiting = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut said = BufReader::new(waiting.stderr.take().context("no output")?).lines();
    let cause = tokio::task::spawn_blocking(move || {
        let cause =
            said.by_ref().map_while(std::result::Result::ok).find(|line| line.contains("Deployment slow"));
        (cause, said)
    });
    let (cause, said) = cause.await?;
    assert!(cause.is_some(), "the root cause is named");
    assert_eq!(waiting.try_wait()?, None, "it waits while one child is not ready");
    tenant.play("slow", None).await?;
    let ended = tokio::task::spawn_blocking(move || waiting.wait_with_output()).await??;
    let out = String::from_utf8_lossy(&ended.stdout);
    let err: Vec<String> = said.map_while(std::result::Result::ok).collect();
    assert_eq!(ended.status.code(), Some(0), "{out}{err:?}");
    assert!(out.contains("Database db: ready"), "{out}");
    Ok(())
}

#[tokio::test]
async fn what_may_not_be_read_is_named_and_the_rest_is_shown() -> Result<()> {
    let tenant = tenant_with_shop("partly").await?;
    // The rights of a service whose policy never named StatefulSets.
    let narrow = json!({ "children": [tenant.child("Deployment")] });
    let narrow = tenant.policy("narrow", "Database", narrow).await?;
    tenant.grant_for(&[narrow])?;
    let own = tenant.kubeconfig(tenant.plane.url()).await?;
    let wide = json!({ "children": [tenant.child("Deployment"), tenant.child("StatefulSet")] });
    let wide = tenant.policy("wide", "Database", wide).await?;
    let file = tenant.policies_file(&[wide])?;
    let mut command = Command::new(acceptance::places::rollcall()?);
    command.args(["tree", "-f", &file.to_string_lossy(), "-n", &tenant.name]);
    command.args(["--kubeconfig", &own.to_string_lossy()]);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(err.contains("StatefulSet.apps") && err.contains("may not list"), "{err}");
    assert!(out.contains("Deployment"), "{out}{err}");
    // What cannot be seen cannot be waited for.
    let mut command = Command::new(acceptance::places::rollcall()?);
    command.args(["wait", &format!("database.{}/db", tenant.group), "-f", &file.to_string_lossy()]);
    command.args(["-n", &tenant.name, "--kubeconfig", &own.to_string_lossy()]);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code() == Some(2) && out.contains("StatefulSet.apps"), "{out}");
    Ok(())
}

#[tokio::test]
async fn a_tree_that_is_watched_tells_what_changes_and_ends_with_the_last_state() -> Result<()> {
    let tenant = tenant_with_shop("watch").await?;
    let object = format!("database.{}/db", tenant.group);
    let admin = tenant.plane.kubeconfig();
    let mut command = Command::new(acceptance::places::rollcall()?);
    command.args(["tree", &object, "--watch", "--kubeconfig", &admin.to_string_lossy(), "-n", &tenant.name]);
    let mut watching = command.stdout(Stdio::piped()).spawn()?;
    let lines = BufReader::new(watching.stdout.take().context("no output")?).lines();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in lines.map_while(std::result::Result::ok) {
            _ = told.send(line);
        }
    });
    let mut until = async |parts: &[&str]| {
        let all = async {
            while let Some(line) = heard.recv().await {
                if parts.iter().all(|part| line.contains(part)) {
                    return Ok(line);
                }
            }
            anyhow::bail!("it ended before {parts:?}")
        };
        tokio::time::timeout(acceptance::TEST_TIMEOUT, all).await.with_context(|| format!("{parts:?}"))?
    };
    until(&["Deployment", "slow", "Progressing"]).await?;
    tenant.play("slow", None).await?;
    until(&["Database", "AllChildrenReady"]).await?;
    let interrupted = Command::new("kill").args(["-INT", &watching.id().to_string()]).status()?;
    assert!(interrupted.success());
    let ended = tokio::task::spawn_blocking(move || watching.wait()).await??;
    assert_eq!(ended.code(), Some(0), "all was ready at the end");
    Ok(())
}

#[tokio::test]
async fn a_message_that_would_steer_a_terminal_does_no_harm() -> Result<()> {
    let tenant = TestTenant::start("hostile").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    tenant.crd(&CrdBuilder::new("Part")).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    tenant.create(owned_by(&db, tenant.custom("Part", "part"))).await?;
    let message = "gone\u{1b}[2J\u{202e}evil";
    let entry = json!({ "type": "Ready", "status": "False", "reason": message, "message": message });
    tenant.change_status("Part/part", json!({ "conditions": [entry] })).await?;
    let policy = tenant.policy_manifest("db", "Database", json!({ "children": [tenant.child("Part")] }));
    let file = tenant.policies_file(&[policy])?.display().to_string();
    for command in ["tree", "explain"] {
        let object = format!("database.{}/db", tenant.group);
        let (_, out, _) = run(&tenant, &[command, &object, "-f", &file]).await?;
        // A reason is a token: it has no control characters and no marks of direction any more.
        assert!(out.contains("gone [2J evil"), "{out}");
        assert!(!out.contains(['\u{1b}', '\u{202e}']), "{out}");
    }
    Ok(())
}

#[tokio::test]
async fn a_tree_that_is_longer_than_any_pipe_ends_well_where_its_reader_has_seen_enough() -> Result<()> {
    let tenant = TestTenant::start("long").await?;
    tenant.crd(&CrdBuilder::new("Database")).await?;
    let db = tenant.create(tenant.custom("Database", "db")).await?;
    for at in 0..400 {
        tenant.create(owned_by(&db, config_map(&format!("{}-{at:03}", "long".repeat(60))))).await?;
    }
    let policy = tenant.policy_manifest("db", "Database", json!({ "children": [tenant.child("ConfigMap")] }));
    let file = tenant.policies_file(&[policy])?.display().to_string();
    let (_, all, _) = run(&tenant, &["tree", "-f", &file, "--limit", "1000"]).await?;
    assert!(all.len() > 2 * PIPE, "{} bytes fit into a pipe", all.len());
    let line = format!(
        "({} tree -f {file} --limit 1000 -n {} --kubeconfig {}; echo ended with $? >&2) | head -n 1",
        acceptance::places::rollcall()?.display(),
        tenant.name,
        tenant.plane.kubeconfig().display()
    );
    let output =
        tokio::task::spawn_blocking(move || Command::new("sh").args(["-c", &line]).output()).await??;
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.starts_with("OBJECT") && out.lines().count() == 1, "{out}");
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "ended with 0\n",
        "by what it has found, and without a word"
    );
    Ok(())
}

/// What Linux keeps for a reader who does not read.
const PIPE: usize = 64 * 1024;

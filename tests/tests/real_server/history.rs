//! History outside the object: in a folder, in a real S3-compatible server that is killed in the middle, and from Events.

use std::process::Command;
use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::azure::AzureEmulator;
use acceptance::caller::WatchedChange;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{StateExpectation, because, current, says};
use acceptance::kind::ManifestKind;
use acceptance::object_store::{BUCKET, ObjectStore, files};
use acceptance::objects::{condition, owned_by};
use acceptance::places;
use acceptance::policies::TenantPolicies as _;
use acceptance::rights::TenantRights as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use futures::stream::BoxStream;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

/// A parent with one child that says by its own condition how it stands.
async fn stage(word: &str) -> Result<TestTenant> {
    let tenant = TestTenant::start(word).await?;
    tenant.crd(&CrdBuilder::new("Site")).await?;
    tenant.crd(&CrdBuilder::new("Part")).await?;
    let debounce = json!({ "quiet": "2ms", "cap": "10ms" });
    let spec = json!({ "children": [tenant.child("Part")], "settle": "100ms", "debounce": debounce });
    tenant.policy("site", "Site", spec).await?;
    let parent = tenant.create(tenant.custom("Site", "one")).await?;
    tenant.create(owned_by(&parent, tenant.custom("Part", "one"))).await?;
    say(&tenant, "True").await?;
    Ok(tenant)
}

async fn say(tenant: &TestTenant, status: &str) -> Result<()> {
    let said = json!({ "conditions": [{ "type": "Ready", "status": status, "reason": "Told", "message": "told so" }] });
    tenant.change_status("Part/one", said).await?;
    Ok(())
}

/// The parent falls over and gets up again, so often; each time it says so.
async fn flip(tenant: &TestTenant, rounds: usize) -> Result<()> {
    for _ in 0..rounds {
        for status in ["False", "True"] {
            say(tenant, status).await?;
            tenant.until("Site/one", says("Ready", status)).await?;
        }
    }
    Ok(())
}

/// What the parent says, heard over one watch for as long as the server keeps it.
struct WatchedAnswers<'a> {
    tenant: &'a TestTenant,
    events: Option<BoxStream<'static, Result<WatchedChange>>>,
}

impl WatchedAnswers<'_> {
    async fn until(&mut self, expectation: &StateExpectation) -> Result<()> {
        let (one, query) = (self.tenant.address("Site/one")?, "fieldSelector=metadata.name=one");
        loop {
            let Some(events) = &mut self.events else {
                let (sites, version) = self.tenant.admin.list(&one.kind, &one.namespace, query).await?;
                let watch = self.tenant.admin.watch(&one.kind, &one.namespace, query, version).await?;
                self.events = Some(watch.boxed());
                if expectation.holds(sites.first()) {
                    return Ok(());
                }
                continue;
            };
            match timeout(TEST_TIMEOUT, events.next()).await.with_context(|| expectation.words.clone())? {
                Some(Ok(WatchedChange::There(site))) if expectation.holds(Some(&site)) => return Ok(()),
                Some(seen) => drop(seen?),
                None => self.events = None,
            }
        }
    }
}

/// As `flip`, as fast as it goes.
async fn hurry(tenant: &TestTenant, rounds: usize) -> Result<()> {
    let mut sight = WatchedAnswers { tenant, events: None };
    for _ in 0..rounds {
        for status in ["False", "True"] {
            say(tenant, status).await?;
            sight.until(&says("Ready", status)).await?;
        }
    }
    Ok(())
}

/// Exit code, standard output and standard error of `rollcall history` of the site `one`.
pub(crate) fn history(
    tenant: &TestTenant,
    options: &[&str],
    environment: &[(String, String)],
) -> Result<(Option<i32>, String, String)> {
    let output = Command::new(places::rollcall()?)
        .args(["history", &format!("sites.{}/one", tenant.group), "-n", &tenant.name])
        .args(options)
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ok((output.status.code(), text(&output.stdout), text(&output.stderr)))
}

/// All transitions that are kept at `url`.
fn kept(tenant: &TestTenant, url: &str, environment: &[(String, String)]) -> Result<Vec<Value>> {
    let (code, lines, said) = history(tenant, &["--from", url, "-o", "json"], environment)?;
    ensure!(code == Some(0) && said.is_empty(), "{code:?} {said}");
    Ok(serde_json::from_str(&lines)?)
}

/// Each begins where the one before ended: none is missing, none is there twice.
fn is_whole(lines: &[Value]) -> Result<()> {
    for pair in lines.windows(2) {
        let fits = pair[0]["to"]["reason"] == pair[1]["from"]["reason"];
        ensure!(fits, "a gap between {:#} and {:#}", pair[0], pair[1]);
    }
    ensure!(lines.first().is_none_or(|line| line["from"].is_null()), "the first one is missing");
    Ok(())
}

fn reasons(lines: &[Value], reason: &str) -> usize {
    lines.iter().filter(|line| line["to"]["reason"] == *reason).count()
}

/// A new generation, a second child that says nothing of itself, and the first fails: what the parent says then.
async fn fails_with_another(tenant: &TestTenant) -> Result<Value> {
    let site = tenant.change("Site/one", json!({ "spec": { "size": 2 } })).await?;
    tenant.until("Site/one", says("Ready", "True").and(current("Ready"))).await?;
    tenant.create(owned_by(&site, tenant.custom("Part", "two"))).await?;
    tenant.until("Site/one", because("Ready", "ChildrenUnknown")).await?;
    let entry = |kind: &str, status: &str| json!({ "type": kind, "status": status, "reason": "Broken", "message": "for good" });
    let broken = json!({ "conditions": [entry("Ready", "False"), entry("Stalled", "True")] });
    tenant.change_status("Part/one", broken).await?;
    tenant.until("Site/one", because("Ready", "ChildrenFailed")).await
}

/// The last of them is what `parent` says, of which generation it says so, and all that it says is to blame.
fn says_what_the_parent_said(lines: &[Value], parent: &Value) -> Result<()> {
    let (first, last) = (lines.first().context("nothing is kept")?, lines.last().context("nothing is kept")?);
    let ready = condition(parent, "Ready").context("no Ready")?;
    for (what, kept, told) in [
        ("reason", &last["to"]["reason"], &json!("ChildrenFailed")),
        ("status", &last["to"]["status"], &ready["status"]),
        ("message", &last["message"], &ready["message"]),
        ("generation", &last["generation"], &json!(2)),
        ("uid", &last["uid"], &parent["metadata"]["uid"]),
        ("first generation", &first["generation"], &json!(1)),
        ("first uid", &first["uid"], &parent["metadata"]["uid"]),
    ] {
        ensure!(kept == told && !kept.is_null(), "{what}: {kept} is kept, {told} was told in {last:#}");
    }
    let causes = last["causes"].as_array().map_or(&[][..], Vec::as_slice);
    let causes: Vec<_> = causes.iter().map(|cause| (&cause["kind"], &cause["name"])).collect();
    let (part, one, two) = (json!("Part"), json!("one"), json!("two"));
    ensure!(causes == [(&part, &one), (&part, &two)], "the worst first: {last:#}");
    Ok(())
}

async fn end(running: &mut RollcallProcess) -> Result<()> {
    let status = running.terminate().await?;
    ensure!(status.success(), "{status}: {}", running.output());
    Ok(())
}

#[tokio::test]
async fn transitions_are_kept_in_a_folder_and_read_back_and_what_was_gathered_is_put_away_at_the_end()
-> Result<()> {
    let tenant = stage("historyfolder").await?;
    let folder = tenant.folder.join("history");
    let url = format!("file://{}", folder.display());
    let mut running = tenant.rollcall(&[&format!("--history={url}"), "--history-flush=1h"]).await?;
    tenant.until("Site/one", says("Ready", "True")).await?;
    flip(&tenant, 3).await?;
    let failed = fails_with_another(&tenant).await?;
    end(&mut running).await?;
    let keys = files(&folder)?;
    assert!(keys.iter().all(|key| key.starts_with("date=") && key.ends_with(".ndjson.gz")), "{keys:?}");
    let lines = kept(&tenant, &url, &[])?;
    is_whole(&lines)?;
    assert!(keys.len() < lines.len(), "they are gathered first: {keys:?}");
    assert_eq!(reasons(&lines, "ChildrenProgressing"), 3, "{lines:#?}");
    says_what_the_parent_said(&lines, &failed)?;
    let cause = lines.iter().find(|line| line["to"]["reason"] == "ChildrenProgressing");
    let cause = cause.map(|line| line["causes"][0].clone()).unwrap_or_default();
    assert_eq!((&cause["kind"], &cause["name"]), (&json!("Part"), &json!("one")));
    let (code, table, _) = history(&tenant, &["--from", &url], &[])?;
    assert!(code == Some(0) && table.lines().count() == lines.len() + 1, "{table}");
    let (code, none, said) = history(&tenant, &["--from", &url, "--since", "1ms"], &[])?;
    assert!(code == Some(1) && none.is_empty() && said.contains("no transition"), "{none}{said}");
    let (code, _, said) = history(&tenant, &["--from", "nowhere://x"], &[])?;
    assert!(code == Some(2) && said.contains("nowhere://x"), "{said}");
    Ok(())
}

#[tokio::test]
async fn a_store_that_is_killed_in_the_middle_loses_no_transition_and_has_none_twice() -> Result<()> {
    let tenant = stage("historys3").await?;
    let mut store = ObjectStore::start(&tenant).await?;
    let environment = store.environment();
    let variables: Vec<_> = environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    tenant.grant().await?;
    let url = format!("s3://{BUCKET}/clusters/one");
    let options = [&*format!("--history={url}"), "--history-flush=300ms"];
    let mut running = tenant.rollcall_in(tenant.plane.url(), &options, &variables).await?;
    running.until_ready().await?;
    tenant.until("Site/one", says("Ready", "True")).await?;
    flip(&tenant, 5).await?;
    running.until_metric("rollcall_history_transitions_written_total", &[], |n| n >= 10.0).await?;
    store.kill()?;
    // The parent goes on saying what it is while nobody takes the history.
    flip(&tenant, 5).await?;
    running.until_metric("rollcall_history_batches_total", &["outcome=\"failed\""], |n| n >= 1.0).await?;
    running.until_metric("rollcall_history_waiting_transitions", &[], |n| n >= 1.0).await?;
    store.again().await?;
    flip(&tenant, 5).await?;
    running.until_metric("rollcall_history_waiting_transitions", &[], |n| n < 1.0).await?;
    let dropped = running.metric("rollcall_transitions_dropped_total", &["by=\"history\""]).await?;
    assert_eq!(dropped.to_string(), "0");
    // An outage is one line, and its end another, however often it was tried.
    for words in
        ["failed to write transitions to the history store", "history store accepts transitions again"]
    {
        assert_eq!(running.output().matches(words).count(), 1, "{words}");
    }
    assert!(!running.output().contains("object_store"), "its client says each attempt");
    flip(&tenant, 1).await?;
    end(&mut running).await?;
    let lines = kept(&tenant, &url, &environment)?;
    is_whole(&lines)?;
    assert_eq!(reasons(&lines, "ChildrenProgressing"), 16);
    let keys = store.keys()?;
    assert!(keys.len() >= 3 && keys.iter().all(|key| key.starts_with("clusters/one/date=")), "{keys:?}");
    println!("{} transitions in {} objects, none dropped", lines.len(), keys.len());
    Ok(())
}

/// In bytes, as the server hands it out.
async fn size(tenant: &TestTenant) -> Result<usize> {
    Ok(tenant.get("Site/one").await?.to_string().len())
}

#[tokio::test]
async fn a_parent_does_not_grow_by_its_transitions_and_all_of_them_are_read_back() -> Result<()> {
    let full = acceptance::recovery::is_full();
    let rounds = if full { 5_000 } else { 500 };
    let tenant = stage("historylong").await?;
    let mut store = ObjectStore::start(&tenant).await?;
    let environment = store.environment();
    let variables: Vec<_> = environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    tenant.grant().await?;
    let url = format!("s3://{BUCKET}/clusters/one");
    let options = [&*format!("--history={url}"), "--history-flush=1s", "--events=false"];
    let mut running = tenant.rollcall_in(tenant.plane.url(), &options, &variables).await?;
    running.until_ready().await?;
    tenant.until("Site/one", says("Ready", "True")).await?;
    flip(&tenant, 1).await?;
    let before = size(&tenant).await?;
    let start = Instant::now();
    hurry(&tenant, rounds / 2).await?;
    store.kill()?;
    hurry(&tenant, rounds / 10).await?;
    running.until_metric("rollcall_history_batches_total", &["outcome=\"failed\""], |n| n >= 1.0).await?;
    store.again().await?;
    hurry(&tenant, rounds - rounds / 2 - rounds / 10).await?;
    let took = start.elapsed();
    let after = size(&tenant).await?;
    let dropped = running.metric("rollcall_transitions_dropped_total", &["by=\"history\""]).await?;
    end(&mut running).await?;
    let lines = kept(&tenant, &url, &environment)?;
    let objects = store.keys()?.len();
    println!(
        "{} transitions in {took:?}: {before} bytes before, {after} after; {objects} batches, {dropped} dropped",
        2 * rounds
    );
    is_whole(&lines)?;
    assert_eq!(reasons(&lines, "ChildrenProgressing"), rounds + 1);
    assert_eq!(dropped.to_string(), "0");
    // A version and fractions of seconds may have a digit more.
    assert!(after.abs_diff(before) <= 16, "{before} bytes before, {after} after");
    Ok(())
}

#[tokio::test]
async fn what_is_killed_loses_no_transition_older_than_a_few_seconds() -> Result<()> {
    let tenant = stage("historykill").await?;
    let folder = tenant.folder.join("history");
    let url = format!("file://{}", folder.display());
    // A batch each minute where it turns all the time; after quiet it does not take that long.
    let mut running = tenant.rollcall(&[&format!("--history={url}")]).await?;
    tenant.until("Site/one", says("Ready", "True")).await?;
    flip(&tenant, 2).await?;
    let start = Instant::now();
    running.until_metric("rollcall_history_waiting_transitions", &[], |n| n < 1.0).await?;
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    running.kill()?;
    running.again().await?;
    flip(&tenant, 1).await?;
    end(&mut running).await?;
    let lines = kept(&tenant, &url, &[])?;
    is_whole(&lines)?;
    assert_eq!(reasons(&lines, "ChildrenProgressing"), 3);
    Ok(())
}

#[tokio::test]
async fn azures_own_emulator_keeps_it_and_gives_it_back() -> Result<()> {
    let tenant = stage("historyazure").await?;
    let azure = AzureEmulator::start(&tenant, &super::grafana::installed("azure")?).await?;
    let environment = azure.environment();
    let variables: Vec<_> = environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    tenant.grant().await?;
    let options = [&*format!("--history={}", azure.url), "--history-flush=200ms"];
    let mut running = tenant.rollcall_in(tenant.plane.url(), &options, &variables).await?;
    running.until_ready().await?;
    tenant.until("Site/one", says("Ready", "True")).await?;
    flip(&tenant, 3).await?;
    running.until_metric("rollcall_history_transitions_written_total", &[], |n| n >= 6.0).await?;
    flip(&tenant, 3).await?;
    end(&mut running).await?;
    let lines = kept(&tenant, &azure.url, environment)?;
    is_whole(&lines)?;
    assert_eq!(reasons(&lines, "ChildrenProgressing"), 6);
    assert!(
        !running.output().contains("failed to write transitions to the history store"),
        "{}",
        running.output()
    );
    Ok(())
}

#[tokio::test]
async fn a_store_that_refuses_is_named_and_nothing_else_waits_for_it() -> Result<()> {
    let tenant = stage("historyrefused").await?;
    let store = ObjectStore::start(&tenant).await?;
    let mut environment = store.environment();
    environment.retain(|(name, _)| name != "AWS_SECRET_ACCESS_KEY");
    environment.push(("AWS_SECRET_ACCESS_KEY".to_owned(), "wrong".to_owned()));
    let variables: Vec<_> = environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    tenant.grant().await?;
    let url = format!("s3://{BUCKET}");
    let options = [&*format!("--history={url}"), "--history-flush=100ms"];
    let running = tenant.rollcall_in(tenant.plane.url(), &options, &variables).await?;
    running.until_ready().await?;
    flip(&tenant, 2).await?;
    running.until_metric("rollcall_history_batches_total", &["outcome=\"refused\""], |n| n >= 1.0).await?;
    running.until_printed("failed to write transitions to the history store").await?;
    flip(&tenant, 2).await?;
    // Whoever asks how it is learns of it, and the answer is still yes.
    let health = running.http("/readyz").await?;
    assert!(health.code == 200 && health.body.contains("\nhistory: refused since 20"), "{}", health.body);
    assert_eq!(running.output().matches("failed to write transitions to the history store").count(), 1);
    assert!(store.keys()?.is_empty());
    let (code, _, said) = history(&tenant, &["--from", &url], &environment)?;
    assert!(code == Some(2) && said.contains("failed to list the history"), "{said}");
    Ok(())
}

#[tokio::test]
async fn without_a_store_the_events_of_the_cluster_tell() -> Result<()> {
    let tenant = stage("historyevents").await?;
    let _running = tenant.rollcall(&[]).await?;
    // What is told has lasted for a while.
    for (status, reason) in [("True", "AllChildrenReady"), ("False", "ChildrenProgressing")] {
        say(&tenant, status).await?;
        let seen = |events: Vec<Value>| events.into_iter().find(|event| event["reason"] == reason);
        let kind = ManifestKind::new("events.k8s.io/v1", "Event");
        tenant.until_found(&kind, &tenant.name, "", seen).await?;
    }
    let admin = format!("--kubeconfig={}", tenant.plane.kubeconfig().display());
    let (code, text, said) = history(&tenant, &[&admin], &[])?;
    assert!(code == Some(0) && text.starts_with("TIME"), "{text}{said}");
    assert!(text.contains("AllChildrenReady") && text.contains("ChildrenProgressing"), "{text}");
    assert!(text.contains("Part one"), "{text}");
    // Rollcall's own account may send Events, and not read them.
    let own = format!("--kubeconfig={}", tenant.kubeconfig(tenant.plane.url()).await?.display());
    let (code, _, said) = history(&tenant, &[&own], &[])?;
    assert!(code == Some(2) && said.contains("failed to list Events"), "{said}");
    Ok(())
}

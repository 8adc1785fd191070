//! What rollouts waited for, as metrics and as traces: read once their parents are ready, from what the cluster tells of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::control_plane::free_ports;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::{current, says};
use acceptance::objects::{deployment, owned_by, uid};
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall::{RollcallProcess, TenantRollcall as _};
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result, ensure};
use axum::Router;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::front::reader as metrics_reader;
use crate::history::history;
use crate::page::{PARENTS, ask, somebody};

/// Traces that a collector was sent.
type SentTraces = Arc<Mutex<Vec<Value>>>;

/// A collector on loopback.
async fn collector() -> Result<(String, SentTraces)> {
    let got = SentTraces::default();
    let kept = got.clone();
    let app = Router::new().fallback(move |body: String| {
        let trace = serde_json::from_str(&body).unwrap_or_default();
        kept.lock().map(|mut kept| kept.push(trace)).ok();
        async {}
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok((endpoint, got))
}

async fn first_trace(got: &SentTraces) -> Value {
    loop {
        if let Some(first) = got.lock().ok().and_then(|got| got.first().cloned()) {
            return first;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

fn millis(span: &Value, key: &str) -> i64 {
    span[key].as_str().and_then(|text| text.parse::<i64>().ok()).unwrap_or_default() / 1_000_000
}

#[tokio::test]
async fn a_rollout_that_ended_is_a_trace_and_a_histogram_that_say_what_the_page_says() -> Result<()> {
    let tenant = TestTenant::start("traces").await?;
    tenant.crd(&CrdBuilder::new("Site")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.policy("site", "Site", spec).await?;
    let (endpoint, got) = collector().await?;
    let running = tenant.rollcall(&[&format!("--otlp-endpoint={endpoint}")]).await?;
    let site = tenant.create(tenant.custom("Site", "one")).await?;
    // This operator takes two seconds.
    sleep(Duration::from_secs(2)).await;
    tenant.create(owned_by(&site, deployment("web", 1))).await?;
    tenant.until("Site/one", says("Ready", "True")).await?;

    let trace = timeout(TEST_TIMEOUT, first_trace(&got)).await.context("no trace arrived")?;
    let spans = trace["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().context("spans")?;
    let (root, parts) = spans.split_first().context("a root")?;
    assert_eq!(root["name"], "rollout Site", "{trace}");
    assert!(trace.to_string().contains(uid(&site)), "{trace}");
    let whole = millis(root, "endTimeUnixNano") - millis(root, "startTimeUnixNano");
    let sum: i64 =
        parts.iter().map(|part| millis(part, "endTimeUnixNano") - millis(part, "startTimeUnixNano")).sum();
    assert_eq!(sum, whole, "{trace}");
    // Times of the server are whole seconds: of the operator's two, one may be another part's.
    let cause = |part: &Value| part["attributes"][1]["value"]["stringValue"].clone();
    let of_operator = parts.iter().filter(|part| cause(part) == "operator");
    let took: i64 =
        of_operator.map(|part| millis(part, "endTimeUnixNano") - millis(part, "startTimeUnixNano")).sum();
    assert!(took >= 1_000, "its operator took {took} of {whole} ms: {trace}");

    let (code, told) = ask(&running, &format!("{PARENTS}/{}/rollout", uid(&site)), "").await?;
    assert_eq!(code, 200, "{told}");
    let page: Vec<_> = told["parts"]
        .as_array()
        .context("parts")?
        .iter()
        .map(|part| {
            (part["object"].clone(), part["to"].as_i64().unwrap_or(0) - part["from"].as_i64().unwrap_or(0))
        })
        .collect();
    let traced: Vec<_> = parts
        .iter()
        .map(|part| {
            let object = part["attributes"][0]["value"]["stringValue"].clone();
            (object, millis(part, "endTimeUnixNano") - millis(part, "startTimeUnixNano"))
        })
        .collect();
    assert_eq!(traced, page, "the page says the same");

    let metrics = running.http("/metrics").await?.body;
    let sums = metrics.lines().filter(|line| line.starts_with("rollcall_rollout_wait_seconds_sum"));
    let of_policy = sums.filter(|line| line.contains(&format!("policy=\"{}\"", tenant.policy_name("site"))));
    let observed: f64 = of_policy.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum();
    let whole = f64::from(i32::try_from(whole)?) / 1_000.0;
    assert!((observed - whole).abs() <= whole * 0.05, "{observed} of {whole} s");
    assert!(metrics.contains("rollcall_rollout_traces_total{outcome=\"exported\"} 1"), "{metrics}");
    Ok(())
}

/// Waits until so many rollouts were read.
async fn until_read(running: &RollcallProcess, token: &str, count: usize) -> Result<()> {
    let series = format!("rollcall_rollouts_total{{outcome=\"read\"}} {count}");
    let read = async {
        while !running.http_as("/metrics", token).await?.body.lines().any(|line| line == series) {
            sleep(Duration::from_millis(50)).await;
        }
        anyhow::Ok(())
    };
    timeout(TEST_TIMEOUT, read).await.with_context(|| series.clone())?
}

/// The rollouts of the site `one` that the history at this URL has.
fn stored_rollouts(tenant: &TestTenant, url: &str) -> Result<Vec<Value>> {
    let (code, lines, said) = history(tenant, &["--from", url, "--rollouts", "-o", "json"], &[])?;
    ensure!(code == Some(0) && said.is_empty(), "{code:?} {said}");
    Ok(serde_json::from_str(&lines)?)
}

/// What was waited for, in words.
fn said(parts: &Value) -> Vec<(&Value, &Value)> {
    parts.as_array().into_iter().flatten().map(|part| (&part["object"], &part["says"])).collect()
}

#[tokio::test]
async fn what_each_generation_waited_for_is_on_the_page_and_in_the_history_when_the_next_is_there()
-> Result<()> {
    let tenant = TestTenant::start("generations").await?;
    tenant.crd(&CrdBuilder::new("Site")).await?;
    let spec = json!({ "children": [tenant.child("Deployment")], "settle": "100ms" });
    tenant.policy("site", "Site", spec).await?;
    let (port, folder) = (free_ports(1)?[0], tenant.folder.join("history"));
    let url = format!("file://{}", folder.display());
    let args =
        [format!("--listen=0.0.0.0:{port}"), format!("--history={url}"), "--rollout-causes".to_owned()];
    let mut running = tenant.rollcall(&args.each_ref().map(String::as_str)).await?;
    let seen = ["sites", "deployments", "replicasets", "pods", "events"];
    let reader = somebody(&tenant, "reader", &seen).await?;
    metrics_reader(&tenant, "scraper", true).await?;
    let scraper = tenant.plane.token_of(&tenant.name, "scraper").await?;
    let half = somebody(&tenant, "half", &["sites"]).await?;

    let site = tenant.create(tenant.custom("Site", "one")).await?;
    // This operator takes two seconds.
    sleep(Duration::from_secs(2)).await;
    tenant.create(owned_by(&site, deployment("web", 1))).await?;
    tenant.until("Site/one", says("Ready", "True")).await?;
    until_read(&running, &scraper, 1).await?;
    let path = format!("{PARENTS}/{}/rollout", uid(&site));
    let (code, first) = ask(&running, &path, &reader).await?;
    assert_eq!((code, &first["generation"], &first["earlier"]), (200, &json!(1), &json!([])), "{first}");

    let template = json!({ "metadata": { "annotations": { "of": "generation 2" } } });
    tenant.change("Deployment/web", json!({ "spec": { "template": template } })).await?;
    tenant.change("Site/one", json!({ "spec": { "size": 2 } })).await?;
    tenant.until("Site/one", says("Ready", "True").and(current("Ready"))).await?;
    until_read(&running, &scraper, 2).await?;
    let (_, second) = ask(&running, &path, &reader).await?;
    assert_eq!(second["generation"], 2, "{second}");
    let earlier = &second["earlier"][0];
    assert_eq!((&earlier["generation"], &earlier["from"]), (&json!(1), &first["from"]), "{second}");
    assert!(!said(&earlier["parts"]).is_empty(), "its operator took two seconds: {second}");
    let (_, part) = ask(&running, &path, &half).await?;
    let hidden = &part["earlier"][0];
    assert_eq!((&hidden["hidden"], &hidden["parts"]), (&json!(true), &json!([])), "{part}");
    assert_eq!(hidden["to"], earlier["to"], "how long it took is the site's own: {part}");

    ensure!(running.terminate().await?.success(), "{}", running.output());
    let stored = stored_rollouts(&tenant, &url)?;
    let generations: Vec<_> = stored.iter().map(|line| &line["generation"]).collect();
    assert_eq!(generations, [1, 2], "{stored:?}");
    let kept = said(&stored[0]["rollout"]["parts"]);
    assert_eq!(kept, said(&earlier["parts"]), "the history says what the page says");
    let (_, text, _) = history(&tenant, &["--from", &url, "--rollouts"], &[])?;
    assert!(text.contains("after generation 1 was written") && text.contains("after generation 2"), "{text}");
    let (code, transitions, _) = history(&tenant, &["--from", &url, "-o", "json"], &[])?;
    assert!(code == Some(0) && !transitions.contains("rollout"), "a rollout is no transition: {transitions}");
    Ok(())
}

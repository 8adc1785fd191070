//! What rollouts waited for, as metrics and as traces: read once their parents are ready, from what the cluster tells of them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acceptance::TEST_TIMEOUT;
use acceptance::crd::CrdBuilder;
use acceptance::expectation::says;
use acceptance::objects::{deployment, owned_by, uid};
use acceptance::policies::TenantPolicies as _;
use acceptance::rollcall::TenantRollcall as _;
use acceptance::tenant::TestTenant;
use anyhow::{Context, Result};
use axum::Router;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::page::{PARENTS, ask};

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

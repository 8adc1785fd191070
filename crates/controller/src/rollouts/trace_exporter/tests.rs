use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request as Received;
use inspect::rollout::{PathPart, WaitCause};
use readiness::Time;
use serde_json::Value;

use super::*;
use crate::metrics::Metrics;

fn report() -> RolloutReport {
    let part = |object: &str, cause, detail: &str, from, to| PathPart {
        object: object.to_owned(),
        cause,
        detail: detail.to_owned(),
        from: Time(from),
        to: Time(to),
    };
    RolloutReport {
        from: Time(1_000),
        to: Time(70_000),
        parts: vec![
            part("Database orders", WaitCause::Operator, "", 1_000, 3_000),
            part("Pod orders-0", WaitCause::ImagePull, "r/db:2", 3_000, 60_000),
            part("Database orders", WaitCause::Settling, "", 60_000, 70_000),
        ],
        ..crate::page::rollout_report::tests::report("u-1", 7, 0)
    }
}

/// A collector on loopback that answers with these codes, one after the other, and keeps what it gets.
async fn collector(answers: Vec<u16>) -> (String, Arc<Mutex<Vec<(String, HeaderMap, Value)>>>) {
    let got = Arc::<Mutex<Vec<(String, HeaderMap, Value)>>>::default();
    let kept = got.clone();
    let app = Router::new().fallback(move |request: Received| {
        let (kept, answers) = (kept.clone(), answers.clone());
        async move {
            let (parts, body) = request.into_parts();
            let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
            let mut kept = kept.lock().unwrap();
            let answer = answers[kept.len().min(answers.len() - 1)];
            kept.push((
                parts.uri.path().to_owned(),
                parts.headers,
                serde_json::from_slice(&body).unwrap_or_default(),
            ));
            StatusCode::from_u16(answer).unwrap()
        }
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    (format!("http://{address}"), got)
}

fn exporter(endpoint: &str, headers: &[&str]) -> (TraceExporter, Metrics) {
    let metrics = Metrics::new(0).unwrap();
    let headers: Vec<_> = headers.iter().map(|&header| header.to_owned()).collect();
    let traces = metrics.rollouts.traces.clone();
    (TraceExporter::new(endpoint, &headers, traces, FailureReporter::default()).unwrap(), metrics)
}

fn count(metrics: &Metrics, outcome: &str) -> u64 {
    metrics.rollouts.traces.with_label_values(&[outcome]).get()
}

#[tokio::test]
async fn a_rollout_is_one_trace_whose_parts_touch_each_other_and_sum_up_to_it() {
    let (endpoint, got) = collector(vec![200]).await;
    let (exporter, metrics) = exporter(&endpoint, &["Authorization=Bearer a=b"]);
    exporter.export(&report()).await;
    exporter.export(&report()).await;
    assert_eq!(count(&metrics, "exported"), 2);
    let got = got.lock().unwrap();
    let (path, headers, body) = &got[0];
    assert_eq!((&**path, &headers["authorization"]), (TRACES_PATH, &HeaderValue::from_static("Bearer a=b")));
    assert_eq!(headers["content-type"], "application/json");
    assert_eq!(got[0].2, got[1].2, "a rollout that is exported again is the same trace");
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let nanos = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<i64>().unwrap();
    let (root, parts) = spans.split_first().unwrap();
    assert_eq!((&root["name"], root.get("parentSpanId")), (&Value::from("rollout Database"), None));
    assert_eq!(root["traceId"].as_str().unwrap().len(), 32);
    assert_eq!(nanos(root, "startTimeUnixNano"), 1_000_000_000);
    let mut at = nanos(root, "startTimeUnixNano");
    for part in parts {
        assert_eq!((&part["traceId"], &part["parentSpanId"]), (&root["traceId"], &root["spanId"]));
        assert_eq!(nanos(part, "startTimeUnixNano"), at, "the part begins where the one before ended");
        at = nanos(part, "endTimeUnixNano");
    }
    assert_eq!(at, nanos(root, "endTimeUnixNano"));
    let ids: BTreeSet<_> = spans.iter().map(|span| span["spanId"].as_str().unwrap()).collect();
    assert_eq!((ids.len(), ids.iter().all(|id| id.len() == 16)), (4, true));
    let pull = &parts[1];
    let attribute = |key: &str| {
        let all = pull["attributes"].as_array().unwrap();
        all.iter().find(|one| one["key"] == key).map(|one| one["value"]["stringValue"].clone())
    };
    assert_eq!(attribute("rollcall.object"), Some("Pod orders-0".into()));
    assert_eq!(attribute("rollcall.cause"), Some("image_pull".into()));
    assert_eq!(attribute("rollcall.detail"), Some("r/db:2".into()));
}

#[tokio::test]
async fn what_may_succeed_later_is_tried_again_and_what_may_not_is_dropped() {
    for (answers, requests, outcome) in
        [(vec![503, 200], 2, "exported"), (vec![401], 1, "failed"), (vec![400], 1, "failed")]
    {
        let (endpoint, got) = collector(answers.clone()).await;
        let (exporter, metrics) = exporter(&endpoint, &[]);
        exporter.export(&report()).await;
        assert_eq!(got.lock().unwrap().len(), requests, "{answers:?}");
        assert_eq!(count(&metrics, outcome), 1, "{answers:?}");
    }
}

#[test]
fn an_endpoint_is_what_is_above_the_path_of_traces_or_the_path_itself() {
    for (endpoint, uri) in [
        ("http://collector:4318", Some("http://collector:4318/v1/traces")),
        ("http://collector:4318/", Some("http://collector:4318/v1/traces")),
        ("https://apm.example.com/otlp/v1/traces", Some("https://apm.example.com/otlp/v1/traces")),
        ("https://apm.example.com/otlp", Some("https://apm.example.com/otlp/v1/traces")),
        ("collector:4318", None),
        ("grpc://collector:4317", None),
        ("", None),
    ] {
        let made = traces_uri(endpoint).map(|uri| uri.to_string()).ok();
        assert_eq!(made.as_deref(), uri, "{endpoint}");
    }
}

#[test]
fn a_header_that_cannot_be_sent_is_refused_without_its_value() {
    for header in ["no-value", "bad name=secret", "x=sec\nret"] {
        let error = format!("{:#}", parse_header(header).unwrap_err());
        assert!(error.contains("--otlp-headers") && !error.contains("secret"), "{error}");
    }
}

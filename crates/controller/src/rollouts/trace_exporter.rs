//! Sends traces to an OpenTelemetry collector, or to whatever takes OTLP over HTTP.

use std::time::Duration;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Full;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use prometheus::IntCounterVec;
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::trace_json::trace_request;
use crate::failure_reporter::FailureReporter;
use crate::page::RolloutReport;

/// Path of traces below an endpoint.
const TRACES_PATH: &str = "/v1/traces";
/// Timeout of one attempt. 10 s, as exporters of OpenTelemetry have it.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
/// Pauses before the attempts that follow a first one.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];

/// Sends traces to one endpoint.
pub(crate) struct TraceExporter {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    uri: Uri,
    headers: HeaderMap,
    outcomes: IntCounterVec,
    failures: FailureReporter,
}

/// How an attempt ended that did not succeed.
struct FailedAttempt {
    why: String,
    /// Another attempt may succeed.
    is_temporary: bool,
}

impl TraceExporter {
    /// An exporter to this endpoint, with these headers, each written `name=value`.
    ///
    /// # Errors
    /// The endpoint is no URL, a header cannot be sent, or the machine's certificates of authorities cannot be read.
    pub(crate) fn new(
        endpoint: &str,
        headers: &[String],
        outcomes: IntCounterVec,
        failures: FailureReporter,
    ) -> anyhow::Result<TraceExporter> {
        let connector = HttpsConnectorBuilder::new().with_native_roots();
        let connector = connector.context("reading the machine's certificate authorities")?;
        let connector = connector.https_or_http().enable_http1().build();
        let headers = headers.iter().map(|header| parse_header(header)).collect::<anyhow::Result<_>>()?;
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Ok(TraceExporter { client, uri: traces_uri(endpoint)?, headers, outcomes, failures })
    }

    /// Sends a rollout, and tries again where that may help. What cannot be sent is counted and logged.
    pub(crate) async fn export(&self, report: &RolloutReport) {
        let body = Bytes::from(trace_request(report).to_string());
        let mut pauses = RETRY_PAUSES.iter();
        let failed = loop {
            let Err(failed) = self.send(body.clone()).await else {
                self.outcomes.with_label_values(&["exported"]).inc();
                return;
            };
            match pauses.next() {
                Some(pause) if failed.is_temporary => sleep(*pause).await,
                _ => break failed,
            }
        };
        self.outcomes.with_label_values(&["failed"]).inc();
        let (host, why) = (self.uri.host().unwrap_or_default().to_owned(), failed.why);
        self.failures.report("export trace", why.clone(), move |failures| {
            warn!(host, why, failures, "cannot export the trace of a rollout; it is dropped");
        });
    }

    async fn send(&self, body: Bytes) -> Result<(), FailedAttempt> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let temporary = |why: String| FailedAttempt { why, is_temporary: true };
        let answered = timeout(ATTEMPT_TIMEOUT, self.client.request(request)).await;
        let answered = answered.map_err(|_| temporary("no answer within 10 s".to_owned()))?;
        let status = answered.map_err(|error| temporary(error.to_string()))?.status();
        if status.is_success() {
            return Ok(());
        }
        let is_temporary = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
        Err(FailedAttempt { why: format!("it answered {status}"), is_temporary })
    }
}

/// The address of traces at an endpoint, which may name it or what is above it.
fn traces_uri(endpoint: &str) -> anyhow::Result<Uri> {
    let above = endpoint.trim_end_matches('/');
    let above = above.strip_suffix(TRACES_PATH).unwrap_or(above);
    let uri: Uri = format!("{above}{TRACES_PATH}")
        .parse()
        .with_context(|| format!("--otlp-endpoint {endpoint:?} is no URL"))?;
    let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
    ensure!(
        is_http && uri.host().is_some(),
        "--otlp-endpoint {endpoint:?} must be http://HOST or https://HOST"
    );
    Ok(uri)
}

/// The value is never named in an error: it may be a token.
fn parse_header(header: &str) -> anyhow::Result<(HeaderName, HeaderValue)> {
    let (name, value) = header.split_once('=').context("a header of --otlp-headers is not name=value")?;
    let name: HeaderName =
        name.trim().parse().with_context(|| format!("--otlp-headers: {name:?} is no name of a header"))?;
    let mut value = HeaderValue::from_str(value.trim())
        .ok()
        .with_context(|| format!("--otlp-headers: the value of {name} cannot be sent"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests;

//! Running cases against a server.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::case::{CaseStep, ConformanceCase};
use super::client::{SentRequest, ServerEndpoint};
use super::fixture;
use super::judge::{plain_text, unmet_expectations};
use super::lines::{WatchLineReader, describe_line};
use crate::store::json::parse_json;

/// Longest time until a step marked `eventually` must hold, and the interval between its attempts.
const EVENTUALLY_TIMEOUT: Duration = Duration::from_secs(20);
const EVENTUALLY_INTERVAL: Duration = Duration::from_millis(100);

/// Result of one case.
#[derive(Clone, Debug)]
pub struct CaseOutcome {
    /// Name of the case.
    pub name: String,
    /// Failed expectations; empty if the case passed.
    pub failures: Vec<String>,
    /// Requests and responses of the case, watches included.
    pub exchanges: Vec<CaseExchange>,
}

/// One request and its response.
#[derive(Clone, Debug)]
pub struct CaseExchange {
    /// Method and path, as written in the case.
    pub request: String,
    /// The HTTP status; 0 for the lines of a watch.
    pub status: u16,
    /// The body, with saved values replaced by their names; for a watch, the list of its lines.
    pub body: Value,
}

/// Number of cases that run concurrently: they wait more than they work.
const CASE_LANES: usize = 8;

/// Prepares a server and runs all cases, each in a namespace with a generated name, so that the same server can be
/// tested any number of times.
pub(super) async fn run_all(
    endpoint: &ServerEndpoint,
    cases: &[ConformanceCase],
) -> io::Result<Vec<CaseOutcome>> {
    prepare_server(endpoint).await?;
    let mut lanes = JoinSet::new();
    for lane in 0..CASE_LANES {
        let mine: Vec<(usize, ConformanceCase)> =
            cases.iter().cloned().enumerate().skip(lane).step_by(CASE_LANES).collect();
        let endpoint = endpoint.clone();
        lanes.spawn(async move {
            let mut outcomes = Vec::new();
            for (at, case) in mine {
                outcomes.push((at, run_case(&endpoint, &case).await));
            }
            outcomes
        });
    }
    let mut outcomes: Vec<(usize, CaseOutcome)> = lanes.join_all().await.into_iter().flatten().collect();
    outcomes.sort_by_key(|(at, _)| *at);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

async fn run_case(endpoint: &ServerEndpoint, case: &ConformanceCase) -> CaseOutcome {
    let token = endpoint.token.clone().unwrap_or_else(|| "anybody".into());
    let saved = BTreeMap::from([("token".to_owned(), token)]);
    let mut running = CaseRun { endpoint, saved, watch: None, exchanges: Vec::new() };
    let mut failures = Vec::new();
    if let Err(error) = running.run_steps(case, &mut failures).await {
        failures.push(format!("lost the connection to the server: {error}"));
    }
    let CaseRun { saved, mut exchanges, .. } = running;
    for exchange in &mut exchanges {
        replace_saved_values(&mut exchange.body, &saved);
    }
    CaseOutcome { name: case.name.clone(), failures, exchanges }
}

/// Replaces saved values by their names, so that the answers of two servers can be compared.
fn replace_saved_values(body: &mut Value, saved: &BTreeMap<String, String>) {
    // Shorter values may occur elsewhere by chance.
    let replaced = |text: &str| {
        let long = saved.iter().filter(|(_, value)| value.len() >= 8);
        long.fold(text.to_owned(), |text, (name, value)| text.replace(value, &format!("{{{name}}}")))
    };
    match body {
        Value::String(text) => *text = replaced(text),
        Value::Array(items) => items.iter_mut().for_each(|item| replace_saved_values(item, saved)),
        Value::Object(fields) => {
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(name, mut value)| {
                    replace_saved_values(&mut value, saved);
                    (replaced(&name), value)
                })
                .collect();
        }
        _ => {}
    }
}

async fn prepare_server(endpoint: &ServerEndpoint) -> io::Result<()> {
    for definition in fixture::fixture_definitions() {
        let target = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (status, body) = endpoint.send_request(&json_request("POST", target, &definition)).await?;
        if status != 201 && status != 409 {
            return Err(io::Error::other(format!(
                "failed to install a CustomResourceDefinition: {status} {}",
                String::from_utf8_lossy(&body)
            )));
        }
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
        let served =
            json_request("GET", &format!("/apis/{}/v1/{plural}", fixture::FIXTURE_GROUP), &Value::Null);
        let mut left = EVENTUALLY_TIMEOUT;
        while endpoint.send_request(&served).await?.0 != 200 {
            left = left
                .checked_sub(EVENTUALLY_INTERVAL)
                .ok_or_else(|| io::Error::other(format!("{plural} is not served")))?;
            tokio::time::sleep(EVENTUALLY_INTERVAL).await;
        }
    }
    Ok(())
}

fn json_request(method: &str, target: &str, body: &Value) -> SentRequest {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    SentRequest {
        method: method.into(),
        target: target.into(),
        content_type: Some("application/json".into()),
        body,
        ..SentRequest::default()
    }
}

struct CaseRun<'a> {
    endpoint: &'a ServerEndpoint,
    saved: BTreeMap<String, String>,
    watch: Option<(String, WatchLineReader)>,
    exchanges: Vec<CaseExchange>,
}

impl CaseRun<'_> {
    async fn run_steps(&mut self, case: &ConformanceCase, failures: &mut Vec<String>) -> io::Result<()> {
        let target = "/api/v1/namespaces";
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "conformance-"}});
        let (status, body) = self.endpoint.send_request(&json_request("POST", target, &namespace)).await?;
        if status != 201 {
            failures
                .push(format!("failed to create a namespace: {status} {}", String::from_utf8_lossy(&body)));
            return Ok(());
        }
        let body = parse_json(&body).map_err(io::Error::other)?;
        self.saved.insert("ns".into(), plain_text(body.pointer("/metadata/name")));
        for (at, step) in case.steps.iter().enumerate() {
            let exchanged = self.exchanges.len();
            let mut found = self.attempt_step(step).await?;
            let mut left = EVENTUALLY_TIMEOUT;
            while step.eventually && !found.is_empty() && !left.is_zero() {
                tokio::time::sleep(EVENTUALLY_INTERVAL).await;
                left = left.saturating_sub(EVENTUALLY_INTERVAL);
                self.exchanges.truncate(exchanged);
                found = self.attempt_step(step).await?;
            }
            failures.extend(found.into_iter().map(|failure| format!("step {}: {failure}", at + 1)));
        }
        Ok(())
    }

    /// Runs a step once. For a step marked `eventually`, a lost connection is a failure to retry: a real server may
    /// drop requests to a kind while it takes up a changed definition.
    async fn attempt_step(&mut self, step: &CaseStep) -> io::Result<Vec<String>> {
        match self.run_step(step).await {
            Err(error) if step.eventually => Ok(vec![format!("no response: {error}")]),
            done => done,
        }
    }

    async fn run_step(&mut self, step: &CaseStep) -> io::Result<Vec<String>> {
        if let Some(target) = &step.watch {
            return self.open_watch(target, step).await;
        }
        if let Some(wanted) = &step.events {
            return self.read_events(wanted, step).await;
        }
        let Some(request) = &step.request else {
            return Ok(vec!["the step has no request, watch or events".into()]);
        };
        let sent = self.build_request(request, step);
        let before = self.object_version(&sent, step).await?;
        let (status, body) = self.endpoint.send_request(&sent).await?;
        let body = parse_json(&body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&body)));
        let after = self.object_version(&sent, step).await?;
        let mut failures = Vec::new();
        if step.status.map_or(!(200..300).contains(&status), |wanted| wanted != status) {
            let wanted = step.status.map_or_else(|| "a success".into(), |wanted| wanted.to_string());
            failures.push(format!("{request} should answer {wanted}, answers {status}: {}", body["message"]));
        }
        if let Some(moved) = step.moved.filter(|moved| *moved != (before != after)) {
            failures.push(format!(
                "{request} should {}move the resourceVersion",
                if moved { "" } else { "not " }
            ));
        }
        failures.extend(unmet_expectations(&body, &step.expect, &self.saved));
        for (name, pointer) in &step.save {
            self.saved.insert(name.clone(), plain_text(body.pointer(pointer)));
        }
        self.exchanges.push(CaseExchange { request: request.clone(), status, body });
        Ok(failures)
    }

    /// Returns the resourceVersion of the object that a request addresses, if the step asserts on it.
    async fn object_version(&self, sent: &SentRequest, step: &CaseStep) -> io::Result<Option<String>> {
        if step.moved.is_none() {
            return Ok(None);
        }
        let path = sent.target.split('?').next().unwrap_or_default();
        let path = path.strip_suffix("/status").unwrap_or(path);
        let (_, body) = self.endpoint.send_request(&json_request("GET", path, &Value::Null)).await?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        Ok(Some(plain_text(body.pointer("/metadata/resourceVersion"))))
    }

    fn build_request(&self, request: &str, step: &CaseStep) -> SentRequest {
        let (method, target) = request.split_once(' ').unwrap_or(("GET", request));
        let filled = |mut body: Value| {
            if let Some(size) = step.fill {
                body["spec"]["fill"] = json!("y".repeat(size));
            }
            Some(body.to_string())
        };
        let body = match (&step.object, &step.body, &step.text) {
            (Some(short), ..) => filled(fixture::expand_object(request, short)),
            (_, Some(body), _) => filled(body.clone()),
            (.., text) => text.clone(),
        };
        let content_type = match step.content_type.as_deref() {
            None | Some("json") => "application/json",
            Some("merge") => "application/merge-patch+json",
            Some("patch") => "application/json-patch+json",
            Some("strategic") => "application/strategic-merge-patch+json",
            Some(other) => other,
        };
        SentRequest {
            method: method.into(),
            target: self.fill_placeholders(target),
            content_type: body.is_some().then(|| content_type.into()),
            accept: step.accept.clone(),
            agent: step.agent.clone(),
            body: body.map(|body| self.fill_placeholders(&body).into_bytes()).unwrap_or_default(),
        }
    }

    /// Replaces the placeholders of collections and of saved values.
    fn fill_placeholders(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (word, path) in fixture::collection_words() {
            text = text.replace(&format!("{{{word}}}"), path);
        }
        for (name, value) in &self.saved {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }

    async fn open_watch(&mut self, target: &str, step: &CaseStep) -> io::Result<Vec<String>> {
        let sent = SentRequest {
            accept: step.accept.clone(),
            ..json_request("GET", &self.fill_placeholders(target), &Value::Null)
        };
        let response = self.endpoint.open_response(&sent).await?;
        let status = response.status().as_u16();
        let wanted = step.status.unwrap_or(200);
        let mut failures = Vec::new();
        if status != wanted {
            failures.push(format!("watch {target} should answer {wanted}, answers {status}"));
        }
        if status == 200 {
            self.watch = Some((target.to_owned(), WatchLineReader::from_body(response.into_body())));
            return Ok(failures);
        }
        let body = response.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        failures.extend(unmet_expectations(&body, &step.expect, &self.saved));
        self.exchanges.push(CaseExchange { request: format!("WATCH {target}"), status, body });
        Ok(failures)
    }

    async fn read_events(&mut self, wanted: &[String], step: &CaseStep) -> io::Result<Vec<String>> {
        let Some((target, watch)) = &mut self.watch else { return Ok(vec!["no watch is open".into()]) };
        let target = target.clone();
        let mut lines = Vec::new();
        for _ in wanted {
            lines.push(
                watch.next_line().await.unwrap_or_else(|error| json!({"type": format!("END ({error})")})),
            );
        }
        let told: Vec<String> = lines.iter().map(describe_line).collect();
        let wanted: Vec<String> = wanted.iter().map(|line| self.fill_placeholders(line)).collect();
        let mut failures = Vec::new();
        if told.iter().zip(&wanted).any(|(told, wanted)| !told.starts_with(wanted.as_str())) {
            failures.push(format!("the watch should send {wanted:?}, sent {told:?}"));
        }
        let body = Value::Array(lines);
        failures.extend(unmet_expectations(&body, &step.expect, &self.saved));
        for (name, pointer) in &step.save {
            self.saved.insert(name.clone(), plain_text(body.pointer(pointer)));
        }
        self.exchanges.push(CaseExchange {
            request: format!("events of {target} {wanted:?}"),
            status: 0,
            body,
        });
        Ok(failures)
    }
}

//! Asking a server.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::case::{Case, Step};
use super::client::{Endpoint, Sent};
use super::fixture;
use super::judge::{plain, unmet};
use super::lines::{Lines, told};
use crate::store::json::parse;

/// How long a step that holds eventually may take, and how often it is asked again.
const EVENTUALLY: Duration = Duration::from_secs(20);
const AGAIN: Duration = Duration::from_millis(100);

/// What came of a case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which case.
    pub name: String,
    /// What did not hold; empty when all did.
    pub failures: Vec<String>,
    /// What was asked and answered, watches included.
    pub exchanges: Vec<Exchange>,
}

/// One request and its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Method and path, as the case has them.
    pub request: String,
    /// The HTTP status; 0 for the lines of a watch.
    pub status: u16,
    /// The body, with the names of what was saved for its values; for the lines of a watch, a list of them.
    pub body: Value,
}

/// How many cases run side by side: they wait more than they work.
const LANES: usize = 8;

/// Prepares a server and runs all cases, each in a namespace that the server names, so that a server can be asked
/// any number of times.
pub(super) async fn all(endpoint: &Endpoint, cases: &[Case]) -> io::Result<Vec<Outcome>> {
    prepare(endpoint).await?;
    let mut lanes = JoinSet::new();
    for lane in 0..LANES {
        let mine: Vec<(usize, Case)> = cases.iter().cloned().enumerate().skip(lane).step_by(LANES).collect();
        let endpoint = endpoint.clone();
        lanes.spawn(async move {
            let mut outcomes = Vec::new();
            for (at, case) in mine {
                outcomes.push((at, one(&endpoint, &case).await));
            }
            outcomes
        });
    }
    let mut outcomes: Vec<(usize, Outcome)> = lanes.join_all().await.into_iter().flatten().collect();
    outcomes.sort_by_key(|(at, _)| *at);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

async fn one(endpoint: &Endpoint, case: &Case) -> Outcome {
    let token = endpoint.token.clone().unwrap_or_else(|| "anybody".into());
    let saved = BTreeMap::from([("token".to_owned(), token)]);
    let mut running = Running { endpoint, saved, watch: None, exchanges: Vec::new() };
    let mut failures = Vec::new();
    if let Err(error) = running.all(case, &mut failures).await {
        failures.push(format!("the server went away: {error}"));
    }
    let Running { saved, mut exchanges, .. } = running;
    for exchange in &mut exchanges {
        in_words(&mut exchange.body, &saved);
    }
    Outcome { name: case.name.clone(), failures, exchanges }
}

/// Puts the names of what was saved in the place of its values, so that the answers of two servers can be compared.
fn in_words(body: &mut Value, saved: &BTreeMap<String, String>) {
    // What is shorter may stand anywhere by chance.
    let replaced = |text: &str| {
        let long = saved.iter().filter(|(_, value)| value.len() >= 8);
        long.fold(text.to_owned(), |text, (name, value)| text.replace(value, &format!("{{{name}}}")))
    };
    match body {
        Value::String(text) => *text = replaced(text),
        Value::Array(items) => items.iter_mut().for_each(|item| in_words(item, saved)),
        Value::Object(fields) => {
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(name, mut value)| {
                    in_words(&mut value, saved);
                    (replaced(&name), value)
                })
                .collect();
        }
        _ => {}
    }
}

async fn prepare(endpoint: &Endpoint) -> io::Result<()> {
    for definition in fixture::definitions() {
        let target = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (status, body) = endpoint.send(&json_request("POST", target, &definition)).await?;
        if status != 201 && status != 409 {
            return Err(io::Error::other(format!(
                "a definition was not taken: {status} {}",
                String::from_utf8_lossy(&body)
            )));
        }
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
        let served = json_request("GET", &format!("/apis/{}/v1/{plural}", fixture::GROUP), &Value::Null);
        let mut left = EVENTUALLY;
        while endpoint.send(&served).await?.0 != 200 {
            left = left
                .checked_sub(AGAIN)
                .ok_or_else(|| io::Error::other(format!("{plural} was never served")))?;
            tokio::time::sleep(AGAIN).await;
        }
    }
    Ok(())
}

fn json_request(method: &str, target: &str, body: &Value) -> Sent {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    Sent {
        method: method.into(),
        target: target.into(),
        content_type: Some("application/json".into()),
        body,
        ..Sent::default()
    }
}

struct Running<'a> {
    endpoint: &'a Endpoint,
    saved: BTreeMap<String, String>,
    watch: Option<(String, Lines)>,
    exchanges: Vec<Exchange>,
}

impl Running<'_> {
    async fn all(&mut self, case: &Case, failures: &mut Vec<String>) -> io::Result<()> {
        let target = "/api/v1/namespaces";
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "conformance-"}});
        let (status, body) = self.endpoint.send(&json_request("POST", target, &namespace)).await?;
        if status != 201 {
            failures.push(format!("a namespace was not made: {status} {}", String::from_utf8_lossy(&body)));
            return Ok(());
        }
        let body = parse(&body).map_err(io::Error::other)?;
        self.saved.insert("ns".into(), plain(body.pointer("/metadata/name")));
        for (at, step) in case.steps.iter().enumerate() {
            let exchanged = self.exchanges.len();
            let mut found = self.attempt(step).await?;
            let mut left = EVENTUALLY;
            while step.eventually && !found.is_empty() && !left.is_zero() {
                tokio::time::sleep(AGAIN).await;
                left = left.saturating_sub(AGAIN);
                self.exchanges.truncate(exchanged);
                found = self.attempt(step).await?;
            }
            failures.extend(found.into_iter().map(|failure| format!("step {}: {failure}", at + 1)));
        }
        Ok(())
    }

    /// A real server that takes up a changed definition may drop a request to its kind without an answer.
    async fn attempt(&mut self, step: &Step) -> io::Result<Vec<String>> {
        match self.step(step).await {
            Err(error) if step.eventually => Ok(vec![format!("no answer: {error}")]),
            done => done,
        }
    }

    async fn step(&mut self, step: &Step) -> io::Result<Vec<String>> {
        if let Some(target) = &step.watch {
            return self.open(target, step).await;
        }
        if let Some(wanted) = &step.events {
            return self.read(wanted, step).await;
        }
        let Some(request) = &step.request else { return Ok(vec!["a step without anything to do".into()]) };
        let sent = self.sent(request, step);
        let before = self.version(&sent, step).await?;
        let (status, body) = self.endpoint.send(&sent).await?;
        let body = parse(&body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&body)));
        let after = self.version(&sent, step).await?;
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
        failures.extend(unmet(&body, &step.expect, &self.saved));
        for (name, pointer) in &step.save {
            self.saved.insert(name.clone(), plain(body.pointer(pointer)));
        }
        self.exchanges.push(Exchange { request: request.clone(), status, body });
        Ok(failures)
    }

    /// The resourceVersion of the object that a request is about, where the step asks for it.
    async fn version(&self, sent: &Sent, step: &Step) -> io::Result<Option<String>> {
        if step.moved.is_none() {
            return Ok(None);
        }
        let path = sent.target.split('?').next().unwrap_or_default();
        let path = path.strip_suffix("/status").unwrap_or(path);
        let (_, body) = self.endpoint.send(&json_request("GET", path, &Value::Null)).await?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        Ok(Some(plain(body.pointer("/metadata/resourceVersion"))))
    }

    fn sent(&self, request: &str, step: &Step) -> Sent {
        let (method, target) = request.split_once(' ').unwrap_or(("GET", request));
        let filled = |mut body: Value| {
            if let Some(size) = step.fill {
                body["spec"]["fill"] = json!("y".repeat(size));
            }
            Some(body.to_string())
        };
        let body = match (&step.object, &step.body, &step.text) {
            (Some(short), ..) => filled(fixture::object(request, short)),
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
        Sent {
            method: method.into(),
            target: self.filled(target),
            content_type: body.is_some().then(|| content_type.into()),
            accept: step.accept.clone(),
            agent: step.agent.clone(),
            body: body.map(|body| self.filled(&body).into_bytes()).unwrap_or_default(),
        }
    }

    /// With the words for collections and for what was saved put in.
    fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (word, path) in fixture::words() {
            text = text.replace(&format!("{{{word}}}"), path);
        }
        for (name, value) in &self.saved {
            text = text.replace(&format!("{{{name}}}"), value);
        }
        text
    }

    async fn open(&mut self, target: &str, step: &Step) -> io::Result<Vec<String>> {
        let sent =
            Sent { accept: step.accept.clone(), ..json_request("GET", &self.filled(target), &Value::Null) };
        let response = self.endpoint.open(&sent).await?;
        let status = response.status().as_u16();
        let wanted = step.status.unwrap_or(200);
        let mut failures = Vec::new();
        if status != wanted {
            failures.push(format!("watch {target} should answer {wanted}, answers {status}"));
        }
        if status == 200 {
            self.watch = Some((target.to_owned(), Lines::of(response.into_body())));
            return Ok(failures);
        }
        let body = response.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        failures.extend(unmet(&body, &step.expect, &self.saved));
        self.exchanges.push(Exchange { request: format!("WATCH {target}"), status, body });
        Ok(failures)
    }

    async fn read(&mut self, wanted: &[String], step: &Step) -> io::Result<Vec<String>> {
        let Some((target, watch)) = &mut self.watch else { return Ok(vec!["no watch is open".into()]) };
        let target = target.clone();
        let mut lines = Vec::new();
        for _ in wanted {
            lines.push(watch.line().await.unwrap_or_else(|error| json!({"type": format!("END ({error})")})));
        }
        let told: Vec<String> = lines.iter().map(told).collect();
        let wanted: Vec<String> = wanted.iter().map(|line| self.filled(line)).collect();
        let mut failures = Vec::new();
        if told.iter().zip(&wanted).any(|(told, wanted)| !told.starts_with(wanted.as_str())) {
            failures.push(format!("the watch should tell {wanted:?}, tells {told:?}"));
        }
        let body = Value::Array(lines);
        failures.extend(unmet(&body, &step.expect, &self.saved));
        for (name, pointer) in &step.save {
            self.saved.insert(name.clone(), plain(body.pointer(pointer)));
        }
        self.exchanges.push(Exchange { request: format!("events of {target} {wanted:?}"), status: 0, body });
        Ok(failures)
    }
}

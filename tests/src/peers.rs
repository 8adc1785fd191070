//! Results of the other tools' own code for an object: Argo CD's health, kstatus, which Helm and Flux use, and Flux's evaluator
//! of `healthCheckExprs`.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::places;

/// Returns Argo CD's health and message of each object; `None` if Argo CD has no health check for its kind.
///
/// `rules` is a ConfigMap in a file, or a folder laid out as `resource_customizations`.
pub fn argocd(rules: Option<&Path>, objects: &[Value]) -> Result<Vec<(Option<String>, String)>> {
    let mut command = Command::new(places::program("argocd-health")?);
    command.args(rules);
    let answers = ask(command, objects)?;
    Ok(answers.into_iter().map(|answer| (text(&answer, "status"), said(&answer))).collect())
}

/// Returns kstatus's status and message of each object: `Current`, `InProgress`, `Failed`, `Terminating`, `Unknown`.
pub fn kstatus(objects: &[Value]) -> Result<Vec<(String, String)>> {
    let answers = ask(Command::new(places::program("kstatus")?), objects)?;
    Ok(answers
        .into_iter()
        .map(|answer| (text(&answer, "status").unwrap_or_default(), said(&answer)))
        .collect())
}

/// Returns Flux's status of each object by one entry of `healthCheckExprs`; `None` where it cannot be evaluated, which Flux
/// takes for no answer.
pub fn flux(check: &Value, objects: &[Value]) -> Result<Vec<Option<String>>> {
    let mut command = Command::new(places::program("flux-health")?);
    command.args(["current", "failed"].map(|field| check[field].as_str().unwrap_or_default()));
    Ok(ask(command, objects)?.into_iter().map(|answer| text(&answer, "status")).collect())
}

fn text(answer: &Value, field: &str) -> Option<String> {
    answer[field].as_str().map(str::to_owned)
}

fn said(answer: &Value) -> String {
    text(answer, "message").unwrap_or_default()
}

/// Writes one object per line and reads one answer per line.
fn ask(mut command: Command, objects: &[Value]) -> Result<Vec<Value>> {
    let mut running = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (mut input, mut output) =
        (running.stdin.take().context("no stdin")?, running.stdout.take().context("no stdout")?);
    let lines: Vec<String> =
        objects.iter().map(|object| format!("{}\n", json!({ "object": object }))).collect();
    // Answers arrive while objects are still being written: neither side may wait for the other.
    let asked = std::thread::spawn(move || input.write_all(lines.concat().as_bytes()));
    let mut text = String::new();
    output.read_to_string(&mut text)?;
    asked.join().ok().context("the asking thread panicked")??;
    ensure!(running.wait()?.success(), "{command:?} failed");
    let answers: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure!(answers.len() == objects.len(), "{} answers to {} objects", answers.len(), objects.len());
    Ok(answers)
}

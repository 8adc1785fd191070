//! The raw data: one JSON object a line.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::Context;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::machine::RunConditions;

/// A line of the raw data.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RawLine {
    /// The first: where and how everything was measured.
    Run(RunConditions),
    /// A subject that takes part.
    Subject { name: String, version: String, about: String },
    /// A subject that could not be built, and why.
    Missing { name: String, reason: String },
    /// What one workload of one round took.
    Measurement(Measurement),
}

/// What one workload took one subject, once.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Measurement {
    pub(crate) subject: String,
    pub(crate) workload: String,
    pub(crate) round: u32,
    pub(crate) parents: usize,
    pub(crate) children: usize,
    /// Parents that did not say at the end what their children amount to. With one of them there are no figures.
    pub(crate) wrong: usize,
    /// Why there are no figures, if a subject did not get so far.
    pub(crate) failure: Option<String>,
    /// Figures by name; the name has the unit.
    pub(crate) figures: BTreeMap<String, f64>,
    /// Requests by verb and what they address.
    pub(crate) requests: BTreeMap<String, u64>,
}

/// Appends a line to a file.
pub(crate) fn append_line(file: &Path, line: &impl Serialize) -> anyhow::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut file = fs::OpenOptions::new().create(true).append(true).open(file)?;
    Ok(file.write_all(text.as_bytes())?)
}

/// Reads all lines of a file.
pub(crate) fn read_lines<Line: DeserializeOwned>(file: &Path) -> anyhow::Result<Vec<Line>> {
    let text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

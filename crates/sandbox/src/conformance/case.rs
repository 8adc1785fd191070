//! Cases as they are written down.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One behaviour, in a sentence, with the steps that show it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The behaviour.
    pub name: String,
    /// What shows it.
    pub steps: Vec<Step>,
}

/// One step: a request (`do`), the opening of a watch (`watch`) or the reading of its lines (`events`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Method and path; `{ns}` is the case's namespace, `{maps}` and the like are collections, other names were saved.
    #[serde(rename = "do")]
    pub request: Option<String>,
    /// The object to send, short: `name` goes into metadata, apiVersion and kind come from the path.
    pub object: Option<Value>,
    /// The JSON to send as it is.
    pub body: Option<Value>,
    /// Makes what is sent larger by this many bytes, in its spec.
    pub fill: Option<usize>,
    /// The bytes to send as they are.
    pub text: Option<String>,
    /// The content type: `json` (default), `merge`, `patch`, `strategic`, or any other in full.
    #[serde(rename = "type")]
    pub content_type: Option<String>,
    /// The `Accept` header.
    pub accept: Option<String>,
    /// The `User-Agent` header.
    pub agent: Option<String>,
    /// The HTTP status it has to answer; by default any success.
    pub status: Option<u16>,
    /// What its body has to hold, by JSON pointer.
    #[serde(default)]
    pub expect: BTreeMap<String, Value>,
    /// Values to keep for later steps: name, JSON pointer.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// Whether the resourceVersion of the object moved.
    pub moved: Option<bool>,
    /// Repeat it until it holds: what controllers do takes a moment on a real server.
    #[serde(default)]
    pub eventually: bool,
    /// Opens a watch on this path (with its query).
    pub watch: Option<String>,
    /// The lines that the open watch has to tell next: type and name, `BOOKMARK`, `ERROR 410`, `END`.
    pub events: Option<Vec<String>>,
}

/// The cases of one file; a file that does not parse is one case that says so.
pub(super) fn parse(text: &str) -> Vec<Case> {
    serde_json::from_str(text).unwrap_or_else(|error| {
        vec![Case { name: format!("a file of cases parses: {error}"), steps: vec![Step::default()] }]
    })
}

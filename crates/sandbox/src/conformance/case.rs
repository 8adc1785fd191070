//! The JSON format of conformance cases.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// One behaviour of the API, named by a sentence, with the steps that verify it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConformanceCase {
    /// The behaviour.
    pub name: String,
    /// Steps that verify the behaviour, in order.
    pub steps: Vec<CaseStep>,
}

/// One step: a request (`do`), the opening of a watch (`watch`) or the reading of its lines (`events`).
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseStep {
    /// Method and path. `{ns}` is the case's namespace, `{maps}` and the like are collections, other names are saved
    /// values.
    #[serde(rename = "do")]
    pub request: Option<String>,
    /// Object to send, in short form: `name` goes into the metadata; apiVersion and kind come from the path.
    pub object: Option<Value>,
    /// JSON body to send as it is.
    pub body: Option<Value>,
    /// Number of bytes by which the object's spec is padded.
    pub fill: Option<usize>,
    /// Raw body to send as it is.
    pub text: Option<String>,
    /// The content type: `json` (default), `merge`, `patch`, `strategic`, or any other in full.
    #[serde(rename = "type")]
    pub content_type: Option<String>,
    /// The `Accept` header.
    pub accept: Option<String>,
    /// The `User-Agent` header.
    pub agent: Option<String>,
    /// Expected HTTP status. Defaults to any success.
    pub status: Option<u16>,
    /// Expected values in the response body, by JSON pointer.
    #[serde(default)]
    pub expect: BTreeMap<String, Value>,
    /// Values to save for later steps: name to JSON pointer.
    #[serde(default)]
    pub save: BTreeMap<String, String>,
    /// Expectation that the object's resourceVersion changed (`true`) or stayed the same (`false`).
    pub moved: Option<bool>,
    /// Repeats the step until it holds: the controllers of a real server take a moment.
    #[serde(default)]
    pub eventually: bool,
    /// Opens a watch on this path (with its query).
    pub watch: Option<String>,
    /// Lines that the open watch must send next: type and name, `BOOKMARK`, `ERROR 410`, `END`.
    pub events: Option<Vec<String>>,
}

/// Parses the cases of one file. A file that does not parse becomes one case that fails with the parse error.
pub(super) fn parse_cases(text: &str) -> Vec<ConformanceCase> {
    serde_json::from_str(text).unwrap_or_else(|error| {
        vec![ConformanceCase {
            name: format!("a file of cases parses: {error}"),
            steps: vec![CaseStep::default()],
        }]
    })
}

//! Parses a document into a checked policy or returns all of its problems.

use std::fmt::Write;

use api::{ReadinessGroup, ReadinessPolicy};
use policy::{
    CompiledPolicy, GROUP_KIND, NOT_AN_OBJECT_NAME, PolicyProblem, PolicySettings, ProtectedKind,
    check_written_group_spec, check_written_spec, compile_with, is_object_name, policy_of_group,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::limits::STUCK_AFTER;

/// Maximum number of unreadable fields reported per document; with more, it is probably not a policy at all.
const MAX_FIELD_PROBLEMS: usize = 50;

/// Returns a valid policy or all of its problems. Rejects everything that the CRD's schema would reject and names the
/// field.
pub(super) fn check_policy(
    mut value: Value,
    protected: &[ProtectedKind],
) -> Result<CompiledPolicy, Vec<PolicyProblem>> {
    let problem = |field: &str, what: &str| {
        vec![PolicyProblem { field: field.to_owned(), what: what.to_owned(), at: None }]
    };
    let is_own = value["apiVersion"].as_str().unwrap_or_default().starts_with("rollcall.dev/");
    let is_group = is_own && value["kind"] == GROUP_KIND.1;
    if !is_group && (!is_own || value["kind"] != "ReadinessPolicy") {
        return Err(problem("kind", "not a rollcall.dev ReadinessPolicy or ReadinessGroup"));
    }
    let refused = if is_group { check_written_group_spec } else { check_written_spec };
    let mut gaps = RemovedFields { refused: refused(&value["spec"]), ..RemovedFields::default() };
    match value["metadata"]["name"].as_str().filter(|name| !name.is_empty()) {
        None => return Err(problem("metadata.name", "is missing")),
        Some(name) if !is_object_name(name) => {
            gaps.refused.extend(problem("metadata.name", NOT_AN_OBJECT_NAME));
        }
        Some(_) => {}
    }
    // Unreadable fields are removed so that the rest can be checked.
    while gaps.problems.len() < MAX_FIELD_PROBLEMS {
        let decoded = if is_group { decode_group(&value) } else { decode_policy(&value) };
        match decoded {
            Ok(policy) => return gaps.check_rest(&policy, protected),
            Err(found) => {
                let (field, known) = (found.field.clone(), gaps.is_consequence(&found));
                if !known {
                    gaps.record_problem(found);
                }
                if known || !remove_field(&mut value, &field) {
                    break;
                }
            }
        }
    }
    Err(gaps.into_problems())
}

/// The removed fields, by their path in the document.
#[derive(Default)]
struct RemovedFields {
    /// What the API server would refuse in the document as it was written.
    refused: Vec<PolicyProblem>,
    problems: Vec<PolicyProblem>,
}

impl RemovedFields {
    fn record_problem(&mut self, problem: PolicyProblem) {
        let field = self.original_path(&problem.field);
        self.problems.push(PolicyProblem { field, ..problem });
    }

    /// Returns `true` if the problem only reports a field as missing that was removed here.
    fn is_consequence(&self, problem: &PolicyProblem) -> bool {
        let parent = self.original_path(&problem.field);
        missing_field(&parent, &problem.what)
            .is_some_and(|missing| self.problems.iter().any(|gap| gap.field == missing))
    }

    /// Maps a path back to the original document: removing a list item moves the following items up.
    fn original_path(&self, path: &str) -> String {
        let mut field = String::new();
        for (at, part) in path.split('[').enumerate() {
            let Some((index, rest)) = part.split_once(']').filter(|_| at > 0) else {
                field.push_str(part);
                continue;
            };
            let Ok(mut index) = index.parse::<usize>() else {
                // The key of a map, such as a label.
                _ = write!(field, "[{index}]{rest}");
                continue;
            };
            while self.problems.iter().any(|gap| gap.field == format!("{field}[{index}]")) {
                index += 1;
            }
            _ = write!(field, "[{index}]{rest}");
        }
        field
    }

    /// Checks the readable rest of the policy and suppresses further problems of removed fields.
    fn check_rest(
        mut self,
        policy: &CheckedManifest,
        protected: &[ProtectedKind],
    ) -> Result<CompiledPolicy, Vec<PolicyProblem>> {
        let settings =
            PolicySettings { protected: protected.to_vec(), ..PolicySettings::with_stuck_after(STUCK_AFTER) };
        let found = match policy.compile(&settings) {
            Ok(compiled) if self.problems.is_empty() && self.refused.is_empty() => return Ok(compiled),
            Ok(_) => Vec::new(),
            Err(found) => found,
        };
        for problem in found {
            let field = self.original_path(&problem.field);
            let known = self.problems.iter().any(|gap| gap.field.starts_with(&field))
                || self.refused.iter().any(|refused| refused.field == field);
            if !known {
                self.problems.push(PolicyProblem { field, ..problem });
            }
        }
        Err(self.into_problems())
    }

    /// What the API server says of a field takes precedence over what a decoder says of it. What is missing is told of its own
    /// field, in the server's words.
    fn into_problems(self) -> Vec<PolicyProblem> {
        let told =
            self.problems.into_iter().map(|problem| match missing_field(&problem.field, &problem.what) {
                Some(field) => PolicyProblem { field, what: "Required value".to_owned(), at: problem.at },
                None => problem,
            });
        let told = told.filter(|problem| !self.refused.iter().any(|refused| refused.field == problem.field));
        told.chain(self.refused.iter().cloned()).collect()
    }
}

/// Returns the path of the field that is missing in the object at this path, if that is the problem.
fn missing_field(path: &str, what: &str) -> Option<String> {
    let (name, _) = what.strip_prefix("missing field `")?.split_once('`')?;
    Some(if path == "." { name.to_owned() } else { format!("{path}.{name}") })
}

/// A manifest all of whose fields could be read.
enum CheckedManifest {
    Policy(Box<ReadinessPolicy>),
    Group(Box<ReadinessGroup>),
}

impl CheckedManifest {
    fn compile(&self, settings: &PolicySettings) -> Result<CompiledPolicy, Vec<PolicyProblem>> {
        match self {
            CheckedManifest::Policy(policy) => compile_with(&policy.spec, settings),
            CheckedManifest::Group(group) => {
                let refused = |what| vec![PolicyProblem { field: "spec".to_owned(), what, at: None }];
                policy_of_group(&group.spec)?.compile_spec(settings).map_err(refused)
            }
        }
    }
}

fn decode_policy(value: &Value) -> Result<CheckedManifest, PolicyProblem> {
    decode_manifest(value).map(|policy| CheckedManifest::Policy(Box::new(policy)))
}

fn decode_group(value: &Value) -> Result<CheckedManifest, PolicyProblem> {
    decode_manifest(value).map(|group| CheckedManifest::Group(Box::new(group)))
}

fn decode_manifest<T: DeserializeOwned>(value: &Value) -> Result<T, PolicyProblem> {
    serde_path_to_error::deserialize(value).map_err(|error: serde_path_to_error::Error<serde_json::Error>| {
        let (path, what) = (error.path().to_string(), error.inner().to_string());
        // An unknown field is named in the message only: its position is its own, not that of the enclosing object.
        let unknown = what.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
        let known = path.rsplit('.').next().unwrap_or_default();
        let field = match unknown {
            Some((name, _)) if name != known => format!("{path}.{name}"),
            _ => path.clone(),
        };
        PolicyProblem { field, what, at: None }
    })
}

/// Removes the value at a path such as `spec.children[1].quorum`; returns `false` if there is none.
fn remove_field(value: &mut Value, path: &str) -> bool {
    let steps: Vec<String> = path.replace(']', "").split(['.', '[']).map(str::to_owned).collect();
    let Some((last, above)) = steps.split_last() else { return false };
    let mut at = value;
    for step in above {
        let next = match at {
            Value::Object(map) => map.get_mut(step),
            Value::Array(items) => step.parse::<usize>().ok().and_then(|index| items.get_mut(index)),
            _ => None,
        };
        let Some(next) = next else { return false };
        at = next;
    }
    match at {
        Value::Object(map) => map.remove(last).is_some(),
        Value::Array(items) => {
            let index = last.parse::<usize>().ok().filter(|index| *index < items.len());
            index.map(|index| items.remove(index)).is_some()
        }
        _ => false,
    }
}

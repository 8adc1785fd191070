//! From a document to a checked policy, or to everything that is wrong with it.

use std::fmt::Write;
use std::time::Duration;

use api::ReadinessPolicy;
use controller::policies::{Compiled, Problem, compile};
use serde_json::Value;

/// Limits do not matter where a policy is only looked at.
const ANY_LIMIT: Duration = Duration::from_mins(10);
/// So many fields that cannot be read are told; who has more has another document.
const MOST: usize = 50;

/// A policy that is valid; or all of its problems: what the schema of the CRD would refuse is refused here, with the field.
pub(super) fn checked(mut value: Value) -> Result<Compiled, Vec<Problem>> {
    let problem =
        |field: &str, what: &str| vec![Problem { field: field.to_owned(), what: what.to_owned(), at: None }];
    let group = value["apiVersion"].as_str().unwrap_or_default().starts_with("rollcall.dev/");
    if value["kind"] != "ReadinessPolicy" || !group {
        return Err(problem("kind", "not a rollcall.dev ReadinessPolicy"));
    }
    if value["metadata"]["name"].as_str().is_none_or(str::is_empty) {
        return Err(problem("metadata.name", "is missing"));
    }
    let mut gaps = Gaps::default();
    // What cannot be read is taken out, so that the rest can be.
    while gaps.problems.len() < MOST {
        match read(&value) {
            Ok(policy) => return gaps.judge(&policy),
            Err(found) => {
                let (field, known) = (found.field.clone(), gaps.makes(&found));
                if !known {
                    gaps.note(found);
                }
                if known || !remove(&mut value, &field) {
                    break;
                }
            }
        }
    }
    Err(gaps.problems)
}

/// What was taken out, by its place in the document.
#[derive(Default)]
struct Gaps {
    problems: Vec<Problem>,
}

impl Gaps {
    fn note(&mut self, problem: Problem) {
        let field = self.original(&problem.field);
        self.problems.push(Problem { field, ..problem });
    }

    /// Is this a field that is missing because it was taken out?
    fn makes(&self, problem: &Problem) -> bool {
        let missing = problem.what.strip_prefix("missing field `").and_then(|rest| rest.split_once('`'));
        let field = |name: &str| format!("{}.{name}", self.original(&problem.field));
        missing.is_some_and(|(name, _)| self.problems.iter().any(|gap| gap.field == field(name)))
    }

    /// A path as it was in the document: of a list from which something was taken out, what follows has moved up.
    fn original(&self, path: &str) -> String {
        let mut field = String::new();
        for (at, part) in path.split('[').enumerate() {
            let Some((index, rest)) = part.split_once(']').filter(|_| at > 0) else {
                field.push_str(part);
                continue;
            };
            let mut index = index.parse::<usize>().unwrap_or_default();
            while self.problems.iter().any(|gap| gap.field == format!("{field}[{index}]")) {
                index += 1;
            }
            _ = write!(field, "[{index}]{rest}");
        }
        field
    }

    /// What could be read is checked as well; but of what could not, nothing more is said.
    fn judge(mut self, policy: &ReadinessPolicy) -> Result<Compiled, Vec<Problem>> {
        let found = match compile(&policy.spec, ANY_LIMIT) {
            Ok(compiled) if self.problems.is_empty() => return Ok(compiled),
            Ok(_) => Vec::new(),
            Err(found) => found,
        };
        for problem in found {
            let field = self.original(&problem.field);
            if !self.problems.iter().any(|gap| gap.field.starts_with(&field)) {
                self.problems.push(Problem { field, ..problem });
            }
        }
        Err(self.problems)
    }
}

fn read(value: &Value) -> Result<ReadinessPolicy, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error: serde_path_to_error::Error<serde_json::Error>| {
        let (path, what) = (error.path().to_string(), error.inner().to_string());
        // An unknown field is named in the words alone: its place is its own, not that of the object around it.
        let unknown = what.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
        let known = path.rsplit('.').next().unwrap_or_default();
        let field = match unknown {
            Some((name, _)) if name != known => format!("{path}.{name}"),
            _ => path.clone(),
        };
        Problem { field, what, at: None }
    })
}

/// Takes the value at a path such as `spec.children[1].quorum` out; `false` where there is none.
fn remove(value: &mut Value, path: &str) -> bool {
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

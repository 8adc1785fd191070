//! Differences between two servers' answers to the same request, beyond what the cases assert.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value, json};

use super::judge::shorten_json;
use super::run::CaseOutcome;

/// One field in which two answers to the same request differ.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerDifference {
    /// Name of the case, and the number of the exchange in it.
    pub step: String,
    /// Method and path, as written in the case.
    pub request: String,
    /// JSON pointer into the body; empty if the status differs.
    pub path: String,
    /// The first server's value, shortened; `-` if it has none.
    pub one: String,
    /// The other server's value, shortened; `-` if it has none.
    pub other: String,
}

/// Values that the sandbox may leave out: the request, the field, and the reason. It may only omit a value there; a
/// value that it does answer must be the real one.
const ALLOWED_SILENCES: [(&str, &str, &str); 6] = [
    ("{pods}", "spec/", "no admission gives pods a service account, its token and tolerations"),
    ("{pvcs}", "/metadata/finalizers", "no controller protects claims"),
    ("{deployments}", "/metadata/annotations", "no controller works on Deployments"),
    ("selfsubjectaccessreviews", "/metadata", "a review is answered without metadata"),
    ("GET /apis", "/", "the sandbox serves fewer kinds and subresources"),
    ("GET /api", "/", "the sandbox serves fewer kinds and subresources"),
];

/// Values in which the sandbox may deviate: the request, the field, and the reason.
const ALLOWED_DEVIATIONS: [(&str, &str, &str); 8] = [
    ("reviews", "/", "the sandbox has no users"),
    ("{deployments}", "/status", "no controller works on Deployments"),
    ("{deployments}", "/metadata/managedFields/", "no controller works on Deployments"),
    ("{jobs}", "/status", "no controller works on Jobs"),
    ("{jobs}", "/metadata/managedFields/", "no controller works on Jobs"),
    ("/configmaps/a", "/metadata/deletion", "the sandbox runs its controllers within each request"),
    ("GET /version", "/", "the sandbox reports another build"),
    ("GET /api", "/serverAddressByClientCIDRs", "the sandbox does not know its own address"),
];

impl AnswerDifference {
    /// Returns the reason why the second server, the sandbox, may differ here from the first, a real one.
    pub fn allowed_reason(&self) -> Option<&'static str> {
        let here = |(about, place, _): &&(&str, &str, &str)| {
            self.request.contains(about)
                && (self.path.starts_with(place) || !place.starts_with('/') && self.path.contains(place))
        };
        let silent = ALLOWED_SILENCES.iter().filter(|_| self.other == "-").find(here);
        silent.or_else(|| ALLOWED_DEVIATIONS.iter().find(here)).map(|(.., why)| *why)
    }
}

impl fmt::Display for AnswerDifference {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AnswerDifference { step, request, path, one, other } = self;
        write!(to, "{step} {request}: {path}: {one} against {other}")
    }
}

/// Compares the answers that two runs of the same cases received. Status and body are compared, except for values that
/// are never the same twice: identities, versions, times, tokens and human-readable messages.
pub fn find_differences(one: &[CaseOutcome], other: &[CaseOutcome]) -> Vec<AnswerDifference> {
    let mut found = Vec::new();
    for (one, other) in one.iter().zip(other) {
        for (at, (a, b)) in one.exchanges.iter().zip(&other.exchanges).enumerate() {
            let mut places = Vec::new();
            if a.status == b.status {
                compare_values(
                    "",
                    Some(&normalize_body(&a.body)),
                    Some(&normalize_body(&b.body)),
                    &mut places,
                );
            } else {
                places.push((String::new(), a.status.to_string(), b.status.to_string()));
            }
            found.extend(places.into_iter().map(|(path, one_says, other_says)| AnswerDifference {
                step: format!("{} [{}]", one.name, at + 1),
                request: a.request.clone(),
                path,
                one: one_says,
                other: other_says,
            }));
        }
    }
    found
}

type DifferingPlace = (String, String, String);

fn compare_values(path: &str, one: Option<&Value>, other: Option<&Value>, found: &mut Vec<DifferingPlace>) {
    match (one, other) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                compare_values(&format!("{path}/{key}"), a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                compare_values(&format!("{path}/{at}"), Some(a), Some(b), found);
            }
        }
        _ if one != other => {
            let told = |side: Option<&Value>| side.map_or_else(|| "-".into(), shorten_json);
            found.push((path.to_owned(), told(one), told(other)));
        }
        _ => {}
    }
}

/// Returns a body without the values that differ between any two servers.
fn normalize_body(body: &Value) -> Value {
    match body {
        Value::Object(map) => {
            Value::Object(map.iter().filter_map(|(key, value)| normalize_member(key, value)).collect())
        }
        Value::Array(list) => {
            by_discovery_name(list).unwrap_or_else(|| list.iter().map(normalize_body).collect())
        }
        other => other.clone(),
    }
}

/// Keys the lists of discovery by name: their order has no meaning.
fn by_discovery_name(list: &[Value]) -> Option<Value> {
    let name = |entry: &Value| {
        let names = ["/metadata/name", "/name", "/resource", "/subresource"];
        let listed = entry.get("verbs").is_some() || entry.get("versions").is_some();
        let name = names.iter().find_map(|at| entry.pointer(at)?.as_str());
        listed.then_some(name.unwrap_or_default().to_owned())
    };
    let entries = list.iter().map(|entry| Some((name(entry)?, normalize_body(entry))));
    let mut entries: Map<String, Value> = entries.collect::<Option<_>>()?;
    // Definitions that other cases install appear and disappear in between.
    entries.retain(|name, _| !name.starts_with("conformance-"));
    (!entries.is_empty()).then_some(Value::Object(entries))
}

fn normalize_member(key: &str, value: &Value) -> Option<(String, Value)> {
    const NEVER_THE_SAME: [&str; 17] = [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "time",
        "continue",
        "lastTransitionTime",
        "lastUpdateTime",
        "clusterIP",
        "clusterIPs",
        "controller-uid",
        "batch.kubernetes.io/controller-uid",
        "message",
        "description",
        "gitVersion",
        "serverAddress",
        // Only the real server can compute this hash.
        "storageVersionHash",
    ];
    if key == "storageVersionHash" {
        return None;
    }
    if NEVER_THE_SAME.contains(&key) && !value.is_null() {
        return Some((key.to_owned(), json!("…")));
    }
    if key == "managedFields" {
        // The order of entries written within one second depends on where the second turns.
        return Some((key.to_owned(), by_field_owner(value)));
    }
    if key == "cells" {
        return Some((key.to_owned(), value.as_array().into_iter().flatten().map(normalize_cell).collect()));
    }
    Some((key.to_owned(), normalize_body(value)))
}

/// Normalizes a cell of a table: ages depend on the time of the request, UIDs on the server.
fn normalize_cell(value: &Value) -> Value {
    let text = value.as_str().unwrap_or_default();
    let is_age = text.starts_with(|c: char| c.is_ascii_digit()) && text.ends_with(['s', 'm', 'h', 'd']);
    if is_age || text.contains("-uid=") { json!("…") } else { value.clone() }
}

fn by_field_owner(entries: &Value) -> Value {
    let named = entries.as_array().into_iter().flatten().map(|entry| {
        let text = |field: &str| entry[field].as_str().unwrap_or_default();
        (format!("{}:{}:{}", text("manager"), text("operation"), text("subresource")), normalize_body(entry))
    });
    Value::Object(named.collect::<Map<String, Value>>())
}

#[cfg(test)]
mod tests {
    use super::super::run::CaseExchange;
    use super::*;

    fn told(request: &str, real: Value, sandbox: Value) -> Vec<(String, bool)> {
        let answered = |body: Value| CaseOutcome {
            name: "a case".into(),
            failures: Vec::new(),
            exchanges: vec![CaseExchange { request: request.into(), status: 200, body }],
        };
        let found = find_differences(&[answered(real)], &[answered(sandbox)]);
        found.into_iter().map(|one| (one.path.clone(), one.allowed_reason().is_some())).collect()
    }

    #[test]
    fn what_is_never_the_same_twice_is_no_difference() {
        let one = json!({"metadata": {"uid": "a", "resourceVersion": "7", "managedFields": [{"manager": "x"}, {"manager": "y"}]}});
        let other = json!({"metadata": {"uid": "b", "resourceVersion": "9", "managedFields": [{"manager": "y"}, {"manager": "x"}]}});
        assert_eq!(told("GET {maps}/a", one, other), []);
    }

    #[test]
    fn whatever_else_differs_is_told_with_its_place() {
        let one = json!({"metadata": {"uid": "a"}, "spec": {"list": [1, 2]}, "status": {}});
        let other = json!({"metadata": {}, "spec": {"list": [1, 3]}});
        let places = ["/metadata/uid", "/spec/list/1", "/status"].map(|place| (place.to_owned(), false));
        assert_eq!(told("GET {maps}/a", one, other), places);
    }

    #[test]
    fn the_sandbox_may_be_silent_about_what_it_leaves_out_and_may_not_lie() {
        let real = json!({"spec": {"serviceAccountName": "default"}});
        let place = || "/spec/serviceAccountName".to_owned();
        assert_eq!(told("GET {pods}/a", real.clone(), json!({"spec": {}})), [(place(), true)]);
        let lie = json!({"spec": {"serviceAccountName": "other"}});
        assert_eq!(told("GET {pods}/a", real, lie), [(place(), false)]);
    }
}

//! Where two servers answer the same request differently, beyond what the cases ask for.

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value, json};

use super::judge::short;
use super::run::Outcome;

/// One place in which two answers to one request are not the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The case, and the number of the exchange in it.
    pub step: String,
    /// Method and path, as the case has them.
    pub request: String,
    /// Where in the body, as a JSON pointer; empty where the status differs.
    pub path: String,
    /// What the first server says there, shortened; nothing is `-`.
    pub one: String,
    /// What the other says.
    pub other: String,
}

/// What the sandbox leaves out: in answers to which requests, where, and why. It has to be silent there; what it says
/// has to be the truth.
const SILENT: [(&str, &str, &str); 6] = [
    ("{pods}", "spec/", "no admission gives pods a service account, its token and tolerations"),
    ("{pvcs}", "/metadata/finalizers", "no controller protects claims"),
    ("{deployments}", "/metadata/annotations", "no controller works on Deployments"),
    ("selfsubjectaccessreviews", "/metadata", "a review is answered without metadata"),
    ("GET /apis", "/", "it serves fewer kinds and subresources"),
    ("GET /api", "/", "it serves fewer kinds and subresources"),
];

/// Where it may say something else.
const OTHERWISE: [(&str, &str, &str); 8] = [
    ("reviews", "/", "it knows no users"),
    ("{deployments}", "/status", "no controller works on Deployments"),
    ("{deployments}", "/metadata/managedFields/", "no controller works on Deployments"),
    ("{jobs}", "/status", "no controller works on Jobs"),
    ("{jobs}", "/metadata/managedFields/", "no controller works on Jobs"),
    ("/configmaps/a", "/metadata/deletion", "its controllers work at once"),
    ("GET /version", "/", "it was built by another compiler"),
    ("GET /api", "/serverAddressByClientCIDRs", "it does not know its own address"),
];

impl Difference {
    /// Why the second server, being the sandbox, may differ here from the first, which is real.
    pub fn left_out(&self) -> Option<&'static str> {
        let here = |(about, place, _): &&(&str, &str, &str)| {
            self.request.contains(about)
                && (self.path.starts_with(place) || !place.starts_with('/') && self.path.contains(place))
        };
        let silent = SILENT.iter().filter(|_| self.other == "-").find(here);
        silent.or_else(|| OTHERWISE.iter().find(here)).map(|(.., why)| *why)
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { step, request, path, one, other } = self;
        write!(to, "{step} {request}: {path}: {one} against {other}")
    }
}

/// Where two runs of the same cases were answered differently: status, and body but for what is never the same twice
/// (identities, versions, times, tokens, the words for people).
pub fn differences(one: &[Outcome], other: &[Outcome]) -> Vec<Difference> {
    let mut found = Vec::new();
    for (one, other) in one.iter().zip(other) {
        for (at, (a, b)) in one.exchanges.iter().zip(&other.exchanges).enumerate() {
            let mut places = Vec::new();
            if a.status == b.status {
                compare("", Some(&normal(&a.body)), Some(&normal(&b.body)), &mut places);
            } else {
                places.push((String::new(), a.status.to_string(), b.status.to_string()));
            }
            found.extend(places.into_iter().map(|(path, one_says, other_says)| Difference {
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

type Place = (String, String, String);

fn compare(path: &str, one: Option<&Value>, other: Option<&Value>, found: &mut Vec<Place>) {
    match (one, other) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                compare(&format!("{path}/{key}"), a.get(key), b.get(key), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
            for (at, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}/{at}"), Some(a), Some(b), found);
            }
        }
        _ if one != other => {
            let told = |side: Option<&Value>| side.map_or_else(|| "-".into(), short);
            found.push((path.to_owned(), told(one), told(other)));
        }
        _ => {}
    }
}

/// A body without what differs between any two servers.
fn normal(body: &Value) -> Value {
    match body {
        Value::Object(map) => {
            Value::Object(map.iter().filter_map(|(key, value)| member(key, value)).collect())
        }
        Value::Array(list) => named(list).unwrap_or_else(|| list.iter().map(normal).collect()),
        other => other.clone(),
    }
}

/// The lists of discovery by name: their order says nothing.
fn named(list: &[Value]) -> Option<Value> {
    let name = |entry: &Value| {
        let names = ["/metadata/name", "/name", "/resource", "/subresource"];
        let listed = entry.get("verbs").is_some() || entry.get("versions").is_some();
        let name = names.iter().find_map(|at| entry.pointer(at)?.as_str());
        listed.then_some(name.unwrap_or_default().to_owned())
    };
    let entries = list.iter().map(|entry| Some((name(entry)?, normal(entry))));
    let mut entries: Map<String, Value> = entries.collect::<Option<_>>()?;
    // What other cases install comes and goes.
    entries.retain(|name, _| !name.starts_with("conformance-"));
    (!entries.is_empty()).then_some(Value::Object(entries))
}

fn member(key: &str, value: &Value) -> Option<(String, Value)> {
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
        // A hash that only the real server can make.
        "storageVersionHash",
    ];
    if key == "storageVersionHash" {
        return None;
    }
    if NEVER_THE_SAME.contains(&key) && !value.is_null() {
        return Some((key.to_owned(), json!("…")));
    }
    if key == "managedFields" {
        // Entries of one second come in an order that the second's turn decides.
        return Some((key.to_owned(), by_owner(value)));
    }
    if key == "cells" {
        return Some((key.to_owned(), value.as_array().into_iter().flatten().map(cell).collect()));
    }
    Some((key.to_owned(), normal(value)))
}

/// A cell of a table; how long ago something was depends on when one asks, and a uid on whom.
fn cell(value: &Value) -> Value {
    let text = value.as_str().unwrap_or_default();
    let is_age = text.starts_with(|c: char| c.is_ascii_digit()) && text.ends_with(['s', 'm', 'h', 'd']);
    if is_age || text.contains("-uid=") { json!("…") } else { value.clone() }
}

fn by_owner(entries: &Value) -> Value {
    let named = entries.as_array().into_iter().flatten().map(|entry| {
        let text = |field: &str| entry[field].as_str().unwrap_or_default();
        (format!("{}:{}:{}", text("manager"), text("operation"), text("subresource")), normal(entry))
    });
    Value::Object(named.collect::<Map<String, Value>>())
}

#[cfg(test)]
mod tests {
    use super::super::run::Exchange;
    use super::*;

    fn told(request: &str, real: Value, sandbox: Value) -> Vec<(String, bool)> {
        let answered = |body: Value| Outcome {
            name: "a case".into(),
            failures: Vec::new(),
            exchanges: vec![Exchange { request: request.into(), status: 200, body }],
        };
        let found = differences(&[answered(real)], &[answered(sandbox)]);
        found.into_iter().map(|one| (one.path.clone(), one.left_out().is_some())).collect()
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

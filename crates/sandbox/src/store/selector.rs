//! Label and field selectors.

use serde_json::Value;

use super::kind::SandboxKind;
use super::message::StoreRequest;
use super::refusal::StoreRefusal;

/// Selection of a list or a watch.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ListSelector {
    labels: Vec<SelectorTerm>,
    fields: Vec<(String, String, bool)>,
}

#[derive(Clone, Debug, PartialEq)]
enum SelectorTerm {
    In(String, Vec<String>),
    NotIn(String, Vec<String>),
    Exists(String),
    Absent(String),
}

/// Selectable fields besides name and namespace.
const SELECTABLE_FIELDS: [(&str, &[&str]); 6] = [
    (
        "pods",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
    ),
    (
        "events",
        &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
            "regarding.kind",
            "regarding.name",
            "regarding.namespace",
            "regarding.uid",
        ],
    ),
    ("secrets", &["type"]),
    ("namespaces", &["status.phase"]),
    ("nodes", &["spec.unschedulable"]),
    ("jobs", &["status.successful"]),
];

impl ListSelector {
    pub(super) fn from_request(
        kind: &SandboxKind,
        request: &StoreRequest,
    ) -> Result<ListSelector, StoreRefusal> {
        let labels = request
            .query_param("labelSelector")
            .map_or(Ok(Vec::new()), parse_label_selector)
            .map_err(StoreRefusal::bad_request)?;
        let fields = request
            .query_param("fieldSelector")
            .map_or(Ok(Vec::new()), |text| parse_field_selector(kind, text))
            .map_err(StoreRefusal::bad_request)?;
        Ok(ListSelector { labels, fields })
    }

    pub(super) fn only_name(mut self, name: &str) -> ListSelector {
        self.fields.push(("metadata.name".into(), name.into(), true));
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.labels.iter().all(|requirement| requirement.holds(labels))
            && self.fields.iter().all(|(path, value, equal)| (field_value(object, path) == *value) == *equal)
    }
}

impl SelectorTerm {
    fn holds(&self, labels: &Value) -> bool {
        let has = |key: &str| labels[key].as_str();
        match self {
            SelectorTerm::In(key, values) => {
                has(key).is_some_and(|value| values.iter().any(|wanted| wanted == value))
            }
            SelectorTerm::NotIn(key, values) => {
                has(key).is_none_or(|value| values.iter().all(|barred| barred != value))
            }
            SelectorTerm::Exists(key) => has(key).is_some(),
            SelectorTerm::Absent(key) => has(key).is_none(),
        }
    }
}

fn field_value(object: &Value, path: &str) -> String {
    match path.split('.').fold(object, |value, part| &value[part]) {
        Value::String(text) => text.clone(),
        Value::Null if path == "spec.unschedulable" || path == "spec.hostNetwork" => "false".into(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn parse_field_selector(kind: &SandboxKind, text: &str) -> Result<Vec<(String, String, bool)>, String> {
    let own = SELECTABLE_FIELDS
        .iter()
        .find(|(plural, _)| *plural == kind.plural && !kind.traits.custom)
        .map_or(&[][..], |(_, fields)| *fields);
    let mut found = Vec::new();
    for term in text.split(',').filter(|term| !term.is_empty()) {
        let (path, value, equal) = if let Some((path, value)) = term.split_once("!=") {
            (path, value, false)
        } else if let Some((path, value)) = term.split_once("==").or_else(|| term.split_once('=')) {
            (path, value, true)
        } else {
            return Err(format!("invalid selector: '{text}'; can't understand '{term}'"));
        };
        let known = ["metadata.name", "metadata.namespace"].contains(&path)
            && (kind.namespaced || path == "metadata.name")
            || own.contains(&path);
        if !known {
            return Err(format!("field label not supported: {path}"));
        }
        found.push((path.to_owned(), value.to_owned(), equal));
    }
    Ok(found)
}

/// Parses a label selector: splits it at commas outside parentheses and parses each term.
fn parse_label_selector(text: &str) -> Result<Vec<SelectorTerm>, String> {
    let mut depth = 0;
    let terms = text.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    terms
        .map(str::trim)
        .filter(|term| !term.is_empty())
        .map(|term| parse_label_term(term).ok_or_else(|| format!("unable to parse requirement: {term}")))
        .collect()
}

fn parse_label_term(term: &str) -> Option<SelectorTerm> {
    let key = |text: &str| {
        let text = text.trim();
        let legal = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c));
        legal.then(|| text.to_owned())
    };
    let value = |text: &str| {
        let text = text.trim();
        text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c)).then(|| text.to_owned())
    };
    if let Some((name, values)) = term.strip_suffix(')').and_then(|term| term.split_once('(')) {
        let values: Vec<String> = values.split(',').map(value).collect::<Option<_>>()?;
        let name = name.trim();
        return if let Some(name) = name.strip_suffix(" notin") {
            Some(SelectorTerm::NotIn(key(name)?, values))
        } else {
            Some(SelectorTerm::In(key(name.strip_suffix(" in")?)?, values))
        };
    }
    if let Some((name, text)) = term.split_once("!=") {
        return Some(SelectorTerm::NotIn(key(name)?, vec![value(text)?]));
    }
    if let Some((name, text)) = term.split_once("==").or_else(|| term.split_once('=')) {
        return Some(SelectorTerm::In(key(name)?, vec![value(text)?]));
    }
    match term.strip_prefix('!') {
        Some(name) => Some(SelectorTerm::Absent(key(name)?)),
        None => Some(SelectorTerm::Exists(key(term)?)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_label_selector_is_understood() {
        let object = json!({"metadata": {"labels": {"a": "1", "b/c": ""}}});
        let holds = |text: &str| {
            ListSelector { labels: parse_label_selector(text).unwrap(), fields: Vec::new() }.matches(&object)
        };
        for yes in [
            "a",
            "a=1",
            "a==1",
            "a!=2",
            "a in (1,2)",
            "a in (1), !x",
            "a notin (2)",
            "x notin (1)",
            "x!=1",
            "!x",
            "b/c",
            "b/c=",
        ] {
            assert!(holds(yes), "{yes}");
        }
        for no in ["x", "a=2", "a!=1", "a in (2,3)", "a notin (1)", "!a", "a=1,x"] {
            assert!(!holds(no), "{no}");
        }
        for bad in ["a==b==c", "a in 1", "a in (1", "=", "a b"] {
            assert!(parse_label_selector(bad).is_err(), "{bad}");
        }
    }
}

//! Policies and groups, and CRDs beside them, from a file of one or more YAML or JSON documents.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Error, bail};
use api::{ReadinessGroup, ReadinessPolicy};
use serde_json::Value;

use super::found_policy::FoundPolicy;
use super::group_selection::{GROUP_KIND, GroupName};
use super::group_shape::policy_of_group;
use super::problem::PolicyProblem;

/// Object of a manifest file.
#[derive(Debug)]
pub enum PolicyManifest {
    /// ReadinessPolicy, or the policy by which a ReadinessGroup is judged.
    Policy(Box<FoundPolicy>),
    /// `CustomResourceDefinition`, unchanged.
    Crd(Value),
}

/// Reads all policies of a file that may hold nothing else; `-` is standard input.
pub fn read_policies(path: &Path) -> anyhow::Result<Vec<FoundPolicy>> {
    parse_policies(&read_text(path)?, path)
}

/// Reads all policies of the text of this file, which may hold nothing else.
pub fn parse_policies(text: &str, path: &Path) -> anyhow::Result<Vec<FoundPolicy>> {
    let manifests = parse_text(text, path)?;
    let policies = manifests.into_iter().enumerate().map(|(at, manifest)| match manifest {
        PolicyManifest::Policy(found) => Ok(*found),
        PolicyManifest::Crd(_) => {
            bail!(
                "{}: document {}: not a rollcall.dev ReadinessPolicy or ReadinessGroup",
                path.display(),
                at + 1
            )
        }
    });
    policies.collect()
}

/// Reads all policies and CRDs of a file; `-` is standard input.
pub fn read_manifests(path: &Path) -> anyhow::Result<Vec<PolicyManifest>> {
    parse_text(&read_text(path)?, path)
}

/// Reads the text of a file; `-` is standard input.
pub fn read_text(path: &Path) -> anyhow::Result<String> {
    if path.as_os_str() == "-" {
        return std::io::read_to_string(std::io::stdin()).context("failed to read standard input");
    }
    std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}

fn parse_text(text: &str, path: &Path) -> anyhow::Result<Vec<PolicyManifest>> {
    parse_manifests(text).with_context(|| format!("failed to read policies from {}", path.display()))
}

/// Reads all policies and CRDs of a text.
pub fn parse_manifests(text: &str) -> anyhow::Result<Vec<PolicyManifest>> {
    let mut found = Vec::new();
    for (at, document) in rollcall_yaml::read_all(text.as_bytes())?.into_iter().enumerate() {
        if let Some(duplicate) = document.duplicate_keys.first() {
            bail!("line {}: {duplicate}", duplicate.line);
        }
        let value = serde_json::from_str(&document.json);
        for (place, object) in document_objects(value.with_context(|| format!("document {}", at + 1))?) {
            let place = place.map_or(String::new(), |place| format!(", {place}"));
            found.push(parse_manifest(object).with_context(|| format!("document {}{place}", at + 1))?);
        }
    }
    Ok(found)
}

/// Objects of a document: the document itself, or the items of a list such as `kubectl get -o yaml` prints, each with
/// its path in the list.
pub fn document_objects(mut document: Value) -> Vec<(Option<String>, Value)> {
    let is_list = document["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    match document.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) if is_list => {
            items.into_iter().enumerate().map(|(n, item)| (Some(format!("items[{n}]")), item)).collect()
        }
        Some(items) => {
            document["items"] = items;
            vec![(None, document)]
        }
        None if document.is_null() => Vec::new(),
        None => vec![(None, document)],
    }
}

fn parse_manifest(object: Value) -> anyhow::Result<PolicyManifest> {
    if object["kind"] == "CustomResourceDefinition" {
        return Ok(PolicyManifest::Crd(object));
    }
    let is_own = object["apiVersion"].as_str().is_some_and(|v| v.starts_with("rollcall.dev/"));
    if is_own && object["kind"] == GROUP_KIND.1 {
        let group: ReadinessGroup = serde_json::from_value(object)?;
        let told = |problems: Vec<PolicyProblem>| Error::msg(PolicyProblem::join_all(&problems));
        let mut stands_for = policy_of_group(&group.spec).map_err(told)?;
        if let Some(groups) = &mut stands_for.groups {
            let namespace = group.metadata.namespace.map(Into::into);
            let name = group.metadata.name.context("metadata.name is missing")?;
            groups.group = Some(GroupName { namespace, name: checked_name(name)?.into() });
        }
        stands_for.labels = read_labels(group.metadata.labels);
        return Ok(PolicyManifest::Policy(Box::new(stands_for)));
    }
    if !is_own || object["kind"] != "ReadinessPolicy" {
        bail!("not a rollcall.dev ReadinessPolicy or ReadinessGroup");
    }
    let policy: ReadinessPolicy = serde_json::from_value(object)?;
    let name = checked_name(policy.metadata.name.context("metadata.name is missing")?)?;
    Ok(PolicyManifest::Policy(Box::new(FoundPolicy {
        name,
        uid: String::new(),
        version: 0,
        generation: policy.metadata.generation.unwrap_or(1),
        created: None,
        labels: read_labels(policy.metadata.labels),
        spec: Ok(policy.spec),
        text: None,
        groups: None,
        status: api::ReadinessPolicyStatus::default(),
    })))
}

/// The name, if the API server allows it.
fn checked_name(name: String) -> anyhow::Result<String> {
    if !is_object_name(&name) {
        bail!("metadata.name {name:?}: {NOT_AN_OBJECT_NAME}");
    }
    Ok(name)
}

fn read_labels(labels: Option<BTreeMap<String, String>>) -> Vec<(Box<str>, Box<str>)> {
    labels.unwrap_or_default().into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}

/// What the API server says of a name that it refuses.
pub const NOT_AN_OBJECT_NAME: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character";

/// True for a name that the API server allows: a DNS subdomain.
pub fn is_object_name(name: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let ends = bytes.first().zip(bytes.last()).is_some_and(|(&a, &z)| alphanumeric(a) && alphanumeric(z));
        ends && bytes.iter().all(|&b| alphanumeric(b) || b == b'-')
    };
    name.len() <= 253 && name.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

    use super::*;

    fn policy(name: &str) -> String {
        format!(
            "{{ apiVersion: rollcall.dev/v1alpha1, kind: ReadinessPolicy, metadata: {{ name: {name} }}, \
             spec: {{ parent: {{ group: example.com, kind: Database }} }} }}"
        )
    }

    fn names(text: &str) -> anyhow::Result<Vec<String>> {
        let name = |manifest| match manifest {
            PolicyManifest::Policy(found) => found.name,
            PolicyManifest::Crd(crd) => format!("CRD {}", crd["metadata"]["name"]),
        };
        Ok(parse_manifests(text)?.into_iter().map(name).collect())
    }

    #[test]
    fn a_list_is_as_many_documents() {
        let (a, b, c) = (policy("a"), policy("b"), policy("c"));
        for kind in ["List", "ReadinessPolicyList"] {
            let text = format!("apiVersion: v1\nkind: {kind}\nitems:\n- {a}\n- {b}\n---\n---\n{c}\n");
            assert_eq!(names(&text).unwrap(), ["a", "b", "c"]);
        }
        assert_eq!(names("kind: List\nitems: []\n").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_name_that_the_server_would_refuse_is_refused() {
        for (name, allowed) in [
            ("databases", true),
            ("team-a.databases", true),
            ("Databases", false),
            ("a_b", false),
            ("-a", false),
            ("a..b", false),
            ("a\u{1b}[31m", false),
            ("x\n---", false),
            ("", false),
        ] {
            assert_eq!(is_object_name(name), allowed, "{name:?}");
        }
        assert!(!is_object_name(&"a".repeat(254)));
        let told = names(&policy("\"a\\nb\"")).unwrap_err();
        assert!(format!("{told:#}").contains("RFC 1123 subdomain"), "{told:#}");
    }

    #[test]
    fn what_is_no_policy_is_named_by_its_place() {
        let told = |text: &str| format!("{:#}", names(text).unwrap_err());
        let among = format!("{}\n---\nkind: List\nitems:\n- {}\n- kind: Secret\n", policy("a"), policy("b"));
        assert_eq!(
            told(&among),
            "document 2, items[1]: not a rollcall.dev ReadinessPolicy or ReadinessGroup"
        );
        assert_eq!(
            told("kind: List\nitems: 3\n"),
            "document 1: not a rollcall.dev ReadinessPolicy or ReadinessGroup"
        );
    }
}

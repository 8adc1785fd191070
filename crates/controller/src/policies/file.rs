//! Policies from a file: one or many documents, YAML or JSON; and the CRDs that lie beside them.

use std::path::Path;

use anyhow::{Context, bail};
use api::ReadinessPolicy;
use serde_json::Value;

use super::Found;

/// What a file may hold.
#[derive(Debug)]
pub enum Manifest {
    /// A policy.
    Policy(Box<Found>),
    /// A `CustomResourceDefinition`, as it stands there.
    Crd(Value),
}

/// Reads every policy in a file that holds nothing else; `-` is standard input.
pub fn read(path: &Path) -> anyhow::Result<Vec<Found>> {
    let policies = read_manifests(path)?.into_iter().enumerate().map(|(at, manifest)| match manifest {
        Manifest::Policy(found) => Ok(*found),
        Manifest::Crd(_) => {
            bail!("{}: document {}: not a rollcall.dev ReadinessPolicy", path.display(), at + 1)
        }
    });
    policies.collect()
}

/// Reads every policy and every CRD in a file; `-` is standard input.
pub fn read_manifests(path: &Path) -> anyhow::Result<Vec<Manifest>> {
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin()).context("failed to read standard input")?
    } else {
        std::fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?
    };
    parse(&text).with_context(|| format!("failed to read policies from {}", path.display()))
}

fn parse(text: &str) -> anyhow::Result<Vec<Manifest>> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| anyhow::anyhow!("not YAML: {error}"))?;
    let mut found = Vec::new();
    for (at, document) in documents.into_iter().enumerate() {
        for (place, object) in objects(document) {
            let place = place.map_or(String::new(), |place| format!(", {place}"));
            found.push(manifest(object).with_context(|| format!("document {}{place}", at + 1))?);
        }
    }
    Ok(found)
}

/// The objects of a document: itself, or the items of a list such as `kubectl get -o yaml` prints, each with its path in there.
pub fn objects(mut document: Value) -> Vec<(Option<String>, Value)> {
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

fn manifest(object: Value) -> anyhow::Result<Manifest> {
    if object["kind"] == "CustomResourceDefinition" {
        return Ok(Manifest::Crd(object));
    }
    let is_policy = object["kind"] == "ReadinessPolicy"
        && object["apiVersion"].as_str().is_some_and(|v| v.starts_with("rollcall.dev/"));
    if !is_policy {
        bail!("not a rollcall.dev ReadinessPolicy");
    }
    let policy: ReadinessPolicy = serde_json::from_value(object)?;
    let name = policy.metadata.name.context("metadata.name is missing")?;
    let labels = policy.metadata.labels.unwrap_or_default();
    Ok(Manifest::Policy(Box::new(Found {
        name,
        uid: String::new(),
        generation: policy.metadata.generation.unwrap_or(1),
        created: None,
        labels: labels.into_iter().map(|(k, v)| (k.into(), v.into())).collect(),
        spec: Ok(policy.spec),
        status: api::ReadinessPolicyStatus::default(),
    })))
}

/// Writes a value as YAML.
pub fn to_yaml(value: &impl serde::Serialize) -> anyhow::Result<String> {
    serde_saphyr::to_string(value).map_err(|error| anyhow::anyhow!("failed to write YAML: {error}"))
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
            Manifest::Policy(found) => found.name,
            Manifest::Crd(crd) => format!("CRD {}", crd["metadata"]["name"]),
        };
        Ok(parse(text)?.into_iter().map(name).collect())
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
    fn what_is_no_policy_is_named_by_its_place() {
        let told = |text: &str| format!("{:#}", names(text).unwrap_err());
        let among = format!("{}\n---\nkind: List\nitems:\n- {}\n- kind: Secret\n", policy("a"), policy("b"));
        assert_eq!(told(&among), "document 2, items[1]: not a rollcall.dev ReadinessPolicy");
        assert_eq!(told("kind: List\nitems: 3\n"), "document 1: not a rollcall.dev ReadinessPolicy");
    }
}

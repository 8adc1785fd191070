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
    let mut found = Vec::new();
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(text).map_err(|error| anyhow::anyhow!("not YAML: {error}"))?;
    for (at, document) in documents.into_iter().enumerate().filter(|(_, d)| !d.is_null()) {
        if document["kind"] == "CustomResourceDefinition" {
            found.push(Manifest::Crd(document));
            continue;
        }
        let policy: ReadinessPolicy =
            serde_json::from_value(document.clone()).with_context(|| format!("document {}", at + 1))?;
        let is_policy = document["kind"] == "ReadinessPolicy"
            && document["apiVersion"].as_str().is_some_and(|v| v.starts_with("rollcall.dev/"));
        if !is_policy {
            bail!("document {}: not a rollcall.dev ReadinessPolicy", at + 1);
        }
        let name =
            policy.metadata.name.with_context(|| format!("document {}: metadata.name is missing", at + 1))?;
        let labels = policy.metadata.labels.unwrap_or_default();
        found.push(Manifest::Policy(Box::new(Found {
            name,
            uid: String::new(),
            generation: policy.metadata.generation.unwrap_or(1),
            created: None,
            labels: labels.into_iter().map(|(k, v)| (k.into(), v.into())).collect(),
            spec: Ok(policy.spec),
            status: api::ReadinessPolicyStatus::default(),
        })));
    }
    Ok(found)
}

/// Writes a value as YAML.
pub fn to_yaml(value: &impl serde::Serialize) -> anyhow::Result<String> {
    serde_saphyr::to_string(value).map_err(|error| anyhow::anyhow!("failed to write YAML: {error}"))
}

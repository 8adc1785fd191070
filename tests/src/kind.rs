//! API paths of objects, derived from the apiVersion and kind of a manifest.

use anyhow::{Context, Result};
use serde_json::Value;

/// A kind, as a manifest names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ManifestKind {
    /// `apps/v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
}

/// Address of one object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectAddress {
    /// Kind of the object.
    pub kind: ManifestKind,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// `metadata.name`.
    pub name: String,
}

const CLUSTER_SCOPED: [&str; 8] = [
    "CustomResourceDefinition",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PriorityClass",
    "ReadinessPolicy",
    "ResourceGraphDefinition",
    "StorageClass",
];

/// Cluster API's and OLM's.
const NAMESPACED_IN_SPITE_OF_THEIR_NAME: [&str; 2] = ["Cluster", "ClusterServiceVersion"];

impl ManifestKind {
    /// Returns the kind of an apiVersion and kind.
    pub fn new(api_version: &str, kind: &str) -> Self {
        Self { api_version: api_version.to_owned(), kind: kind.to_owned() }
    }

    /// Returns the kind of an object.
    pub fn of(object: &Value) -> Result<Self> {
        let word = |key: &str| object[key].as_str().with_context(|| format!("no {key} in {object}"));
        Ok(Self::new(word("apiVersion")?, word("kind")?))
    }

    /// Returns `true` for cluster-scoped kinds. Custom kinds of these tests are cluster-scoped if their name says so,
    /// as with `ClusterRole`.
    pub fn is_cluster_scoped(&self) -> bool {
        let is_named_so = self.kind.starts_with("Cluster")
            && !NAMESPACED_IN_SPITE_OF_THEIR_NAME.contains(&self.kind.as_str());
        is_named_so || CLUSTER_SCOPED.contains(&self.kind.as_str())
    }

    /// The plural: `deployments`.
    pub fn plural(&self) -> String {
        let lower = self.kind.to_lowercase();
        match lower.as_bytes().last() {
            Some(b'y') => format!("{}ies", &lower[..lower.len() - 1]),
            Some(b's') => format!("{lower}es"),
            _ => format!("{lower}s"),
        }
    }

    /// The group: `example.com`, empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version: `v1`.
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(&self.api_version, |(_, version)| version)
    }

    /// Path of the collection; an empty namespace means all namespaces.
    pub fn path(&self, namespace: &str) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        let within = if namespace.is_empty() || self.is_cluster_scoped() {
            String::new()
        } else {
            format!("/namespaces/{namespace}")
        };
        format!("/{root}/{}{within}/{}", self.api_version, self.plural())
    }
}

impl ObjectAddress {
    /// Returns the address of an object.
    pub fn of(object: &Value) -> Result<Self> {
        let metadata = &object["metadata"];
        Ok(Self {
            kind: ManifestKind::of(object)?,
            namespace: metadata["namespace"].as_str().unwrap_or_default().to_owned(),
            name: metadata["name"].as_str().context("an object without a name")?.to_owned(),
        })
    }

    /// Path of the object.
    pub fn path(&self) -> String {
        format!("{}/{}", self.kind.path(&self.namespace), self.name)
    }
}

impl std::fmt::Display for ObjectAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.kind.kind, self.name)
    }
}

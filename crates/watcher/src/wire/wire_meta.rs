//! The metadata of an object, as far as it is read.

use readiness::Time;

/// The identifying metadata of an object, and its links to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireMeta {
    /// `apiVersion`; empty inside lists of built-in kinds.
    pub api_version: Box<str>,
    /// `kind`; empty inside lists of built-in kinds.
    pub kind: Box<str>,
    /// `metadata.name`.
    pub name: Box<str>,
    /// `metadata.generateName`.
    pub generate_name: Box<str>,
    /// `metadata.namespace`; empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// `metadata.uid`.
    pub uid: Box<str>,
    /// `metadata.resourceVersion` as a number (comparable within a kind since Kubernetes 1.35); 0 if it is not a
    /// number.
    pub resource_version: u64,
    /// `metadata.generation`; 0 where absent.
    pub generation: i64,
    /// `metadata.creationTimestamp`.
    pub created: Option<Time>,
    /// `metadata.deletionTimestamp`.
    pub deleted: Option<Time>,
    /// `metadata.ownerReferences`.
    pub owners: Vec<OwnerRef>,
    /// `metadata.labels`, in the order of the JSON text.
    pub labels: Vec<(Box<str>, Box<str>)>,
    /// The entries of `metadata.annotations` that rules and policies read.
    pub annotations: Vec<(Box<str>, Box<str>)>,
    /// `metadata.finalizers`.
    pub finalizers: Vec<Box<str>>,
    /// Managers that set the finalizers, as far as `metadata.managedFields` records them: finalizer and manager.
    pub setters: Vec<(Box<str>, Box<str>)>,
}

/// One of `metadata.ownerReferences`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnerRef {
    /// `apiVersion` of the owner.
    pub api_version: Box<str>,
    /// `kind` of the owner.
    pub kind: Box<str>,
    /// `name` of the owner.
    pub name: Box<str>,
    /// `uid` of the owner.
    pub uid: Box<str>,
    /// The owner is the controller of the object.
    pub controller: bool,
}

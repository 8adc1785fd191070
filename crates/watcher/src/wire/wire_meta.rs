//! The metadata of an object, as far as it is read.

use readiness::Time;

use super::spec_version::SpecVersion;

/// Annotation by which Argo CD marks the objects of an Application: `app:group/Kind:namespace/name`
/// (argo-cd `util/argo/resource_tracking.go`).
pub const TRACKING_ANNOTATION: &str = "argocd.argoproj.io/tracking-id";
/// Annotation by which cli-utils, and with it kpt and Config Sync, marks the objects of an inventory
/// (cli-utils `pkg/inventory/policy.go`).
pub const INVENTORY_ANNOTATION: &str = "config.k8s.io/owning-inventory";

/// Annotation by which Helm marks what it installs, with the release's name; and the one with its namespace
/// (helm `pkg/action/validate.go`).
pub const HELM_RELEASE_ANNOTATION: &str = "meta.helm.sh/release-name";
pub(super) const HELM_NAMESPACE_ANNOTATION: &str = "meta.helm.sh/release-namespace";
/// Labels that Helm asks charts to set (Helm's documentation, "Labels and Annotations").
const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";

/// Largest length of an object's name (`k8s.io/apimachinery/pkg/util/validation`, DNS-1123 subdomain).
pub const MAX_NAME_BYTES: usize = 253;
/// Largest length of a uid that is read; the API server makes them with 36 bytes.
pub const MAX_UID_BYTES: usize = 128;

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
    /// Tells whether the object is wanted to be something else than before.
    pub spec_version: SpecVersion,
    /// `metadata.creationTimestamp`.
    pub created: Option<Time>,
    /// `metadata.deletionTimestamp`.
    pub deleted: Option<Time>,
    /// `metadata.ownerReferences`.
    pub owners: Vec<OwnerRef>,
    /// `metadata.labels`, in the order of the JSON text, and behind them what annotations say of the Application, of the
    /// inventory or of the Helm release that the object belongs to: those are found as by a label with the annotation's key.
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
    /// `blockOwnerDeletion`: a deletion of the owner in the foreground waits for the object.
    pub blocks_deletion: bool,
}

impl OwnerRef {
    /// API group of the owner; empty for the core group.
    pub fn api_group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Returns `false` if no object has such a name or uid: the API server takes any in a reference.
    pub fn is_of_valid_length(&self) -> bool {
        self.name.len() <= MAX_NAME_BYTES && self.uid.len() <= MAX_UID_BYTES
    }
}

impl WireMeta {
    /// Adds to the labels the Application, the inventory and the Helm release that the object belongs to.
    pub(super) fn add_owners_from_annotations(&mut self) {
        let value = |(key, value): &(Box<str>, Box<str>)| {
            let value = match &**key {
                TRACKING_ANNOTATION => self.tracked_by(value)?,
                INVENTORY_ANNOTATION => value,
                _ => return None,
            };
            Some((key.clone(), Box::from(value)))
        };
        let release = self.helm_release().map(|release| (HELM_RELEASE_ANNOTATION.into(), release.into()));
        let said: Vec<_> = self.annotations.iter().filter_map(value).chain(release).collect();
        self.labels.extend(said);
    }

    /// The Helm release that this object is of. Helm annotates what it installs, and hooks, which it does not, have the labels
    /// that it asks charts to set. Controllers copy annotations to what they make: on an object of theirs they say nothing.
    fn helm_release(&self) -> Option<&str> {
        let annotation = |key: &str| value_of(&self.annotations, key);
        let label = |key: &str| value_of(&self.labels, key);
        let is_made = self.owners.iter().any(|owner| owner.controller);
        if let Some(release) = annotation(HELM_RELEASE_ANNOTATION).filter(|_| !is_made) {
            let is_here =
                self.namespace.is_empty() || annotation(HELM_NAMESPACE_ANNOTATION) == Some(&*self.namespace);
            return Some(release).filter(|_| is_here);
        }
        label(MANAGED_BY_LABEL).filter(|by| *by == "Helm").and_then(|_| label(INSTANCE_LABEL))
    }

    /// The Application that tracks this object. Controllers copy annotations to what they make, as that of Deployments does to
    /// ReplicaSets: one that names another object says nothing of this one.
    fn tracked_by<'t>(&self, tracking_id: &'t str) -> Option<&'t str> {
        let (application, object) = tracking_id.split_once(':')?;
        let (_, place) = object.split_once(':')?;
        let (namespace, name) = place.split_once('/')?;
        let is_here = self.namespace.is_empty() || *namespace == *self.namespace;
        (is_here && *name == *self.name).then_some(application)
    }
}

fn value_of<'m>(all: &'m [(Box<str>, Box<str>)], key: &str) -> Option<&'m str> {
    all.iter().find(|(held, _)| **held == *key).map(|(_, value)| &**value)
}

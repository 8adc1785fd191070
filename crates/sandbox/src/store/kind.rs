//! Served kinds: one entry per version, with the traits that decide how its objects are written and deleted.

use std::sync::Arc;

use serde_json::Value;

use super::meta;
use super::structural_schema::StructuralSchema;
use super::table::PrinterColumn;

/// Identity of one storage of a kind. A CRD that is deleted and installed again gets a new one, so that a watch or a
/// continue token of the old storage is not mistaken for one of the new.
pub(crate) type StorageId = u32;

/// One kind in one served version.
#[derive(Clone, Debug)]
pub(crate) struct SandboxKind {
    pub(crate) storage: StorageId,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// The kind has a status subresource; writes to the main resource then leave the status unchanged.
    pub(crate) status: bool,
    pub(crate) traits: KindTraits,
    /// The structural schema of a custom resource; `None` for built-in kinds.
    pub(crate) schema: Option<Arc<StructuralSchema>>,
    /// Printer columns of the CRD.
    pub(crate) columns: Vec<PrinterColumn>,
}

/// Traits of a kind that decide how its objects are written and deleted.
#[expect(clippy::struct_excessive_bools, reason = "traits that kinds have in any combination; no state")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KindTraits {
    pub(crate) custom: bool,
    /// The server maintains `metadata.generation`.
    pub(crate) generation: bool,
    /// A PUT does not need a `metadata.resourceVersion`.
    pub(crate) blind_put: bool,
    /// A PUT of a missing object creates it.
    pub(crate) create_on_put: bool,
    /// Deleted with a grace period (Pods).
    pub(crate) graceful: bool,
    /// DELETE answers with the object, not with a `Status`.
    pub(crate) returns_deleted: bool,
    /// Dependents are orphaned by default (Jobs).
    pub(crate) orphans: bool,
    /// Not stored: the request is answered at once (reviews).
    pub(crate) review: bool,
}

impl SandboxKind {
    /// The plural of a built-in kind; `None` for a custom one, whatever its name.
    pub(crate) fn builtin_plural(&self) -> Option<&str> {
        (!self.traits.custom).then_some(self.plural.as_str())
    }

    /// Storage key of this object.
    pub(crate) fn key_of(&self, object: &Value) -> String {
        self.storage_key(meta::namespace(object), meta::name(object))
    }

    /// `group/version`, or the bare version in the core group.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Storage key of an object of this kind: `namespace/name` or `name`, ordered as etcd orders its keys.
    pub(crate) fn storage_key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }

    /// Returns the object in this version.
    pub(crate) fn render_version(&self, object: &Arc<Value>) -> Arc<Value> {
        let api_version = self.api_version();
        if object["apiVersion"] == api_version.as_str() {
            return object.clone();
        }
        let mut object = (**object).clone();
        if self.kind == "Event" && !self.traits.custom {
            super::events::convert_event(&mut object, &self.group);
        }
        object["apiVersion"] = api_version.into();
        Arc::new(object)
    }
}

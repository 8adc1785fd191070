//! Kinds, as they are served: one per version, together with how writes to it behave.

use std::sync::Arc;

use serde_json::Value;

use super::schema::Schema;
use super::table::Column;

/// One incarnation of one kind's storage. A CRD that is deleted and installed again gets a new one, so that nothing
/// that belonged to the old one (a watch, a continue token) is mistaken for the new.
pub(crate) type StorageId = u32;

/// One kind in one served version.
#[derive(Clone, Debug)]
#[expect(clippy::struct_field_names, reason = "they are called so in the API")]
pub(crate) struct Kind {
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
    /// Whether status has an endpoint of its own, which main writes then cannot touch.
    pub(crate) status: bool,
    pub(crate) traits: Traits,
    /// The structural schema of a custom resource; built-in kinds have none here.
    pub(crate) schema: Option<Arc<Schema>>,
    /// What a CRD wants kubectl to show.
    pub(crate) columns: Vec<Column>,
}

/// What differs between kinds in how they are written and deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    pub(crate) custom: bool,
    /// `metadata.generation` is kept.
    pub(crate) generation: bool,
    /// A PUT needs no `metadata.resourceVersion`.
    pub(crate) blind_put: bool,
    /// A PUT of what does not exist creates it.
    pub(crate) create_on_put: bool,
    /// Deleted with a grace period (Pods).
    pub(crate) graceful: bool,
    /// DELETE answers with the object, not with a `Status`.
    pub(crate) returns_deleted: bool,
    /// Dependents stay when nothing else is asked for (Jobs).
    pub(crate) orphans: bool,
    /// No storage: the object is answered at once (reviews).
    pub(crate) review: bool,
}

impl Kind {
    /// `group/version`, or the bare version in the core group.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Where an object of this kind is kept: `namespace/name` or `name`, ordered as etcd orders its keys.
    pub(crate) fn key(&self, namespace: &str, name: &str) -> String {
        if self.namespaced { format!("{namespace}/{name}") } else { name.to_owned() }
    }

    /// The object as this version shows it.
    pub(crate) fn render(&self, object: &Arc<Value>) -> Arc<Value> {
        let api_version = self.api_version();
        if object["apiVersion"] == api_version.as_str() {
            return object.clone();
        }
        let mut object = (**object).clone();
        if self.kind == "Event" && !self.traits.custom {
            super::events::convert(&mut object, &self.group);
        }
        object["apiVersion"] = api_version.into();
        Arc::new(object)
    }
}

//! The controllers' workqueue: what a change of an object gives them to do.

use std::collections::BTreeSet;

use serde_json::Value;

use super::kind::SandboxKind;
use super::meta;
use super::owner_index::StoredAt;

/// An item of the controllers' workqueue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ControllerWork {
    /// Delete this object if all its owners are gone.
    Owned(StoredAt),
    /// Delete this object once its blocking dependents are gone.
    Foreground(StoredAt),
    /// Remove this owner from its dependents' ownerReferences.
    Orphan(StoredAt),
    /// Finish deleting this namespace once it is empty.
    Namespace(String),
    /// Finish deleting this CRD once all its objects are gone.
    Definition(String),
}

/// Work that no controller has done yet, in a fixed order.
#[derive(Debug, Default)]
pub(super) struct ControllerQueue {
    work: BTreeSet<ControllerWork>,
}

impl ControllerQueue {
    /// Takes the next item.
    pub(super) fn take_next(&mut self) -> Option<ControllerWork> {
        self.work.pop_first()
    }

    /// Enqueues what follows from a write by a client.
    pub(super) fn enqueue_written(&mut self, kind: &SandboxKind, at: &StoredAt, object: &Value) {
        if !meta::owner_references(object).is_empty() {
            self.work.insert(ControllerWork::Owned(at.clone()));
        }
        if !meta::is_deleting(object) {
            return;
        }
        if meta::has_finalizer(object, "foregroundDeletion") {
            self.work.insert(ControllerWork::Foreground(at.clone()));
        } else if meta::has_finalizer(object, "orphan") {
            self.work.insert(ControllerWork::Orphan(at.clone()));
        }
        let name = || meta::name(object).to_owned();
        match kind.builtin_plural() {
            Some("namespaces") => _ = self.work.insert(ControllerWork::Namespace(name())),
            Some("customresourcedefinitions") => _ = self.work.insert(ControllerWork::Definition(name())),
            _ => {}
        }
    }

    /// Enqueues what follows from the removal of an object of a kind that is still served, or of one that is not.
    pub(super) fn enqueue_erased<'a>(
        &mut self,
        kind: Option<&SandboxKind>,
        last: &Value,
        dependents: impl IntoIterator<Item = StoredAt>,
        owners: impl Iterator<Item = &'a StoredAt>,
    ) {
        self.work.extend(dependents.into_iter().map(ControllerWork::Owned));
        self.work.extend(owners.cloned().map(ControllerWork::Foreground));
        if !meta::namespace(last).is_empty() {
            self.work.insert(ControllerWork::Namespace(meta::namespace(last).into()));
        }
        if let Some(kind) = kind.filter(|kind| kind.traits.custom) {
            self.work.insert(ControllerWork::Definition(format!("{}.{}", kind.plural, kind.group)));
        }
    }
}

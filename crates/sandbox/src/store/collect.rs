//! The controllers that live in the control plane: garbage collection by ownerReferences, the emptying of namespaces
//! and of deleted CRDs. They run within [`Store::tick`], in a fixed order, until nothing is left to do.

use std::sync::Arc;

use serde_json::{Value, json};

use super::delete::{Options, Propagation};
use super::kind::{Kind, StorageId};
use super::message::Millis;
use super::meta::{self, meta_mut};
use super::{Store, crd, managed};

/// Held until all objects of the kind are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Something for a controller to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// Does this object still have an owner?
    Owned(StorageId, String),
    /// Are the dependents of this object gone, so that it can go?
    Foreground(StorageId, String),
    /// Its dependents are to forget it.
    Orphan(StorageId, String),
    /// Is this namespace empty?
    Namespace(String),
    /// Are all objects of this CRD gone?
    Definition(String),
}

/// Marks what only a controller may finish: a CRD waits for its objects, a namespace for its content.
pub(super) fn hold(kind: &Kind, object: &mut Value, now: Millis) {
    if kind.plural == "namespaces" {
        object["status"]["phase"] = json!("Terminating");
    } else {
        meta::add_finalizer(object, CLEANUP);
        crd::terminating(object, now);
    }
}

impl Store {
    /// Lets the controllers work until they have nothing left to do.
    pub fn tick(&mut self, now: Millis) {
        while let Some(work) = self.work.pop_first() {
            match work {
                Work::Owned(storage, key) => self.collect_orphaned(now, storage, &key),
                Work::Foreground(storage, key) => self.collect_foreground(now, storage, &key),
                Work::Orphan(storage, key) => self.release(now, storage, &key),
                Work::Namespace(name) => self.empty_namespace(now, &name),
                Work::Definition(name) => self.empty_definition(now, &name),
            }
        }
    }

    /// Notes who depends on whom; called with every change.
    pub(super) fn index(
        &mut self,
        storage: StorageId,
        key: &str,
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        let place = (storage, key.to_owned());
        for owner in before.map(meta::owners).unwrap_or_default() {
            if let Some(set) = self.dependents.get_mut(owner["uid"].as_str().unwrap_or_default()) {
                set.remove(&place);
            }
        }
        if let (Some(before), None) = (before, after) {
            self.living.remove(meta::uid(before));
        }
        let Some(after) = after else { return };
        self.living.insert(meta::uid(after).to_owned(), place.clone());
        for owner in meta::owners(after) {
            self.dependents
                .entry(owner["uid"].as_str().unwrap_or_default().to_owned())
                .or_default()
                .insert(place.clone());
        }
    }

    /// What a write sets in motion.
    pub(super) fn after_write(&mut self, now: Millis, kind: &Arc<Kind>, object: &Arc<Value>) {
        let place = || (kind.storage, kind.key(meta::namespace(object), meta::name(object)));
        if !meta::owners(object).is_empty() {
            let (storage, key) = place();
            self.work.insert(Work::Owned(storage, key));
        }
        if meta::is_deleting(object) {
            let (storage, key) = place();
            if meta::has_finalizer(object, "foregroundDeletion") {
                self.work.insert(Work::Foreground(storage, key));
            } else if meta::has_finalizer(object, "orphan") {
                self.work.insert(Work::Orphan(storage, key));
            }
        }
        if kind.traits.custom {
            return;
        }
        match (kind.plural.as_str(), meta::is_deleting(object)) {
            ("namespaces", true) => _ = self.work.insert(Work::Namespace(meta::name(object).into())),
            ("customresourcedefinitions", true) => {
                _ = self.work.insert(Work::Definition(meta::name(object).into()));
            }
            ("customresourcedefinitions", false) => self.install(now, kind, object),
            _ => {}
        }
    }

    /// What a removal sets in motion.
    pub(super) fn after_erase(&mut self, _now: Millis, storage: StorageId, last: &Value) {
        if let Some(left) = self.dependents.remove(meta::uid(last)) {
            self.work.extend(left.into_iter().map(|(storage, key)| Work::Owned(storage, key)));
        }
        for owner in meta::owners(last) {
            if let Some((storage, key)) = self.living.get(owner["uid"].as_str().unwrap_or_default()) {
                self.work.insert(Work::Foreground(*storage, key.clone()));
            }
        }
        if !meta::namespace(last).is_empty() {
            self.work.insert(Work::Namespace(meta::namespace(last).into()));
        }
        let Some(kind) = self.registry.of(storage) else { return };
        if kind.traits.custom {
            self.work.insert(Work::Definition(format!("{}.{}", kind.plural, kind.group)));
        } else if kind.plural == "customresourcedefinitions" {
            self.registry.remove(meta::name(last));
        }
    }

    /// Deletes an object whose owners are all gone; drops the references to those that are, where others live.
    fn collect_orphaned(&mut self, now: Millis, storage: StorageId, key: &str) {
        let (Some(object), Some(kind)) =
            (self.object(storage, key).cloned(), self.registry.of(storage).cloned())
        else {
            return;
        };
        let (mut solid, mut waiting, mut gone) = (0, 0, Vec::new());
        for owner in meta::owners(&object) {
            match self.owner(&kind, &object, owner) {
                Owner::Unresolvable => return,
                Owner::Gone => gone.push(owner["uid"].clone()),
                Owner::Waiting => waiting += 1,
                Owner::Solid => solid += 1,
            }
        }
        if solid > 0 {
            if !gone.is_empty() {
                self.drop_owners(now, &kind, &object, &gone);
            }
            return;
        }
        if waiting + gone.len() > 0 && !meta::is_deleting(&object) {
            let has_dependents = self.dependents.get(meta::uid(&object)).is_some_and(|set| !set.is_empty());
            let how =
                if waiting > 0 && has_dependents { Propagation::Foreground } else { Propagation::Background };
            // A refusal means that it is gone by now.
            let _ = self.remove(now, &kind, &object, &Options::propagate(how));
        }
    }

    fn owner(&self, kind: &Kind, object: &Value, owner: &Value) -> Owner {
        let text = |field: &str| owner[field].as_str().unwrap_or_default();
        let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
        let Some(owning) = self.registry.by_group_kind(group, text("kind")) else {
            return Owner::Unresolvable;
        };
        if owning.namespaced && !kind.namespaced {
            return Owner::Unresolvable;
        }
        let place = (owning.storage, owning.key(meta::namespace(object), text("name")));
        if self.living.get(text("uid")) != Some(&place) {
            return Owner::Gone;
        }
        let waits =
            |owner: &Value| meta::is_deleting(owner) && meta::has_finalizer(owner, "foregroundDeletion");
        if self.object(place.0, &place.1).is_some_and(|owner| waits(owner)) {
            Owner::Waiting
        } else {
            Owner::Solid
        }
    }

    fn drop_owners(&mut self, now: Millis, kind: &Arc<Kind>, before: &Value, uids: &[Value]) {
        let mut object = before.clone();
        if let Some(owners) = meta_mut(&mut object).get_mut("ownerReferences").and_then(Value::as_array_mut) {
            owners.retain(|owner| !uids.contains(&owner["uid"]));
        }
        meta::tidy(&mut object);
        let write = managed::Write::by(now, kind, "kube-controller-manager");
        managed::update(&write, before, &mut object);
        self.commit(now, kind, object);
    }

    fn collect_foreground(&mut self, now: Millis, storage: StorageId, key: &str) {
        let (Some(object), Some(kind)) =
            (self.object(storage, key).cloned(), self.registry.of(storage).cloned())
        else {
            return;
        };
        if !meta::is_deleting(&object) || !meta::has_finalizer(&object, "foregroundDeletion") {
            return;
        }
        let dependents = self.dependents.get(meta::uid(&object)).cloned().unwrap_or_default();
        for (storage, key) in &dependents {
            self.collect_orphaned(now, *storage, key);
        }
        let left = self.dependents.get(meta::uid(&object)).cloned().unwrap_or_default();
        let blocks = |place: &(StorageId, String)| {
            let owners =
                self.object(place.0, &place.1).map(|dependent| meta::owners(dependent)).unwrap_or_default();
            owners
                .iter()
                .any(|owner| owner["uid"] == meta::uid(&object) && owner["blockOwnerDeletion"] == true)
        };
        if !left.iter().any(blocks) {
            self.let_go(now, &kind, &object, "foregroundDeletion");
        }
    }

    /// Takes a finalizer away; the last one takes the object with it.
    fn let_go(&mut self, now: Millis, kind: &Arc<Kind>, object: &Value, finalizer: &str) {
        let mut freed = object.clone();
        meta::remove_finalizer(&mut freed, finalizer);
        if meta::finalizers(&freed).is_empty() {
            self.erase(now, kind.storage, &kind.key(meta::namespace(object), meta::name(object)));
        } else {
            self.commit(now, kind, freed);
        }
    }

    fn release(&mut self, now: Millis, storage: StorageId, key: &str) {
        let (Some(object), Some(kind)) =
            (self.object(storage, key).cloned(), self.registry.of(storage).cloned())
        else {
            return;
        };
        let uid = json!(meta::uid(&object));
        for (storage, key) in self.dependents.get(meta::uid(&object)).cloned().unwrap_or_default() {
            if let (Some(dependent), Some(kind)) =
                (self.object(storage, &key).cloned(), self.registry.of(storage).cloned())
            {
                self.drop_owners(now, &kind, &dependent, std::slice::from_ref(&uid));
            }
        }
        self.let_go(now, &kind, &object, "orphan");
    }

    fn empty_definition(&mut self, now: Millis, name: &str) {
        let Some(kind) =
            self.registry.find("apiextensions.k8s.io", "v1", "customresourcedefinitions").cloned()
        else {
            return;
        };
        let Some(definition) =
            self.object(kind.storage, name).cloned().filter(|definition| meta::is_deleting(definition))
        else {
            return;
        };
        if let Some(storage) = self.registry.custom(name) {
            self.delete_all(now, storage, "");
            if self.shelves.get(&storage).is_some_and(|shelf| !shelf.objects.is_empty()) {
                self.commit_terminating(now, &kind, &definition);
                return;
            }
        }
        self.let_go(now, &kind, &definition, CLEANUP);
    }

    /// Says of a definition that its objects are going but not gone.
    fn commit_terminating(&mut self, now: Millis, kind: &Arc<Kind>, definition: &Arc<Value>) {
        let mut told = (**definition).clone();
        crd::emptying(&mut told);
        if told != **definition {
            let write = managed::Write {
                sub: Some(super::route::Sub::Status),
                ..managed::Write::by(now, kind, "kube-apiserver")
            };
            managed::update(&write, definition, &mut told);
            self.commit(now, kind, told);
        }
    }

    /// Deletes everything of one kind whose key starts with `prefix`.
    pub(super) fn delete_all(&mut self, now: Millis, storage: StorageId, prefix: &str) {
        let Some(kind) = self.registry.of(storage).cloned() else { return };
        let Some(shelf) = self.shelves.get(&storage) else { return };
        for object in shelf.snapshot(self.revision, prefix, "").into_values() {
            if !meta::is_deleting(&object) {
                // A refusal means that it is gone by now.
                let _ = self.remove(now, &kind, &object, &Options::at_once());
            }
        }
    }
}

enum Owner {
    /// It cannot be told, so nothing may be deleted for it.
    Unresolvable,
    Gone,
    /// It waits for its dependents to go first.
    Waiting,
    Solid,
}

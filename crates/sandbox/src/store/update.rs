//! PUT, and what every update goes through.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kind::Kind;
use super::managed::{self, Write};
use super::message::{Millis, Request, Response};
use super::meta::{self, meta_mut};
use super::refusal::{Cause, Refusal};
use super::route::{Sub, Target};
use super::{Store, decode, defaults, limits, prune, validate, view};

impl Store {
    pub(super) fn put_request(
        &mut self,
        now: Millis,
        target: &Target,
        request: &Request,
    ) -> Result<Response, Refusal> {
        let kind = &target.kind;
        let mut object = decode::object(kind, request)?;
        let name = target.name.as_deref().unwrap_or_default();
        let said = meta::name(&object).to_owned();
        if said.is_empty() && kind.traits.custom {
            return Err(Refusal::bad_request("name must be provided"));
        }
        if !said.is_empty() && said != name {
            return Err(Refusal::bad_request(format!(
                "the name of the object ({said}) does not match the name on the URL ({name})"
            )));
        }
        let space = meta::namespace(&object).to_owned();
        if !space.is_empty() && space != target.namespace() {
            return Err(Refusal::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        let meta = meta_mut(&mut object);
        meta.insert("name".into(), json!(name));
        if kind.namespaced {
            meta.insert("namespace".into(), json!(target.namespace()));
        }
        let write = Write { sub: target.sub, ..Write::new(now, kind, request) };
        let key = kind.key(target.namespace(), name);
        let Some(old) = self.object(kind.storage, &key).cloned() else {
            if kind.traits.create_on_put && target.sub.is_none() && meta::uid(&object).is_empty() {
                meta_mut(&mut object).remove("resourceVersion");
                let created = self.admit(&write, target.namespace(), object)?;
                return Ok(Response::json(201, &view::one(request, &kind.render(&created))));
            }
            return Err(target.not_found());
        };
        versioned(kind, name, &object)?;
        same_uid(kind, &old, &object)?;
        let updated = self.replace(&write, &old, object)?;
        Ok(Response::json(200, &view::one(request, &kind.render(&updated))))
    }

    /// Puts `new` in the place of `old`, as far as this write may change it.
    pub(super) fn replace(
        &mut self,
        write: &Write,
        old: &Arc<Value>,
        mut new: Value,
    ) -> Result<Arc<Value>, Refusal> {
        let kind = &write.kind;
        let old = &kind.render(old);
        let name = meta::name(old).to_owned();
        precondition(kind, old, &new)?;
        if !(write.sub == Some(Sub::Status) && kind.traits.custom) {
            immutable_uid(kind, old, &new)?;
        }
        prune::object(kind, &mut new);
        keep_identity(old, &mut new);
        keep_other_half(write, old, &mut new);
        defaults::fill(kind, &mut new, false);
        managed::update(write, old, &mut new);
        defaults::allocate(kind, &mut new, None);
        bump_generation(kind, old, &mut new);
        validate::finalizers_only_go(kind, old, &new)?;
        validate::object(kind, &new)?;
        limits::size(&new)?;
        meta::tidy(&mut new);
        meta_mut(&mut new).insert("resourceVersion".into(), json!(meta::text(old, "resourceVersion")));
        if new == **old {
            return Ok(old.clone());
        }
        if write.dry {
            return Ok(Arc::new(new));
        }
        let key = kind.key(meta::namespace(old), &name);
        if last_finalizer_went(kind, &new) {
            self.erase(write.now, kind.storage, &key);
            return Ok(Arc::new(new));
        }
        let written = self.commit(write.now, kind, new);
        self.after_write(write.now, kind, &written);
        Ok(written)
    }
}

fn last_finalizer_went(kind: &Kind, new: &Value) -> bool {
    let grace = new["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    let held = kind.plural == "namespaces"
        && new["spec"]["finalizers"].as_array().is_some_and(|list| !list.is_empty());
    meta::is_deleting(new) && meta::finalizers(new).is_empty() && grace == 0 && !held
}

/// A custom resource is never replaced blindly.
fn versioned(kind: &Kind, name: &str, object: &Value) -> Result<(), Refusal> {
    let said = meta::text(object, "resourceVersion");
    if !said.is_empty() && said != "0" || kind.traits.blind_put {
        return Ok(());
    }
    let cause = Cause::invalid("metadata.resourceVersion", &json!(0), "must be specified for an update");
    Err(Refusal::invalid(&kind.group, &kind.plural, name, vec![cause]))
}

/// What the writer says to have read has to be what is there.
fn precondition(kind: &Kind, old: &Value, new: &Value) -> Result<(), Refusal> {
    let name = meta::name(old);
    let said = meta::text(new, "resourceVersion");
    if !said.is_empty() && said != "0" && said != meta::text(old, "resourceVersion") {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        return Err(Refusal::conflict(&kind.group, &kind.plural, name, why));
    }
    Ok(())
}

/// A PUT that names a uid means that object and no other.
fn same_uid(kind: &Kind, old: &Value, new: &Value) -> Result<(), Refusal> {
    let (said, is) = (meta::uid(new), meta::uid(old));
    if said.is_empty() || said == is {
        return Ok(());
    }
    let why = format!("Precondition failed: UID in precondition: {said}, UID in object meta: {is}");
    Err(Refusal::conflict(&kind.group, &kind.plural, meta::name(old), &why))
}

/// A patch that names another uid tries to change it.
fn immutable_uid(kind: &Kind, old: &Value, new: &Value) -> Result<(), Refusal> {
    let said = meta::uid(new);
    if said.is_empty() || said == meta::uid(old) {
        return Ok(());
    }
    // The real server checks metadata twice, and says twice what is wrong with it.
    let cause = Cause::invalid("metadata.uid", &json!(said), "field is immutable");
    Err(Refusal::invalid(&kind.group, &kind.kind, meta::name(old), vec![cause.clone(), cause]))
}

fn keep_identity(old: &Value, new: &mut Value) {
    let fixed = [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "generateName",
    ];
    let meta = meta_mut(new);
    for field in fixed {
        match &old["metadata"][field] {
            Value::Null => meta.remove(field),
            value => meta.insert(field.into(), value.clone()),
        };
    }
}

/// A write to the main resource leaves status alone, a write to status everything else.
fn keep_other_half(write: &Write, old: &Value, new: &mut Value) {
    let kind = &write.kind;
    match write.sub {
        None if kind.status => put(new, "status", &old["status"]),
        Some(Sub::Status) if kind.traits.custom => {
            let (status, managed) = (new["status"].take(), new["metadata"]["managedFields"].take());
            *new = old.clone();
            put(new, "status", &status);
            put(&mut new["metadata"], "managedFields", &managed);
        }
        Some(Sub::Status) => {
            put(new, "spec", &old["spec"]);
            let labels = old["metadata"]["labels"].clone();
            put(&mut new["metadata"], "labels", &labels);
        }
        Some(Sub::Finalize) => {
            let finalizers = new["spec"]["finalizers"].take();
            *new = old.clone();
            put(&mut new["spec"], "finalizers", &finalizers);
        }
        None => {}
    }
    if kind.plural == "namespaces" && !kind.traits.custom && write.sub.is_none() {
        put(new, "spec", &old["spec"]);
    }
}

fn put(object: &mut Value, field: &str, value: &Value) {
    let Some(fields) = object.as_object_mut() else { return };
    match value {
        Value::Null => fields.remove(field),
        value => fields.insert(field.into(), value.clone()),
    };
}

fn bump_generation(kind: &Kind, old: &Value, new: &mut Value) {
    if !(kind.traits.custom || kind.traits.generation) {
        return;
    }
    let counts = |field: &str| field != "metadata" && !(field == "status" && kind.status);
    let essence = |object: &Value| -> serde_json::Map<String, Value> {
        let fields = object.as_object().into_iter().flatten();
        fields
            .filter(|(field, _)| counts(field))
            .map(|(field, value)| (field.clone(), value.clone()))
            .collect()
    };
    // A Deployment's annotations go on to its ReplicaSets, so they count.
    let annotated =
        kind.plural == "deployments" && old["metadata"]["annotations"] != new["metadata"]["annotations"];
    if annotated || essence(old) != essence(new) {
        let next = meta::generation(old) + 1;
        meta_mut(new).insert("generation".into(), json!(next));
    }
}

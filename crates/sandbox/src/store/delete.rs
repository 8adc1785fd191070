//! DELETE: of one object and of a collection.

use std::sync::Arc;

use serde_json::{Value, json};

use super::decode::{self, Unread};
use super::kind::Kind;
use super::message::{Millis, Request, Response};
use super::meta::{self, meta_mut};
use super::refusal::{Cause, Refusal};
use super::route::Target;
use super::selector::Selector;
use super::{Store, list, view};

/// What becomes of the dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// How a deletion was asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct Options {
    pub(super) propagation: Option<Propagation>,
    pub(super) grace: Option<i64>,
    uid: Option<String>,
    revision: Option<String>,
    dry: bool,
}

/// What came of it.
pub(super) struct Outcome {
    /// Gone, not only marked.
    pub(super) gone: bool,
    pub(super) object: Arc<Value>,
}

impl Store {
    pub(super) fn delete_request(
        &mut self,
        now: Millis,
        target: &Target,
        request: &Request,
    ) -> Result<Response, Refusal> {
        if target.sub.is_some() {
            return Err(Refusal::not_allowed());
        }
        let options = Options::of(request)?;
        let kind = &target.kind;
        let key = kind.key(target.namespace(), target.name.as_deref().unwrap_or_default());
        let object = self.object(kind.storage, &key).cloned().ok_or_else(|| target.not_found())?;
        let outcome = self.remove(now, kind, &object, &options)?;
        if outcome.gone && !kind.traits.returns_deleted {
            return Ok(Response::json(200, &success(kind, &outcome.object)));
        }
        Ok(Response::json(200, &view::one(request, &kind.render(&outcome.object))))
    }

    pub(super) fn delete_collection(
        &mut self,
        now: Millis,
        target: &Target,
        request: &Request,
    ) -> Result<Response, Refusal> {
        let kind = &target.kind;
        if kind.namespaced && target.namespace.is_none() || kind.plural == "namespaces" {
            return Err(Refusal::not_allowed());
        }
        let options = Options::of(request)?;
        let selector = Selector::of(kind, request)?;
        let prefix = list::prefix(target);
        let then = self
            .shelves
            .get(&kind.storage)
            .map(|shelf| shelf.snapshot(self.revision, &prefix, ""))
            .unwrap_or_default();
        let listed = self.revision.to_string();
        let mut items = Vec::new();
        for object in then.into_values().filter(|object| selector.matches(object)) {
            let mut shown = (*kind.render(&object)).clone();
            if !kind.traits.custom
                && let Some(fields) = shown.as_object_mut()
            {
                fields.remove("kind");
                fields.remove("apiVersion");
            }
            items.push(shown);
            self.remove(now, kind, &object, &options)?;
        }
        let mut body = json!({"kind": kind.list_kind, "apiVersion": kind.api_version(), "metadata": {"resourceVersion": listed}, "items": items});
        if kind.traits.custom {
            body["metadata"]["continue"] = json!("");
        }
        Ok(Response::json(200, &body))
    }

    /// Deletes or, where something holds it, marks as being deleted.
    pub(super) fn remove(
        &mut self,
        now: Millis,
        kind: &Arc<Kind>,
        object: &Arc<Value>,
        options: &Options,
    ) -> Result<Outcome, Refusal> {
        options.hold(kind, object)?;
        if options.dry {
            return Ok(Outcome { gone: true, object: object.clone() });
        }
        let mut marked = (**object).clone();
        steer(&mut marked, options.propagation.or(kind.traits.orphans.then_some(Propagation::Orphan)));
        let grace = if kind.traits.graceful { grace(object, options.grace) } else { 0 };
        let own = kind.plural == "customresourcedefinitions" || kind.plural == "namespaces";
        if !kind.traits.custom && own {
            super::collect::hold(kind, &mut marked, now);
            meta_mut(&mut marked).entry("deletionTimestamp").or_insert_with(|| json!(meta::time(now)));
        } else if grace == 0 && meta::finalizers(&marked).is_empty() {
            return Ok(Outcome { gone: true, object: self.end(now, kind, object, marked) });
        } else {
            mark(&mut marked, now, grace);
        }
        if marked == **object {
            return Ok(Outcome { gone: false, object: object.clone() });
        }
        let marked = self.commit(now, kind, marked);
        self.after_write(now, kind, &marked);
        Ok(Outcome { gone: false, object: marked })
    }
}

impl Store {
    /// Removes what nothing holds. A Pod is marked first and removed then, in two revisions, as on the real server.
    fn end(&mut self, now: Millis, kind: &Arc<Kind>, object: &Arc<Value>, mut marked: Value) -> Arc<Value> {
        if kind.traits.graceful {
            mark(&mut marked, now, 0);
            if marked != **object {
                self.commit(now, kind, marked);
            }
        }
        let key = kind.key(meta::namespace(object), meta::name(object));
        self.erase(now, kind.storage, &key).unwrap_or_else(|| object.clone())
    }
}

/// Sets the finalizer by which the garbage collector knows what to do with the dependents.
fn steer(object: &mut Value, propagation: Option<Propagation>) {
    match propagation {
        Some(Propagation::Foreground) => {
            meta::remove_finalizer(object, "orphan");
            meta::add_finalizer(object, "foregroundDeletion");
        }
        Some(Propagation::Orphan) => {
            meta::remove_finalizer(object, "foregroundDeletion");
            meta::add_finalizer(object, "orphan");
        }
        Some(Propagation::Background) => {
            meta::remove_finalizer(object, "orphan");
            meta::remove_finalizer(object, "foregroundDeletion");
        }
        None => {}
    }
}

/// How long a Pod gets: nothing where no kubelet holds it or it has ended.
fn grace(pod: &Value, asked: Option<i64>) -> i64 {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    if pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty) || ["Succeeded", "Failed"].contains(&phase)
    {
        return 0;
    }
    let asked = asked.or(pod["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30).max(0);
    let running = pod["metadata"]["deletionGracePeriodSeconds"].as_i64();
    running.map_or(asked, |running| running.min(asked))
}

fn mark(object: &mut Value, now: Millis, grace: i64) {
    let generation = meta::generation(object);
    let meta = meta_mut(object);
    let first = !meta.contains_key("deletionTimestamp");
    let sooner =
        meta.get("deletionGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|running| grace < running);
    if first && generation > 0 {
        meta.insert("generation".into(), json!(generation + 1));
    }
    if first || sooner {
        meta.insert("deletionTimestamp".into(), json!(meta::time(now + grace * 1000)));
        meta.insert("deletionGracePeriodSeconds".into(), json!(grace));
    }
}

fn success(kind: &Kind, object: &Value) -> Value {
    let mut details = json!({"name": meta::name(object), "kind": kind.plural, "uid": meta::uid(object)});
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

impl Options {
    pub(super) fn propagate(propagation: Propagation) -> Options {
        Options { propagation: Some(propagation), ..Options::default() }
    }

    /// Without waiting for a kubelet; what is left over is collected.
    pub(super) fn at_once() -> Options {
        Options { grace: Some(0), ..Options::propagate(Propagation::Background) }
    }

    fn of(request: &Request) -> Result<Options, Refusal> {
        let body = match decode::body(request) {
            Ok(body) => body,
            Err(_) if request.body.is_empty() => json!({}),
            Err(Unread::TooLarge(refusal)) => return Err(refusal),
            Err(Unread::NoJson(why)) => {
                return Err(Refusal::bad_request(format!(
                    "couldn't get version/kind; json parse error: {why}"
                )));
            }
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let policy =
            text(&body["propagationPolicy"]).or_else(|| request.param("propagationPolicy").map(Into::into));
        let orphan = body["orphanDependents"].as_bool();
        let grace = body["gracePeriodSeconds"]
            .as_i64()
            .or_else(|| request.param("gracePeriodSeconds").and_then(|text| text.parse().ok()));
        Ok(Options {
            propagation: propagation(policy.as_deref(), orphan)?,
            grace,
            uid: text(&body["preconditions"]["uid"]),
            revision: text(&body["preconditions"]["resourceVersion"]),
            dry: request.dry() || body["dryRun"].as_array().is_some_and(|how| how.contains(&json!("All"))),
        })
    }

    /// Whether the object is the one that the caller means.
    fn hold(&self, kind: &Kind, object: &Value) -> Result<(), Refusal> {
        let pairs = [
            ("UID", &self.uid, meta::uid(object), "deleted and then recreated"),
            ("ResourceVersion", &self.revision, meta::text(object, "resourceVersion"), "modified"),
        ];
        for (what, wanted, is, how) in pairs {
            if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != is) {
                let why = format!(
                    "the {what} in the precondition ({wanted}) does not match the {what} in record ({is}). The object might have been {how}"
                );
                return Err(Refusal::conflict(&kind.group, &kind.kind, meta::name(object), &why));
            }
        }
        Ok(())
    }
}

fn propagation(policy: Option<&str>, orphan: Option<bool>) -> Result<Option<Propagation>, Refusal> {
    let refuse = |cause| Err(Refusal::invalid("meta.k8s.io", "DeleteOptions", "", vec![cause]));
    match (policy, orphan) {
        (Some(policy), Some(_)) => {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            refuse(Cause::invalid("propagationPolicy", &json!(policy), why))
        }
        (Some("Background"), _) | (None, Some(false)) => Ok(Some(Propagation::Background)),
        (Some("Foreground"), _) => Ok(Some(Propagation::Foreground)),
        (Some("Orphan"), _) | (None, Some(true)) => Ok(Some(Propagation::Orphan)),
        (None, None) => Ok(None),
        (Some(other), None) => {
            let message = format!(
                "Unsupported value: {other:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
            );
            refuse(Cause { reason: "FieldValueNotSupported", message, field: "propagationPolicy".into() })
        }
    }
}

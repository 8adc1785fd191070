//! DELETE: of one object and of a collection.

use std::sync::Arc;

use serde_json::{Value, json};

use super::decode::{self, UnreadBody};
use super::kind::SandboxKind;
use super::message::{EpochMillis, StoreRequest, StoreResponse};
use super::meta::{self, meta_mut};
use super::refusal::{StatusCause, StoreRefusal};
use super::route::RequestTarget;
use super::selector::ListSelector;
use super::{SandboxStore, list, response_form};

/// Treatment of the dependents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeletionPropagation {
    Background,
    Foreground,
    Orphan,
}

/// Options of a deletion.
#[derive(Clone, Debug, Default)]
pub(super) struct DeletionOptions {
    pub(super) propagation: Option<DeletionPropagation>,
    pub(super) grace: Option<i64>,
    uid: Option<String>,
    revision: Option<String>,
    dry: bool,
}

/// Result of a deletion.
pub(super) struct DeletionOutcome {
    /// The object is gone, not only marked as being deleted.
    pub(super) deleted: bool,
    pub(super) object: Arc<Value>,
}

impl SandboxStore {
    pub(super) fn delete_request(
        &mut self,
        now: EpochMillis,
        target: &RequestTarget,
        request: &StoreRequest,
    ) -> Result<StoreResponse, StoreRefusal> {
        if target.subresource.is_some() {
            return Err(StoreRefusal::method_not_allowed());
        }
        let options = DeletionOptions::from_request(request)?;
        let kind = &target.kind;
        let key = kind.storage_key(target.namespace(), target.name.as_deref().unwrap_or_default());
        let object = self.stored_object(kind.storage, &key).cloned().ok_or_else(|| target.not_found())?;
        let outcome = self.delete_or_mark(now, kind, &object, &options)?;
        if outcome.deleted && !kind.traits.returns_deleted {
            return Ok(StoreResponse::json(200, &success_status(kind, &outcome.object)));
        }
        Ok(StoreResponse::json(
            200,
            &response_form::render_one(request, &kind.render_version(&outcome.object)),
        ))
    }

    pub(super) fn delete_collection(
        &mut self,
        now: EpochMillis,
        target: &RequestTarget,
        request: &StoreRequest,
    ) -> Result<StoreResponse, StoreRefusal> {
        let kind = &target.kind;
        if kind.namespaced && target.namespace.is_none() || kind.plural == "namespaces" {
            return Err(StoreRefusal::method_not_allowed());
        }
        let options = DeletionOptions::from_request(request)?;
        let selector = ListSelector::from_request(kind, request)?;
        let prefix = list::key_prefix(target);
        let then = self
            .kind_stores
            .get(&kind.storage)
            .map(|shelf| shelf.snapshot(self.revision, &prefix, ""))
            .unwrap_or_default();
        let listed = self.revision.to_string();
        let mut items = Vec::new();
        for object in then.into_values().filter(|object| selector.matches(object)) {
            let mut shown = (*kind.render_version(&object)).clone();
            if !kind.traits.custom
                && let Some(fields) = shown.as_object_mut()
            {
                fields.remove("kind");
                fields.remove("apiVersion");
            }
            items.push(shown);
            self.delete_or_mark(now, kind, &object, &options)?;
        }
        let mut body = json!({"kind": kind.list_kind, "apiVersion": kind.api_version(), "metadata": {"resourceVersion": listed}, "items": items});
        if kind.traits.custom {
            body["metadata"]["continue"] = json!("");
        }
        Ok(StoreResponse::json(200, &body))
    }

    /// Deletes an object, or marks it as being deleted if a finalizer or a grace period holds it.
    pub(super) fn delete_or_mark(
        &mut self,
        now: EpochMillis,
        kind: &Arc<SandboxKind>,
        object: &Arc<Value>,
        options: &DeletionOptions,
    ) -> Result<DeletionOutcome, StoreRefusal> {
        options.check_preconditions(kind, object)?;
        if options.dry {
            return Ok(DeletionOutcome { deleted: true, object: object.clone() });
        }
        let mut marked = (**object).clone();
        set_propagation_finalizer(
            &mut marked,
            options.propagation.or(kind.traits.orphans.then_some(DeletionPropagation::Orphan)),
        );
        let grace = if kind.traits.graceful { grace_period(object, options.grace) } else { 0 };
        let own = kind.plural == "customresourcedefinitions" || kind.plural == "namespaces";
        if !kind.traits.custom && own {
            super::definition::hold_for_controller(kind, &mut marked, now);
            meta_mut(&mut marked).entry("deletionTimestamp").or_insert_with(|| json!(meta::format_time(now)));
        } else if grace == 0 && meta::finalizers(&marked).is_empty() {
            return Ok(DeletionOutcome {
                deleted: true,
                object: self.erase_unheld(now, kind, object, marked),
            });
        } else {
            mark_deleting(&mut marked, now, grace);
        }
        if marked == **object {
            return Ok(DeletionOutcome { deleted: false, object: object.clone() });
        }
        let marked = self.commit_object(now, kind, marked);
        self.after_write(now, kind, &marked);
        Ok(DeletionOutcome { deleted: false, object: marked })
    }
}

impl SandboxStore {
    /// Removes an object that nothing holds. A Pod is first marked and then removed, in two revisions, as on the real
    /// server.
    fn erase_unheld(
        &mut self,
        now: EpochMillis,
        kind: &Arc<SandboxKind>,
        object: &Arc<Value>,
        mut marked: Value,
    ) -> Arc<Value> {
        if kind.traits.graceful {
            mark_deleting(&mut marked, now, 0);
            if marked != **object {
                self.commit_object(now, kind, marked);
            }
        }
        let key = kind.storage_key(meta::namespace(object), meta::name(object));
        self.erase_object(now, kind.storage, &key).unwrap_or_else(|| object.clone())
    }
}

/// Sets the finalizer that tells the garbage collector how to treat the dependents.
fn set_propagation_finalizer(object: &mut Value, propagation: Option<DeletionPropagation>) {
    match propagation {
        Some(DeletionPropagation::Foreground) => {
            meta::remove_finalizer(object, "orphan");
            meta::add_finalizer(object, "foregroundDeletion");
        }
        Some(DeletionPropagation::Orphan) => {
            meta::remove_finalizer(object, "foregroundDeletion");
            meta::add_finalizer(object, "orphan");
        }
        Some(DeletionPropagation::Background) => {
            meta::remove_finalizer(object, "orphan");
            meta::remove_finalizer(object, "foregroundDeletion");
        }
        None => {}
    }
}

/// Grace period of a Pod; zero if no kubelet runs it or if it has finished.
fn grace_period(pod: &Value, asked: Option<i64>) -> i64 {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    if pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty) || ["Succeeded", "Failed"].contains(&phase)
    {
        return 0;
    }
    let asked = asked.or(pod["spec"]["terminationGracePeriodSeconds"].as_i64()).unwrap_or(30).max(0);
    let running = pod["metadata"]["deletionGracePeriodSeconds"].as_i64();
    running.map_or(asked, |running| running.min(asked))
}

fn mark_deleting(object: &mut Value, now: EpochMillis, grace: i64) {
    let generation = meta::generation(object);
    let meta = meta_mut(object);
    let first = !meta.contains_key("deletionTimestamp");
    let sooner =
        meta.get("deletionGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|running| grace < running);
    if first && generation > 0 {
        meta.insert("generation".into(), json!(generation + 1));
    }
    if first || sooner {
        meta.insert("deletionTimestamp".into(), json!(meta::format_time(now + grace * 1000)));
        meta.insert("deletionGracePeriodSeconds".into(), json!(grace));
    }
}

fn success_status(kind: &SandboxKind, object: &Value) -> Value {
    let mut details = json!({"name": meta::name(object), "kind": kind.plural, "uid": meta::uid(object)});
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

impl DeletionOptions {
    pub(super) fn with_propagation(propagation: DeletionPropagation) -> DeletionOptions {
        DeletionOptions { propagation: Some(propagation), ..DeletionOptions::default() }
    }

    /// Options for a deletion without a grace period, whose dependents are collected.
    pub(super) fn without_grace() -> DeletionOptions {
        DeletionOptions {
            grace: Some(0),
            ..DeletionOptions::with_propagation(DeletionPropagation::Background)
        }
    }

    fn from_request(request: &StoreRequest) -> Result<DeletionOptions, StoreRefusal> {
        let body = match decode::decode_body(request) {
            Ok(body) => body,
            Err(_) if request.body.is_empty() => json!({}),
            Err(UnreadBody::TooLarge(refusal)) => return Err(refusal),
            Err(UnreadBody::NoJson(why)) => {
                return Err(StoreRefusal::bad_request(format!(
                    "couldn't get version/kind; json parse error: {why}"
                )));
            }
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let policy = text(&body["propagationPolicy"])
            .or_else(|| request.query_param("propagationPolicy").map(Into::into));
        let orphan = body["orphanDependents"].as_bool();
        let grace = body["gracePeriodSeconds"]
            .as_i64()
            .or_else(|| request.query_param("gracePeriodSeconds").and_then(|text| text.parse().ok()));
        Ok(DeletionOptions {
            propagation: parse_propagation(policy.as_deref(), orphan)?,
            grace,
            uid: text(&body["preconditions"]["uid"]),
            revision: text(&body["preconditions"]["resourceVersion"]),
            dry: request.is_dry_run()
                || body["dryRun"].as_array().is_some_and(|how| how.contains(&json!("All"))),
        })
    }

    /// Checks the caller's UID and resourceVersion preconditions.
    fn check_preconditions(&self, kind: &SandboxKind, object: &Value) -> Result<(), StoreRefusal> {
        let pairs = [
            ("UID", &self.uid, meta::uid(object), "deleted and then recreated"),
            ("ResourceVersion", &self.revision, meta::text_field(object, "resourceVersion"), "modified"),
        ];
        for (what, wanted, is, how) in pairs {
            if let Some(wanted) = wanted.as_deref().filter(|wanted| *wanted != is) {
                let why = format!(
                    "the {what} in the precondition ({wanted}) does not match the {what} in record ({is}). The object might have been {how}"
                );
                return Err(StoreRefusal::conflict(&kind.group, &kind.kind, meta::name(object), &why));
            }
        }
        Ok(())
    }
}

fn parse_propagation(
    policy: Option<&str>,
    orphan: Option<bool>,
) -> Result<Option<DeletionPropagation>, StoreRefusal> {
    let refuse = |cause| Err(StoreRefusal::invalid("meta.k8s.io", "DeleteOptions", "", vec![cause]));
    match (policy, orphan) {
        (Some(policy), Some(_)) => {
            let why = "orphanDependents and deletionPropagation cannot be both set";
            refuse(StatusCause::invalid("propagationPolicy", &json!(policy), why))
        }
        (Some("Background"), _) | (None, Some(false)) => Ok(Some(DeletionPropagation::Background)),
        (Some("Foreground"), _) => Ok(Some(DeletionPropagation::Foreground)),
        (Some("Orphan"), _) | (None, Some(true)) => Ok(Some(DeletionPropagation::Orphan)),
        (None, None) => Ok(None),
        (Some(other), None) => {
            let message = format!(
                "Unsupported value: {other:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
            );
            refuse(StatusCause {
                reason: "FieldValueNotSupported",
                message,
                field: "propagationPolicy".into(),
            })
        }
    }
}

//! Deletion: what the server makes of an object that a client wants deleted.

use serde_json::{Value, json};

use super::definition;
use super::deletion_options::{DeletionOptions, DeletionPropagation};
use super::kind::SandboxKind;
use super::message::EpochMillis;
use super::meta::{self, meta_mut};

/// Effect of a deletion on an object.
pub(super) enum DeletionStep {
    /// The object stays as it is: it was already marked as being deleted.
    Unchanged,
    /// A finalizer, a grace period or a controller holds the object, which is marked as being deleted.
    Mark(Value),
    /// Nothing holds the object, which is removed.
    Remove {
        /// State that is stored before the removal. A Pod is first marked and then removed, in two revisions, as on
        /// the real server.
        marked: Option<Value>,
    },
}

/// Decides what a deletion does to an object.
pub(super) fn plan_deletion(
    kind: &SandboxKind,
    object: &Value,
    options: &DeletionOptions,
    now: EpochMillis,
) -> DeletionStep {
    let mut marked = object.clone();
    let by_default = kind.traits.orphans.then_some(DeletionPropagation::Orphan);
    set_propagation_finalizer(&mut marked, options.propagation.or(by_default));
    let grace = if kind.traits.graceful { grace_period(object, options.grace) } else { 0 };
    if matches!(kind.builtin_plural(), Some("customresourcedefinitions" | "namespaces")) {
        definition::hold_for_controller(kind, &mut marked, now);
        meta_mut(&mut marked).entry("deletionTimestamp").or_insert_with(|| json!(meta::format_time(now)));
    } else if grace == 0 && meta::finalizers(&marked).is_empty() {
        if kind.traits.graceful {
            mark_deleting(&mut marked, now, 0);
        }
        let marked = (kind.traits.graceful && marked != *object).then_some(marked);
        return DeletionStep::Remove { marked };
    } else {
        mark_deleting(&mut marked, now, grace);
    }
    if marked == *object { DeletionStep::Unchanged } else { DeletionStep::Mark(marked) }
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

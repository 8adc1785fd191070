//! What the objects of a kind show of their operator.

use std::collections::BTreeSet;

use readiness::{ConditionLocation, Facts, Level, Time, TruthValue, Verdict};
use serde_json::Value;
use watcher::status::{OwnTypes, ParentStatus};
use watcher::{ParentObject, WireObject};

use super::super::leaf_node::unready_word;

/// Annotation that Kopf leaves on what it has handled, whatever prefix its operator chose.
const KOPF_MARK: &str = "last-handled-configuration";
/// Annotation in which an operator keeps how its handlers ended, with the module of deploy/examples/kopf.
const KOPF_OUTCOME: &str = "last-outcome";

/// Conditions by which objects say that they are ready, the first of which counts.
const READY_TYPES: [&str; 2] = ["Ready", "Available"];

/// One object, as far as it tells of its operator.
#[derive(Debug)]
pub(super) struct SeenParent {
    pub(super) uid: Box<str>,
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
    /// Whether its own `Ready`, which somebody else than Rollcall writes, is True; `None` without one.
    pub(super) own_ready: Option<bool>,
    /// Since when that is True.
    pub(super) ready_since: Option<Time>,
    /// What it says of itself by the built-in rules, where that is not ready.
    pub(super) unready_word: Option<UnreadyWord>,
    pub(super) is_being_deleted: bool,
}

/// What an object that is not ready says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnreadyWord {
    pub(super) detail: String,
    /// It says that it has failed, which a policy over it says, too.
    pub(super) has_failed: bool,
}

/// What the objects of a kind show of their operator.
#[derive(Debug, Default)]
pub(super) struct ParentEvidence {
    pub(super) parents: Vec<SeenParent>,
    /// Number of objects with the mark of a Kopf operator.
    pub(super) kopf_marks: usize,
    /// Number of objects on which a Kopf operator keeps how its handlers ended.
    pub(super) kopf_outcomes: usize,
    /// Number of objects whose operator says which generation it has observed.
    pub(super) generations: usize,
    /// Types of conditions that others than Rollcall write.
    pub(super) condition_types: BTreeSet<Box<str>>,
}

impl ParentEvidence {
    /// Reads what these objects show.
    pub(super) fn collect(objects: &[ParentObject]) -> ParentEvidence {
        let mut evidence = ParentEvidence::default();
        for object in objects {
            evidence.add_object(object);
        }
        evidence
    }

    fn add_object(&mut self, object: &ParentObject) {
        let status = ParentStatus::read(&object.text, &OwnTypes::any());
        let meta = object.meta();
        let annotations = annotation_names(object.text.get());
        let has = |end: &str| usize::from(annotations.iter().any(|name| name.ends_with(end)));
        self.kopf_marks += has(KOPF_MARK);
        self.kopf_outcomes += has(KOPF_OUTCOME);
        let speaks = status.has_foreign_generation() || status.foreign_generation().is_some();
        self.generations += usize::from(speaks);
        let ready = status.foreign.iter().find(|(kind, ..)| &**kind == "Ready");
        self.parents.push(SeenParent {
            uid: meta.uid.clone(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            own_ready: ready.map(|(_, _, is_true)| *is_true),
            ready_since: ready.and_then(|_| ready_since(&object.child.facts)),
            unready_word: unready_word(object, &status).map(|verdict| said_unready(&verdict)),
            is_being_deleted: object.child.facts.deleted.is_some(),
        });
        self.condition_types.extend(status.foreign.iter().map(|(kind, ..)| kind.clone()));
    }

    /// Number of objects.
    pub(super) fn count(&self) -> usize {
        self.parents.len()
    }
}

fn said_unready(verdict: &Verdict) -> UnreadyWord {
    UnreadyWord { detail: verdict.reason.to_string(), has_failed: verdict.level == Level::Failed }
}

/// When the object began to say that it is ready; `None` where it does not, or does not say since when.
pub(super) fn ready_since(facts: &Facts) -> Option<Time> {
    let conditions = &facts.status.conditions;
    let said = READY_TYPES.iter().find_map(|name| {
        let is = |location: &ConditionLocation| *location == ConditionLocation::Conditions;
        conditions.iter().find(|condition| &*condition.name == *name && is(&condition.location))
    })?;
    said.since.filter(|_| said.status == TruthValue::True)
}

fn annotation_names(object: &str) -> Vec<String> {
    let object: Value = serde_json::from_str(object).unwrap_or_default();
    let annotations = object["metadata"]["annotations"].as_object();
    annotations.map(|all| all.keys().cloned().collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

    use super::*;
    use serde_json::json;

    #[test]
    fn marks_generations_and_conditions_are_counted_by_who_left_them() {
        let object = |annotations: Value, status: Value| -> ParentObject {
            let object = json!({ "apiVersion": "example.com/v1", "kind": "Shop", "status": status,
                "metadata": { "name": "a", "namespace": "n", "uid": "u", "generation": 2, "annotations": annotations } });
            serde_json::from_value(object).unwrap()
        };
        let ready =
            |status: &str, reason: &str| json!({ "type": "Ready", "status": status, "reason": reason });
        let objects = [
            object(json!({ "shop.example.com/last-handled-configuration": "{}" }), json!({})),
            object(json!({}), json!({ "observedGeneration": 1, "conditions": [ready("True", "Deployed")] })),
            object(
                json!({}),
                json!({ "conditions": [{ "type": "Synced", "status": "True", "observedGeneration": 1 }] }),
            ),
        ];
        let seen = ParentEvidence::collect(&objects);
        assert_eq!((seen.count(), seen.kopf_marks, seen.generations), (3, 1, 2));
        assert_eq!(seen.condition_types, ["Ready".into(), "Synced".into()].into());
        assert_eq!(
            seen.parents.iter().map(|parent| parent.own_ready).collect::<Vec<_>>(),
            [None, Some(true), None]
        );
    }
}

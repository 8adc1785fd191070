//! The state that is waited for, in kubectl's spelling.

use std::str::FromStr;

use inspect::finalizer_holders::finalizer_holders;
use inspect::holder_signs::{HolderState, LifeSigns};
use inspect::kubectl::KubectlObject;
use readiness::{Level, RuleKind, StuckLimits, Time, assess};
use serde_json::Value;
use watcher::ParentObject;

use crate::eval::decode_json;

/// State to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WaitGoal {
    /// The objects and all of their children are ready.
    Ready,
    /// Something that each object shows by itself.
    Object(ObjectGoal),
}

/// State of one object, as `kubectl wait` knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ObjectGoal {
    /// It exists.
    Create,
    /// It is gone, or another object has its name.
    Delete,
    /// It has a condition of this type with this status, in any case, about its current generation.
    Condition {
        /// Type of the condition.
        kind: String,
        /// Its status.
        status: String,
    },
}

impl FromStr for WaitGoal {
    type Err = String;

    fn from_str(text: &str) -> Result<WaitGoal, String> {
        let lower = text.to_lowercase();
        if lower.starts_with("jsonpath=") {
            return Err("JSONPath expressions are not supported here; `kubectl wait` knows them".to_owned());
        }
        if lower.starts_with("condition=") {
            let (kind, status) = match text["condition=".len()..].split_once('=') {
                Some((kind, status)) => (kind, status),
                None => (&text["condition=".len()..], "True"),
            };
            if kind.is_empty() || status.is_empty() {
                return Err(
                    "write condition=TYPE or condition=TYPE=STATUS, such as condition=Ready".to_owned()
                );
            }
            let (kind, status) = (kind.to_owned(), status.to_owned());
            return Ok(WaitGoal::Object(ObjectGoal::Condition { kind, status }));
        }
        match &*lower {
            "ready" => Ok(WaitGoal::Ready),
            "create" => Ok(WaitGoal::Object(ObjectGoal::Create)),
            "delete" => Ok(WaitGoal::Object(ObjectGoal::Delete)),
            _ => Err("one of ready, create, delete, condition=TYPE, condition=TYPE=STATUS".to_owned()),
        }
    }
}

impl ObjectGoal {
    /// Word for the end: all objects are as awaited.
    pub(super) fn done_word(&self) -> &'static str {
        match self {
            ObjectGoal::Create => "created",
            ObjectGoal::Delete => "deleted",
            ObjectGoal::Condition { .. } => "condition met",
        }
    }

    /// Returns what the object still lacks; `None` if it is as awaited. `first_uid` is that of the object first
    /// seen; `signs` tell whether those who hold a deletion live.
    pub(super) fn find_lack(
        &self,
        object: Option<&ParentObject>,
        first_uid: Option<&str>,
        signs: Option<&LifeSigns>,
        now: Time,
    ) -> Option<String> {
        let Some(object) = object else {
            return (*self != ObjectGoal::Delete).then(|| "does not exist".to_owned());
        };
        match self {
            ObjectGoal::Create => None,
            ObjectGoal::Delete if first_uid.is_some_and(|first| first != &*object.child.meta.uid) => None,
            ObjectGoal::Delete => Some(describe_deletion(object, signs, now)),
            ObjectGoal::Condition { kind, status } => {
                let value = decode_json(object.text.get()).unwrap_or_default();
                find_condition_lack(&value, kind, status)
            }
        }
    }
}

/// Describes how far the deletion of an object is: what holds it, since when, and which holder shows no sign of life.
fn describe_deletion(object: &ParentObject, signs: Option<&LifeSigns>, now: Time) -> String {
    let child = &object.child;
    if child.meta.deleted.is_none() {
        return "exists, and its deletion was not requested yet".to_owned();
    }
    let group = child.meta.api_version.split_once('/').map_or("", |(group, _)| group);
    let rule = RuleKind::from_group_kind(group, &child.meta.kind);
    let assessment = assess(rule, &child.facts, &StuckLimits::default());
    let verdict = assessment.verdict_at(now);
    let word = if verdict.level == Level::Stuck { "stuck in deletion" } else { "being deleted" };
    let ownerless = signs.map(|signs| describe_ownerless(object, signs, now)).unwrap_or_default();
    format!("{word}: {}{ownerless}", verdict.reason)
}

/// Names the finalizers whose holders show no sign of life.
fn describe_ownerless(object: &ParentObject, signs: &LifeSigns, now: Time) -> String {
    let meta = &object.child.meta;
    let value = decode_json(object.text.get()).unwrap_or_default();
    let object = KubectlObject { group: "", kind: &meta.kind, namespace: &meta.namespace, name: &meta.name };
    let holders = finalizer_holders(&value, &object);
    let found = holders.iter().map(|holder| (holder, signs.find_signs(&holder.names(), now)));
    let lost = found.filter(|(_, signs)| signs.state == HolderState::Ownerless);
    let texts: Vec<String> = lost
        .map(|(holder, signs)| format!("; {} is ownerless: {}", holder.finalizer, signs.evidence))
        .collect();
    texts.concat()
}

/// As `kubectl wait`: names and statuses in any case, the generation of the condition before that of the status.
fn find_condition_lack(object: &Value, kind: &str, status: &str) -> Option<String> {
    let same = |a: &str, b: &str| a.to_lowercase() == b.to_lowercase();
    let mut all = object["status"]["conditions"].as_array().into_iter().flatten();
    let found = all.find(|condition| condition["type"].as_str().is_some_and(|name| same(name, kind)));
    let Some(found) = found else { return Some(format!("has no condition {kind} yet")) };
    let observed = found["observedGeneration"].as_i64().or(object["status"]["observedGeneration"].as_i64());
    if let (Some(observed), Some(generation)) = (observed, object["metadata"]["generation"].as_i64())
        && observed < generation
    {
        return Some(format!(
            "condition {kind} is about generation {observed}, the object is at {generation}"
        ));
    }
    let is = found["status"].as_str().unwrap_or_default();
    if same(is, status) {
        return None;
    }
    let text = |key: &str| found[key].as_str().filter(|text| !text.is_empty());
    let why = [text("reason"), text("message")].into_iter().flatten().collect::<Vec<_>>().join(": ");
    let why = if why.is_empty() { why } else { format!(" ({why})") };
    Some(format!("condition {kind} is {is}, not {status}{why}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn goals_are_spelled_as_kubectl_spells_them() {
        let condition = |kind: &str, status: &str| {
            let (kind, status) = (kind.to_owned(), status.to_owned());
            Ok(WaitGoal::Object(ObjectGoal::Condition { kind, status }))
        };
        for (text, goal) in [
            ("ready", Ok(WaitGoal::Ready)),
            ("delete", Ok(WaitGoal::Object(ObjectGoal::Delete))),
            ("Delete", Ok(WaitGoal::Object(ObjectGoal::Delete))),
            ("create", Ok(WaitGoal::Object(ObjectGoal::Create))),
            ("condition=Ready", condition("Ready", "True")),
            ("condition=Ready=false", condition("Ready", "false")),
            ("condition=example.com/Up=Unknown", condition("example.com/Up", "Unknown")),
        ] {
            assert_eq!(text.parse::<WaitGoal>(), goal, "{text}");
        }
        for (text, says) in [
            ("deleted", "one of ready, create, delete, condition=TYPE"),
            ("Ready=True", "one of ready"),
            ("condition=", "condition=TYPE=STATUS"),
            ("condition==True", "condition=TYPE=STATUS"),
            ("condition=Ready=", "condition=TYPE=STATUS"),
            ("jsonpath={.status.phase}=Running", "kubectl wait"),
            ("", "one of ready"),
        ] {
            let error = text.parse::<WaitGoal>().unwrap_err();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_condition_counts_for_its_generation_and_in_any_case() {
        let object = |conditions: Value| {
            json!({ "metadata": { "generation": 2 },
                "status": { "observedGeneration": 1, "conditions": conditions } })
        };
        let lack =
            |conditions: Value, status: &str| find_condition_lack(&object(conditions), "Ready", status);
        let now = |status: &str| json!([{ "type": "ready", "status": status, "observedGeneration": 2 }]);
        assert_eq!(lack(now("True"), "true"), None);
        assert_eq!(lack(now("Unknown"), "Unknown"), None);
        assert_eq!(lack(now("False"), "True").unwrap(), "condition Ready is False, not True");
        let old = json!([{ "type": "Ready", "status": "True" }]);
        assert_eq!(lack(old, "True").unwrap(), "condition Ready is about generation 1, the object is at 2");
        let conditions = json!([{ "type": "Ready", "status": "False", "observedGeneration": 2,
            "reason": "ChildrenFailed", "message": "1 of 1 not ready" }]);
        assert!(lack(conditions, "True").unwrap().ends_with("(ChildrenFailed: 1 of 1 not ready)"));
        assert_eq!(lack(json!([]), "True").unwrap(), "has no condition Ready yet");
    }
}

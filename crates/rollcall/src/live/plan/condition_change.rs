//! What is said of each parent, now and then.

use std::collections::{BTreeMap, BTreeSet};

use policy::offline::OfflineAnswer;
use readiness::rollup::{ConditionStatus, ParentReason};
use rollcall_core::ObjectRef;
use serde::Serialize;

/// A condition of a parent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ParentKey {
    pub(super) group: String,
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// Type of the condition.
    pub(super) condition: String,
}

impl ParentKey {
    pub(super) fn new(parent: &ObjectRef, condition: &str) -> ParentKey {
        let ObjectRef { group, kind, namespace, name } = parent.clone();
        ParentKey { group, kind, namespace, name, condition: condition.to_owned() }
    }
}

/// What a policy says of a parent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ParentSays {
    pub(super) policy: String,
    pub(super) status: &'static str,
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// The policy is in shadow mode: it is evaluated, and not written.
    pub(super) shadow: bool,
    /// Another client has the condition: it is evaluated, and not written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kept_by: Option<String>,
}

impl ParentSays {
    pub(super) fn new(answer: OfflineAnswer, shadow: bool) -> ParentSays {
        ParentSays {
            policy: answer.policy,
            status: answer.reason.condition_status().as_str(),
            reason: ParentReason::as_str(answer.reason),
            message: answer.message,
            shadow,
            kept_by: answer.owner.filter(|_| answer.condition.is_none()),
        }
    }

    fn is_written(&self) -> bool {
        !self.shadow && self.kept_by.is_none()
    }

    fn is_true(&self) -> bool {
        self.status == ConditionStatus::True.as_str()
    }
}

/// What happens to a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ParentTurn {
    /// It was True, and is not any more.
    Falls,
    /// Its status turns otherwise.
    Turns,
    /// The parent loses it.
    Released,
    /// The parent gets it.
    New,
    /// It is evaluated and not written, in shadow mode or because another client has it, and otherwise than before.
    Shadow,
    /// Its status stays; its reason or message changes.
    Words,
}

/// A condition of a parent that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ConditionChange {
    #[serde(flatten)]
    pub(super) parent: ParentKey,
    pub(super) turn: ParentTurn,
    pub(super) now: Option<ParentSays>,
    pub(super) then: Option<ParentSays>,
}

/// All conditions, of which some change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConditionChanges {
    /// The worst first.
    pub(super) changes: Vec<ConditionChange>,
    /// Number of conditions that stay exactly as they are.
    pub(super) unchanged: usize,
}

/// Compares what is said of all parents.
pub(super) fn compare_answers(
    now: &BTreeMap<ParentKey, ParentSays>,
    then: &BTreeMap<ParentKey, ParentSays>,
) -> ConditionChanges {
    let mut found = ConditionChanges::default();
    let keys: BTreeSet<&ParentKey> = now.keys().chain(then.keys()).collect();
    for key in keys {
        let (now, then) = (now.get(key), then.get(key));
        let Some(turn) = find_turn(now, then) else {
            found.unchanged += 1;
            continue;
        };
        let change = ConditionChange { parent: key.clone(), turn, now: now.cloned(), then: then.cloned() };
        found.changes.push(change);
    }
    found.changes.sort_by(|a, b| (a.turn, &a.parent).cmp(&(b.turn, &b.parent)));
    found
}

fn find_turn(now: Option<&ParentSays>, then: Option<&ParentSays>) -> Option<ParentTurn> {
    let same =
        |a: &ParentSays, b: &ParentSays| (a.status, a.reason, &a.message) == (b.status, b.reason, &b.message);
    let is_written = |says: &&ParentSays| says.is_written();
    match (now.filter(is_written), then.filter(is_written)) {
        (Some(now), Some(then)) if now.status == then.status => {
            (!same(now, then)).then_some(ParentTurn::Words)
        }
        (Some(now), Some(_)) if now.is_true() => Some(ParentTurn::Falls),
        (Some(_), Some(_)) => Some(ParentTurn::Turns),
        (Some(_), None) => Some(ParentTurn::Released),
        (None, Some(_)) => Some(ParentTurn::New),
        (None, None) => match (now, then) {
            (Some(now), Some(then)) if same(now, then) => None,
            _ => Some(ParentTurn::Shadow),
        },
    }
}

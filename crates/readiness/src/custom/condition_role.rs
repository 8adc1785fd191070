//! What a condition says when it is true, by the name of its type.

use super::lexicon::{WordSense, sense_of_words};
use super::tokens::{first_word, last_word, with_words, without_domain};

/// Meaning of a condition type when the condition is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConditionRole {
    /// Summarises the object.
    Verdict,
    /// Reports a main step of the process.
    Core,
    /// Reports that a part of the object is healthy.
    Part,
    /// Reports a first step: on its own not a sign that the rest is done.
    FirstStep,
    /// Reports an error.
    Wrong,
    /// Reports that the object is being reconciled.
    Working,
    /// Reports that the object is paused on purpose.
    Resting,
    /// Reports that the object is being removed.
    Leaving,
}

impl ConditionRole {
    pub(super) fn from_condition_type(condition: &str) -> Option<ConditionRole> {
        let name = without_domain(condition);
        with_words(name, |words| ConditionRole::from_words(name, words))
    }

    /// Like the function above, for a name that is already split into words.
    pub(super) fn from_words(condition: &str, words: &[&str]) -> Option<ConditionRole> {
        let single = words.len() < 2;
        match first_word(words) {
            "ready" | "available" | "healthy" | "succeeded" | "success" | "successful" | "complete"
            | "completed" | "finished" | "done" | "pass" | "passed"
                if single =>
            {
                Some(ConditionRole::Verdict)
            }
            "accepted" | "active" | "applied" | "bound" | "configured" | "converged" | "deployed"
            | "established" | "installed" | "online" | "operational" | "programmed" | "provisioned"
            | "reconciled" | "released" | "running" | "stable" | "synced" | "synchronized"
            | "synchronised" | "valid" | "updated"
                if single =>
            {
                Some(ConditionRole::Core)
            }
            "ready" if condition.eq_ignore_ascii_case("readytouse") => Some(ConditionRole::Verdict),
            "resolved" | "fully" | "all" | "up" | "in" | "reconcile" | "reconciliation"
                if sense_of_words(condition, words) == Some(WordSense::Good) =>
            {
                Some(ConditionRole::Core)
            }
            // Of another version that one could have.
            "new" | "newer" | "update" | "updates" | "upgrade" | "upgrades"
                if last_word(words) == "available" =>
            {
                None
            }
            // Advice beside the verdict, as Strimzi gives it; as a state it is one.
            _ if matches!(last_word(words), "warning" | "warnings") => None,
            "created" if single => Some(ConditionRole::FirstStep),
            // A change of the whole goes on: `Upgrade`, `RollingUpdate`.
            "rolling" | "upgrade" | "rollout" if names_change(last_word(words)) && words.len() < 3 => {
                Some(ConditionRole::Working)
            }
            _ if is_first_step(words) => Some(ConditionRole::FirstStep),
            _ => match sense_of_words(condition, words)? {
                WordSense::Good => Some(ConditionRole::Part),
                WordSense::Bad => Some(ConditionRole::Wrong),
                WordSense::Busy => Some(ConditionRole::Working),
                WordSense::Paused => Some(ConditionRole::Resting),
                WordSense::Leaving if single => Some(ConditionRole::Leaving),
                _ => None,
            },
        }
    }

    /// Returns `true` if true is the healthy status of the condition.
    pub(super) fn is_positive(self) -> bool {
        matches!(
            self,
            ConditionRole::Verdict | ConditionRole::Core | ConditionRole::Part | ConditionRole::FirstStep
        )
    }
}

/// Returns `true` for the nouns for a change of a whole object.
pub(super) fn names_change(word: &str) -> bool {
    matches!(
        word,
        "migration"
            | "reboot"
            | "redeploy"
            | "reload"
            | "replacement"
            | "resize"
            | "restart"
            | "rollout"
            | "update"
            | "upgrade"
    )
}

/// Returns `true` if the condition is a first step of a process: `Scheduled`, `ControlPlaneInitialized`.
fn is_first_step(condition: &[&str]) -> bool {
    let last = last_word(condition);
    let step = names_step(last)
        || matches!(
            last,
            "approved" | "initialized" | "initialised" | "reserved" | "scheduled" | "submitted"
        );
    step && !condition.iter().any(|word| matches!(*word, "not" | "no" | "non"))
}

/// Returns `true` for the words for a first step, which is one whether a condition or a phase says it.
pub(super) fn names_step(word: &str) -> bool {
    matches!(word, "validated" | "started" | "admitted" | "launched")
}

/// Returns `true` for the words for what must hold before anything is made: that it does is a first step.
pub(super) fn names_precondition(word: &str) -> bool {
    matches!(
        word,
        "allowed"
            | "compatible"
            | "configured"
            | "created"
            | "enabled"
            | "exists"
            | "found"
            | "granted"
            | "loaded"
            | "passed"
            | "registered"
            | "resolved"
            | "supported"
            | "valid"
            | "validated"
            | "verified"
    )
}

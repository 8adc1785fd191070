//! Signals of fields that are true or false.

use super::condition_role::{ConditionRole, names_precondition};
use super::field_names::{is_about_whole, is_part_path, is_state_noun, is_summary_path};
use super::lexicon::{WordSense, is_wrong_if_false};
use super::refusal::field_refusal_sense;
use super::signal::{SignalBasis, SignalForce};
use super::tokens::{last_word, with_words};
use crate::facts::{ConditionFacts, ConditionLocation, Facts, TruthValue};

/// Returns the signal of a boolean field; only the plainest names are understood.
pub(super) fn read_boolean_field(
    c: &ConditionFacts,
    name: &[&str],
    role: ConditionRole,
    below: bool,
    facts: &Facts,
) -> Option<(WordSense, SignalForce, SignalBasis)> {
    let summary = match &c.location {
        // Of a part only what is not well is kept, and the object is worth its worst part.
        ConditionLocation::Field(Some(path)) => is_summary_path(path) || is_part_path(path),
        _ => !below,
    };
    let plain = if summary { SignalForce::Core } else { SignalForce::Hint };
    let said = |sense, force| Some((sense, force, SignalBasis::Stated));
    match (role, c.status) {
        // `subnets.ready: true` is no more than `SubnetsReady=True`.
        (ConditionRole::Verdict | ConditionRole::Core, TruthValue::True) if is_of_named_part(c) => {
            said(WordSense::Good, SignalForce::Step)
        }
        (ConditionRole::Verdict, TruthValue::True) => said(WordSense::Good, plain),
        (ConditionRole::Core, TruthValue::True) => said(WordSense::Good, plain.min(SignalForce::Part)),
        (ConditionRole::Verdict, TruthValue::False) => {
            let (sense, evidence) = field_refusal_sense(&c.name, name, below, facts);
            // Of an object one level down: the whole is worth no more.
            Some((sense, plain.max(SignalForce::Part), evidence))
        }
        (ConditionRole::Core, TruthValue::False) if is_below_part(c) => {
            let (sense, evidence) = field_refusal_sense(&c.name, name, below, facts);
            Some((sense, plain, evidence))
        }
        (ConditionRole::Core, TruthValue::False)
            if is_wrong_if_false(name) || matches!(&*c.name, "synced" | "applied") =>
        {
            let (sense, evidence) = field_refusal_sense(&c.name, name, below, facts);
            Some((sense, plain.min(SignalForce::Part), evidence))
        }
        // Of the whole by its name: `bucketReady: true` of a bucket, `connected: true`.
        (ConditionRole::Part, TruthValue::True)
            if (c.names_kind || !below && name.len() == 1) && says_made(last_word(name)) =>
        {
            said(WordSense::Good, SignalForce::Part)
        }
        // Of the object itself: `infrastructureReady: false`.
        (ConditionRole::Part | ConditionRole::FirstStep, TruthValue::False)
            if !below && (says_well(last_word(name)) || c.names_kind) =>
        {
            said(WordSense::Busy, SignalForce::Part)
        }
        (ConditionRole::Working, TruthValue::True) if !below && is_about_whole(name) => {
            said(WordSense::Busy, plain)
        }
        (ConditionRole::Wrong, TruthValue::True) => said(WordSense::Bad, plain.max(SignalForce::Part)),
        (ConditionRole::Resting, TruthValue::True) if is_about_whole(name) => said(WordSense::Paused, plain),
        (ConditionRole::Leaving, TruthValue::True) => said(WordSense::Leaving, plain),
        _ => None,
    }
}

/// Returns `true` if the field stands in an object one level down that is not the state of the whole by its name.
fn is_of_named_part(c: &ConditionFacts) -> bool {
    let ConditionLocation::Field(Some(path)) = &c.location else { return false };
    !is_summary_path(path)
        && !is_part_path(path)
        && !with_words(path, |above| is_state_noun(last_word(above)))
}

/// Returns `true` unless the word is one for what must hold before anything is made: `backupEnabled: true` of a backup. What is
/// granted is what was asked for.
fn says_made(word: &str) -> bool {
    word == "granted" || !names_precondition(word)
}

fn says_well(word: &str) -> bool {
    matches!(word, "available" | "healthy" | "initialized" | "ready" | "running")
}

fn is_below_part(c: &ConditionFacts) -> bool {
    matches!(&c.location, ConditionLocation::Field(Some(path)) if is_part_path(path))
}

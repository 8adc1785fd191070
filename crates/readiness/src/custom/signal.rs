//! One readiness signal of an object: its meaning, its weight and the field that carries it.

use super::field_names::{ConditionRole, is_about_whole, is_summary_path};
use super::lexicon::{
    WordSense, is_wrong_if_false, message_sense, runs_something, says_ended, says_failed, sense_of_text,
    sense_of_words,
};
use super::tokens::{first_word, split_tokens, with_words};
use crate::facts::{ConditionFacts, ConditionLocation, Facts, StateField, TruthValue};
use crate::kind::RuleKind;

/// Weight of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SignalForce {
    /// About something owned by the object, or incidental.
    Hint,
    /// About a first step.
    Step,
    /// About a part of the object.
    Part,
    /// About the whole object, in one respect.
    Core,
    /// About the whole object.
    Verdict,
}

/// Field that carries a signal.
#[derive(Clone, Copy, Debug)]
pub(super) enum SignalSource<'a> {
    Condition(&'a ConditionFacts),
    /// A condition that is about another generation.
    Stale(&'a ConditionFacts),
    StateField(&'a StateField),
    /// Ready and wanted counts, with the names of their fields.
    Counts(&'a str, i64, &'a str, i64),
}

/// Basis of a signal that something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SignalBasis {
    /// A state word or a reason states it.
    Stated,
    /// The message for people suggests it.
    Message,
    /// The name of a condition that is not true suggests it.
    Name,
}

/// One signal in the status.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatusSignal<'a> {
    pub(super) sense: WordSense,
    pub(super) force: SignalForce,
    pub(super) basis: SignalBasis,
    pub(super) source: SignalSource<'a>,
}

/// Returns the signal of a condition or a boolean field.
pub(super) fn condition_signal<'a>(
    c: &'a ConditionFacts,
    facts: &Facts,
    kind: RuleKind,
) -> Option<StatusSignal<'a>> {
    if c.info {
        return None;
    }
    with_words(&c.name, |name| named_condition_signal(c, name, facts, kind))
}

fn named_condition_signal<'a>(
    c: &'a ConditionFacts,
    name: &[&str],
    facts: &Facts,
    kind: RuleKind,
) -> Option<StatusSignal<'a>> {
    let Some(role) = ConditionRole::from_words(&c.name, name) else { return unnamed_condition_signal(c) };
    let (sense, force, evidence) = match c.location {
        ConditionLocation::Field(ref below) => read_boolean_field(c, name, role, below.is_some(), facts)?,
        _ if role.is_positive() => read_positive_condition(c, name, role)?,
        _ => read_abnormal_condition(c, name, role)
            .map(|(sense, force)| (sense, force, SignalBasis::Stated))?,
    };
    let mut signal = StatusSignal { sense, force, basis: evidence, source: SignalSource::Condition(c) };
    if kind == RuleKind::Run && signal.sense == WordSense::Good && !says_ended(name) {
        signal.sense = WordSense::Busy;
        signal.force = SignalForce::Step;
    }
    if let (Some(observed), Some(generation)) = (c.observed, facts.generation)
        && observed != generation
    {
        signal.sense = WordSense::Busy;
        signal.source = SignalSource::Stale(c);
    }
    if matches!(c.location, ConditionLocation::Below(_)) {
        signal.force = signal.force.min(SignalForce::Part);
    }
    if first_word(name) == "last" {
        signal.force = SignalForce::Hint;
    }
    Some(signal)
}

/// Returns the signal of a false condition with an unknown name and a reason that reports an error.
fn unnamed_condition_signal(c: &ConditionFacts) -> Option<StatusSignal<'_>> {
    // A capability that is currently absent is not an error: `Upgradeable`, `LiveMigratable`.
    if c.status != TruthValue::False || c.name.ends_with("able") {
        return None;
    }
    let complains = with_words(&c.reason, |reason| {
        // Nor is the absence of something: `Fallback=False, NoFallbackFound`.
        !matches!(first_word(reason), "no" | "none")
            && sense_of_words(&c.reason, reason) == Some(WordSense::Bad)
    });
    let (sense, force, evidence) = (WordSense::Bad, SignalForce::Part, SignalBasis::Stated);
    complains.then_some(StatusSignal { sense, force, basis: evidence, source: SignalSource::Condition(c) })
}

/// Returns `true` if a message tells of work that is going on: "Running reconciliation", "Creating the service".
fn is_about_work(message: &str) -> bool {
    runs_something(message)
        || split_tokens(message).next().is_some_and(|word| {
            word.as_str().ends_with("ing") && sense_of_text(word.as_str()) == Some(WordSense::Busy)
        })
}

fn read_positive_condition(
    c: &ConditionFacts,
    name: &[&str],
    role: ConditionRole,
) -> Option<(WordSense, SignalForce, SignalBasis)> {
    let force = match role {
        ConditionRole::Verdict => SignalForce::Verdict,
        ConditionRole::Core => SignalForce::Core,
        ConditionRole::FirstStep => SignalForce::Step,
        _ => SignalForce::Part,
    };
    match c.status {
        // The operator runs its reconciliation, not the workload that it reconciles.
        TruthValue::True if &*c.name == "Running" && is_about_work(&c.message) => {
            Some((WordSense::Busy, SignalForce::Part, SignalBasis::Message))
        }
        // It is over, and it went wrong: `Complete=True, JobFailed`.
        TruthValue::True if says_failed(&c.reason) && sense_of_text(&c.reason) == Some(WordSense::Bad) => {
            Some((WordSense::Bad, force.max(SignalForce::Part), SignalBasis::Stated))
        }
        TruthValue::True => Some((WordSense::Good, force, SignalBasis::Stated)),
        TruthValue::False => {
            let (sense, evidence) = refusal_sense(&c.name, name, &c.reason, &c.message);
            // Some conditions are false in a healthy object that has nothing to do.
            let idle = matches!(&*c.name, "Active" | "Running" | "Online" | "Updated" | "Bound" | "Released");
            let force = if idle && sense != WordSense::Bad { SignalForce::Step } else { force };
            Some((sense, force, evidence))
        }
        TruthValue::Unknown => {
            // For a part of the object it only means that the part is no longer reported on.
            let paused = sense_of_text(&c.reason) == Some(WordSense::Paused) && force >= SignalForce::Core;
            Some((if paused { WordSense::Paused } else { WordSense::Busy }, force, SignalBasis::Stated))
        }
        TruthValue::Absent => None,
    }
}

/// Returns why a condition that should be true is not: by its reason, else by its message, else by its name.
fn refusal_sense(name: &str, words: &[&str], reason: &str, message: &str) -> (WordSense, SignalBasis) {
    match sense_of_text(reason).filter(|_| !echoes_name(name, reason)) {
        Some(sense) if sense != WordSense::Good && sense != WordSense::Unknown => {
            (sense, SignalBasis::Stated)
        }
        // Another object holds it: `DomainAlreadyClaimed`, `AlreadyInUse`.
        _ if self::with_words(reason, |reason| reason.contains(&"already")) => {
            (WordSense::Bad, SignalBasis::Stated)
        }
        _ => match message_sense(message) {
            Some(sense) => (sense, SignalBasis::Message),
            None if is_wrong_if_false(words) => (WordSense::Bad, SignalBasis::Name),
            None => (WordSense::Busy, SignalBasis::Name),
        },
    }
}

/// Returns `true` if the reason only negates the name: `Available=False, Unavailable`.
fn echoes_name(name: &str, reason: &str) -> bool {
    let rest = ["Not", "Un", "not", "un"].iter().find_map(|prefix| reason.strip_prefix(prefix));
    rest.is_some_and(|rest| rest.eq_ignore_ascii_case(name))
}

/// Like [`refusal_sense`], for a field, which has no reason except that of the whole status.
pub(super) fn field_refusal_sense(
    name: &str,
    words: &[&str],
    below: bool,
    facts: &Facts,
) -> (WordSense, SignalBasis) {
    let whole =
        |text: &'_ Option<Box<str>>| -> Box<str> { text.clone().filter(|_| !below).unwrap_or_default() };
    refusal_sense(name, words, &whole(&facts.status.reason), &whole(&facts.status.message))
}

fn read_abnormal_condition(
    c: &ConditionFacts,
    name: &[&str],
    role: ConditionRole,
) -> Option<(WordSense, SignalForce)> {
    if c.status == TruthValue::False && role != ConditionRole::Working {
        return None;
    }
    let reason = if role == ConditionRole::Working { sense_of_text(&c.reason) } else { None };
    let whole = if is_about_whole(name) { SignalForce::Core } else { SignalForce::Part };
    match (role, c.status) {
        (ConditionRole::Wrong, TruthValue::True) => Some((WordSense::Bad, SignalForce::Core)),
        (ConditionRole::Resting, TruthValue::True) => Some((WordSense::Paused, whole)),
        (ConditionRole::Leaving, TruthValue::True) => Some((WordSense::Leaving, SignalForce::Core)),
        // `Progressing=True, NewReplicaSetAvailable` is complete.
        (ConditionRole::Working, TruthValue::True | TruthValue::Unknown)
            if reason == Some(WordSense::Good) =>
        {
            None
        }
        (ConditionRole::Working, TruthValue::True | TruthValue::Unknown)
            if matches!(reason, Some(WordSense::Paused | WordSense::Bad)) =>
        {
            Some((reason?, SignalForce::Core))
        }
        (ConditionRole::Working, TruthValue::True | TruthValue::Unknown) => Some((WordSense::Busy, whole)),
        // `Progressing=False, ProgressDeadlineExceeded` is a failure.
        (ConditionRole::Working, TruthValue::False) if reason == Some(WordSense::Bad) => {
            Some((WordSense::Bad, SignalForce::Core))
        }
        _ => None,
    }
}

/// Returns the signal of a boolean field; only the plainest names are understood.
fn read_boolean_field(
    c: &ConditionFacts,
    name: &[&str],
    role: ConditionRole,
    below: bool,
    facts: &Facts,
) -> Option<(WordSense, SignalForce, SignalBasis)> {
    let summary = match &c.location {
        ConditionLocation::Field(Some(path)) => is_summary_path(path),
        _ => !below,
    };
    let plain = if summary { SignalForce::Core } else { SignalForce::Hint };
    let said = |sense, force| Some((sense, force, SignalBasis::Stated));
    match (role, c.status) {
        (ConditionRole::Verdict, TruthValue::True) => said(WordSense::Good, plain),
        (ConditionRole::Core, TruthValue::True) => said(WordSense::Good, plain.min(SignalForce::Part)),
        (ConditionRole::Verdict, TruthValue::False) => {
            let (sense, evidence) = field_refusal_sense(&c.name, name, below, facts);
            Some((sense, plain, evidence))
        }
        (ConditionRole::Core, TruthValue::False)
            if is_wrong_if_false(name) || matches!(&*c.name, "synced" | "applied") =>
        {
            let (sense, evidence) = field_refusal_sense(&c.name, name, below, facts);
            Some((sense, plain.min(SignalForce::Part), evidence))
        }
        (ConditionRole::Wrong, TruthValue::True) => said(WordSense::Bad, plain),
        (ConditionRole::Resting, TruthValue::True) if is_about_whole(name) => said(WordSense::Paused, plain),
        (ConditionRole::Leaving, TruthValue::True) => said(WordSense::Leaving, plain),
        _ => None,
    }
}

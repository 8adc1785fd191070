//! One readiness signal of an object: its meaning, its weight and the field that carries it.

use super::field_names::{ConditionRole, is_about_whole, is_part_path, is_state_noun, is_summary_path};
use super::lexicon::{
    WordSense, is_wrong_if_false, message_sense, only_negates, runs_something, says_ended, sense_of_text,
    sense_of_words,
};
use super::retraction::{begins_with_error, message_retracts, reason_retracts};
use super::tokens::{first_word, last_word, split_tokens, with_words};
use crate::facts::{ConditionFacts, ConditionLocation, CountField, Facts, StateField, TruthValue};
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
    /// A number of parts that are not well.
    Lacking(&'a CountField),
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
    // An external object that was handed over is not there yet.
    if facts.spec.external && signal.sense == WordSense::Good && &*c.name == "Synced" {
        signal.force = SignalForce::Step;
    }
    if let ConditionLocation::Below(path) = &c.location {
        let trouble = matches!(signal.sense, WordSense::Bad | WordSense::Busy);
        // The object is worth its worst part, whatever it says of itself as a whole.
        let counts = trouble && is_part_path(path) && signal.force >= SignalForce::Part;
        signal.force = if counts { SignalForce::Core } else { signal.force.min(SignalForce::Part) };
    }
    // What went well the last time says nothing of now.
    if first_word(name) == "last" {
        let good = signal.sense == WordSense::Good;
        signal.force = if good { SignalForce::Step } else { SignalForce::Hint };
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
        // The whole has not spoken yet.
        ConditionRole::Part
            if c.status == TruthValue::True && is_readiness_of_part(name) && !c.names_kind =>
        {
            SignalForce::Step
        }
        ConditionRole::Verdict => SignalForce::Verdict,
        ConditionRole::Core => SignalForce::Core,
        ConditionRole::FirstStep => SignalForce::Step,
        _ => SignalForce::Part,
    };
    match c.status {
        // The operator runs its reconciliation, not the workload that it reconciles.
        TruthValue::True
            if &*c.name == "Running" && is_about_work(&c.message) && !with_words(&c.reason, says_ended) =>
        {
            Some((WordSense::Busy, SignalForce::Hint, SignalBasis::Message))
        }
        TruthValue::True => {
            let by_reason = reason_retracts(&c.reason).map(|sense| (sense, SignalBasis::Stated));
            let by_message = || message_retracts(&c.message).map(|sense| (sense, SignalBasis::Message));
            Some(match by_reason.or_else(by_message) {
                Some((WordSense::Bad, basis)) => (WordSense::Bad, force.max(SignalForce::Part), basis),
                Some((sense, basis)) => (sense, force, basis),
                None => (WordSense::Good, force, SignalBasis::Stated),
            })
        }
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

/// Returns `true` if the condition says that a part is ready: `SubnetsReady`, but not `AllReplicasReady`. By convention
/// there is a `Ready` beside it that sums all of them up.
fn is_readiness_of_part(name: &[&str]) -> bool {
    let all =
        matches!(first_word(name), "all" | "children" | "components" | "every" | "everything" | "resources");
    name.len() > 1 && last_word(name) == "ready" && !all
}

/// Returns `true` if a reason reports an error.
pub(super) fn says_wrong(reason: &str) -> bool {
    sense_of_text(reason) == Some(WordSense::Bad)
}

/// Returns why a condition that should be true is not: by its reason, else by its message, else by its name.
fn refusal_sense(name: &str, words: &[&str], reason: &str, message: &str) -> (WordSense, SignalBasis) {
    match sense_of_text(reason).filter(|_| !echoes_name(name, reason)) {
        // It names the step that did not succeed, or only repeats that something is not ready.
        Some(WordSense::Busy)
            if begins_with_error(message)
                || self::with_words(reason, only_negates)
                    && message_sense(message) == Some(WordSense::Bad) =>
        {
            (WordSense::Bad, SignalBasis::Message)
        }
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
    let whole = if c.names_kind || is_about_whole(name) { SignalForce::Core } else { SignalForce::Part };
    let message = || message_sense(&c.message);
    match (role, c.status) {
        (ConditionRole::Wrong, TruthValue::True) => Some((WordSense::Bad, SignalForce::Core)),
        (ConditionRole::Resting, TruthValue::True) => Some((WordSense::Paused, whole)),
        (ConditionRole::Leaving, TruthValue::True) => Some((WordSense::Leaving, SignalForce::Core)),
        // `Progressing=True, NewReplicaSetAvailable` is complete.
        (ConditionRole::Working, TruthValue::True | TruthValue::Unknown)
            if reason == Some(WordSense::Good) && !is_unfinished(&c.message) =>
        {
            None
        }
        // `NotReady=True`, and the message says why. Beside `Ready=True` it is a remnant.
        (ConditionRole::Working, TruthValue::True)
            if is_refusal_name(name) && reason.is_none() && message() == Some(WordSense::Bad) =>
        {
            Some((WordSense::Bad, SignalForce::Hint))
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

/// Returns `true` if a message says that the work goes on: "replication controller is progressing".
fn is_unfinished(message: &str) -> bool {
    message.split(' ').any(|word| matches!(word, "progressing" | "waiting"))
}

/// Returns `true` if the name refuses to call the object ready: `NotReady`, `PartiallyReady`.
fn is_refusal_name(name: &[&str]) -> bool {
    matches!(first_word(name), "not" | "partially" | "partial")
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
        // Of the object itself: `infrastructureReady: false`.
        (ConditionRole::Part | ConditionRole::FirstStep, TruthValue::False)
            if !below && says_well(last_word(name)) =>
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

fn says_well(word: &str) -> bool {
    matches!(word, "available" | "healthy" | "initialized" | "ready" | "running")
}

fn is_below_part(c: &ConditionFacts) -> bool {
    matches!(&c.location, ConditionLocation::Field(Some(path)) if is_part_path(path))
}

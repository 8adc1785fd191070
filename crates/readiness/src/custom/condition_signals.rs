//! Signals of conditions.

use super::boolean_fields::read_boolean_field;
use super::condition_role::{ConditionRole, names_precondition, names_step};
use super::field_names::{is_about_whole, is_part_path, is_summary_path, tells_of_copies};
use super::lexicon::{
    WordSense, message_sense, runs_something, says_begun, says_ended, sense_of_text, sense_of_words,
};
use super::refusal::refusal_sense;
use super::retraction::{message_retracts, reason_retracts};
use super::signal::{SignalBasis, SignalForce, SignalSource, StatusSignal};
use super::tokens::{first_word, last_word, split_tokens, with_words, without_domain};
use crate::facts::{ConditionFacts, ConditionLocation, Facts, TruthValue};
use crate::kind::RuleKind;

/// Returns the signal of a condition or a boolean field.
pub(super) fn condition_signal<'a>(
    c: &'a ConditionFacts,
    facts: &Facts,
    kind: RuleKind,
) -> Option<StatusSignal<'a>> {
    with_words(without_domain(&c.name), |name| named_condition_signal(c, name, facts, kind))
}

fn named_condition_signal<'a>(
    c: &'a ConditionFacts,
    name: &[&str],
    facts: &Facts,
    kind: RuleKind,
) -> Option<StatusSignal<'a>> {
    let Some(role) = ConditionRole::from_words(without_domain(&c.name), name) else {
        return unnamed_condition_signal(c);
    };
    let (sense, force, evidence) = match c.location {
        ConditionLocation::Field(ref below) => read_boolean_field(c, name, role, below.is_some(), facts)?,
        _ if role.is_positive() => read_positive_condition(c, name, role)?,
        _ => read_abnormal_condition(c, name, role)
            .map(|(sense, force)| (sense, force, SignalBasis::Stated))?,
    };
    if role == ConditionRole::Verdict && is_over(c, facts) {
        return None;
    }
    let mut signal = StatusSignal { sense, force, basis: evidence, source: SignalSource::Condition(c) };
    if c.info {
        // It is no error; but what does not hold yet keeps steps beside it from being the whole.
        if !role.is_positive() || c.status == TruthValue::True {
            return None;
        }
        (signal.sense, signal.force) = (WordSense::Busy, SignalForce::Step);
    }
    let is_run_well = kind == RuleKind::Run && signal.sense == WordSense::Good;
    // That something below it is well is no word of the run.
    if is_run_well && matches!(c.location, ConditionLocation::Below(_)) {
        return None;
    }
    if is_run_well && !says_ended(name) {
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
    // A run may be the making of that copy.
    if kind != RuleKind::Run && signal.sense == WordSense::Bad && tells_of_copies(name) {
        return None;
    }
    // What went well the last time says nothing of now.
    if first_word(name) == "last" {
        let good = signal.sense == WordSense::Good;
        signal.force = if good { SignalForce::Step } else { SignalForce::Hint };
    }
    Some(signal)
}

/// Returns the signal of a condition with an unknown name and a reason that reports an error, whichever its status is: a
/// reason says why the status is what it is.
fn unnamed_condition_signal(c: &ConditionFacts) -> Option<StatusSignal<'_>> {
    // A capability that is currently absent is not an error: `Upgradeable`, `LiveMigratable`. Of one that holds the reason
    // is a token by convention; some write prose there.
    let prose = c.status == TruthValue::True && c.reason.contains(' ');
    if c.status == TruthValue::Unknown || c.name.ends_with("able") || prose {
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
        // Of one of several that could: what admits a route serves it.
        ConditionRole::FirstStep
            if &*c.name == "Admitted" && matches!(c.location, ConditionLocation::Below(_)) =>
        {
            SignalForce::Part
        }
        ConditionRole::FirstStep => SignalForce::Step,
        ConditionRole::Part if c.status == TruthValue::True && names_precondition(last_word(name)) => {
            SignalForce::Step
        }
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
            let idle = matches!(
                &*c.name,
                "Active" | "Running" | "Online" | "Updated" | "Bound" | "Released" | "InUse"
            );
            let force = if idle && sense != WordSense::Bad { SignalForce::Step } else { force };
            Some((sense, force, evidence))
        }
        TruthValue::Unknown => {
            // For a part of the object it only means that the part is no longer reported on.
            let sense = match sense_of_text(&c.reason) {
                Some(WordSense::Paused) if force >= SignalForce::Core => WordSense::Paused,
                // What it lacks may be on its way.
                Some(WordSense::Bad) if !with_words(&c.reason, names_absence) => WordSense::Bad,
                _ => WordSense::Busy,
            };
            Some((sense, force, SignalBasis::Stated))
        }
        TruthValue::Absent => None,
    }
}

/// Returns `true` if the object is not ready any more because it has ended well, as its phase says too: `Ready=False, Completed`.
fn is_over(c: &ConditionFacts, facts: &Facts) -> bool {
    let says_over = |text: &str| {
        sense_of_text(text) == Some(WordSense::Good)
            && with_words(text, |words| matches!(last_word(words), "completed" | "finished" | "succeeded"))
    };
    c.status == TruthValue::False
        && says_over(&c.reason)
        && facts.status.state_fields.iter().any(|word| is_summary_path(&word.path) && says_over(&word.value))
}

fn names_absence(reason: &[&str]) -> bool {
    first_word(reason) == "no"
        || reason.iter().any(|word| matches!(*word, "missing" | "found" | "notfound" | "exist"))
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
            if reason == Some(WordSense::Good)
                && !is_unfinished(&c.message)
                && !with_words(&c.reason, is_beginning) =>
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

/// Returns `true` if the reason of work says that it began: `Progressing=True, NewReplicaSetCreated`.
fn is_beginning(reason: &[&str]) -> bool {
    says_begun(reason) || names_step(last_word(reason))
}

/// Returns `true` if a message says that the work goes on: "replication controller is progressing".
fn is_unfinished(message: &str) -> bool {
    message.split(' ').any(|word| matches!(word, "progressing" | "waiting"))
}

/// Returns `true` if the name refuses to call the object ready: `NotReady`, `PartiallyReady`.
fn is_refusal_name(name: &[&str]) -> bool {
    matches!(first_word(name), "not" | "partially" | "partial")
}

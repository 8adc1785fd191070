//! Signals of texts in fields that describe a state: of the object, of its parts, and of its errors.

use super::condition_role::{ConditionRole, names_step};
use super::counts::{is_share_of_parts, share_signal};
use super::field_names::{
    is_current_field, is_error_field, is_part_path, is_state_name, is_state_noun, is_summary_path,
    names_attempt, names_trouble,
};
use super::lexicon::{
    WordSense, message_sense, runs_something, says_begun, says_ended, sense_of_text, sense_of_words,
};
use super::refusal::field_refusal_sense;
use super::retraction::{names_rest, names_work};
use super::signal::{SignalBasis, SignalForce, SignalSource, StatusSignal};
use super::tokens::{first_word, last_word, with_words};
use crate::facts::{Facts, StateField, TruthValue};
use crate::kind::RuleKind;

/// Returns the signal of a text field; `None` if its words are unknown.
pub(super) fn state_field_signal<'a>(
    word: &'a StateField,
    facts: &Facts,
    kind: RuleKind,
) -> Option<StatusSignal<'a>> {
    if word.value.is_empty() && !word.path.is_empty() {
        return Some(silence_signal(word));
    }
    let (above, field) = word.path.rsplit_once('.').unwrap_or(("", &word.path));
    if is_share_of_parts(word, above, field) {
        return share_signal(word);
    }
    let top = above.is_empty();
    // A respect of the object that is switched off: `backup.phase: Disabled`.
    if !top && !is_part_path(above) && word.value.eq_ignore_ascii_case("disabled") {
        return None;
    }
    // `error.message` counts like `errorMessage`.
    if !top && with_words(above, is_error_field) {
        return error_field_signal(word, true, starts_with_last(above));
    }
    if is_part_path(above) {
        return part_state_signal(word, field, facts, kind);
    }
    if with_words(above, names_operation) || top && with_words(field, is_outcome_of_attempt) {
        return operation_signal(word, field, facts, kind);
    }
    with_words(field, |name| {
        if is_error_field(name) {
            return error_field_signal(word, top, first_word(name) == "last");
        }
        // Trouble of one kind: `reconcileError: "no such host"`.
        if top && names_trouble(name) {
            let signal = error_field_signal(word, top, first_word(name) == "last")?;
            return Some(StatusSignal { force: signal.force.min(SignalForce::Part), ..signal });
        }
        // The success of a stage is not that of the whole.
        if name.len() > 1 && matches!(first_word(name), "stage" | "step") {
            let signal = state_text_signal(word, field, SignalForce::Core, facts, kind)?;
            let force = if signal.sense == WordSense::Good { SignalForce::Step } else { signal.force };
            return Some(StatusSignal { force, ..signal });
        }
        if !is_state_name(name)
            && let Some(role) = ConditionRole::from_words(field, name)
        {
            return named_field_signal(word, role, top, facts);
        }
        let force = if is_summary_path(&word.path) { SignalForce::Core } else { SignalForce::Hint };
        state_text_signal(word, field, force, facts, kind)
    })
}

/// Returns `true` if a text is one plain word for trouble, which means the same in every field that is about the present and no
/// setting: `deployment: Failed`.
pub fn says_plain_trouble(field: &str, text: &str) -> bool {
    let plain = match text.len() {
        5 => text.eq_ignore_ascii_case("error"),
        6 => text.eq_ignore_ascii_case("failed"),
        7 => text.eq_ignore_ascii_case("pending") || text.eq_ignore_ascii_case("errored"),
        8 => text.eq_ignore_ascii_case("degraded") || text.eq_ignore_ascii_case("creating"),
        9 => text.eq_ignore_ascii_case("unhealthy"),
        12 => text.eq_ignore_ascii_case("provisioning"),
        _ => false,
    };
    plain
        && is_current_field(field)
        && !matches!(field, "name" | "reason" | "type" | "kind" | "mode" | "level" | "severity")
}

/// Returns `true` if an object of this name tells of what is being done to the whole, or was last: `lastOperation`.
fn names_operation(above: &[&str]) -> bool {
    match above {
        ["last" | "current" | "latest", what] => names_attempt(what),
        _ => matches!(above, ["operation"] | ["operation", "state" | "status"]),
    }
}

/// Returns `true` for a text such as `lastUpdateStatus`.
fn is_outcome_of_attempt(field: &[&str]) -> bool {
    matches!(field, ["last", what, noun] if names_attempt(what) && is_state_noun(noun))
}

/// Returns the signal of the state of an operation on the whole. While one runs or has failed the object is not what is
/// wanted; that the last one went well says nothing of now, unless it is all that the operator ever says.
fn operation_signal<'a>(
    word: &'a StateField,
    field: &str,
    facts: &Facts,
    kind: RuleKind,
) -> Option<StatusSignal<'a>> {
    let signal = state_text_signal(word, field, SignalForce::Hint, facts, kind)?;
    let force = match signal.sense {
        WordSense::Bad | WordSense::Busy => SignalForce::Core,
        WordSense::Good if !word.path.to_ascii_lowercase().contains("operation") => SignalForce::Step,
        _ => signal.force,
    };
    Some(StatusSignal { force, ..signal })
}

/// Returns the signal of a part that says nothing of itself. Silence is never ready, whatever else is.
fn silence_signal(word: &StateField) -> StatusSignal<'_> {
    StatusSignal {
        sense: WordSense::Unknown,
        force: SignalForce::Core,
        basis: SignalBasis::Stated,
        source: SignalSource::StateField(word),
    }
}

/// Returns the signal of a text that names the state of a part. The object is worth its worst part: one that is not
/// there yet counts against whatever the object says of itself as a whole, one that is well speaks for no other.
fn part_state_signal<'a>(
    word: &'a StateField,
    field: &str,
    facts: &Facts,
    kind: RuleKind,
) -> Option<StatusSignal<'a>> {
    if with_words(field, names_session) && says_unconnected(&word.value) || runs_as_work(word) {
        let (sense, force) = (WordSense::Busy, SignalForce::Core);
        let source = SignalSource::StateField(word);
        return Some(StatusSignal { sense, force, basis: SignalBasis::Stated, source });
    }
    let signal = state_text_signal(word, field, SignalForce::Hint, facts, kind)?;
    let force = match signal.sense {
        // The role of a member that is well.
        WordSense::Paused if word.value.eq_ignore_ascii_case("standby") => return None,
        // One that was put to rest does not do its part; a part that is merely not in use is none.
        WordSense::Paused if with_words(&word.value, |said| said.iter().any(|word| names_rest(word))) => {
            SignalForce::Core
        }
        WordSense::Bad | WordSense::Busy | WordSense::Unknown => SignalForce::Core,
        WordSense::Good => SignalForce::Part,
        _ => SignalForce::Hint,
    };
    Some(StatusSignal { force, ..signal })
}

/// Returns `true` if a field of this name tells of a session with a peer, which has words of its own.
fn names_session(field: &[&str]) -> bool {
    field
        .iter()
        .any(|word| matches!(*word, "bgp" | "neighbor" | "neighbour" | "peer" | "peering" | "session"))
}

/// Returns `true` for the states of a session before the last, as RFC 4271 names them: an active one looks for its peer.
fn says_unconnected(word: &str) -> bool {
    ["idle", "connect", "active", "opensent", "openconfirm"]
        .iter()
        .any(|state| word.eq_ignore_ascii_case(state))
}

/// Returns `true` if an element of a list of works still runs: `migrations[0].state: running`.
fn runs_as_work(word: &StateField) -> bool {
    let Some((above, _)) = word.path.rsplit_once('.') else { return false };
    let list = above.split('[').next().unwrap_or("");
    matches!(&*word.value, "running" | "Running" | "RUNNING")
        && with_words(list, |list| {
            matches!(last_word(list), "migrations" | "updates" | "upgrades" | "rollouts")
        })
}

fn starts_with_last(text: &str) -> bool {
    with_words(text, |words| first_word(words) == "last")
}

/// Returns the signal of a text that is present only if something is wrong.
fn error_field_signal(word: &StateField, top: bool, last: bool) -> Option<StatusSignal<'_>> {
    let none =
        matches!(&*word.value.to_ascii_lowercase(), "none" | "null" | "nil" | "n/a" | "-" | "0" | "false");
    // A sentence with a good word in it is an error all the same.
    let short = word.value.split(' ').count() < 4;
    let quiet = none || short && matches!(sense_of_text(&word.value), Some(WordSense::Good));
    let force = if !top || last { SignalForce::Hint } else { SignalForce::Core };
    let (sense, evidence, source) = (WordSense::Bad, SignalBasis::Stated, SignalSource::StateField(word));
    (!quiet).then_some(StatusSignal { sense, force, basis: evidence, source })
}

/// Returns the signal of a text that names a state.
fn state_text_signal<'a>(
    word: &'a StateField,
    field: &str,
    force: SignalForce,
    facts: &Facts,
    kind: RuleKind,
) -> Option<StatusSignal<'a>> {
    let signal = |sense, force| {
        Some(StatusSignal {
            sense,
            force,
            basis: SignalBasis::Stated,
            source: SignalSource::StateField(word),
        })
    };
    with_words(&word.value, |said| match sense_of_words(&word.value, said)? {
        WordSense::Good if kind == RuleKind::Run && !says_ended(said) && !is_conclusion_field(field) => {
            signal(WordSense::Busy, force)
        }
        WordSense::Good if !word.value.contains(' ') && runs_something(&word.value) => {
            signal(WordSense::Busy, force)
        }
        WordSense::Good if says_begun(said) && (force == SignalForce::Hint || said.len() > 1) => {
            signal(WordSense::Busy, force)
        }
        WordSense::Good if names_step(last_word(said)) => signal(WordSense::Busy, force),
        // An error of a part is one of the whole, which is worth its worst part.
        WordSense::Bad => signal(WordSense::Bad, force.max(SignalForce::Part)),
        // `NotReady` with a message that reports the cause.
        WordSense::Busy if force == SignalForce::Core && is_negation(said) && status_complains(facts) => {
            signal(WordSense::Bad, force)
        }
        // So is what is being done to a part: `databaseState: Creating`.
        WordSense::Busy if force == SignalForce::Hint && said.iter().any(|word| names_work(word)) => {
            signal(WordSense::Busy, SignalForce::Core)
        }
        sense => signal(sense, force),
    })
}

fn is_negation(text: &[&str]) -> bool {
    matches!(first_word(text), "not" | "no" | "unready")
}

fn status_complains(facts: &Facts) -> bool {
    facts.status.message.as_deref().and_then(message_sense) == Some(WordSense::Bad)
}

/// Returns `true` if a text in this field reports a final result, so that nothing is left to run.
fn is_conclusion_field(field: &str) -> bool {
    with_words(field, |field| matches!(last_word(field), "conclusion" | "outcome" | "result" | "verdict"))
}

/// Returns the signal of a text under the name of a condition: `ready: "True"`, `ready: 2/3`.
fn named_field_signal<'a>(
    word: &'a StateField,
    role: ConditionRole,
    top: bool,
    facts: &Facts,
) -> Option<StatusSignal<'a>> {
    let force = if top && role == ConditionRole::Verdict { SignalForce::Core } else { SignalForce::Hint };
    let signal = |sense| {
        Some(StatusSignal {
            sense,
            force,
            basis: SignalBasis::Stated,
            source: SignalSource::StateField(word),
        })
    };
    let numbers = word.value.split_once('/').map(|(n, m)| (n.trim().parse::<u32>(), m.trim().parse::<u32>()));
    match (TruthValue::from_text(&word.value), numbers) {
        (TruthValue::True, _) if role.is_positive() => signal(WordSense::Good),
        (TruthValue::False, _) if role.is_positive() => {
            signal(with_words(&word.path, |path| field_refusal_sense(&word.path, path, !top, facts).0))
        }
        (TruthValue::True, _) if role == ConditionRole::Wrong => signal(WordSense::Bad),
        (TruthValue::True, _) if role == ConditionRole::Resting => signal(WordSense::Paused),
        (TruthValue::Absent, Some((Ok(ready), Ok(all)))) if role.is_positive() => {
            signal(if ready >= all && all > 0 { WordSense::Good } else { WordSense::Busy })
        }
        (TruthValue::Absent, None) => signal(sense_of_text(&word.value)?)
            .map(|signal| StatusSignal { force: SignalForce::Hint, ..signal }),
        _ => None,
    }
}

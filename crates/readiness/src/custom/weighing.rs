//! How the signals of one object weigh against each other.

use super::field_names::is_error_field;
use super::lexicon::{WordSense, sense_of_text};
use super::parts;
use super::retraction::names_work;
use super::signal::{SignalBasis, SignalForce, SignalSource, StatusSignal};
use super::tokens::{first_word, last_word, with_words};
use crate::facts::{ConditionLocation, Facts, TruthValue};

/// Lets conditions of another generation count against the whole, unless a verdict says itself that it is of this one:
/// one that names no generation may be as old as they are.
pub(super) fn weigh_stale_signals(f: &Facts, signals: &mut [StatusSignal<'_>]) {
    let current = |s: &StatusSignal<'_>| {
        s.force == SignalForce::Verdict
            && matches!(s.source, SignalSource::Condition(c) if c.observed.is_some() && c.observed == f.generation)
    };
    if signals.iter().any(current) {
        return;
    }
    let whole = |s: &&mut StatusSignal<'_>| matches!(s.source, SignalSource::Stale(c) if c.location == ConditionLocation::Conditions);
    for signal in signals.iter_mut().filter(whole) {
        signal.force = signal.force.max(SignalForce::Core);
    }
}

/// Drops signals that were only inferred if the object makes a clearer statement elsewhere.
pub(super) fn drop_inferred_signals(signals: &mut Vec<StatusSignal<'_>>) {
    let summary = |sense| {
        move |s: &StatusSignal<'_>| {
            s.sense == sense
                && s.force >= SignalForce::Core
                && matches!(s.source, SignalSource::StateField(_))
        }
    };
    // A phase that is progressing or paused explains why a condition is not true yet.
    let paused = signals.iter().any(summary(WordSense::Paused));
    let busy = paused || signals.iter().any(summary(WordSense::Busy));
    signals.retain(|s| match s.basis {
        SignalBasis::Name => !busy,
        SignalBasis::Message => !paused,
        SignalBasis::Stated => true,
    });
    // Conditions that record history: a step that ended before the object became ready, and the phase agrees.
    let ready = signals.iter().find_map(|s| match s.source {
        SignalSource::Condition(c) if s.sense == WordSense::Good && s.force == SignalForce::Verdict => {
            c.since
        }
        _ => None,
    });
    if let Some(ready) = ready.filter(|_| signals.iter().any(summary(WordSense::Good))) {
        signals.retain(|s| match s.source {
            SignalSource::Condition(c) if s.sense == WordSense::Busy && c.status == TruthValue::True => {
                c.since.is_none_or(|since| since >= ready)
            }
            _ => true,
        });
    }
}

/// Drops what only says that a run does not run any more, where the run says itself that it ended well: `IsRunning=False`, or a part
/// whose state is good and no end (`retention.phase: Applied`).
pub(super) fn drop_what_ended(signals: &mut Vec<StatusSignal<'_>>) {
    // Only an end is good news of a run.
    if !signals.iter().any(|s| s.sense == WordSense::Good && s.force >= SignalForce::Core) {
        return;
    }
    let runs = |words: &[&str]| {
        words.iter().any(|word| matches!(*word, "active" | "live" | "progressing" | "running" | "started"))
    };
    signals.retain(|s| match s.source {
        _ if s.sense != WordSense::Busy => true,
        SignalSource::Condition(c) => {
            let own = c.location == ConditionLocation::Conditions && c.status == TruthValue::False;
            !(own && with_words(&c.name, runs))
        }
        SignalSource::StateField(word) => {
            sense_of_text(&word.value) != Some(WordSense::Good) || with_words(&word.value, runs)
        }
        _ => true,
    });
}

/// Severity of a sense: an error outweighs a pause, and a pause outweighs a delay.
pub(super) fn sense_severity(sense: WordSense) -> u8 {
    match sense {
        WordSense::Bad => 5,
        WordSense::Paused => 4,
        WordSense::Leaving => 3,
        WordSense::Busy => 2,
        WordSense::Unknown => 1,
        WordSense::Good => 0,
    }
}

/// Order among equal signals: the first in the object's own order wins.
pub(super) fn order_of_signal(
    signal: &StatusSignal<'_>,
    all: &[StatusSignal<'_>],
) -> std::cmp::Reverse<usize> {
    std::cmp::Reverse(all.iter().position(|s| std::ptr::eq(s, signal)).unwrap_or(usize::MAX))
}

/// Returns `true` if the signal outweighs the best state that the object reports of itself.
pub(super) fn outweighs_best(signal: &StatusSignal<'_>, best: Option<SignalForce>, summed_up: bool) -> bool {
    match (best, signal.sense) {
        // `Available` says one thing of the whole, and what is false beside it another.
        (Some(SignalForce::Verdict), WordSense::Busy) if !summed_up || is_work_on_part(signal) => {
            signal.force >= SignalForce::Part
        }
        (Some(SignalForce::Verdict), WordSense::Bad) => signal.force >= SignalForce::Part,
        (Some(SignalForce::Core), WordSense::Busy) => signal.force != SignalForce::Step,
        // The last error is none of now where the whole says that it is well.
        (Some(SignalForce::Core), WordSense::Bad) if is_last_error(signal) => false,
        // Where only parts speak, the worst of them is what the object is worth.
        (Some(SignalForce::Part), WordSense::Paused | WordSense::Leaving) if parts::is_about_part(signal) => {
            true
        }
        (Some(SignalForce::Verdict), _)
        | (
            Some(SignalForce::Core | SignalForce::Part),
            WordSense::Paused | WordSense::Leaving | WordSense::Unknown,
        ) => signal.force >= SignalForce::Core,
        _ => true,
    }
}

/// Returns `true` for a condition that says of a part that work on it goes on: `NodesUpdating`, `ConfigPending`. The whole is worth no
/// more. `UpdatingIndex` is what the object does.
fn is_work_on_part(signal: &StatusSignal<'_>) -> bool {
    matches!(signal.source, SignalSource::Condition(c)
        if c.status == TruthValue::True
            && c.location == ConditionLocation::Conditions
            && with_words(&c.name, |name| names_work(last_word(name))))
}

/// Returns `true` for a text such as `lastError`, which operators leave where it is when the error is over.
fn is_last_error(signal: &StatusSignal<'_>) -> bool {
    matches!(signal.source, SignalSource::StateField(field)
        if with_words(&field.path, |path| first_word(path) == "last" && is_error_field(path)))
}

//! Custom resources without a rule of their own: their verdict is derived from their conventional conditions and
//! fields, by principles and never by kind.
//!
//! - Silence is never ready: neither a status that has not spoken of this generation, nor a part that has not spoken,
//!   nor a whole of which only parts speak, or which speaks in a word that nobody understands ([`doubts`]).
//! - A condition means what its name says, unless its reason or message takes it back ([`retraction`]): a reason in a word
//!   for trouble always does, and stands for the name where nobody understands that. A domain in front of a name says whose
//!   the condition is. One that names no generation may be as old as the oldest beside it.
//! - A boolean field with the name of the kind is about the whole (`bucketReady` of a bucket), a question that is answered with no is
//!   no error (`HasSucceeded`), and of a run that says that it is over nothing has to run.
//! - What must hold before anything is made (`ConfigValid`, `SecretFound`) is a first step, and being in use is no health.
//! - `Ready` sums up. Any other word of praise says one thing, and a condition that is false beside it another. A change of
//!   the whole that goes on or is owed (`UpdatingVersion`, `RestartRequired`, `RollingUpdate`) counts beside both, and so does
//!   work on a part (`NodesUpdating`); what the object itself works on (`UpdatingIndex`) does not.
//! - A list of parts is worth its worst element, whatever the whole says of itself; an element that is well speaks for no
//!   other. A list that is there only where something is wrong is trouble as soon as it has an element, and so is a number
//!   that should be 0; a count of none is no trouble. What has the shape of a condition, a type and a status that is true or
//!   false, is one, whatever its list is called. What the status itself says is to be, is to be: `currentVersion` and `targetVersion`, `ready` and
//!   `desired`, at the top or one level down.
//! - A phase or a state is a word with a meaning, in a [`lexicon`]; digits hide no word. A first step is one whether a
//!   condition or a phase says it, and what went well the last time says nothing of now; that the last attempt to bring
//!   the object about failed does (`lastUpdate`), that a backup failed does not.
//!   One plain word for trouble (`Failed`, `Pending`) is one in every field of the present that is no setting. A session with a
//!   peer has words of its own: an active one looks for its peer (RFC 4271).
//! - Suspension has many spellings ([`suspension`]), and is neither ready nor failed. A part that was put to rest counts; a
//!   respect that is switched off (`backup.phase: Disabled`) does not. What waits for the word of a person,
//!   such as an approval, is held as well.
//! - In doubt it is not ready: a false ready costs more than a false not-ready.
//!
//! `tests/library.rs` asks whether that holds for objects that others published with what they mean.

mod boolean_fields;
mod condition_role;
mod condition_signals;
mod counts;
mod doubts;
mod field_names;
mod lexicon;
mod parts;
mod phrase_counts;
mod quote;
mod refusal;
mod retraction;
mod signal;
mod state_fields;
mod suspension;
mod tokens;
mod weighing;
mod words;

pub use counts::{counts_lacking_parts, part_share};
pub use field_names::{
    condition_priority, is_condition_list, is_count_field, is_current_field, is_part_field,
    is_part_state_field, is_state_field, is_state_field_within, is_trouble_list, part_flag_says,
};
pub use state_fields::says_plain_trouble;
pub use suspension::{is_pausing_annotation, is_rest_switch, says_at_rest, says_paused};

use condition_role::ConditionRole;
use lexicon::{WordSense, says_failed};
use quote::quote_condition;
use signal::{SignalForce, SignalSource, StatusSignal};
use weighing::{
    drop_inferred_signals, drop_what_ended, order_of_signal, outweighs_best, sense_severity,
    weigh_stale_signals,
};

use crate::branch::Branch;
use crate::counted_unit::CountedUnit;
use crate::facts::{ConditionFacts, ConditionLocation, Facts, TruthValue};
use crate::kind::RuleKind;
use crate::readiness_ruling::ReadinessRuling;
use crate::stale_generation::rule_on_stale_generation;
use crate::text::BoundedText;
use crate::{Level, Reason};

/// Applies the rules in order: suspension, observed generation, stalled or reconciling, then all signals with the worst
/// one that matters first. Without any signal the result is no signal.
pub(crate) fn judge_custom(kind: RuleKind, f: &Facts) -> ReadinessRuling<'_> {
    if let Some(suspended) = rule_on_suspension(f) {
        return suspended;
    }
    let ruling = rule_on_stale_generation(f).or_else(|| rule_on_failed_attempt(f));
    if let Some(ruling) = ruling.or_else(|| rule_on_abnormal_condition(f)) {
        return ruling;
    }
    let mut signals: Vec<StatusSignal<'_>> =
        Vec::with_capacity(f.status.conditions.len() + f.status.state_fields.len() + 1);
    signals
        .extend(f.status.conditions.iter().filter_map(|c| condition_signals::condition_signal(c, f, kind)));
    signals.extend(f.status.state_fields.iter().filter_map(|w| state_fields::state_field_signal(w, f, kind)));
    signals.extend(counts::counts_signal(f));
    signals.extend(counts::lag_signal(f));
    parts::add_silent_parts(f, &mut signals);
    if kind == RuleKind::Run {
        drop_what_ended(&mut signals);
    }
    drop_inferred_signals(&mut signals);
    weigh_stale_signals(f, &mut signals);
    let best = signals.iter().filter(|s| s.sense == WordSense::Good).map(|s| s.force).max();
    // Of a run that is over, nothing runs any more.
    let summed_up = kind == RuleKind::Run || signals.iter().any(parts::sums_up);
    let worst = signals.iter().filter(|s| s.sense != WordSense::Good && outweighs_best(s, best, summed_up));
    if let Some(worst) =
        worst.max_by_key(|s| (sense_severity(s.sense), s.force, order_of_signal(s, &signals)))
    {
        return rule_on_trouble(worst, f);
    }
    if let Some(doubtful) = doubts::rule_on_doubt(f, &signals, best) {
        return doubtful;
    }
    match best {
        Some(force) if force != SignalForce::Step => rule_on_good_signals(force, &signals),
        _ => rule_without_decision(f, &signals),
    }
}

/// Rules on suspension first, because the controller of a suspended object may never observe this generation.
fn rule_on_suspension(f: &Facts) -> Option<ReadinessRuling<'_>> {
    if f.spec.suspended == Some(true) {
        return Some(ReadinessRuling::suspended(Reason::Suspended, Branch::Fact("spec.suspend is true")));
    }
    if let Some(annotation) = &f.paused_by {
        return Some(ReadinessRuling::suspended(
            Reason::Paused,
            Branch::Text("the annotation that pauses it", annotation),
        ));
    }
    if f.spec.off {
        return Some(ReadinessRuling::suspended(Reason::Suspended, Branch::Fact("spec switches it off")));
    }
    let paused = f.spec.paused == Some(true);
    paused.then(|| ReadinessRuling::suspended(Reason::Paused, Branch::Fact("spec.paused is true")))
}

/// Rules on an object that is being reconciled again because the last attempt for this generation failed, which its
/// `Ready` condition says: that another attempt runs does not make the failure undone.
fn rule_on_failed_attempt(f: &Facts) -> Option<ReadinessRuling<'_>> {
    let reconciling = f.status.find_true_condition("Reconciling")?;
    let ready = f.status.find_condition("Ready").filter(|c| c.status == TruthValue::False)?;
    let current = ready.observed.is_none() || ready.observed == f.generation || f.generation.is_none();
    let retries = tokens::with_words(&reconciling.reason, |words| words.ends_with(&["with", "retry"]));
    let wrong = retries || condition_signals::says_wrong(&ready.reason);
    let failed = f.status.find_true_condition("Stalled").is_none() && wrong;
    (current && failed)
        .then(|| ReadinessRuling::failed(Reason::SaysError(quote_condition(ready)), Branch::Condition(ready)))
}

/// Rules on the two conditions, `Stalled` and `Reconciling`, that mean the same for every kind.
pub(crate) fn rule_on_abnormal_condition(f: &Facts) -> Option<ReadinessRuling<'_>> {
    if let Some(c) = f.status.find_true_condition("Stalled") {
        return Some(ReadinessRuling::failed(Reason::SaysFailed(quote_condition(c)), Branch::Condition(c)));
    }
    let c = f.status.find_true_condition("Reconciling")?;
    Some(ReadinessRuling::progressing(Reason::SaysProgressing(quote_condition(c)), Branch::Condition(c)))
}

fn rule_on_trouble<'a>(signal: &StatusSignal<'a>, f: &'a Facts) -> ReadinessRuling<'a> {
    let (text, branch) = match signal.source {
        SignalSource::Stale(c) => {
            let branch = Branch::Generation { at: Some(c), observed: c.observed, generation: f.generation };
            return ReadinessRuling::progressing(Reason::StaleGeneration, branch);
        }
        SignalSource::Counts(field, have, of, want) => {
            let count = |n: i64| u32::try_from(n.max(0)).unwrap_or(u32::MAX);
            let reason = Reason::Count(CountedUnit::Ready, count(have), count(want));
            return ReadinessRuling::progressing(reason, Branch::Counts(field, have, of, want));
        }
        SignalSource::Lacking(count) => {
            let text = BoundedText::from_foreign(&format!("{} {}", count.name, count.value));
            (text, Branch::Number(&count.name, count.value))
        }
        SignalSource::Lag(lag) => {
            let text = format!("{} {}, {} {}", lag.name, lag.value, lag.wanted_name, lag.wanted);
            (BoundedText::from_foreign(&text), Branch::Lag(lag))
        }
        SignalSource::Condition(c) => (quote_condition(c), Branch::Condition(c)),
        SignalSource::StateField(w) => {
            let path = if w.path.is_empty() { "status" } else { &*w.path };
            let value = if w.value.is_empty() { "says nothing" } else { &*w.value };
            (BoundedText::from_foreign(&format!("{path} {value}")), Branch::StateField(w))
        }
    };
    match signal.sense {
        WordSense::Bad if is_terminal_signal(signal) => {
            ReadinessRuling::failed(Reason::SaysFailed(text), branch)
        }
        WordSense::Bad => match (&f.status.reason, signal.source) {
            (Some(reason), SignalSource::StateField(w)) if !reason.is_empty() => {
                let text = BoundedText::from_foreign(&format!("{} {}: {reason}", w.path, w.value));
                ReadinessRuling::failed(Reason::SaysError(text), branch)
            }
            _ => ReadinessRuling::failed(Reason::SaysError(text), branch),
        },
        WordSense::Paused => ReadinessRuling::suspended(Reason::SaysSuspended(text), branch),
        WordSense::Leaving => ReadinessRuling::new(Level::Terminating, Reason::SaysTerminating(text), branch),
        WordSense::Unknown => ReadinessRuling::unknown(Reason::SaysUnknown(text), branch),
        WordSense::Busy | WordSense::Good => {
            ReadinessRuling::progressing(Reason::SaysProgressing(text), branch)
        }
    }
}

/// Returns `true` if the signal says that the object failed, not merely that something is wrong.
fn is_terminal_signal(signal: &StatusSignal<'_>) -> bool {
    match signal.source {
        SignalSource::Condition(c) if c.status == TruthValue::True => {
            may_be_final(&c.name, &c.location)
                && says_failed(&c.name)
                && ConditionRole::from_condition_type(&c.name) == Some(ConditionRole::Wrong)
        }
        SignalSource::Condition(c) => &*c.name == "Succeeded",
        SignalSource::StateField(w) => signal.force >= SignalForce::Core && says_failed(&w.value),
        SignalSource::Stale(_)
        | SignalSource::Counts(..)
        | SignalSource::Lacking(_)
        | SignalSource::Lag(_) => false,
    }
}

/// Returns `true` if a condition or a field of this name can say that the object failed: not a list such as `failedMembers`.
fn may_be_final(name: &str, location: &ConditionLocation) -> bool {
    !matches!(location, ConditionLocation::Field(_)) || tokens::with_words(name, |words| words.len() == 1)
}

fn rule_on_good_signals<'a>(force: SignalForce, signals: &[StatusSignal<'a>]) -> ReadinessRuling<'a> {
    let good = signals.iter().find(|s| s.sense == WordSense::Good && s.force == force).map(|s| s.source);
    match good {
        Some(SignalSource::Counts(field, have, of, want)) => {
            let reason = if want == 0 { Reason::ScaledToZero } else { Reason::Ready };
            ReadinessRuling::ready(reason, Branch::Counts(field, have, of, want))
        }
        Some(SignalSource::Condition(c) | SignalSource::Stale(c)) => {
            ReadinessRuling::ready(Reason::Ready, Branch::Condition(c))
        }
        Some(SignalSource::StateField(w)) => ReadinessRuling::ready(Reason::Ready, Branch::StateField(w)),
        Some(SignalSource::Lacking(_) | SignalSource::Lag(_)) | None => {
            ReadinessRuling::unknown(Reason::NoSignal, Branch::Nothing)
        }
    }
}

/// Rules on an object whose signals do not decide. Not reconciling the current generation counts as a signal; a first
/// step alone does not.
fn rule_without_decision<'a>(f: &'a Facts, signals: &[StatusSignal<'a>]) -> ReadinessRuling<'a> {
    let current = f.status.observed.is_some() && f.status.observed == f.generation;
    let at_rest = |c: &&ConditionFacts| {
        c.status == TruthValue::False
            && ConditionRole::from_condition_type(&c.name) == Some(ConditionRole::Working)
    };
    if let Some(SignalSource::Condition(step)) = signals.first().map(|s| s.source) {
        return ReadinessRuling::progressing(
            Reason::SaysProgressing(quote_condition(step)),
            Branch::Condition(step),
        );
    }
    match f.status.conditions.iter().find(at_rest) {
        Some(rests) if current => ReadinessRuling::ready(Reason::Ready, Branch::Condition(rests)),
        _ => match f.status.state_fields.first() {
            Some(word) => {
                let text = BoundedText::from_foreign(&format!("{} {}", word.path, word.value));
                ReadinessRuling::unknown(Reason::SaysUnknown(text), Branch::StateField(word))
            }
            None => ReadinessRuling::unknown(Reason::NoSignal, Branch::Nothing),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Time;
    use crate::facts::{ConditionLocation, StateField, StatusFacts};

    fn condition(name: &'static str, status: TruthValue, reason: &str, since: i64) -> ConditionFacts {
        let (place, since) = (ConditionLocation::Conditions, Some(Time(since)));
        ConditionFacts {
            name: name.into(),
            status,
            reason: reason.into(),
            location: place,
            since,
            ..ConditionFacts::default()
        }
    }

    fn facts(phase: &str, conditions: Vec<ConditionFacts>) -> Facts {
        let words = vec![StateField { path: "phase".into(), value: phase.into() }];
        Facts {
            status: StatusFacts { present: true, conditions, state_fields: words, ..StatusFacts::default() },
            ..Facts::default()
        }
    }

    fn level(facts: &Facts) -> Level {
        judge_custom(RuleKind::Other, facts).assessment.verdict.level
    }

    #[test]
    fn conditions_that_tell_a_history_are_read_as_one() {
        let history = |started, ready| {
            vec![
                condition("initializing", TruthValue::True, "", started),
                condition("ready", TruthValue::True, "", ready),
            ]
        };
        assert_eq!(level(&facts("ready", history(1, 2))), Level::Ready);
        // A step that began after the object was ready is in progress.
        assert_eq!(level(&facts("ready", history(2, 1))), Level::Progressing);
        // The phase does not agree that the step is over.
        assert_eq!(level(&facts("initializing", history(1, 2))), Level::Progressing);
    }

    #[test]
    fn a_phase_says_why_something_does_not_hold_yet_unless_the_condition_says_it_itself() {
        let unhealthy = |reason: &str| vec![condition("Healthy", TruthValue::False, reason, 1)];
        assert_eq!(level(&facts("Progressing", unhealthy(""))), Level::Progressing);
        assert_eq!(level(&facts("Paused", unhealthy(""))), Level::Suspended);
        assert_eq!(level(&facts("Progressing", unhealthy("ProbeFailed"))), Level::Failed);
        assert_eq!(level(&facts("Running", unhealthy(""))), Level::Failed);
    }

    #[test]
    fn an_error_of_the_past_outweighs_nothing_whichever_field_tells_of_it() {
        for (path, expected) in [
            ("lastError", Level::Ready),
            ("lastError.message", Level::Ready),
            ("error", Level::Failed),
            ("error.message", Level::Failed),
        ] {
            let mut facts = facts("", vec![condition("ready", TruthValue::True, "", 1)]);
            facts.status.state_fields = vec![StateField { path: path.into(), value: "Boom".into() }];
            assert_eq!(level(&facts), expected, "{path}");
        }
    }
}

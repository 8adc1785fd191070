//! What keeps an object from being ready although all that is understood of it is well.
//!
//! A `Verdict` such as `Ready` settles these doubts, since by convention the operator sums up in it. Where less than that
//! is well, something that the object says of itself as a whole and that nobody understands is not silence.

use super::condition_role::ConditionRole;
use super::field_names::is_summary_path;
use super::lexicon::{WordSense, message_sense};
use super::parts::is_about_part;
use super::quote::quote_condition;
use super::retraction::{message_retracts, reason_retracts};
use super::signal::{SignalForce, SignalSource, StatusSignal};
use crate::Reason;
use crate::branch::Branch;
use crate::facts::{ConditionFacts, ConditionLocation, Facts, StateField, TruthValue};
use crate::readiness_ruling::ReadinessRuling;
use crate::text::BoundedText;

/// Rules on an object without a sign of trouble whose signs of health are doubtful. `best` is the strongest of these.
pub(super) fn rule_on_doubt<'a>(
    facts: &'a Facts,
    signals: &[StatusSignal<'a>],
    best: Option<SignalForce>,
) -> Option<ReadinessRuling<'a>> {
    if let Some(silent) = silent_whole(facts, signals) {
        return Some(unknown_by_condition(silent));
    }
    if best == Some(SignalForce::Verdict) {
        return None;
    }
    rule_on_status_text(facts, signals.is_empty())
        .or_else(|| unknown_condition(facts).map(unknown_by_condition))
        .or_else(|| {
            let word = unread_summary(facts, signals).filter(|_| best.is_some())?;
            let text = BoundedText::from_foreign(&format!("{} {}", word.path, word.value));
            Some(ReadinessRuling::unknown(Reason::SaysUnknown(text), Branch::StateField(word)))
        })
}

fn unknown_by_condition(c: &ConditionFacts) -> ReadinessRuling<'_> {
    ReadinessRuling::unknown(Reason::SaysUnknown(quote_condition(c)), Branch::Condition(c))
}

/// Returns a condition of the whole object if it has some and none is understood, while only its parts are known to be
/// well: they do not speak for the whole.
fn silent_whole<'a>(facts: &'a Facts, signals: &[StatusSignal<'a>]) -> Option<&'a ConditionFacts> {
    let first = facts.status.conditions.iter().find(|c| c.location == ConditionLocation::Conditions)?;
    (!signals.is_empty() && signals.iter().all(is_about_part)).then_some(first)
}

/// Returns a condition of the whole object that is unknown to its own operator, whatever its name means.
fn unknown_condition(facts: &Facts) -> Option<&ConditionFacts> {
    facts.status.conditions.iter().find(|c| {
        c.status == TruthValue::Unknown
            && c.location == ConditionLocation::Conditions
            && !c.info
            && ConditionRole::from_condition_type(&c.name).is_none()
    })
}

/// Returns the phase or the state of the whole object if nobody understands its word.
fn unread_summary<'a>(facts: &'a Facts, signals: &[StatusSignal<'a>]) -> Option<&'a StateField> {
    facts.status.state_fields.iter().find(|word| {
        let is_read = |signal: &StatusSignal<'_>| {
            matches!(signal.source, SignalSource::StateField(read) if std::ptr::eq(read, *word))
        };
        !word.path.contains(['.', '[']) && is_summary_path(&word.path) && !signals.iter().any(is_read)
    })
}

/// Rules on the reason and the message of the whole status. They take back what is well; where nothing else speaks, an
/// error in them is one.
fn rule_on_status_text(facts: &Facts, alone: bool) -> Option<ReadinessRuling<'_>> {
    let reason = facts.status.reason.as_deref().unwrap_or_default();
    let message = facts.status.message.as_deref().unwrap_or_default();
    let is_error = |text: &str| alone && message_sense(text) == Some(WordSense::Bad);
    let said = |path, text, sense| {
        let (branch, text) = (Branch::Text(path, text), BoundedText::from_foreign(text));
        match sense {
            WordSense::Bad => ReadinessRuling::failed(Reason::SaysError(text), branch),
            WordSense::Paused => ReadinessRuling::suspended(Reason::SaysSuspended(text), branch),
            _ => ReadinessRuling::progressing(Reason::SaysProgressing(text), branch),
        }
    };
    let by_reason = reason_retracts(reason).or(is_error(reason).then_some(WordSense::Bad));
    if let Some(sense) = by_reason {
        return Some(said("status.reason", reason, sense));
    }
    let by_message = message_retracts(message).or(is_error(message).then_some(WordSense::Bad));
    by_message.map(|sense| said("status.message", message, sense))
}

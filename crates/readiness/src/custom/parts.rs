//! The parts of an object and its whole: each must have spoken before the object is ready.

use super::condition_role::ConditionRole;
use super::field_names::is_part_path;
use super::lexicon::WordSense;
use super::signal::{SignalBasis, SignalForce, SignalSource, StatusSignal};
use crate::facts::{ConditionFacts, ConditionLocation, Facts};

/// Returns the list that this part is an element of.
fn list_of(part: &str) -> Option<&str> {
    part.strip_suffix(']').and_then(|part| part.rsplit_once('[')).map(|(list, _)| list)
}

fn part_of(c: &ConditionFacts) -> Option<&str> {
    match &c.location {
        ConditionLocation::Below(path) if list_of(path).is_some() => Some(path),
        _ => None,
    }
}

/// Adds a signal for each element of a list whose conditions say nothing that is understood, where another element of
/// the same list is well: what one part says does not speak for the next.
pub(super) fn add_silent_parts<'a>(facts: &'a Facts, signals: &mut Vec<StatusSignal<'a>>) {
    if facts.status.conditions.iter().all(|c| part_of(c).is_none()) {
        return;
    }
    let spoken: Vec<&str> = signals
        .iter()
        .filter_map(|signal| match signal.source {
            SignalSource::Condition(c) | SignalSource::Stale(c) => part_of(c),
            SignalSource::StateField(word) => word.path.rsplit_once('.').map(|(part, _)| part),
            SignalSource::Counts(..) | SignalSource::Lacking(_) | SignalSource::Lag(_) => None,
        })
        .collect();
    let silent = facts.status.conditions.iter().filter(|c| {
        part_of(c).is_some_and(|part| {
            let other = |path: &&str| list_of(path) == list_of(part);
            !spoken.contains(&part) && spoken.iter().any(other) || lacks_acceptance(facts, part)
        })
    });
    signals.extend(silent.map(|c| StatusSignal {
        sense: WordSense::Unknown,
        force: SignalForce::Core,
        basis: SignalBasis::Stated,
        source: SignalSource::Condition(c),
    }));
}

/// Returns `true` if a parent of a route or an ancestor of a policy has not said whether it accepts it, as the Gateway API
/// requires of each, nor anything that sums it up.
fn lacks_acceptance(facts: &Facts, part: &str) -> bool {
    let answers = |c: &ConditionFacts| {
        part_of(c) == Some(part)
            && (c.name == "Accepted"
                || ConditionRole::from_condition_type(&c.name) == Some(ConditionRole::Verdict))
    };
    matches!(list_of(part), Some("parents" | "ancestors")) && !facts.status.conditions.iter().any(answers)
}

/// Returns `true` if the signal comes from an element of a list or of a map.
pub(super) fn is_about_part(signal: &StatusSignal<'_>) -> bool {
    match signal.source {
        SignalSource::Condition(c) | SignalSource::Stale(c) => match &c.location {
            ConditionLocation::Below(path) | ConditionLocation::Field(Some(path)) => is_part_path(path),
            _ => false,
        },
        SignalSource::StateField(word) => {
            word.path.rsplit_once('.').is_some_and(|(part, _)| is_part_path(part))
        }
        SignalSource::Counts(..) | SignalSource::Lacking(_) | SignalSource::Lag(_) => false,
    }
}

/// Returns `true` if the signal is a condition that by convention sums up all others: `Ready`.
pub(super) fn sums_up(signal: &StatusSignal<'_>) -> bool {
    signal.sense == WordSense::Good
        && matches!(signal.source, SignalSource::Condition(c)
            if c.location == ConditionLocation::Conditions && c.name.eq_ignore_ascii_case("Ready"))
}

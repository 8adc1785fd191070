//! What a parent's own status says of a failure, beside what Rollcall wrote there.

use std::borrow::Cow;

use aggregator::ReportedFailure;
use readiness::rollup::ParentReason;
use readiness::{
    ConditionFacts, ConditionLocation, Facts, Level, RuleKind, StatusFacts, StuckLimits, TruthValue, Verdict,
    assess,
};

use super::entry::ConditionEntry;
use super::own_words::is_in_our_words;
use super::parent_status::ParentStatus;

/// What the status of a parent says of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusFailure {
    /// Whether it is of this generation, and passes.
    pub failure: ReportedFailure,
    /// What says so: a condition with its reason, or a field with its value.
    pub text: Box<str>,
}

impl StatusFailure {
    /// The failure that the status of an object reports by the rule of its kind, without what Rollcall wrote. `counted` if
    /// `metadata.generation` counts the spec alone.
    pub fn find(
        kind: RuleKind,
        facts: &Facts,
        status: &ParentStatus,
        counted: bool,
    ) -> Option<StatusFailure> {
        if matches!(kind, RuleKind::Run | RuleKind::Other) && says_nothing(facts, status) {
            return None;
        }
        let verdict = judge_own_status(kind, facts, status);
        if verdict.level != Level::Failed {
            return None;
        }
        let says_generation =
            status.has_foreign_generation() && status.observed_generation() == facts.generation;
        let is_of_this = counted && (says_generation || facts.generation == Some(1));
        let failure = match () {
            () if !is_of_this => ReportedFailure::Unattributed,
            () if verdict.is_terminal() => ReportedFailure::Final,
            () => ReportedFailure::Temporary,
        };
        Some(StatusFailure { failure, text: verdict.reason.to_string().into() })
    }
}

/// The verdict of the kind's rule about an object, by all of its status but what Rollcall wrote. One that is being deleted is judged
/// as if it were not.
pub fn judge_own_status(kind: RuleKind, facts: &Facts, status: &ParentStatus) -> Verdict {
    assess(kind, &others_facts(facts, status), &StuckLimits::default()).verdict
}

/// Facts without what Rollcall wrote: its conditions, those of other releases of it, and the generation that it or a default keeps
/// beside them.
fn others_facts<'f>(facts: &'f Facts, status: &ParentStatus) -> Cow<'f, Facts> {
    let is_ours = |condition: &ConditionFacts| is_ours(condition, status);
    let keeps_generation = facts.status.observed.is_none() || status.has_foreign_generation();
    if facts.deleted.is_none() && keeps_generation && !facts.status.conditions.iter().any(is_ours) {
        return Cow::Borrowed(facts);
    }
    let mut own = facts.clone();
    own.deleted = None;
    own.status.observed = own.status.observed.filter(|_| keeps_generation);
    own.status.conditions.retain(|condition| !is_ours(condition));
    Cow::Owned(own)
}

/// Returns `true` if nothing in the status of a custom resource can say that it has failed, as in that of most parents at most
/// times: whatever can is a condition, a state, or a number by its name.
fn says_nothing(facts: &Facts, status: &ParentStatus) -> bool {
    let StatusFacts { conditions, state_fields, counts, reason, .. } = &facts.status;
    let is_bare = state_fields.is_empty() && counts.is_empty() && reason.is_none();
    is_bare && conditions.iter().all(|condition| is_ours(condition, status))
}

/// Returns `true` if the condition is this release's, or some other Rollcall's, also where an operator has copied it from an object that
/// it made into a place of its own.
fn is_ours(condition: &ConditionFacts, status: &ParentStatus) -> bool {
    let is_entry =
        condition.location == ConditionLocation::Conditions && status.our_entry(&condition.name).is_some();
    is_entry || is_of_rollcall(condition)
}

/// Returns `true` if some Rollcall said this, of whichever release.
fn is_of_rollcall(condition: &ConditionFacts) -> bool {
    if ParentReason::parse_reason(&condition.reason).is_none() {
        return false;
    }
    let entry = ConditionEntry {
        r#type: condition.name.to_string(),
        status: if condition.status == TruthValue::Absent { "" } else { condition.status.as_str() }
            .to_owned(),
        observed_generation: condition.observed,
        last_transition_time: String::new(),
        reason: condition.reason.to_string(),
        message: condition.message.to_string(),
    };
    is_in_our_words(&entry, !entry.message.is_empty())
}

//! What is read of a parent's own text.

use std::hash::Hasher;

use aggregator::HandledEvidence;
use rustc_hash::FxHasher;
use serde_json::value::RawValue;

use super::super::kopf::KopfState;
use super::super::last_written::LastWrite;
use super::super::rules_of_parent::RulesOfParent;
use crate::plan::{Interest, OwnStatusRule, ParentRule};
use crate::status::{ParentStatus, StatusFailure, raw_json};
use crate::wire::{ChildObject, WireMeta};

/// The status, as the rules for the parent see it; `last` is the last write.
pub(super) fn read_status(
    object: &RawValue,
    interest: &Interest,
    RulesOfParent { rules, elsewhere, .. }: &RulesOfParent<'_>,
    last: Option<&LastWrite>,
) -> ParentStatus {
    let taken = rules.iter().filter(|r| r.takeover).map(|r| &*r.condition);
    let own = interest.own_types().leaving(elsewhere).taking(taken);
    let Some(last) = last else { return ParentStatus::read(object, &own) };
    let mut status = ParentStatus::read(object, &own.returning(&last.returned));
    status.restore_dropped(&last.sent);
    status
}

/// The failure that the parent's own status reports, where some of these rules heed that.
pub(super) fn heed_failure(
    child: &ChildObject,
    interest: &Interest,
    rules: &[&ParentRule],
    status: &ParentStatus,
) -> Option<StatusFailure> {
    rules.iter().find(|rule| rule.own_status == OwnStatusRule::Failures)?;
    StatusFailure::find(interest.judge, &child.facts, status, interest.counted)
}

/// What the parent says of itself in the field where objects of its kind do.
pub(super) fn told_in_field(child: &ChildObject, interest: &Interest) -> Option<bool> {
    let fields = child.facts.status.state_fields.iter().map(|field| (&*field.path, &*field.value));
    interest.told_in?.says_ready(fields)
}

/// Hash of the object without metadata and status, used as the generation if the server also counts status writes.
pub(super) fn spec_hash(object: &RawValue) -> u64 {
    let members = raw_json::all_members(object);
    let mut hash = FxHasher::default();
    let is_spec = |key: &str| !matches!(key, "metadata" | "status" | "apiVersion" | "kind");
    for (key, value) in members.iter().filter(|(key, _)| is_spec(key)) {
        hash.write(key.as_bytes());
        hash.write(value.get().as_bytes());
    }
    hash.finish()
}

/// Returns the operator's evidence that it has handled the current spec; `counted` if generations are, `expects_mark` if it leaves
/// Kopf's mark on other parents.
pub(super) fn handled_evidence(
    meta: &WireMeta,
    kopf: &KopfState,
    status: &ParentStatus,
    (counted, expects_mark): (bool, bool),
) -> HandledEvidence {
    let mut marks = Vec::new();
    if counted {
        let own = status.observed_generation().filter(|_| status.has_foreign_generation());
        marks.extend(own.or(status.foreign_generation()).map(|observed| observed >= meta.generation));
    }
    marks.extend(kopf.handled);
    match marks.as_slice() {
        [] if expects_mark && !kopf.marked => HandledEvidence::Unmarked,
        [] => HandledEvidence::Silent,
        marks if marks.contains(&false) => HandledEvidence::NotYet,
        _ => HandledEvidence::Handled,
    }
}

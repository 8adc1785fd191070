//! Whether a Kopf operator succeeded with what it handled.
//!
//! Kopf stores its mark when its handlers are through, whether they succeeded or failed for good, and removes their records
//! in the same patch: from 1.44 on a failure leaves nothing at all. What was seen of it is remembered here, for as long as
//! the generation lasts and nothing newer is known.

use aggregator::HandledEvidence;
use readiness::rollup::ParentReason;

use super::log::LoggedEnd;
use super::{KopfOutcome, KopfState};
use crate::plan::{KopfMarkRule, ParentRule};
use crate::status::{OwnedCondition, ParentStatus, STATUS_REPORTS};

/// A failure of the operator's that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::reflector) struct SeenFailure {
    /// `metadata.generation` that it failed to handle.
    pub(in crate::reflector) generation: i64,
    /// Handlers that failed, as text.
    pub(in crate::reflector) handlers: Option<Box<str>>,
    /// The evidence without it, where the operator's log alone has told it, and may take it back.
    pub(in crate::reflector) unlogged: Option<HandledEvidence>,
}

impl SeenFailure {
    /// The failure to handle `generation` that `kopf` shows, or the operator's log, or that was seen before and is not known to be
    /// mended. What the log takes back is what it has told, of a parent whose evidence is `unlogged` without it. What the parent was told of one counts, unless that `tells_status`: what its status said.
    pub(in crate::reflector) fn find(
        kopf: &KopfState,
        (logged, unlogged): (Option<LoggedEnd>, HandledEvidence),
        generation: i64,
        (before, tells_status): (Option<&SeenFailure>, bool),
        status: &ParentStatus,
    ) -> Option<SeenFailure> {
        match kopf.outcome {
            Some(KopfOutcome::Failing | KopfOutcome::GivenUp) => {
                return Some(SeenFailure { generation, handlers: kopf.progress.clone(), unlogged: None });
            }
            Some(KopfOutcome::Succeeded) => return None,
            None if kopf.handled != Some(true) => return None,
            None => {}
        }
        let is_taken_back = match logged {
            Some(LoggedEnd::Failed(handlers)) => {
                return Some(SeenFailure { generation, handlers, unlogged: Some(unlogged) });
            }
            logged => logged == Some(LoggedEnd::Succeeded),
        };
        let seen = before.filter(|seen| seen.generation == generation);
        if is_taken_back && seen.is_some_and(|seen| seen.unlogged.is_some()) {
            return None;
        }
        let seen = seen.cloned();
        let told = || told_failure(generation, status).filter(|_| !tells_status);
        seen.or_else(|| SeenFailure::from_entry(generation, told()?))
    }

    /// What an earlier process saw, and told the parent.
    fn from_entry(generation: i64, entry: &OwnedCondition) -> Option<SeenFailure> {
        let text = entry.message().split_once(": ").map(|(_, rest)| rest);
        // A failure of handlers names them, unless the schema has no messages. What names none was written as it passed.
        let is_of_handlers =
            text.map_or(entry.message().is_empty(), |text| !text.starts_with(STATUS_REPORTS));
        if !is_of_handlers {
            return None;
        }
        // A text beside the outcome may follow them.
        let handlers = text.and_then(|rest| rest.split("; ").next());
        let handlers = handlers.map(Into::into);
        Some(SeenFailure { generation, handlers, unlogged: None })
    }
}

/// What Rollcall has told the parent of a failure to handle `generation`.
pub(in crate::reflector) fn told_failure(generation: i64, status: &ParentStatus) -> Option<&OwnedCondition> {
    status.ours.iter().find(|entry| {
        entry.parent_reason() == Some(ParentReason::OperatorFailed)
            && entry.observed_generation() == Some(generation)
    })
}

/// The evidence of a parent whose operator `said` this, and `failed` or not.
pub(in crate::reflector) fn judge_outcome(
    said: HandledEvidence,
    kopf: &KopfState,
    failed: bool,
    status: &ParentStatus,
    rules: &[&ParentRule],
) -> HandledEvidence {
    let is_said_beside = status.has_foreign_generation() || status.foreign_generation().is_some();
    let wants_proof = rules.iter().any(|rule| rule.kopf_marks == KopfMarkRule::Expected) && !is_said_beside;
    match kopf.outcome {
        Some(KopfOutcome::Failing) => HandledEvidence::Failed,
        _ if failed => HandledEvidence::GivenUp,
        None if wants_proof && said == HandledEvidence::Handled => HandledEvidence::Unproven,
        _ => said,
    }
}

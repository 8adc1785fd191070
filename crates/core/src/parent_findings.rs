//! What is to be known of a parent under a policy besides its answer.

use std::collections::BTreeSet;

use aggregator::{Engine, EvaluationState, UnwrittenBecause};
use readiness::Time;
use readiness::rollup::{ConditionStatus, ParentReason};
use watcher::reflector::{ObjectRow, Reflector};
use watcher::status::ParentStatus;

/// What is to be known of one parent under one policy besides its answer. Of a parent at rest there is nothing.
#[expect(clippy::struct_excessive_bools, reason = "facts of one parent as they are read")]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParentFindings {
    /// Reason and beginning, if it is not ready.
    pub unready: Option<(ParentReason, Time)>,
    /// Why it cannot be told, if it cannot.
    pub unwritten: Option<UnwrittenBecause>,
    /// Its CRD lacks the default status: readers that use kstatus may see it ready too early.
    pub undefaulted: bool,
    /// It carries Kopf's mark, and nothing shows whether its operator succeeded.
    pub hides_outcome: bool,
    /// Under a policy in shadow mode, its own condition differs from the answer.
    pub disagrees: bool,
    /// Field managers of the condition, if another writer owns it; empty if they are not known.
    pub owner: Option<Box<str>>,
    /// Nothing is written because of this owner: the policy is not in shadow mode.
    pub is_kept_by_owner: bool,
    /// What this owner says differs from the answer.
    pub owner_disagrees: bool,
    /// The other writers of conditions there, if one of them repeatedly overwrites the condition.
    pub rivals: Option<Box<str>>,
}

/// What findings are made from.
#[derive(Clone, Copy)]
pub(super) struct FindingSources<'a> {
    pub(super) engine: &'a Engine,
    pub(super) reflector: &'a Reflector,
}

impl FindingSources<'_> {
    /// Finds what is to be known of one parent. It has not been ready since `known` at the latest, if it is not.
    pub(super) fn find(self, state: &EvaluationState<'_>, known: Time) -> ParentFindings {
        let found = self.reflector.read_row(state.parent, |row| self.find_in_row(row, state, known));
        ParentFindings { unwritten: state.unwritten, ..found.flatten().unwrap_or_default() }
    }

    fn find_in_row(
        self,
        row: &ObjectRow,
        state: &EvaluationState<'_>,
        known: Time,
    ) -> Option<ParentFindings> {
        let is_true = |reason: ParentReason| reason.condition_status() == ConditionStatus::True;
        let (reason, is_shadow) = (state.answer.reason, self.engine.is_shadow(state.policy));
        let parent = row.parent.as_ref()?;
        let target = parent.targets.iter().find(|target| target.policy == state.policy)?;
        let view = parent.view.answers.iter().find(|answer| answer.policy == state.policy)?;
        let told = view.written.filter(|told| !is_true(told.reason));
        // The id may have been reused for another parent, which did not exist before its creation.
        let since = told.map_or(known, |told| told.since.min(known)).max(row.created_at());
        let ours = target.condition.as_deref() == Some("Ready") && !parent.view.deleting;
        let owner = target.condition.is_none().then(|| target.owner().unwrap_or("").into());
        let says_otherwise = target.owner_says_true().is_some_and(|theirs| theirs != is_true(reason))
            && self.engine.has_evaluated(state.parent, state.policy);
        let is_kept_by_owner = owner.is_some() && !is_shadow;
        Some(ParentFindings {
            unready: (!is_true(reason)).then_some((reason, since)),
            unwritten: state.unwritten,
            undefaulted: ours && parent.status.observed_generation().is_none(),
            hides_outcome: parent.hides_outcome(),
            disagrees: is_shadow && says_otherwise,
            is_kept_by_owner,
            owner_disagrees: is_kept_by_owner && says_otherwise,
            owner,
            rivals: state.yielding.then(|| rival_managers(&parent.status).into()),
        })
    }
}

/// Other writers of conditions; empty if none is known.
pub fn rival_managers(status: &ParentStatus) -> String {
    let names: BTreeSet<&str> = status.foreign.iter().flat_map(|(_, owners, _)| owners.split(", ")).collect();
    names.into_iter().filter(|name| !name.is_empty()).take(3).collect::<Vec<_>>().join(", ")
}

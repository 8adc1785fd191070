//! Use of `status.observedGeneration` by operators, and the meaning of its absence.
//!
//! All readers of kstatus read the field, so Rollcall writes it where no other manager does. It is also the field by which an
//! operator says what it has handled, and the server hides such a write where the value stands there already: an equal
//! write changes nothing and gives no manager the field. So Rollcall writes it only where it can hide nothing that it
//! needs to know, and where it may have hidden something, it does not take silence for an answer.

use aggregator::HandledEvidence;

use crate::plan::{KopfMarkRule, ObservedGenerationRule, ParentRule};
use crate::status::ParentStatus;

/// What is known of an operator's use of `status.observedGeneration`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum GenerationPractice {
    /// A policy says that it does not write the field, or the field is no evidence: the server counts status writes too.
    #[default]
    Declared,
    /// Another mark of the operator's says what it has handled.
    Beside,
    /// It writes the field on this parent, or on others of the kind.
    Keeps,
    /// It writes a status, and may keep the field in it.
    MayKeep,
    /// Only Rollcall has written a status.
    Unseen,
}

/// Observation on one parent of its operator's use of `status.observedGeneration`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SeenPractice {
    /// The operator keeps it here.
    Keeps,
    /// It was read before that was known of other parents, if it is.
    Unaware,
    /// Nothing.
    Nothing,
}

impl GenerationPractice {
    /// `said` is the evidence on the parent itself; `expected` that other parents of the kind carry the field.
    pub(super) fn of(
        status: &ParentStatus,
        rules: &[&ParentRule],
        counted: bool,
        said: HandledEvidence,
        expected: bool,
    ) -> GenerationPractice {
        let declared = rules.iter().any(|rule| rule.observed_generation == ObservedGenerationRule::Write);
        match () {
            () if declared || !counted => GenerationPractice::Declared,
            () if status.has_foreign_generation() || expected => GenerationPractice::Keeps,
            () if said != HandledEvidence::Silent => GenerationPractice::Beside,
            () if status.has_other_writers => GenerationPractice::MayKeep,
            () => GenerationPractice::Unseen,
        }
    }

    /// The evidence on a parent whose operator `said` this about `generation`.
    pub(super) fn evidence(
        self,
        status: &ParentStatus,
        generation: i64,
        said: HandledEvidence,
    ) -> HandledEvidence {
        if said != HandledEvidence::Silent {
            return said;
        }
        // What we wrote about this very generation was written after it was taken for handled.
        let hides = status.holds_generation() && status.observed_generation().is_some_and(|n| n < generation);
        match self {
            GenerationPractice::Keeps => HandledEvidence::Unmarked,
            GenerationPractice::MayKeep if hides => HandledEvidence::Unmarked,
            GenerationPractice::Unseen if hides => HandledEvidence::Masked,
            _ => HandledEvidence::Silent,
        }
    }
}

/// Returns `true` if Rollcall writes `status.observedGeneration` under this rule.
pub(super) fn keeps_generation(
    status: &ParentStatus,
    rule: &ParentRule,
    practice: GenerationPractice,
) -> bool {
    match rule.observed_generation {
        ObservedGenerationRule::Never => false,
        ObservedGenerationRule::Write => !status.has_foreign_generation(),
        ObservedGenerationRule::Auto => {
            let is_free = !matches!(practice, GenerationPractice::Keeps | GenerationPractice::MayKeep);
            &*rule.condition == "Ready" && status.has_own_generation() && is_free
        }
    }
}

/// Returns the current `status.observedGeneration` if Rollcall writes it.
pub(super) fn kept_generation(
    status: &ParentStatus,
    rules: &[&ParentRule],
    practice: GenerationPractice,
) -> Option<i64> {
    let keeps = rules.iter().any(|rule| keeps_generation(status, rule, practice));
    keeps.then_some(status.observed_generation()).flatten()
}

/// Returns `true` if a policy concludes from what other parents carry.
pub(super) fn concludes(rules: &[&ParentRule]) -> bool {
    rules.iter().any(|rule| rule.kopf_marks != KopfMarkRule::Optional)
}

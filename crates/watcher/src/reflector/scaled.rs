//! Workloads that were rolled out whole and are scaled or disrupted: what they had then, but for what their budget allows, is what a
//! parent has counted on.

use readiness::{Assessment, DisruptionBudget, Facts, KnownBeside, Level, Steadiness, whole_replicas};

use super::row::ObjectRow;
use super::whole_workload::WholeWorkload;
use crate::plan::{AssessmentRule, Interest};
use crate::wire::{ChildObject, SpecVersion};

/// What is known of a workload from before a change of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BeforeChange {
    /// It was ready in this version, by the rule of its kind.
    Whole(SpecVersion),
    /// It was not; when it was last, it was so, and has lost none since beyond its budget.
    Scaled(WholeWorkload),
    /// Nothing that could be counted on.
    Unknown,
}

impl BeforeChange {
    /// What the row tells by the rule of its kind. What other rules say of it, by which it may be judged too, is no rollout.
    pub(super) fn of_row(row: &ObjectRow, interest: &Interest) -> BeforeChange {
        // Of a history that is gone.
        if row.version == 0 {
            return BeforeChange::Unknown;
        }
        if let Some(whole) = row.extras.as_ref().and_then(|aside| aside.whole) {
            return BeforeChange::Scaled(whole);
        }
        let by_kind = |rule_index: &u16| {
            let rule = interest.assessment_rules.get(usize::from(*rule_index));
            rule.is_some_and(|judged_by| judged_by.rule.is_none())
        };
        let mut rules = row.links.as_slice().iter().map(|link| link.rule_index).filter(by_kind);
        let is_whole = |rule_index| row.assessment_for(rule_index).verdict.level == Level::Ready;
        if !row.is_remembered() && rules.any(is_whole) {
            BeforeChange::Whole(row.spec_version)
        } else {
            BeforeChange::Unknown
        }
    }

    fn whole(self, interest: &Interest, facts: &Facts) -> Option<WholeWorkload> {
        match self {
            BeforeChange::Whole(wanted) => {
                whole_replicas(interest.judge, facts).map(|replicas| WholeWorkload::new(replicas, wanted))
            }
            BeforeChange::Scaled(whole) => Some(whole),
            BeforeChange::Unknown => None,
        }
    }
}

/// Says of the verdicts by built-in rules how far a workload can be counted on that was rolled out whole before, or whose pods
/// have these budgets. Returns what it was then, where that is the measure from now on.
pub(super) fn count_on_whole(
    interest: &Interest,
    child: &ChildObject,
    assessed: &mut [Assessment],
    (before, budgets): (BeforeChange, &[DisruptionBudget]),
) -> Option<WholeWorkload> {
    let facts = &child.facts;
    let whole = before.whole(interest, facts);
    let known = KnownBeside {
        whole: whole.map(|whole| whole.replicas),
        is_only_scaled: whole.is_some_and(|whole| whole.is_only_scaled(child)),
        budgets,
    };
    if known == KnownBeside::default() {
        return None;
    }
    let mut is_steady = false;
    let by_kind = |rule: &AssessmentRule| rule.rule.is_none();
    let rules = interest.assessment_rules.iter().zip(assessed).filter(|(rule, _)| by_kind(rule));
    for (_, assessment) in rules {
        let verdict = &mut assessment.verdict;
        verdict.steadiness = readiness::steadiness_beside(interest.judge, facts, verdict, known);
        is_steady |= verdict.steadiness != Steadiness::Unsteady;
    }
    whole.filter(|_| is_steady).map(|whole| whole.beside(child))
}

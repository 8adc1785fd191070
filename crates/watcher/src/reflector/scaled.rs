//! Workloads that were rolled out whole and are scaled or disrupted: what they had then, but for what their budget allows, is what a
//! parent has counted on.

use readiness::{Assessment, DisruptionBudget, Facts, KnownBeside, Level, Steadiness, whole_replicas};

use super::row::ObjectRow;
use crate::plan::{AssessmentRule, Interest};
use crate::wire::{ChildObject, SpecVersion};

/// A workload that was rolled out whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WholeWorkload {
    /// Replicas that it had.
    replicas: u32,
    /// What it was wanted to be then.
    first: SpecVersion,
    /// The newest version since of which each differs from the one before in the number of replicas alone.
    wanted: SpecVersion,
}

impl WholeWorkload {
    /// Returns `true` if this version of it is wanted to have more or fewer replicas, and nothing else, and its status is about a
    /// version of which that is known, too: of none before it was whole, which etcd restored from a backup brings back.
    fn is_only_scaled(self, child: &ChildObject) -> bool {
        let wanted = child.meta.spec_version;
        let unobserved = unobserved_generations(&child.facts);
        let since = |version| i64::from(wanted.generations_since(version));
        wanted.has_equal_template(self.wanted)
            && (since(self.wanted)..=since(self.first)).contains(&unobserved)
    }

    /// The same beside this version of it. A version between the two that nobody saw may have had another template.
    fn beside(self, child: &ChildObject) -> WholeWorkload {
        let wanted = child.meta.spec_version;
        let follows = wanted.has_equal_template(self.wanted) && wanted.generations_since(self.wanted) <= 1;
        let is_observed = unobserved_generations(&child.facts) == 0;
        match (follows, is_observed) {
            (_, true) => WholeWorkload { first: wanted, wanted, ..self },
            (true, false) => WholeWorkload { wanted, ..self },
            (false, false) => self,
        }
    }
}

/// Number of generations by which the status of an object is behind.
fn unobserved_generations(facts: &Facts) -> i64 {
    facts.generation.zip(facts.status.observed).map_or(0, |(generation, observed)| generation - observed)
}

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
            BeforeChange::Whole(wanted) => whole_replicas(interest.judge, facts)
                .map(|replicas| WholeWorkload { replicas, first: wanted, wanted }),
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

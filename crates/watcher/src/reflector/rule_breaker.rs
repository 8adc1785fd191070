//! Takes custom rules out for a while that exceed their limits again and again: a rule, or an object that somebody made
//! for it, costs its own kind a bounded share of the time, and nobody else anything. Where groups bring a rule, its own kind is
//! that kind in one namespace: the authors of two groups with the same text have nothing else in common.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aggregator::KindId;
use readiness::Time;
use rustc_hash::FxHashMap;

use super::rule_overruns::RuleOverruns;
use crate::plan::{AssessmentRule, RuleSharing, UserRule};

/// Most objects of which overruns of a rule are remembered, and most in a namespace that has them for itself.
const MAX_REMEMBERED_OBJECTS: usize = 4096;
const MAX_REMEMBERED_OF_NAMESPACE: usize = 128;

/// Most namespaces that have the overruns of a rule for themselves; those of further ones are counted together. It is as many as
/// there may be rules of groups: whoever alters a letter of the rule has its overruns for himself as well.
const MAX_SEPARATE_NAMESPACES: usize = 512;

/// What shares the overruns of a rule that nothing has for itself.
const SHARED: &str = "";

/// What is suspended of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleSuspension {
    /// The rule is not evaluated at all, or not in some namespace that has its overruns for itself.
    pub entirely: bool,
    /// Number of objects on which it is not evaluated.
    pub objects: u64,
    /// Number of objects that have waited for it for too long.
    pub late: u64,
}

/// One rule of one kind.
#[derive(Debug, Default)]
pub(super) struct RuleBreaker {
    shared_by: RuleSharing,
    /// By namespace, as far as those have them for themselves, else by [`SHARED`].
    overruns: Mutex<OverrunsByNamespace>,
}

type OverrunsByNamespace = FxHashMap<Box<str>, RuleOverruns>;

/// Namespace and uid of an object.
type GuardedObject<'o> = (&'o str, &'o str);

impl RuleBreaker {
    fn new(shared_by: RuleSharing) -> RuleBreaker {
        RuleBreaker { shared_by, overruns: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, OverrunsByNamespace> {
        self.overruns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The part of the overruns that an object of this namespace shares, as far as there is room for one of its own.
    fn part_of<'n>(&self, namespace: &'n str, held: &mut OverrunsByNamespace, now: Time) -> &'n str {
        if self.shared_by == RuleSharing::Kind || held.contains_key(namespace) {
            return self.own_part(namespace);
        }
        if held.len() >= MAX_SEPARATE_NAMESPACES {
            held.retain(|_, overruns| !overruns.is_forgotten(now));
        }
        if held.len() >= MAX_SEPARATE_NAMESPACES { SHARED } else { namespace }
    }

    fn own_part<'n>(&self, namespace: &'n str) -> &'n str {
        match self.shared_by {
            RuleSharing::Kind => SHARED,
            RuleSharing::Namespace => namespace,
        }
    }

    /// Returns `true` if the rule may be evaluated on this object now.
    pub(super) fn admits(&self, (namespace, uid): GuardedObject<'_>, now: Time) -> bool {
        let held = self.lock();
        let part = held.get(self.own_part(namespace)).or_else(|| held.get(SHARED));
        part.is_none_or(|overruns| overruns.admits(uid, now))
    }

    /// Notes whether an evaluation exceeded its limits. Returns `true` if the next one has to wait.
    pub(super) fn record(&self, (namespace, uid): GuardedObject<'_>, now: Time, overran: bool) -> bool {
        let mut held = self.lock();
        if !overran {
            for part in [self.own_part(namespace), SHARED] {
                if let Some(overruns) = held.get_mut(part) {
                    overruns.forget_object(uid);
                }
            }
            return false;
        }
        let part = self.part_of(namespace, &mut held, now);
        let overruns = held.entry(part.into()).or_default();
        let most = match self.shared_by {
            RuleSharing::Kind => MAX_REMEMBERED_OBJECTS,
            RuleSharing::Namespace => MAX_REMEMBERED_OF_NAMESPACE,
        };
        overruns.count(uid, now, most);
        !overruns.admits(uid, now)
    }

    /// What is suspended of the rule now.
    pub(super) fn suspension(&self, now: Time) -> RuleSuspension {
        let held = self.lock();
        RuleSuspension {
            entirely: held.values().any(|overruns| overruns.is_suspended(now)),
            objects: held.values().map(|overruns| overruns.count_suspended(now)).sum(),
            late: 0,
        }
    }
}

/// The breakers of all rules in use. They outlast a plan that leaves their rule as it is.
#[derive(Debug, Default)]
pub(super) struct RuleBreakers(BTreeMap<KindId, Vec<GuardedRule>>);

/// A rule and its breaker.
type GuardedRule = (UserRule, Arc<RuleBreaker>);

impl RuleBreakers {
    /// The breaker of each rule of a kind, `None` for the built-in ones. Those of other rules of the kind are dropped.
    pub(super) fn of_rules(
        &mut self,
        kind: KindId,
        rules: &[AssessmentRule],
    ) -> Vec<Option<Arc<RuleBreaker>>> {
        let held = self.0.remove(&kind).unwrap_or_default();
        let mut kept: Vec<GuardedRule> = Vec::new();
        let mut breakers = Vec::with_capacity(rules.len());
        for rule in rules.iter().map(|judged_by| judged_by.rule.as_ref()) {
            breakers.push(rule.map(|rule| {
                let known = kept.iter().chain(&held).find(|(known, _)| known == rule);
                let new = || Arc::new(RuleBreaker::new(rule.shared_by));
                let breaker = known.map_or_else(new, |(_, breaker)| Arc::clone(breaker));
                kept.push((rule.clone(), Arc::clone(&breaker)));
                breaker
            }));
        }
        if !kept.is_empty() {
            self.0.insert(kind, kept);
        }
        breakers
    }

    /// The rules of a kind, to be asked without this.
    pub(super) fn of_kind(&self, kind: KindId) -> Vec<GuardedRule> {
        self.0.get(&kind).cloned().unwrap_or_default()
    }

    pub(super) fn forget_kind(&mut self, kind: KindId) {
        self.0.remove(&kind);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const START: Time = Time(1_800_000_000_000);

    fn object(n: u32) -> String {
        format!("00000000-0000-4000-8000-{n:012}")
    }

    /// Evaluates where that is admitted; returns whether it was.
    fn try_rule(breaker: &RuleBreaker, n: u32, at: u64, overruns: bool) -> bool {
        try_rule_in("shop", breaker, n, at, overruns)
    }

    fn try_rule_in(namespace: &str, breaker: &RuleBreaker, n: u32, at: u64, overruns: bool) -> bool {
        let (object, now) = (object(n), START + Duration::from_secs(at));
        let admitted = breaker.admits((namespace, &object), now);
        if admitted {
            breaker.record((namespace, &object), now, overruns);
        }
        admitted
    }

    #[test]
    fn an_object_that_overruns_again_and_again_is_left_out_ever_longer_and_no_other_one() {
        let breaker = RuleBreaker::default();
        let evaluated: Vec<u64> = (0..3_000).filter(|at| try_rule(&breaker, 1, *at, true)).collect();
        assert_eq!(evaluated, [0, 1, 2, 12, 32, 72, 152, 312, 632, 1232, 1832, 2432]);
        assert!(try_rule(&breaker, 2, 2_432, false), "another object");
        let now = START + Duration::from_secs(2_440);
        assert_eq!(breaker.suspension(now), RuleSuspension { objects: 1, ..RuleSuspension::default() });
    }

    #[test]
    fn one_evaluation_within_the_limits_makes_good_what_was_before() {
        let breaker = RuleBreaker::default();
        assert!((0..30).all(|at| try_rule(&breaker, 1, at, at % 3 != 2)));
    }

    #[test]
    fn a_rule_that_overruns_on_many_objects_is_taken_out_and_comes_back() {
        let breaker = RuleBreaker::default();
        let done = (0..1_000).filter(|n| try_rule(&breaker, *n, 0, true)).count();
        assert_eq!(done, 100);
        assert!(breaker.suspension(START).entirely);
        assert!(!try_rule(&breaker, 5_000, 9, false), "also for an object that it never saw");
        assert!(try_rule(&breaker, 5_000, 10, false));
        let done = (1_000..2_000).filter(|n| try_rule(&breaker, *n, 10, true)).count();
        assert_eq!(done, 100);
        assert!(!try_rule(&breaker, 5_000, 29, false), "the second time for longer");
        assert!(try_rule(&breaker, 5_000, 30, false));
        // After a quiet time it begins anew.
        let done = (2_000..3_000).filter(|n| try_rule(&breaker, *n, 200, true)).count();
        assert_eq!(done, 100);
        assert!(try_rule(&breaker, 5_000, 210, false));
    }

    #[test]
    fn overruns_now_and_then_are_forgotten() {
        let breaker = RuleBreaker::default();
        assert!((0..10_000).all(|n| try_rule(&breaker, n, u64::from(n), true)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let breaker = RuleBreaker::default();
        for n in 0..20_000 {
            breaker.record(("shop", &object(n)), START, true);
        }
        assert!(remembered(&breaker) <= MAX_REMEMBERED_OBJECTS);
    }

    fn remembered(breaker: &RuleBreaker) -> usize {
        breaker.lock().values().map(RuleOverruns::remembered).sum()
    }

    #[test]
    fn what_a_rule_of_groups_costs_in_one_namespace_keeps_it_from_no_object_of_another() {
        let breaker = RuleBreaker::new(RuleSharing::Namespace);
        let done = (0..1_000).filter(|n| try_rule_in("mallory", &breaker, *n, 0, true)).count();
        assert_eq!(done, 100);
        assert!(!try_rule_in("mallory", &breaker, 5_000, 9, false), "it is suspended where it overran");
        assert!(try_rule_in("shop", &breaker, 5_001, 9, false));
        assert_eq!(breaker.suspension(START), RuleSuspension { entirely: true, ..RuleSuspension::default() });
        // A rule of a policy is its administrator's, wherever the objects are.
        let breaker = RuleBreaker::new(RuleSharing::Kind);
        let done = (0..1_000).filter(|n| try_rule_in("mallory", &breaker, *n, 0, true)).count();
        assert_eq!(done, 100);
        assert!(!try_rule_in("shop", &breaker, 5_001, 9, false));
    }

    #[test]
    fn the_namespaces_in_which_a_rule_overruns_are_bounded_and_give_way_when_they_are_quiet() {
        let breaker = RuleBreaker::new(RuleSharing::Namespace);
        for n in 0..2_000 {
            breaker.record((&format!("ns-{n}"), &object(n)), START, true);
        }
        assert_eq!(breaker.lock().len(), MAX_SEPARATE_NAMESPACES + 1, "the further ones share theirs");
        assert!(
            !try_rule_in("other", &breaker, 5_000, 9, false),
            "they are so many that it is suspended there"
        );
        assert!(
            try_rule_in("ns-7", &breaker, 5_000, 9, false),
            "and not in those that have theirs for themselves"
        );
        for n in 0..20_000 {
            breaker.record(("ns-7", &object(n)), START, true);
        }
        assert!(remembered(&breaker) < 2 * MAX_SEPARATE_NAMESPACES, "{}", remembered(&breaker));
        let later = START + Duration::from_mins(5);
        breaker.record(("late", &object(1)), later, true);
        assert!(breaker.lock().contains_key("late"));
    }
}

//! Takes custom rules out for a while that exceed their limits again and again: a rule, or an object that somebody made
//! for it, costs its own kind a bounded share of the time, and nobody else anything. Where groups bring a rule, its own kind is
//! that kind in one namespace: the authors of two groups with the same text have nothing else in common.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};
use std::iter;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aggregator::KindId;
use readiness::Time;
use rustc_hash::{FxHashMap, FxHasher};

use super::rule_overruns::{MAX_OVERRUNS_IN_ALL, RuleOverruns};
use crate::plan::{AssessmentRule, RuleSharing, UserRule};

/// Most objects of which overruns of a rule are remembered, and most in a namespace that has them for itself.
const MAX_REMEMBERED_OBJECTS: usize = 4096;
const MAX_REMEMBERED_OF_NAMESPACE: usize = 128;

/// Most namespaces that have the overruns of a rule for themselves; those of further ones are counted together. It is as many as
/// there may be rules of groups: whoever alters a letter of the rule has its overruns for himself as well.
const MAX_SEPARATE_NAMESPACES: usize = 512;

/// Number of parts that share the overruns of those for which there is no room, by a hash of the namespace.
const SHARED_PARTS: u64 = 64;

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
    overruns: Mutex<HeldOverruns>,
}

/// Overruns of a rule.
#[derive(Debug, Default)]
struct HeldOverruns {
    /// Of all objects, where those of the kind share them; else only their number counts, for the namespaces that have any.
    whole: RuleOverruns,
    /// Of each namespace that has them for itself.
    separate: FxHashMap<Box<str>, RuleOverruns>,
    /// Of those for which there was no room.
    shared: FxHashMap<u64, RuleOverruns>,
}

/// Namespace and uid of an object.
type GuardedObject<'o> = (&'o str, &'o str);

impl RuleBreaker {
    fn new(shared_by: RuleSharing) -> RuleBreaker {
        RuleBreaker { shared_by, overruns: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HeldOverruns> {
        self.overruns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if the rule may be evaluated on this object now.
    pub(super) fn admits(&self, (namespace, uid): GuardedObject<'_>, now: Time) -> bool {
        let held = self.lock();
        match self.shared_by {
            RuleSharing::Kind => held.whole.admits(uid, now),
            RuleSharing::Namespace => held
                .of_namespace(namespace)
                .is_none_or(|overruns| overruns.admits(uid, now) && !held.is_too_much(overruns, now)),
        }
    }

    /// Notes whether an evaluation exceeded its limits. Returns `true` if the next one has to wait.
    pub(super) fn record(&self, (namespace, uid): GuardedObject<'_>, now: Time, overran: bool) -> bool {
        let mut held = self.lock();
        let held = &mut *held;
        match (self.shared_by, overran) {
            (RuleSharing::Kind, false) => held.whole.forget_object(uid),
            (RuleSharing::Namespace, false) => held.forget_object(namespace, uid),
            (RuleSharing::Kind, true) => {
                held.whole.count(uid, now, MAX_REMEMBERED_OBJECTS);
                return !held.whole.admits(uid, now);
            }
            (RuleSharing::Namespace, true) => {
                held.whole.count_overrun(now, MAX_OVERRUNS_IN_ALL);
                let overruns = held.part_of(namespace, now);
                overruns.count(uid, now, MAX_REMEMBERED_OF_NAMESPACE);
                return !overruns.admits(uid, now) || held.whole.is_suspended(now);
            }
        }
        false
    }

    /// What is suspended of the rule now.
    pub(super) fn suspension(&self, now: Time) -> RuleSuspension {
        let held = self.lock();
        RuleSuspension {
            entirely: held.all().any(|overruns| overruns.is_suspended(now)),
            objects: held.all().map(|overruns| overruns.count_suspended(now)).sum(),
            late: 0,
        }
    }
}

impl HeldOverruns {
    fn all(&self) -> impl Iterator<Item = &RuleOverruns> {
        iter::once(&self.whole).chain(self.separate.values()).chain(self.shared.values())
    }

    /// Returns `true` if namespaces cost too much together, of which this is one.
    fn is_too_much(&self, overruns: &RuleOverruns, now: Time) -> bool {
        self.whole.is_suspended(now) && !overruns.is_forgotten(now)
    }

    /// The overruns that an object of this namespace shares, if there were any.
    fn of_namespace(&self, namespace: &str) -> Option<&RuleOverruns> {
        self.separate.get(namespace).or_else(|| self.shared.get(&shared_part(namespace)))
    }

    /// The same, for one that there is; those of the namespace alone as far as there is room.
    fn part_of(&mut self, namespace: &str, now: Time) -> &mut RuleOverruns {
        if !self.separate.contains_key(namespace) && self.separate.len() >= MAX_SEPARATE_NAMESPACES {
            self.separate.retain(|_, overruns| !overruns.is_forgotten(now));
            self.shared.retain(|_, overruns| !overruns.is_forgotten(now));
            if self.separate.len() >= MAX_SEPARATE_NAMESPACES {
                return self.shared.entry(shared_part(namespace)).or_default();
            }
        }
        self.separate.entry(namespace.into()).or_default()
    }

    fn forget_object(&mut self, namespace: &str, uid: &str) {
        let parts = [self.separate.get_mut(namespace), self.shared.get_mut(&shared_part(namespace))];
        parts.into_iter().flatten().for_each(|overruns| overruns.forget_object(uid));
    }
}

fn shared_part(namespace: &str) -> u64 {
    let mut hasher = FxHasher::default();
    namespace.hash(&mut hasher);
    hasher.finish() % SHARED_PARTS
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
        breaker.lock().all().map(RuleOverruns::remembered).sum()
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
        let parts = |breaker: &RuleBreaker| {
            let held = breaker.lock();
            (held.separate.len(), held.shared.len())
        };
        assert_eq!(parts(&breaker), (MAX_SEPARATE_NAMESPACES, 64), "the further ones share theirs");
        for n in 0..20_000 {
            breaker.record(("ns-7", &object(n)), START, true);
        }
        assert!(remembered(&breaker) < 3_000, "{}", remembered(&breaker));
        let later = START + Duration::from_hours(1);
        breaker.record(("late", &object(1)), later, true);
        assert!(breaker.lock().separate.contains_key("late"));
        assert_eq!(parts(&breaker), (1, 0));
    }

    #[test]
    fn what_many_namespaces_cost_together_is_bounded_and_suspends_the_rule_in_those_alone() {
        let breaker = RuleBreaker::new(RuleSharing::Namespace);
        let tried = (0..10_000).filter(|n| {
            let namespace = format!("ns-{}", n % 500);
            try_rule_in(&namespace, &breaker, *n, 0, true)
        });
        assert_eq!(
            tried.count(),
            500,
            "each is tried once, and no namespace for itself has come to its limit"
        );
        assert!(!try_rule_in("ns-7", &breaker, 20_000, 9, false));
        assert!(try_rule_in("calm", &breaker, 20_000, 9, false), "it has cost nothing there");
        assert!(try_rule_in("ns-7", &breaker, 20_000, 11, false), "the suspension ends");
    }
}

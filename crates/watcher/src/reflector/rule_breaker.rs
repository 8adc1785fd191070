//! Takes custom rules out for a while that exceed their limits again and again: a rule, or an object that somebody made
//! for it, costs its own kind a bounded share of the time, and nobody else anything.
//!
//! An object on which a rule exceeded its limits three times in a row is not evaluated by it for a while, and each time
//! after that for a longer one. Where that happens on so many objects that their number makes up for it, the rule is not
//! evaluated at all for a while.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aggregator::KindId;
use readiness::Time;
use rustc_hash::FxHashMap;

use crate::plan::{AssessmentRule, UserRule};

/// Overruns in a row after which an object is not evaluated for a while.
const MAX_OBJECT_OVERRUNS: u32 = 3;

/// Overruns of all objects together after which the rule is not evaluated at all for a while. About a second of work.
const MAX_RULE_OVERRUNS: u32 = 100;

/// Time in which one overrun is forgotten: so many may go on for ever.
const OVERRUN_DECAY: Duration = Duration::from_secs(1);

/// The first while, and the longest one. Each is twice as long as the one before.
const FIRST_SUSPENSION: Duration = Duration::from_secs(10);
const LONGEST_SUSPENSION: Duration = Duration::from_mins(10);

/// Most objects of which overruns are remembered. Those of others count for the rule alone.
const MAX_REMEMBERED_OBJECTS: usize = 4096;

/// What is suspended of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleSuspension {
    /// The rule is not evaluated at all.
    pub entirely: bool,
    /// Number of objects on which it is not evaluated.
    pub objects: u64,
    /// Number of objects that have waited for it for too long.
    pub late: u64,
}

/// One rule of one kind.
#[derive(Debug, Default)]
pub(super) struct RuleBreaker(Mutex<BreakerState>);

#[derive(Debug, Default)]
struct BreakerState {
    /// By uid.
    objects: FxHashMap<Box<str>, ObjectOverruns>,
    /// Overruns that are not forgotten yet, as of `counted_at`.
    overruns: u32,
    counted_at: Time,
    /// How often in a row the rule was suspended.
    rounds: u32,
    suspended_until: Option<Time>,
}

#[derive(Debug, Default)]
struct ObjectOverruns {
    in_a_row: u32,
    suspended_until: Option<Time>,
}

fn lock_state<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

fn lies_ahead(until: Option<Time>, now: Time) -> bool {
    until.is_some_and(|until| until > now)
}

/// The end of the `round`-th suspension in a row, from 1.
fn end_of_suspension(round: u32, now: Time) -> Time {
    let doubled = 2_u32.saturating_pow(round.saturating_sub(1));
    now + FIRST_SUSPENSION.saturating_mul(doubled).min(LONGEST_SUSPENSION)
}

impl RuleBreaker {
    /// Returns `true` if the rule may be evaluated on this object now.
    pub(super) fn admits(&self, uid: &str, now: Time) -> bool {
        let state = lock_state(&self.0);
        let held = state.objects.get(uid).and_then(|object| object.suspended_until);
        !lies_ahead(state.suspended_until, now) && !lies_ahead(held, now)
    }

    /// Notes whether an evaluation exceeded its limits. Returns `true` if the next one has to wait.
    pub(super) fn record(&self, uid: &str, now: Time, overran: bool) -> bool {
        let mut state = lock_state(&self.0);
        if !overran {
            state.objects.remove(uid);
            return false;
        }
        state.count_object(uid, now);
        state.count_overrun(now);
        drop(state);
        !self.admits(uid, now)
    }

    /// What is suspended of the rule now.
    pub(super) fn suspension(&self, now: Time) -> RuleSuspension {
        let state = lock_state(&self.0);
        let held = |object: &&ObjectOverruns| lies_ahead(object.suspended_until, now);
        RuleSuspension {
            entirely: lies_ahead(state.suspended_until, now),
            objects: u64::try_from(state.objects.values().filter(held).count()).unwrap_or(u64::MAX),
            late: 0,
        }
    }
}

impl BreakerState {
    fn count_object(&mut self, uid: &str, now: Time) {
        if self.objects.len() >= MAX_REMEMBERED_OBJECTS && !self.objects.contains_key(uid) {
            self.objects.retain(|_, object| lies_ahead(object.suspended_until, now));
            if self.objects.len() >= MAX_REMEMBERED_OBJECTS {
                return;
            }
        }
        let object = self.objects.entry(uid.into()).or_default();
        object.in_a_row = object.in_a_row.saturating_add(1);
        if object.in_a_row >= MAX_OBJECT_OVERRUNS {
            let round = object.in_a_row - MAX_OBJECT_OVERRUNS + 1;
            object.suspended_until = Some(end_of_suspension(round, now));
        }
    }

    fn count_overrun(&mut self, now: Time) {
        let rest = (now - self.counted_at).as_millis() / OVERRUN_DECAY.as_millis();
        let forgotten = u32::try_from(rest).unwrap_or(u32::MAX);
        if forgotten > 0 {
            // A rule that kept within its limits for as long as it was last suspended begins anew.
            let quiet = end_of_suspension(self.rounds, Time::default()) - Time::default();
            if self.suspended_until.is_some_and(|until| now - until > quiet) {
                self.rounds = 0;
            }
            self.overruns = self.overruns.saturating_sub(forgotten);
            self.counted_at = now;
        }
        self.overruns += 1;
        if self.overruns >= MAX_RULE_OVERRUNS {
            self.overruns = 0;
            self.rounds = self.rounds.saturating_add(1);
            self.suspended_until = Some(end_of_suspension(self.rounds, now));
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
                let breaker = known.map_or_else(Arc::default, |(_, breaker)| Arc::clone(breaker));
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
    use super::*;

    const START: Time = Time(1_800_000_000_000);

    fn object(n: u32) -> String {
        format!("00000000-0000-4000-8000-{n:012}")
    }

    /// Evaluates where that is admitted; returns whether it was.
    fn try_rule(breaker: &RuleBreaker, n: u32, at: u64, overruns: bool) -> bool {
        let now = START + Duration::from_secs(at);
        let admitted = breaker.admits(&object(n), now);
        if admitted {
            breaker.record(&object(n), now, overruns);
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
            breaker.record(&object(n), START, true);
        }
        assert!(lock_state(&breaker.0).objects.len() <= MAX_REMEMBERED_OBJECTS);
    }
}

//! One plan at a time: the reflector owns by what each kind is judged, and nothing that an older plan asked for can be
//! put beside or over what a newer one says.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aggregator::KindId;
use dashmap::Entry;

use super::rule_breaker::{RuleBreaker, RuleSuspension};
use super::{NamespaceName, ReadStart, Reflector};
use crate::plan::{Interest, UserRule};

/// The interest in one kind, for as long as its plan holds.
///
/// **Invariant:** it is superseded before its successor can be seen, and whoever puts or drops a row looks at that under the
/// slot's lock. So a row by an older plan is never put where one by a newer plan was.
#[derive(Debug)]
pub(super) struct PlannedInterest {
    pub(super) interest: Arc<Interest>,
    /// By assessment rule; `None` for the built-in ones.
    pub(super) breakers: Vec<Option<Arc<RuleBreaker>>>,
    epoch: u64,
    superseded: AtomicBool,
}

impl PlannedInterest {
    /// Whether no other plan has taken its place.
    pub(super) fn holds(&self) -> bool {
        !self.superseded.load(Ordering::Acquire)
    }
}

/// One list of a kind, in one namespace or in all, from its beginning on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPass {
    pub(super) kind: KindId,
    pub(super) scope: Option<NamespaceName>,
    /// The kind's list in this scope, by number.
    pub(super) number: u32,
    /// The plan by which the kind was followed when the list began; `None` where it was not.
    pub(super) plan: Option<u64>,
    pub(super) start: ReadStart,
}

impl Reflector {
    /// Sets by what objects of a kind are judged from now on. What was asked for earlier is judged by this when it comes;
    /// lists that have begun earlier are void.
    pub fn set_interest(&self, interest: Interest) {
        let (kind, epoch) = (interest.id, self.plan_epoch.fetch_add(1, Ordering::Relaxed));
        let interest = Arc::new(interest);
        let breakers = self.rule_breakers.of_rules(kind, &interest.assessment_rules);
        let planned = PlannedInterest {
            interest: interest.clone(),
            breakers,
            epoch,
            superseded: AtomicBool::default(),
        };
        match self.interests.entry(kind) {
            Entry::Occupied(mut held) => {
                held.get().superseded.store(true, Ordering::Release);
                held.insert(Arc::new(planned));
            }
            Entry::Vacant(none) => _ = none.insert(Arc::new(planned)),
        }
        self.set_memory_interest(&interest);
    }

    /// Takes the interest in a kind away: until another is set, nothing of it is taken in. Its rows stay as they are.
    pub fn remove_interest(&self, kind: KindId) {
        if let Entry::Occupied(held) = self.interests.entry(kind) {
            held.get().superseded.store(true, Ordering::Release);
            held.remove();
        }
    }

    /// The rules of a kind that are not evaluated for a while, on some objects or on all.
    pub fn suspended_rules(&self, kind: KindId) -> Vec<(UserRule, RuleSuspension)> {
        self.rule_breakers.suspended_rules(kind, self.now())
    }

    /// By what objects of a kind are judged now; `None` where they are not.
    pub fn interest(&self, kind: KindId) -> Option<Arc<Interest>> {
        self.planned(kind).map(|planned| planned.interest.clone())
    }

    pub(super) fn planned(&self, kind: KindId) -> Option<Arc<PlannedInterest>> {
        self.interests.get(&kind).map(|planned| Arc::clone(&planned))
    }

    pub(super) fn plan_of(&self, kind: KindId) -> Option<u64> {
        self.interests.get(&kind).map(|planned| planned.epoch)
    }

    /// Whether a list is of the plan that holds, and the newest of its kind and scope.
    pub(super) fn is_current(&self, pass: &ListPass) -> bool {
        pass.plan.is_some()
            && pass.plan == self.plan_of(pass.kind)
            && pass.number == self.list_number(pass.kind, pass.scope.as_ref())
    }
}

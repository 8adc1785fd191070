//! One plan at a time: the reflector owns by what each kind is judged, and nothing that an older plan asked for can be
//! put beside or over what a newer one says.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aggregator::{KindId, PolicyId};
use readiness::Time;
use rustc_hash::FxHashMap;

use super::lists::{ListEpoch, ListProgress};
use super::row::NamespaceName;
use super::rule_breaker::{RuleBreaker, RuleBreakers, RuleSuspension};
use super::tombstones::ReadStart;
use crate::plan::{Interest, RuleSharing, UserRule};

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
    /// Number of the list that was last begun of the kind when this plan took over, by scope.
    lists_before: FxHashMap<Option<NamespaceName>, u32>,
    superseded: AtomicBool,
    /// Its policies have followed those of older plans on what is held.
    succeeded: AtomicBool,
}

impl PlannedInterest {
    /// Its number: later plans have greater ones.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The namespace of an object, if one that is judged by this rule shares its limits with those of its namespace alone.
    pub(super) fn sharing_namespace<'n>(&self, rule_index: u16, namespace: &'n str) -> Option<&'n str> {
        let judged_by = self.interest.assessment_rules.get(usize::from(rule_index))?;
        let shared_by = judged_by.rule.as_ref()?.shared_by;
        (shared_by == RuleSharing::Namespace).then_some(namespace)
    }

    /// Whether a row was put by this plan, and not by an older one, as far as its number of the last list tells.
    pub(super) fn has_put(&self, namespace: &NamespaceName, list: ListEpoch) -> bool {
        let before = || {
            let scoped = self.lists_before.get(&Some(namespace.clone()));
            scoped.or_else(|| self.lists_before.get(&None)).copied().unwrap_or(0)
        };
        list.is_after(before())
    }

    /// Returns `true` the first time: from then on nothing that is held is of an older plan's policies where one of its own follows.
    pub(super) fn begin_succession(&self) -> bool {
        self.holds() && !self.succeeded.swap(true, Ordering::AcqRel)
    }

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
    /// The kind's list in this scope, by number: an even one, see [`ListEpoch`].
    pub(super) number: u32,
    /// The plan by which the kind was followed when the list began; `None` where it was not.
    pub(super) plan: Option<u64>,
    pub(super) start: ReadStart,
}

/// What brings an object.
#[derive(Clone, Copy, Debug)]
pub(super) enum BroughtBy<'p> {
    /// A watch, which follows a finished list.
    Watch,
    /// This list.
    List(&'p ListPass),
    /// A live read that began then, or the answer to a write.
    LiveRead(ReadStart),
}

/// By what each kind is judged, the lists of each kind, and which custom rules are not evaluated for a while.
#[derive(Default)]
pub(super) struct Plans(Mutex<PlanState>);

#[derive(Default)]
struct PlanState {
    interests: FxHashMap<KindId, Arc<PlannedInterest>>,
    /// The number of the next plan of a kind.
    next_epoch: u64,
    /// How far the lists of a kind are, by scope.
    lists: FxHashMap<(KindId, Option<NamespaceName>), ListProgress>,
    /// How many lists were finished, of all kinds together.
    lists_finished: u64,
    breakers: RuleBreakers,
}

impl PlanState {
    fn plan_of(&self, kind: KindId) -> Option<u64> {
        self.interests.get(&kind).map(|planned| planned.epoch)
    }

    /// The number of the list that was last begun of a kind, by scope.
    fn last_lists(&self, kind: KindId) -> FxHashMap<Option<NamespaceName>, u32> {
        let of_kind = self.lists.iter().filter(|((of, _), _)| *of == kind);
        of_kind.map(|((_, scope), progress)| (scope.clone(), progress.begun)).collect()
    }

    /// How far the lists are that cover this namespace.
    fn progress(&self, kind: KindId, namespace: &NamespaceName) -> ListProgress {
        let scoped = self.lists.get(&(kind, Some(namespace.clone())));
        scoped.or_else(|| self.lists.get(&(kind, None))).copied().unwrap_or_default()
    }
}

impl Plans {
    fn lock(&self) -> MutexGuard<'_, PlanState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets by what objects of a kind are judged from now on. What was asked for earlier is judged by this when it comes;
    /// lists that have begun earlier are void.
    pub(super) fn set_interest(&self, interest: Interest) -> Arc<Interest> {
        let kind = interest.id;
        let interest = Arc::new(interest);
        let mut state = self.lock();
        let epoch = state.next_epoch;
        state.next_epoch += 1;
        let planned = PlannedInterest {
            interest: interest.clone(),
            breakers: state.breakers.of_rules(kind, &interest.assessment_rules),
            epoch,
            lists_before: state.last_lists(kind),
            superseded: AtomicBool::default(),
            succeeded: AtomicBool::default(),
        };
        if let Some(held) = state.interests.get(&kind) {
            held.superseded.store(true, Ordering::Release);
        }
        state.interests.insert(kind, Arc::new(planned));
        interest
    }

    /// Takes the interest in a kind away: until another is set, nothing of it is taken in.
    pub(super) fn remove_interest(&self, kind: KindId) {
        if let Some(held) = self.lock().interests.remove(&kind) {
            held.superseded.store(true, Ordering::Release);
        }
    }

    /// Policies that rule parents of some kind.
    pub(super) fn ruling_policies(&self) -> BTreeSet<PolicyId> {
        let state = self.lock();
        let rules = state.interests.values().flat_map(|planned| &planned.interest.parent);
        rules.map(|rule| rule.policy).collect()
    }

    /// By what objects of a kind are judged now; `None` where they are not.
    pub(super) fn planned(&self, kind: KindId) -> Option<Arc<PlannedInterest>> {
        self.lock().interests.get(&kind).map(Arc::clone)
    }

    /// The rules of a kind that are not evaluated for a while, on some objects or on all.
    pub(super) fn suspended_rules(&self, kind: KindId, now: Time) -> Vec<(UserRule, RuleSuspension)> {
        let of_kind = self.lock().breakers.of_kind(kind);
        let each = of_kind.into_iter().map(|(rule, breaker)| (rule, breaker.suspension(now)));
        each.filter(|(_, suspension)| *suspension != RuleSuspension::default()).collect()
    }

    /// Forgets the breakers of a kind that is not followed any more.
    pub(super) fn forget_breakers(&self, kind: KindId) {
        self.lock().breakers.forget_kind(kind);
    }

    /// Begins a list of this kind, in one namespace or in all.
    pub(super) fn begin_list(
        &self,
        kind: KindId,
        scope: Option<NamespaceName>,
        start: ReadStart,
    ) -> ListPass {
        let mut state = self.lock();
        let plan = state.plan_of(kind);
        let number = state.lists.entry((kind, scope.clone())).or_default().begin();
        ListPass { kind, scope, number, plan, start }
    }

    /// Whether a list is of the plan that holds, and the newest of its kind and scope.
    pub(super) fn is_current(&self, pass: &ListPass) -> bool {
        let state = self.lock();
        let newest =
            || state.lists.get(&(pass.kind, pass.scope.clone())).map_or(0, |progress| progress.begun);
        pass.plan.is_some() && pass.plan == state.plan_of(pass.kind) && pass.number == newest()
    }

    /// Ends a list whose objects were all brought.
    pub(super) fn end_list(&self, pass: &ListPass) {
        let mut state = self.lock();
        state.lists_finished += 1;
        let finish_order = state.lists_finished;
        if let Some(progress) = state.lists.get_mut(&(pass.kind, pass.scope.clone())) {
            progress.finish(pass.number, finish_order);
        }
    }

    /// How many lists were finished, of all kinds together.
    pub(super) fn lists_finished(&self) -> u64 {
        self.lock().lists_finished
    }

    /// The epoch of a row that a list or a watch brings now.
    pub(super) fn list_epoch(&self, kind: KindId, namespace: &NamespaceName) -> ListEpoch {
        self.lock().progress(kind, namespace).epoch()
    }

    /// The epoch of a row that a live read brings now; see [`ListProgress::live_epoch`].
    pub(super) fn live_epoch(
        &self,
        (kind, namespace): (KindId, &NamespaceName),
        held: Option<ListEpoch>,
        start: ReadStart,
    ) -> Option<ListEpoch> {
        self.lock().progress(kind, namespace).live_epoch(held, start)
    }
}

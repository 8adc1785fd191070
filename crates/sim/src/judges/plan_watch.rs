//! What the loop has heard of plans, and of the kinds that are followed for them: answers are judged by it.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::{KindId, KindState, PolicyId};
use readiness::saturating_millis;
use rollcall_core::KindEvent;

use super::checked_generation::BLIND_LIMIT;
use crate::scenario::{PolicyDef, kind_id};

/// Plans and kinds as one life of the loop has heard of them.
#[derive(Default)]
pub(crate) struct PlanWatch {
    /// Kinds that the loop knows to be synced.
    pub(crate) open_kinds: BTreeSet<KindId>,
    /// Kinds that were started in this life of the process.
    started_kinds: BTreeSet<usize>,
    /// Kinds that are known not to be served.
    absent: BTreeSet<usize>,
    /// Kinds that were started again, or are served again, and are not listed yet, as the loop knows.
    pub(crate) unlisted: BTreeSet<usize>,
    /// Policies whose parents were not listed for them yet, with the time of their plan.
    pub(crate) unseen: BTreeMap<PolicyId, i64>,
    /// Time at which the loop heard of a changed rule, by kind and policy, until the kind is listed.
    pub(crate) swapped_at: BTreeMap<(usize, String), i64>,
    /// Kinds that were not listed when the kind of a rule was that had been withdrawn, by policy: what was withdrawn stays so
    /// until the policy is evaluated, over all of them.
    withdrawn_until: BTreeMap<String, BTreeSet<usize>>,
    /// Time at which the loop last heard that a list of this kind was complete.
    listed_at: BTreeMap<usize, i64>,
    /// Time at which the loop had its first plan in this life of the process; `None` before it.
    pub(crate) planned_since: Option<i64>,
}

impl PlanWatch {
    /// Forgets what the process knew.
    pub(crate) fn reset_for_restart(&mut self) {
        *self = PlanWatch::default();
    }

    /// Hears of a kind; returns `true` if it was listed or is not followed any more.
    pub(crate) fn observe_kind_event(&mut self, now: i64, kind: usize, event: &KindEvent) -> bool {
        match event {
            KindEvent::RuleChanged(names) => {
                for name in names {
                    self.swapped_at.entry((kind, name.clone())).or_insert(now);
                }
                false
            }
            KindEvent::Starting => {
                // What was listed in part before it was started again does not count as present.
                if !self.started_kinds.insert(kind) || self.open_kinds.contains(&kind_id(kind)) {
                    self.unlisted.insert(kind);
                }
                false
            }
            KindEvent::Listing => {
                if self.absent.remove(&kind) {
                    self.unlisted.insert(kind);
                }
                false
            }
            // What is not served has no objects.
            KindEvent::Synced | KindEvent::Absent | KindEvent::Stopped => {
                if *event == KindEvent::Absent {
                    self.absent.insert(kind);
                }
                self.listed_at.insert(kind, now);
                self.unlisted.remove(&kind);
                let late = saturating_millis(BLIND_LIMIT);
                let ended = self.swapped_at.extract_if(.., |(of, _), _| *of == kind);
                let withdrawn: Vec<_> = ended.filter(|(_, since)| since + late <= now).collect();
                for ((_, name), _) in withdrawn {
                    self.withdrawn_until.entry(name).or_default().extend(&self.unlisted);
                }
                self.withdrawn_until.retain(|_, unlisted| {
                    unlisted.remove(&kind);
                    !unlisted.is_empty()
                });
                true
            }
            _ => false,
        }
    }

    pub(crate) fn record_kind_state(&mut self, kind: KindId, state: KindState) {
        if matches!(state, KindState::Synced | KindState::Absent) {
            self.open_kinds.insert(kind);
        }
    }

    /// Takes the policies whose parents are of this kind and were not listed for them yet, each with the time of its plan.
    pub(crate) fn take_unseen(&mut self, policies: &[PolicyDef], kind: usize) -> Vec<(PolicyId, i64)> {
        let of_kind = policies.iter().filter(|policy| policy.parent == kind);
        of_kind.filter_map(|policy| self.unseen.remove_entry(&policy.id)).collect()
    }

    /// Returns `true` if the loop knows that the kind is not served.
    pub(crate) fn is_absent(&self, kind: usize) -> bool {
        self.absent.contains(&kind)
    }

    /// Returns `true` if a kind that the policy rests on was not listed since it is followed for the policy.
    pub(crate) fn awaits_list(&self, policy: &PolicyDef) -> bool {
        policy.involved_kinds().iter().any(|kind| self.unlisted.contains(kind))
    }

    /// Time at which the loop last heard that a list was complete on which the policy rests.
    pub(crate) fn all_listed_at(&self, policy: &PolicyDef) -> Option<i64> {
        policy.involved_kinds().into_iter().filter_map(|kind| self.listed_at.get(&kind)).max().copied()
    }

    /// Returns `true` if the lists that the policy rests on were completed so lately that it is not known whether a silent
    /// operator is done.
    pub(crate) fn is_settling(&self, policy: &PolicyDef, now: i64) -> bool {
        self.all_listed_at(policy).is_some_and(|at| now < at + saturating_millis(policy.settle))
    }

    /// Returns `true` if a rule of this policy changed long enough ago that answers of the old one are withdrawn.
    pub(crate) fn is_withdrawn(&self, policy: &PolicyDef, kind: usize, now: i64) -> bool {
        let since = self.swapped_at.get(&(kind, policy.name()));
        let stays = |kinds: &BTreeSet<usize>| policy.involved_kinds().iter().any(|of| kinds.contains(of));
        since.is_some_and(|since| *since + saturating_millis(BLIND_LIMIT) <= now)
            || self.withdrawn_until.get(&policy.name()).is_some_and(stays)
    }
}

//! The policies in force, with the states of the kinds that they rest on.

use std::collections::BTreeSet;

use readiness::Time;
use readiness::rollup::{ConditionStatus, ParentReason};

use crate::changed_rules::{ChangedRuleGroups, group_bit};
use crate::evaluation::ParentEvaluation;
use crate::ids::{KindId, PolicyId};
use crate::list_gate::{ListGate, PolicyGate};
use crate::types::{Acceptance, ChildGroup, EnginePolicy, GroupRole, KindState, PolicyAnswer};

/// A policy and the gate of its lists.
#[derive(Clone, Debug)]
struct PolicySlot {
    policy: Option<EnginePolicy>,
    gate: PolicyGate,
}

impl PolicySlot {
    const EMPTY: PolicySlot = PolicySlot { policy: None, gate: PolicyGate::CLOSED };
}

/// All policies, the states of all kinds, and what both allow the policies to say.
#[derive(Clone, Debug, Default)]
pub(crate) struct PolicyTable {
    slots: Vec<PolicySlot>,
    /// Policies that are there. Numbers are given to new ones for as long as there are numbers.
    present: BTreeSet<PolicyId>,
    kinds: Vec<KindState>,
    changed_rules: ChangedRuleGroups,
    /// A policy awaits a list, or the result of a list is still to be evaluated.
    awaiting_lists: bool,
}

impl PolicyTable {
    pub(crate) fn find_policy(&self, id: PolicyId) -> Option<&EnginePolicy> {
        self.slots.get(id.index())?.policy.as_ref()
    }

    /// Returns a policy with the gate of its lists.
    #[inline]
    pub(crate) fn find_gated(&self, id: PolicyId) -> Option<(&EnginePolicy, PolicyGate)> {
        let slot = self.slots.get(id.index())?;
        Some((slot.policy.as_ref()?, slot.gate))
    }

    /// Makes room for a policy; its gate is closed until it is updated.
    pub(crate) fn reserve_policy(&mut self, id: PolicyId) {
        if id.index() >= self.slots.len() {
            self.slots.resize(id.index() + 1, PolicySlot::EMPTY);
        }
    }

    /// Sets a policy for which there is room, or removes it (`None`).
    pub(crate) fn set_policy(&mut self, id: PolicyId, policy: Option<EnginePolicy>) {
        let Some(slot) = self.slots.get_mut(id.index()) else { return };
        if policy.is_some() {
            self.present.insert(id);
        } else {
            self.present.remove(&id);
        }
        slot.policy = policy;
    }

    /// Returns the list and watch state of a kind.
    pub(crate) fn kind_state(&self, kind: KindId) -> KindState {
        self.kinds.get(kind.index()).copied().unwrap_or_default()
    }

    /// Sets the list and watch state of a kind; returns `true` if it was another one.
    pub(crate) fn set_kind_state(&mut self, kind: KindId, state: KindState) -> bool {
        if kind.index() >= self.kinds.len() {
            self.kinds.resize(kind.index() + 1, KindState::Listing);
        }
        std::mem::replace(&mut self.kinds[kind.index()], state) != state
    }

    /// Returns the policies that rest on a kind.
    pub(crate) fn policies_over(&self, kind: KindId) -> Vec<PolicyId> {
        let rests = |id: &PolicyId| self.find_policy(*id).is_some_and(|p| p.kinds.contains(&kind));
        self.present.iter().copied().filter(rests).collect()
    }

    /// Returns the gate of a policy's lists.
    pub(crate) fn list_gate(&self, policy: PolicyId) -> ListGate {
        self.slots.get(policy.index()).map_or(ListGate::Closed, |slot| slot.gate.gate)
    }

    /// Derives the gate of a policy at `now` and returns it; `None` if there was no policy of this id.
    pub(crate) fn update_list_gate(&mut self, id: PolicyId, now: Time) -> Option<ListGate> {
        let mut gate = self.find_policy(id).map_or(ListGate::Closed, |p| {
            ListGate::of(p.acceptance, p.kinds.iter().map(|kind| self.kind_state(*kind)))
        });
        if gate == ListGate::Closed && self.changed_rules.groups_of(id) != 0 {
            gate = ListGate::RuleChanged;
        }
        let held = &mut self.slots.get_mut(id.index())?.gate;
        // Nothing but a complete list ends a blindness; and what goes blind has nothing to show since.
        if held.gate != gate && !gate.awaits_list() {
            held.listed_at = now;
        }
        held.gate = gate;
        // Until the next poll is complete, its parents are not evaluated yet.
        self.awaiting_lists = true;
        Some(gate)
    }

    /// Returns `true` if all kinds that the policy rests on have been listed.
    pub(crate) fn is_open(&self, policy: PolicyId) -> bool {
        !self.list_gate(policy).awaits_list()
    }

    /// Returns `true` if the policy is in force; nothing is known of one that is gone.
    pub(crate) fn is_accepted(&self, policy: PolicyId) -> bool {
        self.find_policy(policy).is_none_or(|p| p.acceptance == Acceptance::Accepted)
    }

    /// Returns `true` if the policy is in shadow mode: nothing is written for it.
    pub(crate) fn is_shadow(&self, policy: PolicyId) -> bool {
        self.find_policy(policy).is_none_or(|p| p.shadow)
    }

    pub(crate) fn find_group(&self, policy: PolicyId, group: u8) -> Option<&ChildGroup> {
        self.find_policy(policy)?.groups.get(usize::from(group))
    }

    /// Returns `true` if a policy awaits a list, or the result of a list is still to be evaluated.
    pub(crate) fn is_awaiting_lists(&self) -> bool {
        self.awaiting_lists
    }

    /// Everything that the lists allow is evaluated: only policies that still await one do.
    pub(crate) fn end_poll(&mut self) {
        let awaits = |(policy, gate): (&EnginePolicy, PolicyGate)| {
            policy.acceptance == Acceptance::Accepted && gate.gate.awaits_list()
        };
        self.awaiting_lists = self.present.iter().any(|id| self.find_gated(*id).is_some_and(awaits));
    }

    /// Returns the groups whose rule has changed.
    pub(crate) fn changed_rules(&self) -> &ChangedRuleGroups {
        &self.changed_rules
    }

    /// Sets the groups of a policy whose rule has changed; returns those for which that is new, or over.
    pub(crate) fn set_changed_groups(&mut self, policy: PolicyId, groups: u64) -> u64 {
        let moved = self.changed_rules.groups_of(policy) ^ groups;
        if moved != 0 {
            self.changed_rules.set_groups(policy, groups);
        }
        moved
    }

    /// Returns the groups of this policy that judge this kind, as a bit mask.
    pub(crate) fn groups_of_kind(&self, policy: PolicyId, kind: KindId) -> u64 {
        let groups = self.find_policy(policy).into_iter().flat_map(EnginePolicy::indexed_groups);
        groups.filter(|(_, g)| g.kind == kind).fold(0, |bits, (at, _)| bits | group_bit(at))
    }

    /// Returns `true` if the state of the lists allows an evaluation.
    #[inline]
    pub(crate) fn can_evaluate(&self, evaluation: &ParentEvaluation, gate: ListGate) -> bool {
        let Some(observed) = &evaluation.observed else { return false };
        match gate {
            ListGate::Closed => observed.deleting,
            ListGate::RuleChanged => observed.deleting || self.rests_on_changed_rule(evaluation),
            ListGate::Refused => {
                let takes_back = |answer: PolicyAnswer| {
                    matches!(answer.reason, ParentReason::AllChildrenReady | ParentReason::PolicyRefused)
                };
                // What somebody turned is nobody's answer: it may say True. So may what stands on a parent whose end is known.
                let stands = observed.view.written.is_some_and(|written| {
                    !written.is_untampered() || written.status == Some(ConditionStatus::True)
                });
                stands || observed.stage.answer().is_some_and(takes_back)
            }
            ListGate::Open | ListGate::Blind(_) => true,
        }
    }

    /// Returns `true` if what stands rests on a rule that has changed. Where a predecessor of the policy said it, nobody
    /// knows on which children it rests.
    fn rests_on_changed_rule(&self, evaluation: &ParentEvaluation) -> bool {
        let groups = self.find_policy(evaluation.policy).into_iter().flat_map(EnginePolicy::indexed_groups);
        let mut critical = groups.filter(|(_, g)| g.role == GroupRole::Critical);
        let is_own = evaluation.observed.as_ref().is_some_and(|observed| observed.stage.is_own());
        critical.any(|(at, _)| {
            self.changed_rules.has_group(evaluation.policy, at)
                && (!is_own
                    || evaluation.children.find_group_tally(at).is_some_and(|tally| tally.total_count() > 0))
        })
    }

    /// Returns `true` if the evaluation has an answer that may be said.
    pub(crate) fn may_say(&self, evaluation: &ParentEvaluation) -> bool {
        let is_open = self.is_open(evaluation.policy);
        evaluation.observed.as_ref().is_some_and(|observed| observed.stage.may_speak(is_open))
    }
}

//! Rules that change: what rested on the old one is unknown until the new one has judged all of its kind.

use readiness::rollup::{ParentReason, Tally};
use readiness::{Level, Time};

use super::{Cause, Engine};
use crate::graph::bit;
use crate::judge::Gate;
use crate::roll::Roll;
use crate::types::{Answer, AnswerView, KindId, ObjectId, PolicyId, Role};

impl Engine {
    /// The rule by which `policy` judges these of its groups (as bits) is another one now, and their kind is about to be
    /// listed anew: until that list is through, what they were judged to be is not known.
    pub fn withdraw(&mut self, now: Time, policy: PolicyId, groups: u64) {
        if self.policy(policy).is_none() {
            return;
        }
        let before = self.graph.withdrawn.of(policy);
        self.set_withdrawn(now, policy, before | groups);
    }

    /// Does anything rest on a rule of this policy that is another one now?
    pub fn is_withdrawn(&self, policy: PolicyId) -> bool {
        self.graph.withdrawn.of(policy) != 0
    }

    /// This kind was listed, or there is nothing to list: what is known of it is known by the new rule.
    pub(super) fn restore(&mut self, now: Time, kind: KindId) {
        for policy in self.graph.withdrawn.policies() {
            let groups = self.policy(policy).map_or(&[][..], |p| &p.groups).iter().enumerate();
            let listed = groups.filter(|(_, g)| g.kind == kind).fold(0, |bits, (at, _)| bits | bit(at as u8));
            let before = self.graph.withdrawn.of(policy);
            self.set_withdrawn(now, policy, before & !listed);
        }
    }

    pub(super) fn set_withdrawn(&mut self, now: Time, policy: PolicyId, groups: u64) {
        let moved = self.graph.withdrawn.of(policy) ^ groups;
        if moved == 0 {
            return;
        }
        self.graph.withdrawn.set(policy, groups);
        for child in self.graph.children_in(policy, moved) {
            self.reweigh(child);
        }
        self.set_gate(now, policy);
    }

    /// May this roll be judged, as far as lists go?
    pub(super) fn is_judgeable(&self, roll: &Roll, gate: Gate) -> bool {
        match gate {
            Gate::Closed => roll.deleting,
            Gate::Withdrawn => roll.deleting || (roll.judged && self.rests_on_withdrawn(roll)),
            Gate::Open | Gate::Blind(_) => true,
        }
    }

    fn rests_on_withdrawn(&self, roll: &Roll) -> bool {
        let groups = self.policy(roll.policy).map_or(&[][..], |p| &p.groups).iter().enumerate();
        let mut critical = groups.filter(|(_, g)| g.role == Role::Critical);
        critical.any(|(at, _)| {
            self.graph.withdrawn.has(roll.policy, at as u8)
                && roll.tally_of(at as u8).is_some_and(|tally| tally.total() > 0)
        })
    }

    /// What a policy says of `parent` where its answer rests on a rule that is another one now.
    pub(super) fn withdrawn_word(&self, parent: ObjectId) -> Option<Answer> {
        if self.graph.withdrawn.is_empty() {
            return None;
        }
        let rolls = self.graph.rolls_of(parent).iter().filter_map(|r| self.graph.roll(*r));
        let mut resting = rolls.filter(|r| r.view.is_some() && !r.deleting && self.rests_on_withdrawn(r));
        let tally = resting.next()?.groups.iter().fold(Tally::default(), |sum, (_, tally)| sum.plus(tally));
        Some(Answer {
            reason: ParentReason::ChildrenUnknown,
            total: tally.total(),
            ready: tally.at(Level::Ready),
            reconciling: true,
            stalled: false,
        })
    }

    /// The policy that said so has become another one, which knows nothing yet: what rested on the old rule is taken back
    /// all the same.
    pub(super) fn inherit(&mut self, now: Time, parent: ObjectId, answer: &AnswerView, word: Answer) {
        let well = answer.told.is_some_and(|told| told.reason == ParentReason::AllChildrenReady);
        let awaited = self.gate(answer.policy).awaits_a_list();
        let roll = self.graph.roll_for(parent, answer.policy).filter(|_| well && awaited);
        if let Some(roll) = roll.and_then(|id| self.graph.roll_mut(id)).filter(|r| r.phase.announced) {
            roll.answer = Some(word);
            (roll.judged, roll.withdrawn) = (true, true);
            self.reweigh(parent);
            for owner in std::mem::take(&mut self.moved) {
                self.at_once(owner, now, Cause::Others);
            }
            self.redeliver.arm_by(parent, now);
        }
    }

    /// Something was touched while a list is awaited.
    pub(super) fn touch_unlisted(&mut self, id: crate::types::RollId, now: Time, gate: Gate) {
        let roll = self.graph.roll(id);
        if gate == Gate::Withdrawn && roll.is_some_and(|r| !r.withdrawn && self.is_judgeable(r, gate)) {
            self.at_once(id, now, Cause::Others);
        }
        self.doubt(id);
    }
}

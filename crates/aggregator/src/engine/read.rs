//! What the driver and the renderer ask of the engine.

use readiness::Level;
use readiness::rollup::{ParentReason, Tally, Weight};

use super::Engine;
use crate::roll::Roll;
use crate::standing::has_name;
use crate::types::{Answer, KindId, ObjectId, PolicyId, Role};

/// A child that is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// How it weighs.
    pub weight: Weight,
    /// Its group in the policy.
    pub group: u8,
    /// Its kind.
    pub kind: KindId,
    /// The child.
    pub child: ObjectId,
    /// Which of its verdicts counts.
    pub lens: u8,
    /// The rule that made it is another one now: that verdict does not count.
    pub withdrawn: bool,
}

/// One roll, as metrics and pages read it.
#[derive(Clone, Copy, Debug)]
pub struct RollState<'a> {
    /// The parent.
    pub parent: ObjectId,
    /// The policy.
    pub policy: PolicyId,
    /// The last answer.
    pub answer: Answer,
    /// Somebody keeps overwriting what we write on this parent.
    pub yielding: bool,
    /// The server drops what we write on this parent, or its status has no place for it.
    pub pruned: bool,
    /// How its children stand, by group; a group without children may be left out.
    pub groups: &'a [(u8, Tally)],
}

/// One child of one parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChildOf {
    /// The child.
    pub child: ObjectId,
    /// The parent.
    pub parent: ObjectId,
    /// Under this policy.
    pub policy: PolicyId,
    /// In this one of its groups.
    pub group: u8,
    /// Which of its verdicts counts.
    pub lens: u8,
    /// May it turn the parent?
    pub role: Role,
}

impl Engine {
    /// The generation of `parent` that its answers are about; `None` where no policy applies to it.
    pub fn generation(&self, parent: ObjectId) -> Option<u64> {
        let mut rolls = self.graph.rolls_of(parent).iter().filter_map(|r| self.graph.roll(*r));
        rolls.find(|r| r.view.is_some()).map(|r| r.phase.generation)
    }

    /// Every edge that counts. Walks all objects: for pages and tools, not for the loop.
    pub fn edges(&self) -> impl Iterator<Item = ChildOf> + '_ {
        self.graph.edges().filter_map(|(child, edge)| {
            let roll = self.graph.roll(edge.roll)?;
            let policy = self.policies.get(usize::from(roll.policy.0))?.as_ref()?;
            let role = policy.groups.get(usize::from(edge.group))?.role;
            Some(ChildOf {
                child,
                parent: roll.parent,
                policy: roll.policy,
                group: edge.group,
                lens: edge.lens,
                role,
            })
        })
    }

    /// What `policy` last answered about `parent`.
    pub fn answer(&self, parent: ObjectId, policy: PolicyId) -> Option<Answer> {
        let roll = self.graph.roll(self.graph.roll_for(parent, policy)?)?;
        roll.view.as_ref()?;
        roll.answer
    }

    /// The answers that are to be written on `parent`, by policy; none of shadow policies, none where it is owned.
    pub fn answers(&self, parent: ObjectId) -> Vec<(PolicyId, Answer)> {
        let seen = self.graph.rolls_of(parent).iter().filter_map(|r| self.graph.roll(*r));
        let mut answers: Vec<_> = seen
            .filter(|r| self.has_word(r) && r.view.as_ref().is_some_and(|v| !v.owned))
            .filter(|r| !self.is_shadow(r.policy))
            .filter_map(|r| Some((r.policy, r.answer?)))
            .collect();
        answers.sort_by_key(|(policy, _)| *policy);
        answers
    }

    /// The answers about `parent` whose reason moved since this was last asked, shadow policies' among them: policy, the
    /// reason before (what the parent itself said, where this process has not judged it before), and the answer now.
    pub fn take_turns(&mut self, parent: ObjectId) -> Vec<(PolicyId, Option<ParentReason>, Answer)> {
        let mut turns = Vec::new();
        for at in 0..self.graph.rolls_of(parent).len() {
            let id = self.graph.rolls_of(parent)[at];
            let Some(roll) = self.graph.roll(id).filter(|r| r.view.is_some() && self.has_word(r)) else {
                continue;
            };
            let (policy, before) = (roll.policy, roll.known);
            let Some(answer) = roll.answer.filter(|a| before != Some(a.reason)) else { continue };
            if let Some(roll) = self.graph.roll_mut(id) {
                roll.known = Some(answer.reason);
            }
            turns.push((policy, before, answer));
        }
        turns
    }

    /// Has `policy` an answer of its own about `parent`? Not yet before everything was listed, and not while it is listed
    /// anew: what stands, stays.
    pub fn has_judged(&self, parent: ObjectId, policy: PolicyId) -> bool {
        self.graph.roll_for(parent, policy).and_then(|r| self.graph.roll(r)).is_some_and(|r| self.has_word(r))
    }

    pub(super) fn has_word(&self, roll: &Roll) -> bool {
        roll.judged && (self.is_open(roll.policy) || roll.withdrawn)
    }

    /// Nothing is written for this policy.
    pub fn is_shadow(&self, policy: PolicyId) -> bool {
        self.policies.get(usize::from(policy.0)).and_then(Option::as_ref).is_none_or(|p| p.shadow)
    }

    /// Everything of `parent` under `policy` that is not ready, worst first; critical or optional as asked.
    pub fn troubles(
        &self,
        parent: ObjectId,
        policy: PolicyId,
        role: Role,
    ) -> impl Iterator<Item = Trouble> + '_ {
        let of = self.graph.roll_for(parent, policy).and_then(|r| self.graph.roll(r));
        let groups = self.policies.get(usize::from(policy.0)).and_then(Option::as_ref).map(|p| &p.groups);
        of.into_iter().flat_map(|r| r.troubles.iter()).filter_map(move |t| {
            let group = groups?.get(usize::from(t.group))?;
            let edges = self.graph.node(t.child)?.edges.as_slice();
            let lens = edges.iter().find(|e| e.group == t.group).map_or(0, |e| e.lens);
            (group.role == role).then_some(Trouble {
                weight: t.weight,
                group: t.group,
                kind: t.kind,
                child: t.child,
                lens,
                withdrawn: self.graph.withdrawn.has(policy, t.group),
            })
        })
    }

    /// Whether the children of one group may turn a parent.
    pub fn role(&self, policy: PolicyId, group: u8) -> Option<Role> {
        let policy = self.policies.get(usize::from(policy.0))?.as_ref()?;
        policy.groups.get(usize::from(group)).map(|g| g.role)
    }

    /// For whom `child` counts: parent and policy.
    pub fn owners(&self, child: ObjectId) -> Vec<(ObjectId, PolicyId)> {
        let edges = self.graph.node(child).map(|node| node.edges.as_slice()).unwrap_or_default();
        let rolls = edges.iter().filter(|e| !e.cyclic).filter_map(|e| self.graph.roll(e.roll));
        let mut owners: Vec<_> = rolls.map(|r| (r.parent, r.policy)).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }

    /// How the children of one group stand.
    pub fn tally(&self, parent: ObjectId, policy: PolicyId, group: u8) -> Tally {
        let roll = self.graph.roll_for(parent, policy).and_then(|r| self.graph.roll(r));
        roll.map(|r| r.tally(group)).unwrap_or_default()
    }

    /// Is there a child whose name has this hash in that group?
    pub fn has_name(&self, parent: ObjectId, policy: PolicyId, group: u8, name: u64) -> bool {
        let roll = self.graph.roll_for(parent, policy).and_then(|r| self.graph.roll(r));
        roll.is_some_and(|r| has_name(r, group, name))
    }

    /// Edges of `parent` that would close a cycle, and so are not counted.
    pub fn cycles(&self, parent: ObjectId, policy: PolicyId) -> u32 {
        let roll = self.graph.roll_for(parent, policy).and_then(|r| self.graph.roll(r));
        roll.map_or(0, |r| r.cyclic)
    }

    /// The policies that apply to `id`, if it is a parent, in the same order whatever was seen first.
    pub fn policies_of(&self, id: ObjectId) -> impl Iterator<Item = PolicyId> + '_ {
        let rolls = self.graph.rolls_of(id).iter().filter_map(|r| self.graph.roll(*r));
        let mut policies: Vec<_> = rolls.filter(|r| r.view.is_some()).map(|r| r.policy).collect();
        policies.sort_unstable();
        policies.into_iter()
    }

    /// Every roll with an answer.
    pub fn rolls(&self) -> impl Iterator<Item = RollState<'_>> {
        self.graph.rolls().filter_map(|(_, r)| {
            r.view.as_ref()?;
            let delivery = self.graph.node(r.parent)?.parent.as_ref()?.delivery;
            Some(RollState {
                parent: r.parent,
                policy: r.policy,
                answer: r.answer?,
                yielding: delivery.yielding(),
                pruned: delivery.pruned(),
                groups: &r.groups,
            })
        })
    }

    /// Parents, by policy, that wait for quiet before they are judged.
    pub fn debounced(&self) -> usize {
        self.quiet.len()
    }

    /// Children that hold `parent` back under any policy, and the groups where one is expected but unseen:
    /// what the periodic pass reads live.
    pub fn pass(&self, parent: ObjectId) -> (Vec<ObjectId>, Vec<KindId>) {
        let (mut children, mut kinds) = (Vec::new(), Vec::new());
        for policy in self.policies_of(parent) {
            children.extend(self.troubles(parent, policy, Role::Critical).map(|t| t.child));
            let Some(Some(spec)) = self.policies.get(usize::from(policy.0)) else { continue };
            let groups = spec.groups.iter().enumerate().filter(|(_, g)| g.role == Role::Critical);
            let none_at_all = groups.clone().all(|(at, _)| self.tally(parent, policy, at as u8).total() == 0);
            let short = groups.filter(|(at, g)| {
                none_at_all || spec.names || self.tally(parent, policy, *at as u8).total() < g.min
            });
            kinds.extend(short.map(|(_, g)| g.kind));
        }
        children.sort_unstable();
        children.dedup();
        kinds.sort_unstable();
        kinds.dedup();
        (children, kinds)
    }

    /// A recount of every tally from the edges: the first roll whose tally disagrees. For tests and the simulator.
    pub fn miscounted(&self) -> Option<(ObjectId, PolicyId)> {
        self.graph
            .rolls()
            .find(|(id, roll)| self.graph.recount(*id) != roll.groups_sorted())
            .map(|(_, r)| (r.parent, r.policy))
    }

    /// Troubles are exactly the children that are not ready. For tests and the simulator.
    pub fn troubles_are_true(&self) -> bool {
        self.graph.rolls().all(|(_, r)| r.troubles.iter().all(|t| t.weight.level != Level::Ready))
    }
}

//! The engine: what was seen goes in, what is to be told comes out, and when to ask again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use readiness::Time;
use timer::{Deadlines, Resync, Seed};

use crate::delivery::{Decision, Outcome};
use crate::graph::{Few, Graph, weigh};
use crate::judge::{Gate, Judged, is_well, judge};
use crate::roll::Phase;
use crate::types::{
    Answer, AnswerView, Digest, KindId, KindState, Link, ObjectId, ParentView, Policy, PolicyId, RollId,
    Told, View,
};
use readiness::rollup::{ParentReason, Weight};

/// A parent whose answers may differ from what it says: render them, and [`Engine::offer`] their digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Draft {
    /// The parent.
    pub parent: ObjectId,
}

/// What happened inside, for metrics: the engine counts, the driver adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rolls judged.
    pub judged: u64,
    /// Answers that moved.
    pub moved: u64,
}

/// See the crate.
#[derive(Debug)]
pub struct Engine {
    pub(crate) graph: Graph,
    pub(crate) policies: Vec<Option<Policy>>,
    gates: Vec<Gate>,
    kinds: Vec<KindState>,
    /// Rolls of which something was seen, once it is quiet.
    due: Deadlines<RollId, Time>,
    /// Rolls whose answer changes by itself.
    later: Deadlines<RollId, Time>,
    /// Parents over which there was a fight, when it is over.
    calm: Deadlines<ObjectId, Time>,
    ripe: Deadlines<ObjectId, Time>,
    redeliver: Deadlines<ObjectId, Time>,
    resync: Resync<ObjectId, Time>,
    counts: Counts,
}

/// A roll judged so often in one poll is in a loop that the cycle guard did not see; it goes on in the next.
const CLIMBS: u8 = 64;

impl Engine {
    /// An engine that reads what is not ready again every `resync`, and every `audit` once that proved futile.
    pub fn new(resync: Duration, audit: Duration, seed: Seed) -> Self {
        Engine {
            graph: Graph::default(),
            policies: Vec::new(),
            gates: Vec::new(),
            kinds: Vec::new(),
            due: Deadlines::default(),
            later: Deadlines::default(),
            calm: Deadlines::default(),
            ripe: Deadlines::default(),
            redeliver: Deadlines::default(),
            resync: Resync::new(resync, audit, seed),
            counts: Counts::default(),
        }
    }

    /// A policy is new, changed, or (`None`) gone.
    pub fn set_policy(&mut self, now: Time, id: PolicyId, policy: Option<Policy>) {
        let at = usize::from(id.0);
        if at >= self.policies.len() {
            self.policies.resize(at + 1, None);
            self.gates.resize(at + 1, Gate::Closed);
        }
        self.graph.remember_names(id, policy.as_ref().is_some_and(|p| p.names));
        self.policies[at] = policy;
        self.set_gate(now, id);
    }

    /// The list or watch of a kind moved on.
    pub fn set_kind(&mut self, now: Time, kind: KindId, state: KindState) {
        let at = usize::from(kind.0);
        if at >= self.kinds.len() {
            self.kinds.resize(at + 1, KindState::Listing);
        }
        if self.kinds[at] == state {
            return;
        }
        self.kinds[at] = state;
        for policy in 0..self.policies.len() {
            if self.policies[policy].as_ref().is_some_and(|p| p.kinds.contains(&kind)) {
                self.set_gate(now, PolicyId(policy as u16));
            }
        }
    }

    /// Where a kind stands.
    pub fn kind(&self, kind: KindId) -> KindState {
        self.kinds.get(usize::from(kind.0)).copied().unwrap_or_default()
    }

    fn set_gate(&mut self, now: Time, id: PolicyId) {
        let Some(policy) = self.policies.get(usize::from(id.0)).and_then(Option::as_ref) else { return };
        let gate = Gate::over(policy.kinds.iter().map(|k| self.kind(*k)));
        self.gates[usize::from(id.0)] = gate;
        if gate != Gate::Closed {
            let rolls: Vec<_> =
                self.graph.rolls().filter(|(_, r)| r.policy == id).map(|(id, _)| id).collect();
            for roll in rolls {
                self.due.arm_by(roll, now);
            }
        }
    }

    /// Everything that this policy rests on was listed.
    pub fn is_open(&self, policy: PolicyId) -> bool {
        self.gate(policy) != Gate::Closed
    }

    fn gate(&self, policy: PolicyId) -> Gate {
        self.gates.get(usize::from(policy.0)).copied().unwrap_or(Gate::Closed)
    }

    /// An object was seen to be so, or (`None`) to be gone.
    pub fn observe(&mut self, now: Time, id: ObjectId, view: Option<&View<'_>>) {
        match view {
            Some(view) => self.seen(now, id, view),
            None => self.gone(now, id),
        }
    }

    fn seen(&mut self, now: Time, id: ObjectId, view: &View<'_>) {
        let rolled = self.graph.rolled(id);
        let node = self.graph.node_mut(id);
        (node.kind, node.name) = (view.kind, view.name);
        let first = !std::mem::replace(&mut node.present, true);
        let respecified = !first && node.generation != view.generation;
        node.generation = view.generation;
        let before = std::mem::replace(&mut node.weights, crate::graph::Weights::of(view.weights));
        match view.recheck.filter(|at| *at > now) {
            Some(at) => self.ripe.arm(id, at),
            None => _ = self.ripe.disarm(id),
        }
        self.set_parent(now, id, view.parent);
        self.graph.reweigh(id, |lens| weigh(before.get(lens), rolled));
        // The words of a child that is not ready are part of what its parents say, so they move even where levels do not.
        let edges = self.graph.node(id).map(|n| n.edges.clone()).unwrap_or_default();
        for edge in edges.as_slice() {
            if respecified {
                self.graph.stir(edge.roll, now, false);
            }
            self.touch(edge.roll, now);
        }
        self.relink(now, id, view.links, view.created);
    }

    fn relink(&mut self, now: Time, id: ObjectId, links: &[Link], created: Time) {
        let old = self.graph.node(id).map(|n| n.links.clone()).unwrap_or_default();
        if old.as_slice() == links {
            return;
        }
        for link in old.as_slice().iter().filter(|l| !links.contains(l)) {
            self.graph.hang(id, *link, false);
            for roll in self.graph.rolls_behind(*link) {
                self.detach(now, id, roll, link.group);
            }
        }
        for link in links.iter().filter(|l| !old.as_slice().contains(l)) {
            self.graph.hang(id, *link, true);
            for roll in self.graph.rolls_behind(*link) {
                self.attach(now, id, roll, *link, created);
            }
        }
        self.graph.node_mut(id).links = Few::from_slice(links);
    }

    fn attach(&mut self, now: Time, child: ObjectId, roll: RollId, link: Link, created: Time) {
        if self.graph.attach(child, roll, link) {
            // Before everything was listed, a child did not appear now: it is as old as it says.
            let at = if self.is_open(link.policy) { now } else { created.min(now) };
            self.graph.stir(roll, at, true);
            self.touch(roll, now);
        }
    }

    fn detach(&mut self, now: Time, child: ObjectId, roll: RollId, group: u8) {
        let edges = self.graph.node(child).map(|n| n.edges.clone()).unwrap_or_default();
        if let Some(edge) = edges.as_slice().iter().find(|e| e.roll == roll && e.group == group) {
            let weight = self.graph.weight(child, edge.lens);
            self.graph.detach(child, *edge, weight);
            self.graph.stir(roll, now, false);
            self.touch(roll, now);
        }
        self.drop_if_idle(roll);
    }

    fn drop_if_idle(&mut self, roll: RollId) {
        if self.graph.drop_if_idle(roll) {
            self.due.disarm(roll);
            self.later.disarm(roll);
        }
    }

    fn gone(&mut self, now: Time, id: ObjectId) {
        self.relink(now, id, &[], now);
        self.set_parent(now, id, None);
        self.ripe.disarm(id);
        let node = self.graph.node_mut(id);
        node.present = false;
        node.weights = crate::graph::Weights::default();
        node.generation = 0;
        if let Some(parent) = &mut node.parent {
            parent.delivery = crate::delivery::Delivery::default();
            parent.offered = Digest::default();
            parent.taken_leave = false;
        }
        self.calm.disarm(id);
    }

    fn set_parent(&mut self, now: Time, id: ObjectId, view: Option<&ParentView>) {
        let answers = view.map_or(&[][..], |v| &v.answers);
        for roll in self.graph.rolls_of(id).to_vec() {
            let policy = self.graph.roll(roll).map(|r| r.policy);
            if !answers.iter().any(|a| Some(a.policy) == policy) {
                self.unanswer(roll);
                // What was said for a policy that no longer applies is to be taken back.
                self.redeliver.arm_by(id, now);
            }
        }
        if view.is_none() {
            self.resync.withdraw(id);
            self.redeliver.disarm(id);
        }
        let Some(view) = view else { return self.set_selects(now, id, &[]) };
        let mut anew = false;
        for answer in answers {
            let roll = self.graph.roll_at(id, answer.policy);
            let begins = self.set_answer(now, roll, view, answer);
            self.touch(roll, now);
            if begins && self.is_open(answer.policy) {
                self.due.arm(roll, now);
            }
            anew |= begins;
        }
        let selects: Vec<_> =
            answers.iter().flat_map(|a| a.selects.iter().map(move |s| (a.policy, *s))).collect();
        self.set_selects(now, id, &selects);
        let leave = |a: &AnswerView| a.told.is_some_and(|t| t.reason == ParentReason::Terminating);
        let parent = self.graph.node_mut(id).parent.get_or_insert_default();
        parent.taken_leave = view.deleting && (parent.taken_leave || answers.iter().any(leave));
        let before = parent.delivery;
        if anew {
            parent.delivery.hurry();
        }
        parent.delivery.read(view.digest, now);
        if before != parent.delivery {
            self.redeliver.arm_by(id, now);
        }
        self.watch_calm(id);
    }

    fn watch_calm(&mut self, id: ObjectId) {
        let at = self.graph.node(id).and_then(|n| n.parent.as_ref()?.delivery.calm_at());
        match at {
            Some(at) => self.calm.arm(id, at),
            None => _ = self.calm.disarm(id),
        }
    }

    fn unanswer(&mut self, roll: RollId) {
        if let Some(r) = self.graph.roll_mut(roll) {
            r.view = None;
            r.answer = None;
            r.judged = false;
            r.phase = Phase::default();
            r.well = None;
            r.missing = None;
        }
        self.drop_if_idle(roll);
    }

    /// Returns whether a generation begins, which is judged at once.
    fn set_answer(&mut self, now: Time, roll: RollId, view: &ParentView, answer: &AnswerView) -> bool {
        let shadow = self
            .policies
            .get(usize::from(answer.policy.0))
            .and_then(Option::as_ref)
            .is_some_and(|p| p.shadow);
        let Some(roll) = self.graph.roll_mut(roll) else { return false };
        let first = roll.view.is_none();
        let told = answer.told.filter(|_| answer.about == Some(view.generation));
        let begins = first || roll.phase.generation != view.generation;
        if begins {
            roll.phase = Phase::new(view.generation, now, told);
            roll.well = None;
            let overdue = told.filter(|t| t.reason == ParentReason::ChildrenMissing && t.stalled);
            roll.missing = overdue.map(|_| Time::default());
            // What was judged of an older generation must never be rendered for this one.
            roll.judged = false;
        }
        if first {
            roll.answer = answer.told.map(restored);
        }
        roll.phase.announced |= told.is_some() || shadow || answer.owned;
        roll.evidence = view.evidence;
        roll.deleting = view.deleting;
        roll.view = Some(answer.clone());
        begins && !first
    }

    fn set_selects(&mut self, now: Time, id: ObjectId, selects: &[(PolicyId, crate::types::SelectorId)]) {
        let Some(parent) = &mut self.graph.node_mut(id).parent else { return };
        if parent.selects == selects {
            return;
        }
        let old = std::mem::replace(&mut parent.selects, selects.to_vec());
        for (policy, selector) in old.iter().filter(|s| !selects.contains(s)) {
            for (child, link) in self.graph.select(id, *policy, *selector, false) {
                if let Some(roll) = self.graph.roll_for(id, *policy) {
                    self.detach(now, child, roll, link.group);
                }
            }
        }
        for (policy, selector) in selects.iter().filter(|s| !old.contains(s)) {
            for (child, link) in self.graph.select(id, *policy, *selector, true) {
                let roll = self.graph.roll_at(id, *policy);
                self.attach(now, child, roll, link, now);
            }
        }
    }

    /// Something about this roll moved.
    fn touch(&mut self, id: RollId, now: Time) {
        let Some(roll) = self.graph.roll_mut(id) else { return };
        let policy = usize::from(roll.policy.0);
        if let Some(Some(policy)) = self.policies.get(policy)
            && self.gates.get(usize::from(roll.policy.0)).is_some_and(|g| *g != Gate::Closed)
        {
            let at = roll.touched.touch(now, policy.debounce);
            roll.reworded = true;
            self.resync.moved(roll.parent, now);
            // What is due already is not put off by what comes after.
            if self.due.get(id).is_none_or(|due| due > now) {
                self.due.arm(id, at);
            }
            if at > now {
                self.doubt(id);
            }
        }
    }

    /// What waits to be judged must not be taken for well by those above meanwhile.
    fn doubt(&mut self, id: RollId) {
        let mut work = vec![id];
        while let Some(id) = work.pop() {
            let Some(roll) = self.graph.roll(id) else { continue };
            let Some(Some(policy)) = self.policies.get(usize::from(roll.policy.0)) else { continue };
            let said = roll.answer.is_some_and(|a| a.reason == ParentReason::AllChildrenReady);
            let (parent, doubted) = (roll.parent, said && !is_well(roll, policy));
            if doubted != roll.doubted {
                let rolled = self.graph.rolled(parent);
                if let Some(roll) = self.graph.roll_mut(id) {
                    roll.doubted = doubted;
                }
                work.extend(self.reweigh(parent, rolled));
            }
        }
    }

    /// Moves what `parent` weighs for its owners, of whose rolls it was `rolled` until now; the rolls that moved.
    fn reweigh(&mut self, parent: ObjectId, rolled: Option<Weight>) -> Vec<RollId> {
        let Some(own) = self.graph.node(parent).map(|n| n.weights.clone()) else { return Vec::new() };
        self.graph.reweigh(parent, |lens| weigh(own.get(lens), rolled))
    }

    /// Judges what is due; every parent whose words may have moved is added to `drafts`, once.
    pub fn poll(&mut self, now: Time, drafts: &mut Vec<Draft>) {
        while let Some(parent) = self.calm.take_due(now) {
            if let Some(p) = self.graph.node_mut(parent).parent.as_deref_mut() {
                p.delivery.calm();
            }
        }
        let (mut work, mut parents, mut climbs) = (VecDeque::new(), BTreeSet::new(), BTreeMap::new());
        while let Some(parent) = self.redeliver.take_due(now) {
            parents.insert(parent);
        }
        // Nobody is told that all is well while it is known that it is not.
        work.extend(parents.iter().flat_map(|p| self.graph.rolls_of(*p)).filter(|r| self.is_doubted(**r)));
        while let Some(id) = self.next_due(&mut work, now) {
            let turns = climbs.entry(id).or_insert(0_u8);
            *turns += 1;
            if *turns > CLIMBS {
                self.later.arm_by(id, now + Duration::from_secs(1));
                continue;
            }
            if let Some(parent) = self.judge(id, now, &mut work) {
                let doubted = self.graph.rolls_of(parent).iter().filter(|r| self.is_doubted(**r));
                work.extend(doubted);
                parents.insert(parent);
            }
        }
        parents.retain(|parent| self.has_a_say(*parent));
        drafts.extend(parents.into_iter().map(|parent| Draft { parent }));
    }

    fn next_due(&mut self, work: &mut VecDeque<RollId>, now: Time) -> Option<RollId> {
        work.pop_front().or_else(|| self.due.take_due(now)).or_else(|| self.later.take_due(now))
    }

    fn is_doubted(&self, roll: RollId) -> bool {
        self.graph.roll(roll).is_some_and(|r| r.doubted)
    }

    /// One of its policies has judged it, or none applies any more: before that, what it says is left as it is.
    fn has_a_say(&self, parent: ObjectId) -> bool {
        if self.graph.node(parent).and_then(|n| n.parent.as_ref()).is_some_and(|p| p.taken_leave) {
            return false;
        }
        let mut rolls = self.graph.rolls_of(parent).iter().filter_map(|r| self.graph.roll(*r)).peekable();
        rolls.peek().is_none() || rolls.any(|r| r.judged || r.view.is_none())
    }

    fn judge(&mut self, id: RollId, now: Time, work: &mut VecDeque<RollId>) -> Option<ObjectId> {
        let roll = self.graph.roll(id)?;
        let (parent, policy) = (roll.parent, roll.policy);
        let gate = self.gate(policy);
        let policy = self.policies.get(usize::from(policy.0))?.as_ref()?;
        let rolled = self.graph.rolled(parent);
        let roll = self.graph.roll_mut(id)?;
        let Judged { answer, again } = judge(roll, policy, gate, now);
        self.counts.judged += 1;
        roll.touched.fire(now);
        self.due.disarm(id);
        let moved = roll.answer != answer || std::mem::take(&mut roll.doubted);
        roll.answer = answer;
        roll.judged |= gate != Gate::Closed;
        let view = roll.view.as_ref()?;
        // Where nothing is written, nobody renders its words: whoever quotes them is told that they may have moved.
        let quoted = std::mem::take(&mut roll.reworded) && (view.owned || policy.shadow);
        match again {
            Some(at) => self.later.arm(id, at),
            None => _ = self.later.disarm(id),
        }
        if moved {
            self.counts.moved += 1;
            self.enroll(parent, now);
            work.extend(self.reweigh(parent, rolled));
        }
        if quoted {
            self.touch_owners(parent, now);
        }
        Some(parent)
    }

    fn touch_owners(&mut self, id: ObjectId, now: Time) {
        let edges = self.graph.node(id).map(|n| n.edges.clone()).unwrap_or_default();
        edges.as_slice().iter().filter(|e| !e.cyclic).for_each(|edge| self.touch(edge.roll, now));
    }

    /// The pass looks after parents that are not ready, and no others.
    fn enroll(&mut self, parent: ObjectId, now: Time) {
        let rolls = self.graph.rolls_of(parent).iter().filter_map(|r| self.graph.roll(*r));
        let unready = rolls.filter(|r| !r.deleting).filter_map(|r| r.answer);
        if unready.into_iter().any(|a| a.reason != ParentReason::AllChildrenReady) {
            self.resync.enroll(parent, now);
            self.resync.moved(parent, now);
        } else {
            self.resync.withdraw(parent);
        }
    }

    /// The answers of a draft were rendered, to this digest. Where they moved, the words of its owners may move too.
    pub fn offer(&mut self, parent: ObjectId, digest: Digest, now: Time) -> Decision {
        let window = self.window(parent);
        let Some(p) = self.graph.node_mut(parent).parent.as_deref_mut() else { return Decision::Same };
        let (decision, again) = p.delivery.offer(digest, window, now);
        let moved = std::mem::replace(&mut p.offered, digest) != digest;
        if let Some(at) = again {
            self.redeliver.arm_by(parent, at);
        }
        if moved {
            self.touch_owners(parent, now);
        }
        decision
    }

    /// In which a parent is written twice at most: the shortest cap of its policies.
    fn window(&self, parent: ObjectId) -> Duration {
        let rolls = self.graph.rolls_of(parent).iter().filter_map(|r| self.graph.roll(*r));
        let policies = rolls.filter_map(|r| self.policies.get(usize::from(r.policy.0))?.as_ref());
        policies.map(|p| p.debounce.cap).min().unwrap_or_default()
    }

    /// A write that [`Decision::Send`] asked for ended so.
    pub fn settle(&mut self, parent: ObjectId, outcome: Outcome, now: Time) {
        if let Some(p) = self.graph.node_mut(parent).parent.as_deref_mut() {
            p.delivery.settle(outcome, now);
            if outcome != Outcome::Gone {
                self.redeliver.arm_by(parent, now);
            }
            self.watch_calm(parent);
        }
        if outcome == Outcome::Pruned {
            self.unheard(parent, now);
        }
    }

    /// A parent that cannot be told anything is judged all the same, for metrics and for its own parents.
    fn unheard(&mut self, parent: ObjectId, now: Time) {
        for id in self.graph.rolls_of(parent).to_vec() {
            let Some(roll) = self.graph.roll_mut(id).filter(|r| !r.phase.announced) else { continue };
            roll.phase.announced = true;
            self.due.arm(id, now);
        }
    }

    /// An object whose verdict changes by itself now: observe it again.
    pub fn take_ripe(&mut self, now: Time) -> Option<ObjectId> {
        self.ripe.take_due(now)
    }

    /// A parent that is not ready and whose periodic pass is due.
    pub fn take_pass(&mut self, now: Time) -> Option<ObjectId> {
        self.resync.take_due(now)
    }

    /// How many parents the periodic pass looks after.
    pub fn unready(&self) -> usize {
        self.resync.len()
    }

    /// When to poll next, if nothing is observed before.
    pub fn next_deadline(&self) -> Option<Time> {
        let rolls = [self.due.next(), self.later.next()];
        let objects = [self.ripe.next(), self.redeliver.next(), self.calm.next(), self.resync.next()];
        rolls.into_iter().chain(objects).flatten().min()
    }

    /// What was counted since the last call.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }
}

fn restored(told: Told) -> Answer {
    Answer { reason: told.reason, total: 0, ready: 0, reconciling: false, stalled: told.stalled }
}

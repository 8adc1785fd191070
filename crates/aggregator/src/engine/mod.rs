//! The engine: what was seen goes in, what is to be told comes out, and when to ask again.

mod climb;
mod parents;
mod read;
mod rules;
mod sight;
mod standby;
mod timing;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use readiness::Time;
use timer::{Deadlines, Resync, Seed};

pub use read::{ChildOf, RollState, Trouble};

use crate::graph::Graph;
use crate::judge::Gate;
use crate::types::{KindId, KindState, ObjectId, Policy, PolicyId, RollId};

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

/// Who moved something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The world.
    Others,
    /// Perhaps we ourselves, by what we wrote.
    Perhaps,
}

/// See the crate.
#[derive(Debug)]
pub struct Engine {
    graph: Graph,
    policies: Vec<Option<Policy>>,
    gates: Vec<Gate>,
    kinds: Vec<KindState>,
    /// Rolls to be judged in the next poll, and since when there are any.
    at_once: VecDeque<RollId>,
    at_once_since: Option<Time>,
    /// Rolls of which something was seen, once it is quiet.
    quiet: Deadlines<RollId, Time>,
    /// Rolls whose answer changes by itself.
    dated: Deadlines<RollId, Time>,
    /// Objects whose verdict changes by itself.
    ripe: Deadlines<ObjectId, Time>,
    /// Parents that are to be told something, when that may go out.
    redeliver: Deadlines<ObjectId, Time>,
    /// Parents over which there was a fight, when it is over.
    calm: Deadlines<ObjectId, Time>,
    resync: Resync<ObjectId, Time>,
    seed: Seed,
    /// Writes on their way to parents that are gone: their outcomes are not for whoever has that place now.
    orphans: BTreeMap<ObjectId, u32>,
    /// Another one writes.
    standby: bool,
    /// While it does: parents that do not say (yet) what they would be told.
    held: BTreeSet<ObjectId>,
    /// A list is awaited under some policy, or what it brought is still to be judged.
    awaiting: bool,
    /// How many rolls are mute.
    mute: usize,
    counts: Counts,
    /// How many polls there were.
    polls: u32,
    /// Used anew in every poll: parents to be drafted, and rolls that a judgement moved.
    drafted: Vec<ObjectId>,
    moved: Vec<RollId>,
}

impl Engine {
    /// An engine that reads what is not ready again every `resync`, and every `audit` once that proved futile.
    pub fn new(resync: Duration, audit: Duration, seed: Seed) -> Self {
        Engine {
            graph: Graph::default(),
            policies: Vec::new(),
            gates: Vec::new(),
            kinds: Vec::new(),
            at_once: VecDeque::new(),
            at_once_since: None,
            quiet: Deadlines::default(),
            dated: Deadlines::default(),
            ripe: Deadlines::default(),
            redeliver: Deadlines::default(),
            calm: Deadlines::default(),
            resync: Resync::new(resync, audit, seed),
            seed: seed.derive(0x1a15),
            orphans: BTreeMap::new(),
            standby: false,
            held: BTreeSet::new(),
            awaiting: false,
            mute: 0,
            counts: Counts::default(),
            polls: 0,
            drafted: Vec::new(),
            moved: Vec::new(),
        }
    }

    /// A policy is new, changed, or (`None`) gone.
    pub fn set_policy(&mut self, now: Time, id: PolicyId, policy: Option<Policy>) {
        let at = usize::from(id.0);
        if at >= self.policies.len() {
            self.policies.resize(at + 1, None);
            self.gates.resize(at + 1, Gate::Closed);
        }
        let names = policy.as_ref().is_some_and(|p| p.names);
        self.set_withdrawn(now, id, 0);
        self.policies[at] = policy;
        for roll in self.rolls_under(id) {
            self.graph.remember_names(roll, names);
            // What another policy of that number made of it is not an answer of this one.
            if let Some(roll) = self.graph.roll_mut(roll) {
                (roll.judged, roll.withdrawn) = (false, false);
            }
        }
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
        if state != KindState::Listing {
            self.restore(now, kind);
        }
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
        let policy = self.policies.get(usize::from(id.0)).and_then(Option::as_ref);
        let mut gate = policy.map_or(Gate::Closed, |p| Gate::over(p.kinds.iter().map(|k| self.kind(*k))));
        if gate == Gate::Closed && self.is_withdrawn(id) {
            gate = Gate::Withdrawn;
        }
        let Some(held) = self.gates.get_mut(usize::from(id.0)) else { return };
        *held = gate;
        // Until the next poll is through: what is judged in it was not judged yet.
        self.awaiting = true;
        if gate != Gate::Closed {
            for roll in self.rolls_under(id) {
                self.at_once(roll, now, Cause::Others);
                if let Some(roll) = self.graph.roll_mut(roll) {
                    roll.reworded = true;
                }
            }
        }
    }

    fn rolls_under(&self, policy: PolicyId) -> Vec<RollId> {
        self.graph.rolls().filter(|(_, r)| r.policy == policy).map(|(id, _)| id).collect()
    }

    /// Everything that this policy rests on was listed.
    pub fn is_open(&self, policy: PolicyId) -> bool {
        !self.gate(policy).awaits_a_list()
    }

    fn gate(&self, policy: PolicyId) -> Gate {
        self.gates.get(usize::from(policy.0)).copied().unwrap_or(Gate::Closed)
    }

    fn policy(&self, id: PolicyId) -> Option<&Policy> {
        self.policies.get(usize::from(id.0))?.as_ref()
    }

    /// An object whose verdict changes by itself now: observe it again.
    pub fn take_ripe(&mut self, now: Time) -> Option<ObjectId> {
        self.ripe.take_due(now)
    }

    /// A parent that is not ready and whose periodic pass is due.
    pub fn take_pass(&mut self, now: Time) -> Option<ObjectId> {
        while let Some(parent) = self.resync.take_due(now) {
            let unready = self.is_unready(parent);
            if let Some(p) = self.graph.parent_mut(parent) {
                (p.passed, p.enrolled) = (true, unready);
            }
            if unready {
                return Some(parent);
            }
            self.resync.withdraw(parent);
        }
        None
    }

    /// How many parents the periodic pass looks after; one that has become ready leaves when its turn comes.
    pub fn unready(&self) -> usize {
        self.resync.len()
    }

    /// When to poll next, if nothing is observed before.
    pub fn next_deadline(&self) -> Option<Time> {
        let rolls = [self.at_once_since, self.quiet.next(), self.dated.next()];
        let objects = [self.ripe.next(), self.redeliver.next(), self.calm.next(), self.resync.next()];
        rolls.into_iter().chain(objects).flatten().min()
    }

    /// What was counted since the last call.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }
}

//! The engine: observations go in; drafts of conditions and the time of the next poll come out.

mod observe;
mod parents;
mod propagate;
mod read;
mod recount;
mod rule_changes;
mod standby;
mod timing;

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use readiness::Time;
use timer::{DeadlineQueue, ResyncSchedule, Seed};

pub use read::{ChildOf, EvaluationState, UnreadyChild};
pub use recount::RecountResult;

use crate::evaluation::StageEvent;
use crate::graph::{ChildGraph, ResyncStage};
use crate::list_gate::ListGate;
use crate::policy_table::PolicyTable;
use crate::types::{ChangeOrigin, EnginePolicy, EvaluationId, KindId, KindState, ObjectId, PolicyId};

/// A parent whose conditions may have to change: render them and pass their digest to [`Engine::offer_digest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ParentDraft {
    /// The parent.
    pub parent: ObjectId,
}

/// Counters for metrics: the engine counts, the driver adds them up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvaluationCounts {
    /// Number of evaluations.
    pub evaluations: u64,
    /// Number of evaluations that changed the answer.
    pub changed_answers: u64,
    /// Number of times that children became ready again while the answer, which said True, had stood.
    pub saved_flips: u64,
}

/// The engine; the crate documentation describes its use.
#[derive(Debug)]
pub struct Engine {
    graph: ChildGraph,
    policies: PolicyTable,
    /// Evaluations due in the next poll, and the time since which there are any.
    immediate: VecDeque<EvaluationId>,
    immediate_since: Option<Time>,
    /// Changes are known that were not observed yet.
    is_behind: bool,
    /// Evaluations of this poll that wait until they are.
    postponed: Vec<EvaluationId>,
    /// Evaluations that wait for a child to be evaluated.
    deferred: BTreeSet<EvaluationId>,
    /// Debounced evaluations, by the time at which they are due.
    quiet: DeadlineQueue<EvaluationId, Time>,
    /// Evaluations whose answer changes with time alone.
    time_dependent: DeadlineQueue<EvaluationId, Time>,
    /// Objects whose verdict changes with time alone.
    rechecks: DeadlineQueue<ObjectId, Time>,
    /// Parents whose conditions are to be written, by the earliest time of the write.
    redeliver: DeadlineQueue<ObjectId, Time>,
    /// Parents with a write conflict, by the time at which it ends.
    conflict_ends: DeadlineQueue<ObjectId, Time>,
    resync: ResyncSchedule<ObjectId, Time>,
    seed: Seed,
    /// How many writes were asked for, which numbers the next one.
    tickets: u64,
    /// Another replica is the leader.
    standby: bool,
    /// Parents whose conditions differ from what this replica would write, while it is in standby.
    withheld: BTreeSet<ObjectId>,
    counts: EvaluationCounts,
    /// Number of polls.
    polls: u32,
    /// Buffers reused by every poll: parents to draft, and evaluations that a change affected.
    drafted: Vec<ObjectId>,
    moved: Vec<EvaluationId>,
}

impl Engine {
    /// Creates an engine that resyncs unready parents every `resync`, and every `audit` once resyncs have stopped
    /// finding changes.
    pub fn new(resync: Duration, audit: Duration, seed: Seed) -> Self {
        Engine {
            graph: ChildGraph::default(),
            policies: PolicyTable::default(),
            immediate: VecDeque::new(),
            immediate_since: None,
            is_behind: false,
            postponed: Vec::new(),
            deferred: BTreeSet::new(),
            quiet: DeadlineQueue::default(),
            time_dependent: DeadlineQueue::default(),
            rechecks: DeadlineQueue::default(),
            redeliver: DeadlineQueue::default(),
            conflict_ends: DeadlineQueue::default(),
            resync: ResyncSchedule::new(resync, audit, seed),
            seed: seed.derive(0x1a15),
            tickets: 0,
            standby: false,
            withheld: BTreeSet::new(),
            counts: EvaluationCounts::default(),
            polls: 0,
            drafted: Vec::new(),
            moved: Vec::new(),
        }
    }

    /// Sets a policy that is new or changed, or removes it (`None`).
    pub fn set_policy(&mut self, now: Time, id: PolicyId, policy: Option<EnginePolicy>) {
        self.policies.reserve_policy(id);
        let names = policy.as_ref().is_some_and(|p| p.expects_names);
        self.set_changed_rule_groups(now, id, 0);
        self.policies.set_policy(id, policy);
        for roll in self.evaluations_under(id) {
            self.graph.track_names(roll, names);
            // The answer of another policy that used the same id is not an answer of this one.
            self.graph.advance_stage(roll, StageEvent::Outdated);
        }
        self.update_list_gate(now, id);
        for roll in self.evaluations_under(id) {
            self.propagate_doubt(roll);
        }
    }

    /// Sets the list and watch state of a kind.
    pub fn set_kind_state(&mut self, now: Time, kind: KindId, state: KindState) {
        if !self.policies.set_kind_state(kind, state) {
            return;
        }
        if state != KindState::Listing {
            self.clear_changed_rule(now, kind);
        }
        for policy in self.policies.policies_over(kind) {
            self.update_list_gate(now, policy);
        }
    }

    /// Returns the list and watch state of a kind.
    pub fn kind_state(&self, kind: KindId) -> KindState {
        self.policies.kind_state(kind)
    }

    fn update_list_gate(&mut self, now: Time, id: PolicyId) {
        let Some(gate) = self.policies.update_list_gate(id) else { return };
        if gate != ListGate::Closed {
            for roll in self.evaluations_under(id) {
                self.enqueue_evaluation(roll, now, ChangeOrigin::External);
            }
        }
        self.resume_all_deferred(now);
    }

    fn evaluations_under(&self, policy: PolicyId) -> Vec<EvaluationId> {
        self.graph.all_evaluations().filter(|(_, r)| r.policy == policy).map(|(id, _)| id).collect()
    }

    /// Returns `true` if all kinds that the policy rests on have been listed.
    pub fn is_open(&self, policy: PolicyId) -> bool {
        self.policies.is_open(policy)
    }

    /// Says whether changes are known that were not observed yet. While there are, nothing turns True: what time alone seems to
    /// prove they may contradict.
    pub fn set_behind(&mut self, is_behind: bool) {
        self.is_behind = is_behind;
    }

    /// Takes an object whose verdict changes with time and is due: it has to be observed again.
    pub fn take_due_recheck(&mut self, now: Time) -> Option<ObjectId> {
        self.rechecks.take_due(now)
    }

    /// Takes an unready parent whose resync is due.
    pub fn take_due_resync(&mut self, now: Time) -> Option<ObjectId> {
        while let Some(parent) = self.resync.take_due(now) {
            let unready = self.is_parent_unready(parent);
            if let Some(p) = self.graph.parent_mut(parent) {
                p.resync = if unready { ResyncStage::Resynced } else { ResyncStage::Outside };
            }
            if unready {
                return Some(parent);
            }
            self.resync.withdraw_key(parent);
        }
        None
    }

    /// Number of parents enrolled in the resync. A parent that has become ready leaves when its next resync is due.
    pub fn unready_parent_count(&self) -> usize {
        self.resync.len()
    }

    /// Returns the time of the next poll if nothing is observed before.
    pub fn next_deadline(&self) -> Option<Time> {
        let rolls = [self.immediate_since, self.quiet.next_deadline(), self.time_dependent.next_deadline()];
        let objects = [
            self.rechecks.next_deadline(),
            self.redeliver.next_deadline(),
            self.conflict_ends.next_deadline(),
            self.resync.next_due(),
        ];
        rolls.into_iter().chain(objects).flatten().min()
    }

    /// Takes the counters since the last call.
    pub fn take_counts(&mut self) -> EvaluationCounts {
        std::mem::take(&mut self.counts)
    }
}

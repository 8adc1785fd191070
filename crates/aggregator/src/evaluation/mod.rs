//! Evaluation of one parent under one policy: tallies of its children by level, and the unready ones.

mod generation_phase;
mod unready_set;

use std::collections::{BTreeMap, BTreeSet};

use readiness::rollup::{ChildWeight, LevelTally, ParentReason};
use readiness::{Level, Time};
use timer::DebounceState;

pub(crate) use generation_phase::GenerationPhase;
pub(crate) use unready_set::{UnreadyEntry, UnreadySet};

use crate::types::{AnswerView, HandledEvidence, ObjectId, PolicyAnswer, PolicyId};

/// Evaluation of one parent under one policy.
#[derive(Clone, Debug)]
pub(crate) struct ParentEvaluation {
    pub(crate) parent: ObjectId,
    pub(crate) policy: PolicyId,
    /// Tallies by group; a group without children has none.
    pub(crate) groups: Vec<(u8, LevelTally)>,
    /// Every unready child. **Invariant:** contains no ready child.
    pub(crate) unready: UnreadySet,
    /// Children with an expected name, kept only if the policy expects names.
    pub(crate) named_children: BTreeSet<(u8, u64, ObjectId)>,
    /// The policy expects names.
    pub(crate) tracks_names: bool,
    /// Number of edges to this evaluation; one without edges and without a parent is dropped.
    pub(crate) edges: u32,
    /// Number of edges that are not counted because they would close a cycle.
    pub(crate) cyclic: u32,
    /// Answer on the parent as last observed.
    pub(crate) view: Option<AnswerView>,
    pub(crate) evidence: HandledEvidence,
    pub(crate) deleting: bool,
    pub(crate) phase: GenerationPhase,
    /// Time of the last creation, deletion or spec change of a child.
    pub(crate) children_changed_at: Time,
    /// Time at which a child last appeared.
    pub(crate) child_appeared_at: Time,
    /// Time at which the operator was first observed to have handled this generation, if it reports that.
    pub(crate) handled_at: Time,
    /// Time since which all children have been ready; `None` while they are not.
    pub(crate) all_ready_since: Option<Time>,
    /// Time since which an expected child has been missing.
    pub(crate) missing_since: Option<Time>,
    pub(crate) debounce: DebounceState<Time>,
    /// The last answer.
    pub(crate) answer: Option<PolicyAnswer>,
    /// Last published reason: the one on the parent, or the one returned by [`crate::Engine::take_changed_answers`].
    pub(crate) last_published: Option<ParentReason>,
    /// The answer was evaluated by this process, not restored from the parent.
    pub(crate) evaluated: bool,
    /// The answer withdraws one that rested on a changed rule.
    pub(crate) rule_changed: bool,
    /// The answer is ready, but later observations that await evaluation contradict it, or nothing has proven it since it
    /// was restored.
    pub(crate) in_doubt: bool,
    /// The evaluation waits for a child that is itself a parent to be evaluated.
    pub(crate) deferred: bool,
    /// Nothing is written for this evaluation, so no condition records its state before this process started: until it
    /// has settled once, its state is unknown.
    pub(crate) unsettled: bool,
    /// Something other than the parent itself has changed.
    pub(crate) external_change: bool,
    /// Queues that contain the evaluation: debounced, or changing with time alone.
    pub(crate) queued: EvaluationQueues,
    /// Poll of the last evaluation, and the number of evaluations in it.
    pub(crate) poll_evaluations: (u32, u8),
}

/// Flags for the queues that contain an evaluation, so that removal needs no search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EvaluationQueues {
    /// Due in the next poll.
    pub(crate) immediate: bool,
    /// Debounced.
    pub(crate) quiet: bool,
    /// The answer changes with time alone.
    pub(crate) time_dependent: bool,
}

impl ParentEvaluation {
    pub(crate) fn new(parent: ObjectId, policy: PolicyId) -> Self {
        ParentEvaluation {
            parent,
            policy,
            groups: Vec::new(),
            unready: UnreadySet::default(),
            named_children: BTreeSet::new(),
            tracks_names: false,
            edges: 0,
            cyclic: 0,
            view: None,
            evidence: HandledEvidence::Silent,
            deleting: false,
            phase: GenerationPhase::default(),
            children_changed_at: Time::default(),
            child_appeared_at: Time::default(),
            handled_at: Time::default(),
            all_ready_since: None,
            missing_since: None,
            debounce: DebounceState::default(),
            answer: None,
            last_published: None,
            evaluated: false,
            rule_changed: false,
            in_doubt: false,
            deferred: false,
            unsettled: false,
            external_change: false,
            queued: EvaluationQueues::default(),
            poll_evaluations: (0, 0),
        }
    }

    /// Returns the weight of this evaluation if its parent is itself a child.
    pub(crate) fn as_weight(&self) -> ChildWeight {
        match self.answer {
            // Known regardless of everything else.
            _ if self.deleting => ChildWeight { level: Level::Terminating, terminal: false },
            _ if self.in_doubt => ChildWeight { level: Level::Progressing, terminal: false },
            Some(answer) => ChildWeight { level: answer.reason.child_level(), terminal: answer.stalled },
            None => ChildWeight { level: Level::Unknown, terminal: false },
        }
    }

    pub(crate) fn group_tally(&self, group: u8) -> LevelTally {
        self.find_group_tally(group).copied().unwrap_or_default()
    }

    pub(crate) fn find_group_tally(&self, group: u8) -> Option<&LevelTally> {
        self.groups.iter().find(|(g, _)| *g == group).map(|(_, tally)| tally)
    }

    fn group_tally_mut(&mut self, group: u8) -> &mut LevelTally {
        let at = self.groups.iter().position(|(g, _)| *g == group).unwrap_or_else(|| {
            self.groups.push((group, LevelTally::default()));
            self.groups.len() - 1
        });
        &mut self.groups[at].1
    }

    /// Adds a child.
    pub(crate) fn add_child(&mut self, trouble: UnreadyEntry) {
        self.group_tally_mut(trouble.group).add_child(trouble.weight);
        if trouble.weight.level != Level::Ready {
            self.unready.insert(trouble);
        }
    }

    /// Removes a child; the entry has to equal the one that was added.
    pub(crate) fn remove_child(&mut self, trouble: UnreadyEntry) {
        self.group_tally_mut(trouble.group).remove_child(trouble.weight);
        if trouble.weight.level != Level::Ready {
            self.unready.remove(trouble);
        }
    }

    /// Returns the tallies by group, without empty ones.
    pub(crate) fn nonempty_tallies(&self) -> BTreeMap<u8, LevelTally> {
        self.groups.iter().copied().filter(|(_, t)| t.total_count() > 0).collect()
    }
}

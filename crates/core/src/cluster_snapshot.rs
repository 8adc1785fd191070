//! State of all parents as plain values: collected by the loop in one walk and turned into text elsewhere, so that a
//! page costs the loop next to nothing.

use std::collections::BTreeMap;

use aggregator::{ChildOf, GroupRole, KindId, ObjectId, PolicyAnswer, PolicyId};
use readiness::rollup::LevelTally;
use readiness::{Level, Time};

use super::{Core, PolicySummary};

/// Answer of one policy about one parent.
#[derive(Clone, Copy, Debug)]
pub struct ParentAnswer {
    /// The parent.
    pub parent: ObjectId,
    /// The policy.
    pub policy: PolicyId,
    /// The answer.
    pub answer: PolicyAnswer,
}

/// State of all parents.
#[derive(Clone, Debug, Default)]
pub struct ClusterSnapshot {
    /// Time of the walk.
    pub now: Time,
    /// All answers.
    pub answers: Vec<ParentAnswer>,
    /// Edges from parents to children.
    pub edges: Vec<ChildOf>,
    /// Summaries of policies.
    pub policies: BTreeMap<PolicyId, PolicySummary>,
    /// Kinds: display name, and the same with the group.
    pub kinds: BTreeMap<KindId, (String, String)>,
}

/// Details of one answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParentDetail {
    /// The message of its condition.
    pub message: String,
    /// Verdicts of its children, by the groups of the policy.
    pub groups: Vec<GroupTally>,
}

/// Current verdicts of one group of children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupTally {
    /// The kind.
    pub kind: String,
    /// Minimum number expected.
    pub min: u32,
    /// Maximum number expected.
    pub max: Option<u32>,
    /// Optional: shown, not counted.
    pub optional: bool,
    /// Number of children per verdict, without zeros, worst first.
    pub at: Vec<(Level, u32)>,
}

impl Core {
    /// Collects the state of all parents.
    pub fn cluster_snapshot(&self, now: Time) -> ClusterSnapshot {
        let standing = |roll: aggregator::EvaluationState<'_>| ParentAnswer {
            parent: roll.parent,
            policy: roll.policy,
            answer: roll.answer,
        };
        ClusterSnapshot {
            now,
            answers: self.engine.evaluation_states().map(standing).collect(),
            edges: self.engine.counted_children().collect(),
            policies: self.policies.clone(),
            kinds: self.kinds.all().clone(),
        }
    }

    /// Collects the details of one answer; empty if it no longer exists.
    pub fn parent_detail(&self, parent: ObjectId, policy: PolicyId, now: Time) -> ParentDetail {
        let Some(answer) = self.engine.answer_of(parent, policy) else { return ParentDetail::default() };
        let groups = self.policies.get(&policy).map_or(&[][..], |words| &words.groups);
        let group = |(at, words): (u8, &super::GroupSummary)| {
            let tally = self.engine.group_tally(parent, policy, at);
            GroupTally {
                kind: words.kind.clone(),
                min: words.min,
                max: words.max,
                optional: self.engine.group_role(policy, at) == Some(GroupRole::Optional),
                at: level_counts(&tally),
            }
        };
        ParentDetail {
            message: self.render_message(parent, policy, answer, now),
            groups: (0..=u8::MAX).zip(groups).map(group).collect(),
        }
    }
}

fn level_counts(tally: &LevelTally) -> Vec<(Level, u32)> {
    Level::ALL.into_iter().map(|level| (level, tally.count_at(level))).filter(|(_, n)| *n > 0).collect()
}

//! State of all parents as plain values: collected by the loop in one walk and turned into text elsewhere, so that a
//! page costs the loop next to nothing.

use std::collections::BTreeMap;

use aggregator::{ChildOf, EvaluationState, GroupRole, KindId, ObjectId, PolicyAnswer, PolicyId};
use readiness::rollup::LevelTally;
use readiness::{Level, Time};

use super::causes::CauseFinder;
use super::fleet_numbers::FleetNumbers;
use super::policy_summary::{GroupSummary, PolicySummary};
use super::render::ConditionRenderer;

/// Answer of one policy about one parent.
#[derive(Clone, Copy, Debug)]
pub struct ParentAnswer {
    /// The parent.
    pub parent: ObjectId,
    /// The policy.
    pub policy: PolicyId,
    /// The answer.
    pub answer: PolicyAnswer,
    /// Time since which the parent has not been ready, where that is known.
    pub not_ready_since: Option<Time>,
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

impl ClusterSnapshot {
    /// Collects the state of all parents.
    pub(super) fn collect(from: CauseFinder<'_>, numbers: &FleetNumbers, now: Time) -> ClusterSnapshot {
        let answer = |state: EvaluationState<'_>| ParentAnswer {
            parent: state.parent,
            policy: state.policy,
            answer: state.answer,
            not_ready_since: numbers.not_ready_since((state.parent, state.policy)),
        };
        ClusterSnapshot {
            now,
            answers: from.engine.evaluation_states().map(answer).collect(),
            edges: from.engine.counted_children().collect(),
            policies: from.policies.clone(),
            kinds: from.kinds.all().clone(),
        }
    }
}

impl ParentDetail {
    /// Collects the details of one answer; empty if it no longer exists.
    pub(super) fn collect(
        from: ConditionRenderer<'_>,
        parent: ObjectId,
        policy: PolicyId,
        now: Time,
    ) -> ParentDetail {
        let CauseFinder { engine, policies, .. } = from.causes;
        let Some(answer) = engine.answer_of(parent, policy) else { return ParentDetail::default() };
        let groups = policies.get(&policy).map_or(&[][..], |summary| &summary.groups);
        let group = |(at, summary): (u8, &GroupSummary)| GroupTally {
            kind: summary.kind.clone(),
            min: summary.min,
            max: summary.max,
            optional: engine.group_role(policy, at) == Some(GroupRole::Optional),
            at: level_counts(&engine.group_tally(parent, policy, at)),
        };
        ParentDetail {
            message: from.render_message(parent, policy, answer, now),
            groups: (0..=u8::MAX).zip(groups).map(group).collect(),
        }
    }
}

fn level_counts(tally: &LevelTally) -> Vec<(Level, u32)> {
    Level::ALL.into_iter().map(|level| (level, tally.count_at(level))).filter(|(_, n)| *n > 0).collect()
}

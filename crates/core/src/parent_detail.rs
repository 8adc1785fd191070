//! Details of one parent as plain values, for a page.

use aggregator::{GroupRole, ObjectId, PolicyId};
use readiness::rollup::LevelTally;
use readiness::{Level, Time};

use super::causes::CauseFinder;
use super::policy_summary::GroupSummary;
use super::render::ConditionRenderer;

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

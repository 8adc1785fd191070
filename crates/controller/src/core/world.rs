//! Where everybody stands, in numbers: taken by the loop in one walk, made into words elsewhere, so that a page costs the
//! loop next to nothing.

use std::collections::BTreeMap;

use aggregator::{Answer, ChildOf, KindId, ObjectId, PolicyId, Role};
use readiness::rollup::Tally;
use readiness::{Level, Time};

use super::{Core, PolicyWords};

/// One policy's answer about one parent.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// The parent.
    pub parent: ObjectId,
    /// The policy.
    pub policy: PolicyId,
    /// What it says.
    pub answer: Answer,
}

/// Everybody.
#[derive(Clone, Debug, Default)]
pub struct World {
    /// When.
    pub now: Time,
    /// All answers.
    pub standings: Vec<Standing>,
    /// Who counts for whom.
    pub edges: Vec<ChildOf>,
    /// Policies in words.
    pub policies: BTreeMap<PolicyId, PolicyWords>,
    /// Kinds: what people call them, and the same with the group.
    pub kinds: BTreeMap<KindId, (String, String)>,
}

/// What is said of one parent beyond its answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The message of its condition.
    pub message: String,
    /// How its children stand, by the groups of the policy.
    pub groups: Vec<GroupNow>,
}

/// One group of children as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupNow {
    /// The kind.
    pub kind: String,
    /// At least so many are expected.
    pub min: u32,
    /// At most so many.
    pub max: Option<u32>,
    /// Only shown.
    pub optional: bool,
    /// How many stand at each level that anybody stands at, worst first.
    pub at: Vec<(Level, u32)>,
}

impl Core {
    /// Everybody, now.
    pub fn world(&self, now: Time) -> World {
        let standing = |roll: aggregator::RollState<'_>| Standing {
            parent: roll.parent,
            policy: roll.policy,
            answer: roll.answer,
        };
        World {
            now,
            standings: self.engine.rolls().map(standing).collect(),
            edges: self.engine.edges().collect(),
            policies: self.policies.clone(),
            kinds: self.kinds.clone(),
        }
    }

    /// What is said of one parent; empty where nothing is, any more.
    pub fn words(&self, parent: ObjectId, policy: PolicyId, now: Time) -> Words {
        let Some(answer) = self.engine.answer(parent, policy) else { return Words::default() };
        let groups = self.policies.get(&policy).map_or(&[][..], |words| &words.groups);
        let group = |(at, words): (usize, &super::GroupWords)| {
            let tally = self.engine.tally(parent, policy, at as u8);
            GroupNow {
                kind: words.kind.clone(),
                min: words.min,
                max: words.max,
                optional: self.engine.role(policy, at as u8) == Some(Role::Optional),
                at: standing(&tally),
            }
        };
        Words {
            message: self.message(parent, policy, answer, now),
            groups: groups.iter().enumerate().map(group).collect(),
        }
    }
}

fn standing(tally: &Tally) -> Vec<(Level, u32)> {
    Level::ALL.into_iter().map(|level| (level, tally.at(level))).filter(|(_, n)| *n > 0).collect()
}

//! One policy's view of one parent: how many children stand where, and what keeps it from being ready.

mod phase;
mod troubles;

use std::collections::{BTreeMap, BTreeSet};

use readiness::rollup::{ParentReason, Tally, Weight};
use readiness::{Level, Time};
use timer::Touched;

pub(crate) use phase::Phase;
pub(crate) use troubles::{Trouble, Troubles};

use crate::types::{Answer, AnswerView, Evidence, ObjectId, PolicyId};

/// One policy's roll of one parent's children.
#[derive(Clone, Debug)]
pub(crate) struct Roll {
    pub(crate) parent: ObjectId,
    pub(crate) policy: PolicyId,
    /// Tallies by group; a group without children has none.
    pub(crate) groups: Vec<(u8, Tally)>,
    /// Every child that is not ready. **Invariant:** a ready child is not in here.
    pub(crate) troubles: Troubles,
    /// Children with a name that is expected, kept only where the policy expects names.
    pub(crate) named: BTreeSet<(u8, u64, ObjectId)>,
    /// Its policy expects names.
    pub(crate) naming: bool,
    /// How many edges end here; a roll without edges and without a parent is dropped.
    pub(crate) edges: u32,
    /// Edges that are not counted because they would close a cycle.
    pub(crate) cyclic: u32,
    /// What the parent says, once it was seen.
    pub(crate) view: Option<AnswerView>,
    pub(crate) evidence: Evidence,
    pub(crate) deleting: bool,
    pub(crate) phase: Phase,
    /// When a child last was created, deleted or changed its spec.
    pub(crate) stirred: Time,
    /// When a child last appeared.
    pub(crate) appeared: Time,
    /// When its operator was first seen to have handled this generation, where it says so.
    pub(crate) proven: Time,
    /// Since when all have been well; `None` while they are not.
    pub(crate) well: Option<Time>,
    /// Since when an expected child has been missing.
    pub(crate) missing: Option<Time>,
    pub(crate) touched: Touched<Time>,
    /// The last answer.
    pub(crate) answer: Option<Answer>,
    /// What was last known to have been said: by the parent itself, or in [`crate::Engine::take_turns`].
    pub(crate) known: Option<ParentReason>,
    /// That answer is our own, not one restored from what the parent says.
    pub(crate) judged: bool,
    /// That answer takes back what rested on a rule that is another one now.
    pub(crate) withdrawn: bool,
    /// It was answered to be well, but what was seen since, and waits to be judged, says otherwise.
    pub(crate) doubted: bool,
    /// It waits for a parent below it to be judged.
    pub(crate) held: bool,
    /// Nothing is written of it, so that nothing tells what it was before this process began: until it has settled once,
    /// it is not known to be otherwise.
    pub(crate) mute: bool,
    /// What holds it back may be put into other words than before.
    pub(crate) reworded: bool,
    /// Something other than the parent itself has moved.
    pub(crate) provoked: bool,
    /// It is in the queue of what is judged once it is quiet, or of what changes by itself.
    pub(crate) waits: Waits,
    /// The poll in which it was judged last, and how often in it.
    pub(crate) climbs: (u32, u8),
}

/// In which queues a roll stands, so that nobody has to look for it there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    /// It is judged in the next poll.
    pub(crate) now: bool,
    /// It is judged once it is quiet.
    pub(crate) quiet: bool,
    /// Its answer changes by itself.
    pub(crate) date: bool,
}

impl Roll {
    pub(crate) fn new(parent: ObjectId, policy: PolicyId) -> Self {
        Roll {
            parent,
            policy,
            groups: Vec::new(),
            troubles: Troubles::default(),
            named: BTreeSet::new(),
            naming: false,
            edges: 0,
            cyclic: 0,
            view: None,
            evidence: Evidence::Silent,
            deleting: false,
            phase: Phase::default(),
            stirred: Time::default(),
            appeared: Time::default(),
            proven: Time::default(),
            well: None,
            missing: None,
            touched: Touched::default(),
            answer: None,
            known: None,
            judged: false,
            withdrawn: false,
            doubted: false,
            held: false,
            mute: false,
            reworded: false,
            provoked: false,
            waits: Waits::default(),
            climbs: (0, 0),
        }
    }

    /// How this roll counts where its parent is itself a child.
    pub(crate) fn weight(&self) -> Weight {
        match self.answer {
            // Known whatever else is not.
            _ if self.deleting => Weight { level: Level::Terminating, terminal: false },
            _ if self.doubted => Weight { level: Level::Progressing, terminal: false },
            Some(answer) => Weight { level: answer.reason.level(), terminal: answer.stalled },
            None => Weight { level: Level::Unknown, terminal: false },
        }
    }

    pub(crate) fn tally(&self, group: u8) -> Tally {
        self.tally_of(group).copied().unwrap_or_default()
    }

    pub(crate) fn tally_of(&self, group: u8) -> Option<&Tally> {
        self.groups.iter().find(|(g, _)| *g == group).map(|(_, tally)| tally)
    }

    fn tally_mut(&mut self, group: u8) -> &mut Tally {
        let at = self.groups.iter().position(|(g, _)| *g == group).unwrap_or_else(|| {
            self.groups.push((group, Tally::default()));
            self.groups.len() - 1
        });
        &mut self.groups[at].1
    }

    /// Counts a child.
    pub(crate) fn enter(&mut self, trouble: Trouble) {
        self.tally_mut(trouble.group).add(trouble.weight);
        if trouble.weight.level != Level::Ready {
            self.troubles.insert(trouble);
        }
    }

    /// Counts a child no more; `trouble` as it entered.
    pub(crate) fn leave(&mut self, trouble: Trouble) {
        self.tally_mut(trouble.group).remove(trouble.weight);
        if trouble.weight.level != Level::Ready {
            self.troubles.remove(trouble);
        }
    }

    /// The tallies by group, without those that are empty.
    pub(crate) fn groups_sorted(&self) -> BTreeMap<u8, Tally> {
        self.groups.iter().copied().filter(|(_, t)| t.total() > 0).collect()
    }
}

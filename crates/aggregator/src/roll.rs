//! One policy's view of one parent: how many children stand where, and what keeps it from being ready.

use std::collections::BTreeSet;

use readiness::Time;
use readiness::rollup::{ParentReason, Status, Tally, Weight};
use timer::Touched;

use crate::types::{Answer, AnswerView, Evidence, KindId, ObjectId, PolicyId, Told};

/// A child that is not ready, in the order in which trouble is told: worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Trouble {
    pub(crate) weight: Weight,
    pub(crate) group: u8,
    pub(crate) kind: KindId,
    pub(crate) child: ObjectId,
}

/// Where a parent's generation stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Phase {
    /// Which generation this is about.
    pub(crate) generation: u64,
    /// When it was first seen.
    pub(crate) since: Time,
    /// The parent itself says something about this generation: the first word has arrived.
    pub(crate) announced: bool,
    /// Its operator has handled it: children may be judged.
    pub(crate) handled: bool,
}

impl Phase {
    /// Of a generation that is first seen `now`, where the parent says `told` about it already.
    ///
    /// What it says survives a restart, how long it has been so does not always: `lastTransitionTime` moves with the
    /// status alone, so that an Unknown may be older than the generation that it is about. True and False are not: the
    /// first word about a generation is Unknown. A limit that was passed stays passed, and no other is taken for passed.
    pub(crate) fn new(generation: u64, now: Time, told: Option<Told>) -> Phase {
        let since = match told.map(|t| (t.reason, t.since)) {
            Some((ParentReason::OperatorSilent | ParentReason::DeadlineExceeded, _)) => Time::default(),
            Some((reason, since)) if shows_handled(reason) && reason.status() != Status::Unknown => {
                since.min(now)
            }
            _ => now,
        };
        let handled = told.is_some_and(|t| shows_handled(t.reason));
        Phase { generation, since, announced: false, handled }
    }
}

/// Is this said only of a generation that its operator has handled?
fn shows_handled(reason: ParentReason) -> bool {
    !matches!(
        reason,
        ParentReason::ChildrenPending
            | ParentReason::OperatorSilent
            | ParentReason::TemplateFailed
            | ParentReason::RuleChanged
            | ParentReason::Terminating
    )
}

/// One policy's roll of one parent's children.
#[derive(Clone, Debug)]
pub(crate) struct Roll {
    pub(crate) parent: ObjectId,
    pub(crate) policy: PolicyId,
    /// Tallies by group; a group without children has none.
    pub(crate) groups: Vec<(u8, Tally)>,
    /// Every child that is not ready. **Invariant:** a ready child is not in here.
    pub(crate) troubles: BTreeSet<Trouble>,
    /// Children with a name that is expected, kept only where the policy expects names.
    pub(crate) named: BTreeSet<(u8, u64, ObjectId)>,
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
    /// Since when all have been well; `None` while they are not.
    pub(crate) well: Option<Time>,
    /// Since when an expected child has been missing.
    pub(crate) missing: Option<Time>,
    pub(crate) touched: Touched<Time>,
    /// The last answer.
    pub(crate) answer: Option<Answer>,
    /// That answer is our own, not one restored from what the parent says.
    pub(crate) judged: bool,
    /// It was answered to be well, but what was seen since, and waits to be judged, says otherwise.
    pub(crate) doubted: bool,
    /// What holds it back may be put into other words than before.
    pub(crate) reworded: bool,
}

impl Roll {
    pub(crate) fn new(parent: ObjectId, policy: PolicyId) -> Self {
        Roll {
            parent,
            policy,
            groups: Vec::new(),
            troubles: BTreeSet::new(),
            named: BTreeSet::new(),
            edges: 0,
            cyclic: 0,
            view: None,
            evidence: Evidence::Silent,
            deleting: false,
            phase: Phase::default(),
            stirred: Time::default(),
            appeared: Time::default(),
            well: None,
            missing: None,
            touched: Touched::default(),
            answer: None,
            judged: false,
            doubted: false,
            reworded: false,
        }
    }

    /// How this roll counts where its parent is itself a child.
    pub(crate) fn weight(&self) -> Weight {
        match self.answer {
            _ if self.doubted => Weight { level: readiness::Level::Progressing, terminal: false },
            Some(answer) => Weight { level: answer.reason.level(), terminal: answer.stalled },
            None => Weight { level: readiness::Level::Unknown, terminal: false },
        }
    }

    pub(crate) fn tally(&self, group: u8) -> Tally {
        self.groups.iter().find(|(g, _)| *g == group).map(|(_, t)| *t).unwrap_or_default()
    }

    fn tally_mut(&mut self, group: u8) -> &mut Tally {
        let at = self.groups.iter().position(|(g, _)| *g == group).unwrap_or_else(|| {
            self.groups.push((group, Tally::default()));
            self.groups.len() - 1
        });
        &mut self.groups[at].1
    }

    pub(crate) fn enter(&mut self, trouble: Trouble) {
        self.tally_mut(trouble.group).add(trouble.weight);
        if trouble.weight.level != readiness::Level::Ready {
            self.troubles.insert(trouble);
        }
    }

    pub(crate) fn leave(&mut self, trouble: Trouble) {
        self.tally_mut(trouble.group).remove(trouble.weight);
        if trouble.weight.level != readiness::Level::Ready {
            self.troubles.remove(&trouble);
        }
    }

    /// The tallies by group, without those that are empty.
    pub(crate) fn groups_sorted(&self) -> std::collections::BTreeMap<u8, Tally> {
        self.groups.iter().copied().filter(|(_, t)| t.total() > 0).collect()
    }
}

//! What has changed of all parents, for a reader that keeps a view of them: the loop hands out what moved since the reader
//! last asked, and walks all parents only when it begins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aggregator::{Engine, EvaluationState, KindId, ObjectId, PolicyAnswer, PolicyId};
use readiness::Time;

use super::fleet_numbers::FleetNumbers;
use super::kind_names::KindNames;
use super::policy_summary::PolicySummary;

/// Names of kinds and policies.
#[derive(Clone, Debug, Default)]
pub struct ClusterNames {
    /// Kinds: display name, and the same with the group.
    pub kinds: BTreeMap<KindId, (String, String)>,
    /// Policies.
    pub policies: BTreeMap<PolicyId, String>,
}

impl ClusterNames {
    /// Display name of a kind.
    pub fn kind_name(&self, kind: KindId) -> &str {
        self.kinds.get(&kind).map_or("object", |(name, _)| name)
    }

    /// Display name of a kind, with its group.
    pub fn kind_label(&self, kind: KindId) -> &str {
        self.kinds.get(&kind).map_or("object", |(_, label)| label)
    }

    /// Name of a policy.
    pub fn policy_name(&self, policy: PolicyId) -> &str {
        self.policies.get(&policy).map_or("", String::as_str)
    }
}

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

/// What has changed of all parents.
#[derive(Clone, Debug, Default)]
pub struct ParentChanges {
    /// Number of these changes: who asks for what came after it has seen them.
    pub number: u64,
    /// Time at which they were taken.
    pub now: Time,
    /// Everything is told, and whatever the reader holds is void.
    pub is_whole: bool,
    /// Parents of which something changed, or of whose descendants.
    pub changed: BTreeSet<ObjectId>,
    /// All answers about these parents; about all parents if everything is told.
    pub answers: Vec<ParentAnswer>,
    /// Names of kinds and policies.
    pub names: Arc<ClusterNames>,
}

/// Which parents have changed since a reader last asked. Without a reader nothing is recorded.
#[derive(Debug, Default)]
pub(super) struct ParentFeed {
    /// Number of the changes that were last taken.
    number: u64,
    /// Number of the changes with which the reader began; `None` without a reader.
    began: Option<u64>,
    /// Changed parents, with the number of the changes to which they belong.
    changed: BTreeMap<ObjectId, u64>,
    names: Option<Arc<ClusterNames>>,
}

impl ParentFeed {
    /// Records changed parents.
    pub(super) fn record_changed(&mut self, parents: &[ObjectId]) {
        if self.began.is_some() {
            self.changed.extend(parents.iter().map(|parent| (*parent, self.number + 1)));
        }
    }

    /// A name has changed: everything is told anew.
    pub(super) fn forget_names(&mut self) {
        self.names = None;
        self.end();
    }

    /// The reader is gone.
    pub(super) fn end(&mut self) {
        (self.began, self.changed) = (None, BTreeMap::new());
    }

    /// Takes what came after the changes of this number. An answer that got lost is asked for again by the same number.
    pub(super) fn take_changes(
        &mut self,
        after: Option<u64>,
        from: FeedSources<'_>,
        now: Time,
    ) -> ParentChanges {
        let names = self.names.get_or_insert_with(|| Arc::new(from.collect_names())).clone();
        let after = after.filter(|after| self.began.is_some_and(|began| began <= *after));
        self.number += 1;
        let mut changes = ParentChanges {
            number: self.number,
            now,
            is_whole: after.is_none(),
            changed: BTreeSet::new(),
            answers: Vec::new(),
            names,
        };
        let Some(after) = after else {
            (self.began, self.changed) = (Some(self.number), BTreeMap::new());
            changes.answers = from.engine.evaluation_states().map(|state| from.answer(&state)).collect();
            return changes;
        };
        self.changed.retain(|_, number| *number > after);
        changes.changed = from.with_ancestors(self.changed.keys().copied().collect());
        let states = changes.changed.iter().flat_map(|parent| from.engine.reader().states_of(*parent));
        changes.answers = states.map(|state| from.answer(&state)).collect();
        changes
    }
}

/// What changes are told from.
#[derive(Clone, Copy)]
pub(super) struct FeedSources<'a> {
    pub(super) engine: &'a Engine,
    pub(super) numbers: &'a FleetNumbers,
    pub(super) kinds: &'a KindNames,
    pub(super) policies: &'a BTreeMap<PolicyId, PolicySummary>,
}

impl FeedSources<'_> {
    fn answer(self, state: &EvaluationState<'_>) -> ParentAnswer {
        ParentAnswer {
            parent: state.parent,
            policy: state.policy,
            answer: state.answer,
            not_ready_since: self.numbers.not_ready_since((state.parent, state.policy)),
        }
    }

    fn collect_names(self) -> ClusterNames {
        ClusterNames {
            kinds: self.kinds.all().clone(),
            policies: self.policies.iter().map(|(id, summary)| (*id, summary.name.clone())).collect(),
        }
    }

    /// These parents with all above them: their trees show what is below.
    fn with_ancestors(self, mut climbing: Vec<ObjectId>) -> BTreeSet<ObjectId> {
        let mut all = BTreeSet::new();
        while let Some(parent) = climbing.pop() {
            if all.insert(parent) {
                let above = self.engine.reader().counted_parents(parent);
                climbing.extend(above.into_iter().map(|(owner, _)| owner));
            }
        }
        all
    }
}

//! Objects as the API server stores them, and the view of a parent shown to the engine.

use aggregator::{
    AnswerExtras, AnswerView, EntriesDigest, HandledEvidence, KindId, ObjectId, ParentView, PolicyId,
    ReportedFailure, SelectorId, SpecMark, WrittenAnswer,
};
use readiness::Time;
use readiness::rollup::ChildWeight;

use crate::conditions::hash;
use crate::conditions::{Status, digest};

/// An object as the API server stores it.
#[derive(Clone, Debug)]
pub(crate) struct StoredObject {
    pub(crate) id: ObjectId,
    pub(crate) uid: u32,
    pub(crate) kind: KindId,
    pub(crate) weights: Vec<ChildWeight>,
    pub(crate) generation: u32,
    /// How many of its generations were scalings beside its operator.
    pub(crate) scaled: u32,
    pub(crate) created: Time,
    /// Owner references: policy, group and name of the parent.
    pub(crate) owners: Vec<(PolicyId, u8, String)>,
    /// Label links: policy, group and selector.
    pub(crate) labels: Vec<(PolicyId, u8, SelectorId)>,
    /// Selectors lent to its owners. An object that lends has no labels.
    pub(crate) lends: Vec<(PolicyId, SelectorId)>,
    /// The object is gone and counts by its remembered outcome.
    pub(crate) remembered: bool,
    /// Weight of the object from that time on.
    pub(crate) then: Option<(Time, ChildWeight)>,
    pub(crate) parent: Option<ParentState>,
}

/// State of an object that is a parent.
impl StoredObject {
    /// Somebody beside its operator sets the number of its replicas.
    pub(crate) fn scale(&mut self) {
        self.generation += 1;
        self.scaled += 1;
    }

    pub(crate) fn spec_mark(&self) -> SpecMark {
        let low = |generation: u32| u16::try_from(generation).unwrap();
        SpecMark { generation: low(self.generation), wanted_by_operator: low(self.generation - self.scaled) }
    }
}

#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "facts of an object, none of which rules another one out")]
pub(crate) struct ParentState {
    pub(crate) policies: Vec<PolicyId>,
    pub(crate) evidence: HandledEvidence,
    pub(crate) deleting: bool,
    /// Time from which its deletion is stuck.
    pub(crate) stuck_at: Option<Time>,
    pub(crate) owned: bool,
    pub(crate) unrendered: bool,
    /// No `Stalled` is written beside its conditions.
    pub(crate) stalled_unrecorded: bool,
    pub(crate) selects: Vec<(PolicyId, SelectorId)>,
    pub(crate) expects: Vec<(PolicyId, u8, String)>,
    /// Minimum number of children by group, computed from the parent.
    pub(crate) counts: Vec<(u8, u32)>,
    pub(crate) status: Status,
    /// Failure that its own status reports.
    pub(crate) reported_failure: ReportedFailure,
}

impl ParentState {
    fn extras(&self, policy: PolicyId) -> AnswerExtras {
        let expects = self.expects.iter().filter(|(p, _, _)| *p == policy);
        AnswerExtras {
            selects: self.selects.iter().filter(|(p, _)| *p == policy).map(|(_, s)| *s).collect(),
            expects: expects.map(|(_, group, name)| (*group, hash(name))).collect(),
            counts: self.counts.clone(),
            deletion_stuck_at: self.stuck_at.filter(|_| self.deleting),
            reported_failure: self.reported_failure,
        }
    }

    pub(crate) fn view(&self, object: &StoredObject) -> ParentView {
        let generation = u64::from(object.generation);
        let answer = |policy: &PolicyId| {
            let told = self.status.get(policy);
            AnswerView {
                policy: *policy,
                written: told.map(|e| WrittenAnswer {
                    reason: e.reason,
                    status: Some(e.status()),
                    since: e.since,
                    stalled: e.stalled && !self.stalled_unrecorded,
                }),
                is_about_generation: told.is_some_and(|e| u64::from(e.about) == generation),
                owned_by_other: self.owned,
                template_failed: self.unrendered,
                stalled_unrecorded: self.stalled_unrecorded,
                extras: self.extras(*policy).into_boxed(),
            }
        };
        ParentView {
            generation,
            evidence: self.evidence,
            deleting: self.deleting,
            deletion_unexplained: false,
            status_shape: 0,
            digest: if self.status.is_empty() { EntriesDigest::default() } else { digest(&self.status) },
            answers: self.policies.iter().map(answer).collect(),
        }
    }
}

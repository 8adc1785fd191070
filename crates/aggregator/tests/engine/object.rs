//! Objects as the API server has them, and how a parent is shown to the engine.

use aggregator::{AnswerView, Digest, Evidence, KindId, ObjectId, ParentView, PolicyId, SelectorId, Told};
use readiness::Time;
use readiness::rollup::Weight;

use crate::server::{Status, digest};
use crate::world::hash;

/// An object as the API server has it.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) id: ObjectId,
    pub(crate) uid: u32,
    pub(crate) kind: KindId,
    pub(crate) weights: Vec<Weight>,
    pub(crate) generation: u32,
    pub(crate) created: Time,
    /// By ownerReference: policy, group and name of the parent.
    pub(crate) owners: Vec<(PolicyId, u8, String)>,
    /// By labels: policy, group and selector.
    pub(crate) labels: Vec<(PolicyId, u8, SelectorId)>,
    /// Its owners select by these too. Whoever lends has no labels.
    pub(crate) lends: Vec<(PolicyId, SelectorId)>,
    /// It is gone, and counts for its owners as it is remembered.
    pub(crate) remembered: bool,
    /// From then on it weighs so.
    pub(crate) then: Option<(Time, Weight)>,
    pub(crate) parent: Option<Parent>,
}

/// What an object is as a parent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parent {
    pub(crate) policies: Vec<PolicyId>,
    pub(crate) evidence: Evidence,
    pub(crate) deleting: bool,
    pub(crate) owned: bool,
    pub(crate) unrendered: bool,
    pub(crate) selects: Vec<(PolicyId, SelectorId)>,
    pub(crate) expects: Vec<(PolicyId, u8, String)>,
    pub(crate) status: Status,
}

impl Parent {
    pub(crate) fn view(&self, object: &Object) -> ParentView {
        let generation = u64::from(object.generation);
        let answer = |policy: &PolicyId| {
            let told = self.status.get(policy);
            AnswerView {
                policy: *policy,
                told: told.map(|e| Told { reason: e.reason, since: e.since, stalled: e.stalled }),
                about: told.map(|e| u64::from(e.about)),
                owned: self.owned,
                selects: self.selects.iter().filter(|(p, _)| p == policy).map(|(_, s)| *s).collect(),
                expects: self
                    .expects
                    .iter()
                    .filter(|(p, _, _)| p == policy)
                    .map(|(_, group, name)| (*group, hash(name)))
                    .collect(),
                unrendered: self.unrendered,
                counts: Box::default(),
            }
        };
        ParentView {
            generation,
            evidence: self.evidence,
            deleting: self.deleting,
            digest: if self.status.is_empty() { Digest::default() } else { digest(&self.status) },
            answers: self.policies.iter().map(answer).collect(),
        }
    }
}

//! What the server's objects alone tell of a parent: whether it is short of what its policy asks, whatever anybody knows of it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use readiness::Level;
use readiness::rollup::ParentReason;

use super::judged_moment::JudgedMoment;
use super::naive_judge::{NaiveJudge, NaiveWeight};
use crate::scenario::PolicyDef;
use crate::world::{ModelMark, ModelObject, ModelSteadiness};

/// Judges by the server's objects. In doubt a parent is ready: where it is one of a policy that may keep True for a while, or
/// whose operator may be done.
pub(super) struct StoreShortfall<'a> {
    judge: NaiveJudge<'a>,
    policies: &'a [PolicyDef],
}

impl<'a> StoreShortfall<'a> {
    pub(super) fn new(at: &JudgedMoment<'a>, models: &'a [Rc<ModelObject>]) -> StoreShortfall<'a> {
        let judge = NaiveJudge {
            scenario: at.scenario,
            models,
            now: at.now,
            unjudged: BTreeMap::new(),
            counted: None,
        };
        StoreShortfall { judge, policies: at.policies }
    }

    /// Returns why a parent is certainly not ready; `None` if it may be.
    pub(super) fn find(&self, policy: &PolicyDef, parent: &ModelObject) -> Option<ParentReason> {
        // By a policy that was never accepted nothing is judged.
        if policy.groups.is_empty() {
            return None;
        }
        if parent.mark == ModelMark::NotYet {
            return Some(ParentReason::ChildrenPending);
        }
        // How long a failure that its status reports may last, the judge of answers knows.
        let parent = ModelObject { failure: None, ..parent.clone() };
        self.judge.sum_children(policy, &parent, &|model| self.weigh_parent(model)).reason
    }

    fn weigh_parent(&self, model: &ModelObject) -> Option<NaiveWeight> {
        let weigh = |policy: &PolicyDef| {
            let reason = self.find(policy, model);
            let is_kept = policy.keeps(reason, ModelSteadiness::Available);
            let level = reason.filter(|_| !is_kept).map_or(Level::Ready, ParentReason::child_level);
            (level, false)
        };
        self.policies.iter().filter(|policy| policy.parent == model.kind).map(weigh).min()
    }
}

/// Returns the kinds of all objects on which the answer of a policy rests, at every depth.
pub(super) fn kinds_below(policies: &[PolicyDef], policy: &PolicyDef) -> BTreeSet<usize> {
    let mut kinds: BTreeSet<usize> = policy.involved_kinds().into_iter().collect();
    loop {
        let below = policies.iter().filter(|of| kinds.contains(&of.parent));
        let more: BTreeSet<usize> = below.flat_map(PolicyDef::involved_kinds).collect();
        if more.is_subset(&kinds) {
            return kinds;
        }
        kinds.extend(more);
    }
}

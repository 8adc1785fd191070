//! Weights with which objects count for their owners.

use readiness::Level;
use readiness::rollup::ChildWeight;

use super::evaluation_table::EvaluationTable;
use super::graph_node::UNSEEN_WEIGHT;
use super::node_table::NodeTable;
use crate::changed_rules::ChangedRuleGroups;
use crate::evaluation::ObservedParent;
use crate::ids::{EvaluationId, ObjectId, PolicyId};

/// Weights of objects for their owners, by what is observed of them and the rules that have changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct EdgeWeights<'g> {
    pub(super) nodes: &'g NodeTable,
    pub(super) evaluations: &'g EvaluationTable,
    pub(super) changed_rules: &'g ChangedRuleGroups,
}

impl EdgeWeights<'_> {
    /// Returns the weight of an object for its owners: from its own evaluation if it is a parent, else from its verdict
    /// unless the rule of that verdict has changed.
    pub(super) fn weigh(&self, id: ObjectId, rule_index: u16, policy: PolicyId, group: u8) -> ChildWeight {
        let own = self.nodes.get(id).map_or(UNSEEN_WEIGHT, |node| node.weight_by(rule_index));
        let evaluated = weight_of_evaluations(self.nodes.evaluations_of(id), self.evaluations);
        let own = if self.changed_rules.has_group(policy, group) { UNSEEN_WEIGHT } else { own };
        weigh_with_evaluations(own, evaluated)
    }
}

/// Returns the weight of an object from its own evaluations if it is an observed parent.
pub(super) fn weight_of_evaluations(
    ids: &[EvaluationId],
    table: &EvaluationTable,
) -> Option<EvaluatedWeight> {
    let observed = ids.iter().filter_map(|id| table.get(*id)?.observed.as_ref());
    let weigh =
        |parent: &ObservedParent| EvaluatedWeight { weight: parent.weight(), deleting: parent.deleting };
    observed.map(weigh).min_by_key(|parent| parent.weight)
}

/// What the evaluations of an observed parent make of it as a child.
#[derive(Clone, Copy, Debug)]
pub(super) struct EvaluatedWeight {
    pub(super) weight: ChildWeight,
    /// It is being deleted.
    pub(super) deleting: bool,
}

/// Returns the weight of an object from its evaluations if it has any. Its own deletion takes precedence over them, by the
/// limits of whoever counts it; nothing else that it says of itself does, because some of that are our own words.
pub(super) fn weigh_with_evaluations(own: ChildWeight, evaluated: Option<EvaluatedWeight>) -> ChildWeight {
    match evaluated {
        Some(parent) if parent.deleting && matches!(own.level(), Level::Stuck | Level::Terminating) => own,
        Some(parent) => parent.weight,
        None => own,
    }
}

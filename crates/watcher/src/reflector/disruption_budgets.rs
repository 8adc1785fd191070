//! PodDisruptionBudgets: how many pods of a workload a voluntary disruption may take away.

use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock};

use readiness::DisruptionBudget;

use crate::plan::LabelMatcher;
use crate::wire::ChildObject;

/// The budgets of each namespace, with the labels of the pods that they cover.
pub type NamespaceBudgets = BTreeMap<Box<str>, Vec<(LabelMatcher, DisruptionBudget)>>;

/// What is known of budgets.
#[derive(Default)]
pub(super) struct BudgetTable(RwLock<NamespaceBudgets>);

impl BudgetTable {
    /// Replaces what is known. What was judged by other budgets is judged by these when it is read next.
    pub(super) fn replace(&self, budgets: NamespaceBudgets) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = budgets;
    }

    /// Returns the budget that covers the pods of a workload; of several the narrowest, because the API server refuses to evict
    /// a pod that several cover.
    pub(super) fn find(&self, workload: &ChildObject) -> Option<DisruptionBudget> {
        let labels = &workload.facts.spec.pod_labels;
        if labels.is_empty() {
            return None;
        }
        let wanted = workload.facts.status.desired.or(workload.facts.spec.replicas).unwrap_or(1);
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let of_namespace = known.get(&workload.meta.namespace)?.iter();
        let covering =
            of_namespace.filter(|(selector, _)| selector.matches(labels)).map(|(_, budget)| *budget);
        covering.min_by_key(|budget| budget.allowance(wanted))
    }
}

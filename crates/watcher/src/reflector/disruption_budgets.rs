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

    /// Returns the budgets that cover the pods of a workload.
    pub(super) fn find_covering(&self, workload: &ChildObject) -> Vec<DisruptionBudget> {
        let labels = &workload.facts.spec.pod_labels;
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let of_namespace = known.get(&workload.meta.namespace).filter(|_| !labels.is_empty());
        let covering = of_namespace.into_iter().flatten().filter(|(selector, _)| selector.matches(labels));
        covering.map(|(_, budget)| *budget).collect()
    }
}

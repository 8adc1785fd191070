//! A PodDisruptionBudget: how it is written, and how a person would read it. It shares nothing with the product's own reading.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::scenario::Dice;

/// Label of a pod by which some budgets tell workloads of a namespace apart.
pub(crate) const SLOT_LABEL: &str = "slot";

/// The budgets, by namespace and name.
pub(crate) type SimBudgets = BTreeMap<&'static str, SimBudget>;

/// One budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SimBudget {
    bound: BudgetBound,
    pods: BudgetedPods,
}

/// What it bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BudgetBound {
    MaxUnavailable(i64),
    MaxUnavailablePercent(i64),
    MinAvailable(i64),
    MinAvailablePercent(i64),
}

/// Whose pods it covers in its namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BudgetedPods {
    All,
    OfSlot(&'static str),
    /// Those without some label: of a workload it is not known what its pods have beside its template.
    Without,
}

impl SimBudget {
    /// Draws a budget.
    pub(crate) fn draw(dice: &mut Dice) -> SimBudget {
        let bound = match dice.below(10) {
            0..4 => BudgetBound::MaxUnavailable(dice.between(0, 4)),
            4..6 => BudgetBound::MaxUnavailablePercent(dice.between(0, 100)),
            6..8 => BudgetBound::MinAvailable(dice.between(0, 4)),
            _ => BudgetBound::MinAvailablePercent(dice.between(0, 100)),
        };
        let pods = match dice.below(10) {
            0..5 => BudgetedPods::All,
            5..7 => BudgetedPods::OfSlot("0"),
            7..9 => BudgetedPods::OfSlot("1"),
            _ => BudgetedPods::Without,
        };
        SimBudget { bound, pods }
    }

    /// Returns the object of this namespace and name, as the API server has it.
    pub(crate) fn manifest(self, namespace: &str, name: &str) -> Value {
        let (field, amount) = match self.bound {
            BudgetBound::MaxUnavailable(pods) => ("maxUnavailable", json!(pods)),
            BudgetBound::MaxUnavailablePercent(percent) => ("maxUnavailable", json!(format!("{percent}%"))),
            BudgetBound::MinAvailable(pods) => ("minAvailable", json!(pods)),
            BudgetBound::MinAvailablePercent(percent) => ("minAvailable", json!(format!("{percent}%"))),
        };
        let selector = match self.pods {
            BudgetedPods::All => json!({}),
            BudgetedPods::OfSlot(slot) => json!({"matchLabels": {SLOT_LABEL: slot}}),
            BudgetedPods::Without => {
                json!({"matchExpressions": [{"key": "canary", "operator": "DoesNotExist"}]})
            }
        };
        json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"namespace": namespace, "name": name, "uid": format!("{namespace}/{name}")},
            "spec": {field: amount, "selector": selector},
        })
    }

    /// Returns `true` if it is known to cover the pods of a template with these labels.
    pub(crate) fn covers(self, labels: &BTreeMap<String, String>) -> bool {
        match self.pods {
            BudgetedPods::All => !labels.is_empty(),
            BudgetedPods::OfSlot(slot) => labels.get(SLOT_LABEL).is_some_and(|of| of == slot),
            BudgetedPods::Without => false,
        }
    }

    /// Returns how many of so many pods may be missing.
    pub(crate) fn may_miss(self, pods: i64) -> i64 {
        let share = |percent: i64| (pods * percent + 99) / 100;
        let missing = match self.bound {
            BudgetBound::MaxUnavailable(most) => most,
            BudgetBound::MaxUnavailablePercent(percent) => share(percent),
            BudgetBound::MinAvailable(least) => pods - least,
            BudgetBound::MinAvailablePercent(percent) => pods - share(percent),
        };
        missing.clamp(0, pods)
    }
}

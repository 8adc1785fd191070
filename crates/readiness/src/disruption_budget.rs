//! What voluntary disruptions may take away.

use crate::facts::ReplicaAmount;

/// A PodDisruptionBudget, as far as it bounds what voluntary disruptions take away of the pods that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisruptionBudget {
    /// So many may be missing (`maxUnavailable`).
    MaxUnavailable(ReplicaAmount),
    /// So many have to be there (`minAvailable`).
    MinAvailable(ReplicaAmount),
}

impl DisruptionBudget {
    /// Number of pods that may be missing of so many. Percentages are rounded up, as the disruption controller of Kubernetes
    /// does with both fields.
    pub fn allowance(self, pods: i64) -> i64 {
        let pods = pods.max(0);
        let allowed = match self {
            DisruptionBudget::MaxUnavailable(most) => most.rounded_up(pods),
            DisruptionBudget::MinAvailable(least) => pods.saturating_sub(least.rounded_up(pods)),
        };
        allowed.clamp(0, pods)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_rounded_up_and_no_more_is_allowed_than_there_is() {
        use DisruptionBudget::{MaxUnavailable, MinAvailable};
        use ReplicaAmount::{Count, Percent};
        for (budget, pods, allowed) in [
            (MaxUnavailable(Count(2)), 5, 2),
            (MaxUnavailable(Count(9)), 5, 5),
            (MaxUnavailable(Percent(50)), 5, 3),
            (MinAvailable(Count(2)), 5, 3),
            (MinAvailable(Count(9)), 5, 0),
            (MinAvailable(Percent(50)), 5, 2),
            (MinAvailable(Percent(i64::MAX)), i64::MAX, 0),
            (MaxUnavailable(Percent(i64::MIN)), 5, 0),
            (MaxUnavailable(Count(1)), -1, 0),
        ] {
            assert_eq!(budget.allowance(pods), allowed, "{budget:?} of {pods}");
        }
    }
}

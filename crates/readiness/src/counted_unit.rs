//! Units of the counts that reasons give.

use crate::reason_token::ReasonToken;

/// Unit of a count that is too low or too high.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CountedUnit {
    /// Replicas that exist.
    Created,
    /// Replicas of the current revision.
    Updated,
    /// Replicas that are ready.
    Ready,
    /// Replicas that have been ready for at least `minReadySeconds`.
    Available,
    /// Replicas that carry all labels of the template.
    Labeled,
    /// Replicas of an old revision or beyond the wanted number; the first number is the number left over.
    Surplus,
    /// Containers of a pod that are ready.
    Containers,
    /// Completions of a Job.
    Completions,
    /// Endpoints that are ready.
    Endpoints,
    /// Pods that a PodDisruptionBudget counts as healthy.
    Healthy,
}

impl CountedUnit {
    pub(crate) const fn token(self) -> ReasonToken {
        match self {
            CountedUnit::Created => ReasonToken::ReplicasNotCreated,
            CountedUnit::Updated => ReasonToken::ReplicasNotUpdated,
            CountedUnit::Ready => ReasonToken::ReplicasNotReady,
            CountedUnit::Available => ReasonToken::ReplicasNotAvailable,
            CountedUnit::Labeled => ReasonToken::ReplicasNotLabeled,
            CountedUnit::Surplus => ReasonToken::ReplicasLeftOver,
            CountedUnit::Containers => ReasonToken::ContainersNotReady,
            CountedUnit::Completions => ReasonToken::CompletionsMissing,
            CountedUnit::Endpoints => ReasonToken::EndpointsNotReady,
            CountedUnit::Healthy => ReasonToken::BudgetNotMet,
        }
    }

    pub(crate) const fn unit_text(self) -> &'static str {
        match self {
            CountedUnit::Created => "replicas created",
            CountedUnit::Updated => "replicas updated",
            CountedUnit::Ready => "replicas ready",
            CountedUnit::Available => "replicas available",
            CountedUnit::Labeled => "replicas labeled",
            CountedUnit::Surplus => "replicas left over",
            CountedUnit::Containers => "containers ready",
            CountedUnit::Completions => "completions",
            CountedUnit::Endpoints => "endpoints ready",
            CountedUnit::Healthy => "pods healthy",
        }
    }
}

//! Events of the policies' part of the simulation.

use crate::world::StoredPolicy;

/// What is listed and watched beside policies and the objects of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListedSet {
    /// Labels of namespaces, by which policies are resolved.
    Namespaces,
    /// Scripts in a ConfigMap, by which they are resolved too.
    Scripts,
    /// ReadinessGroups, for which some policies stand.
    Groups,
    /// PodDisruptionBudgets.
    Budgets,
}

/// A step of a list and watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListStep {
    /// Somebody changes an item.
    Edit,
    /// The service's list begins.
    List,
    /// The next page of that list arrives, or its end.
    Page,
    /// The watch delivers the available changes.
    Deliver,
}

/// A step of another release and of those who write its policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherReleaseStep {
    /// An author takes the next action.
    Act,
    /// It says which policies it has, and what it says on parents.
    Sync,
}

/// A patch of the status of a policy, by which a release says whether it has it.
#[derive(Clone, Debug)]
pub(crate) struct ClaimWrite {
    /// Number of the policy.
    pub(crate) number: usize,
    pub(crate) uid: u64,
    pub(crate) patch: serde_json::Value,
}

/// An event of the policies' part of the simulation.
#[derive(Debug)]
pub(crate) enum PolicyEvent {
    /// An author takes the next action.
    Act,
    /// The service's list of policies begins.
    List,
    /// The next page of that list arrives, or its end.
    Page,
    /// The watch of policies delivers the available changes.
    Deliver,
    /// The server answers whether a policy that is said to be gone is there.
    Confirm(Box<StoredPolicy>),
    /// The status of a policy is written, which keeps the spec that was accepted.
    WriteStatus(Box<StoredPolicy>),
    /// A claim arrives at the server.
    WriteClaim(Box<ClaimWrite>),
    /// Parents are looked through for entries that are to be taken back.
    CheckRelease,
    /// Policies have been refused for long.
    Redecide,
    /// A kind is followed under the plan that holds.
    Follow(usize),
    /// A step of what policies are resolved by.
    Resolve(ListedSet, ListStep),
    /// A plan reaches the loop.
    PlanArrives,
    /// The loop is known to judge by its last plan: kinds that are not followed any more are forgotten.
    Forget,
}

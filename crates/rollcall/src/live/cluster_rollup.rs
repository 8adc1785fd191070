//! Objects that are aggregated by the policies of a cluster.

use policy::offline::OfflineRollup;

/// What is fed to the policies of a cluster, and once more to these and default policies, where targets have no other. What
/// default policies say of their parents changes nothing of what the policies of the cluster say of theirs.
pub(super) struct ClusterRollup {
    pub(super) by_policies: OfflineRollup,
    pub(super) with_defaults: Option<OfflineRollup>,
}

impl ClusterRollup {
    /// The states that are to be fed, each with everything.
    pub(super) fn states_mut(&mut self) -> impl Iterator<Item = &mut OfflineRollup> {
        std::iter::once(&mut self.by_policies).chain(&mut self.with_defaults)
    }
}

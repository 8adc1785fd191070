//! Queries that tests make of the test cluster.

use aggregator::PolicyId;
use readiness::rollup::ParentReason;

use crate::harness::{EngineHarness, POLICY};
use crate::server::ParentEntry;

/// Queries.
impl EngineHarness {
    /// Returns the reason on the parent for the policy, with `!` if it is stalled; empty if there is none.
    pub(crate) fn says(&self, name: &str) -> String {
        self.says_for(name, POLICY)
    }

    /// Returns the reason on the parent for a policy.
    pub(crate) fn says_for(&self, name: &str, policy: PolicyId) -> String {
        let entry = self.objects[name].parent.as_ref().unwrap().status.get(&policy);
        entry.map(ParentEntry::brief).unwrap_or_default()
    }

    /// Returns every write to a parent for the policy: time and reason.
    pub(crate) fn told(&self, name: &str) -> Vec<(i64, String)> {
        let of = self.log.iter().filter(|w| w.parent == name);
        of.map(|w| (w.at, w.after.get(&POLICY).map(ParentEntry::brief).unwrap_or_default())).collect()
    }

    /// Returns the messages of all writes to a parent.
    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        self.told(name).into_iter().map(|(_, words)| words).collect()
    }

    /// Returns the reason that the engine holds, written or not.
    pub(crate) fn reason(&self, name: &str) -> Option<ParentReason> {
        self.engine.answer_of(self.id(name), POLICY).map(|a| a.reason)
    }
}

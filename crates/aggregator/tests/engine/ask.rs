//! Queries that tests make of the test cluster.

use aggregator::PolicyId;
use readiness::rollup::ParentReason;

use crate::conditions::ParentEntry;
use crate::harness::{EngineHarness, POLICY};

/// Queries.
pub(crate) trait HarnessQueries {
    /// Returns the reason on the parent for the policy, with `!` if it is stalled; empty if there is none.
    fn says(&self, name: &str) -> String;

    /// Returns the reason on the parent for a policy.
    fn says_for(&self, name: &str, policy: PolicyId) -> String;

    /// Returns every write to a parent for the policy: time and reason.
    fn told(&self, name: &str) -> Vec<(i64, String)>;

    /// Returns the messages of all writes to a parent.
    fn words(&self, name: &str) -> Vec<String>;

    /// Returns the reason that the engine holds, written or not.
    fn reason(&self, name: &str) -> Option<ParentReason>;
}

impl HarnessQueries for EngineHarness {
    fn says(&self, name: &str) -> String {
        self.says_for(name, POLICY)
    }

    fn says_for(&self, name: &str, policy: PolicyId) -> String {
        let entry = self.objects[name].parent.as_ref().unwrap().status.get(&policy);
        entry.map(ParentEntry::brief).unwrap_or_default()
    }

    fn told(&self, name: &str) -> Vec<(i64, String)> {
        let of = self.server.log.iter().filter(|w| w.parent == name);
        of.map(|w| (w.at, w.after.get(&POLICY).map(ParentEntry::brief).unwrap_or_default())).collect()
    }

    fn words(&self, name: &str) -> Vec<String> {
        self.told(name).into_iter().map(|(_, words)| words).collect()
    }

    fn reason(&self, name: &str) -> Option<ParentReason> {
        self.engine.answer_of(self.id(name), POLICY).map(|a| a.reason)
    }
}

//! What a test asks of the world.

use aggregator::PolicyId;
use readiness::rollup::ParentReason;

use crate::server::Entry;
use crate::world::{POLICY, World};

/// What a test asks.
impl World {
    /// What a parent says for the policy: the reason's word, with `!` where it is stalled; empty where nothing.
    pub(crate) fn says(&self, name: &str) -> String {
        self.says_for(name, POLICY)
    }

    /// What a parent says for a policy.
    pub(crate) fn says_for(&self, name: &str, policy: PolicyId) -> String {
        let entry = self.objects[name].parent.as_ref().unwrap().status.get(&policy);
        entry.map(Entry::brief).unwrap_or_default()
    }

    /// Everything that was written on a parent for the policy: when, and what.
    pub(crate) fn told(&self, name: &str) -> Vec<(i64, String)> {
        let of = self.log.iter().filter(|w| w.parent == name);
        of.map(|w| (w.at, w.after.get(&POLICY).map(Entry::brief).unwrap_or_default())).collect()
    }

    /// The words of everything that was written on a parent.
    pub(crate) fn words(&self, name: &str) -> Vec<String> {
        self.told(name).into_iter().map(|(_, words)| words).collect()
    }

    /// The reason that the engine holds, written or not.
    pub(crate) fn reason(&self, name: &str) -> Option<ParentReason> {
        self.engine.answer(self.id(name), POLICY).map(|a| a.reason)
    }
}

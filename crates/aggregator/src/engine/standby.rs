//! Standby: everything is evaluated and nothing is written. Withheld writes are remembered, so that a new leader writes
//! what its predecessor no longer could, and nothing else.

use readiness::Time;

use super::Engine;

impl Engine {
    /// Enters or leaves standby. In standby, [`crate::DeliveryDecision::Later`] is the answer to every draft that differs from
    /// its parent; after standby exactly those drafts are offered again.
    pub fn set_standby(&mut self, now: Time, standby: bool) {
        if std::mem::replace(&mut self.standby, standby) == standby {
            return;
        }
        for parent in std::mem::take(&mut self.withheld) {
            self.redeliver.set_if_earlier(parent, now);
        }
        if standby {
            // From here on the leader writes under the same field manager; its writes are not conflicts.
            self.graph.parents_mut().for_each(|parent| parent.delivery.forget_own_writes());
        }
    }

    /// Number of parents whose conditions differ from what this replica would write as the leader.
    pub fn withheld_count(&self) -> usize {
        self.withheld.len()
    }
}

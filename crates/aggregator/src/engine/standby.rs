//! Standing by: everything is judged and nothing is sent. What would have been is remembered, so that whoever takes over
//! says at once what its predecessor no longer could, and nothing else.

use readiness::Time;

use super::Engine;

impl Engine {
    /// Whether drafts may be sent from now on. Who stands by is answered [`crate::Decision::Later`] and holds back what a
    /// parent does not say; who takes over offers exactly that again.
    pub fn set_standby(&mut self, now: Time, standby: bool) {
        if std::mem::replace(&mut self.standby, standby) == standby {
            return;
        }
        for parent in std::mem::take(&mut self.held) {
            self.redeliver.arm_by(parent, now);
        }
        if standby {
            // What others write from here on is written by whoever leads, in our name: no fight.
            self.graph.parents_mut().for_each(|parent| parent.delivery.hand_over());
        }
    }

    /// Parents that do not say what they would be told, if this one led.
    pub fn held(&self) -> usize {
        self.held.len()
    }
}

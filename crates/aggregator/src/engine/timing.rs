//! How long things took: what the driver asks for once a write was sent, and once it arrived.

use std::time::Duration;

use readiness::Time;
use readiness::rollup::ParentReason;

use super::Engine;
use crate::delivery::Decision;
use crate::types::{ObjectId, PolicyId};

impl Engine {
    /// Since when what is now sent to `parent` was called for: the first touch of its children, or of itself, that led
    /// to it. `None` where time alone did, or something below its children. Asked once per write.
    pub fn take_touched(&mut self, parent: ObjectId) -> Option<Time> {
        let mut first: Option<Time> = None;
        for at in 0..self.graph.rolls_of(parent).len() {
            let roll = self.graph.rolls_of(parent)[at];
            // Each is asked, so that none is left for the next write.
            if let Some(led) = self.graph.roll_mut(roll).and_then(|r| r.touched.take_led()) {
                first = Some(first.map_or(led, |first| first.min(led)));
            }
        }
        first
    }

    /// What called for a draft is over where nothing is to be said, or where it is said late on purpose.
    pub(super) fn offered(
        &mut self,
        parent: ObjectId,
        decision: Decision,
        again: Option<Time>,
        soon: Duration,
        now: Time,
    ) {
        let late = again.is_some_and(|at| at > now + soon);
        if decision == Decision::Same || late {
            self.take_touched(parent);
        }
    }

    /// Since when the generation of `parent` was known that it has now said to be ready for the first time. `None` where
    /// it does not say so, has said so before, or said something before it was first seen. Asked once per generation.
    pub fn take_first_ready(&mut self, parent: ObjectId, policy: PolicyId) -> Option<Time> {
        let roll = self.graph.roll_mut(self.graph.roll_for(parent, policy)?)?;
        let view = roll.view.as_ref()?;
        let says = view.told.filter(|_| view.about == Some(roll.phase.generation))?;
        let ready = roll.phase.fresh && says.reason == ParentReason::AllChildrenReady;
        roll.phase.fresh &= !ready;
        ready.then_some(roll.phase.since)
    }
}

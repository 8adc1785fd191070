//! Latency measurements, queried by the driver after a write was sent and after it arrived.

use std::time::Duration;

use readiness::Time;
use readiness::rollup::ParentReason;

use super::Engine;
use crate::delivery::DeliveryDecision;
use crate::types::{ObjectId, PolicyId};

impl Engine {
    /// Takes the first touch, of the parent or of its children, that led to the write now sent to `parent`. `None` if
    /// time alone or something below its children led to it. Queried once per write.
    pub fn take_first_touch(&mut self, parent: ObjectId) -> Option<Time> {
        let mut first: Option<Time> = None;
        for at in 0..self.graph.evaluations_of(parent).len() {
            let roll = self.graph.evaluations_of(parent)[at];
            // Every evaluation is queried, so that no touch is left over for the next write.
            if let Some(led) = self.graph.evaluation_mut(roll).and_then(|r| r.debounce.take_first_touch()) {
                first = Some(first.map_or(led, |first| first.min(led)));
            }
        }
        first
    }

    /// Clears the touch of a draft that needs no write, or whose write is delayed on purpose.
    pub(super) fn clear_touch_after_offer(
        &mut self,
        parent: ObjectId,
        decision: DeliveryDecision,
        again: Option<Time>,
        soon: Duration,
        now: Time,
    ) {
        let late = again.is_some_and(|at| at > now + soon);
        if decision == DeliveryDecision::Same || late {
            self.take_first_touch(parent);
        }
    }

    /// Takes the time at which the generation of `parent` was first observed, if the parent now reports it ready for
    /// the first time. `None` if it is not reported ready, was so before, or had conditions before it was first
    /// observed. Queried once per generation.
    pub fn take_first_ready(&mut self, parent: ObjectId, policy: PolicyId) -> Option<Time> {
        let id = self.graph.find_evaluation_for(parent, policy)?;
        let observed = self.graph.evaluation_mut(id)?.observed.as_mut()?;
        let (view, phase) = (&observed.view, &mut observed.phase);
        let says = view.written.filter(|_| view.about_generation == Some(phase.generation))?;
        let ready = phase.fresh && says.reason == ParentReason::AllChildrenReady;
        phase.fresh &= !ready;
        ready.then_some(phase.since)
    }
}

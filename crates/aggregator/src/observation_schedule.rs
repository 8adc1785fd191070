//! Objects that the driver has to observe again without having been told of a change.

use std::time::Duration;

use readiness::Time;
use timer::{DeadlineQueue, ResyncPace, ResyncSchedule, Seed};

use crate::graph::{ChildGraph, GraphNode, ParentNode, ResyncStage};
use crate::ids::ObjectId;

/// Objects whose verdict changes with time alone, and the resync of unready parents.
#[derive(Debug)]
pub(crate) struct ObservationSchedule {
    /// Objects whose verdict changes with time alone.
    rechecks: DeadlineQueue<ObjectId, Time>,
    resync: ResyncSchedule<ObjectId, Time>,
}

impl ObservationSchedule {
    /// Creates a schedule that resyncs unready parents every `resync`, and every `audit` once resyncs have stopped
    /// finding changes.
    pub(crate) fn new(resync: Duration, audit: Duration, seed: Seed) -> Self {
        ObservationSchedule {
            rechecks: DeadlineQueue::default(),
            resync: ResyncSchedule::new(resync, audit, seed),
        }
    }

    /// Sets the time at which the verdict of an object changes with time alone.
    pub(crate) fn set_recheck(
        &mut self,
        id: ObjectId,
        node: &mut GraphNode,
        recheck: Option<Time>,
        now: Time,
    ) {
        let at = recheck.filter(|at| *at > now);
        let had_recheck = std::mem::replace(&mut node.has_recheck, at.is_some());
        match at {
            Some(at) => self.rechecks.set_deadline(id, at),
            None if had_recheck => _ = self.rechecks.clear_deadline(id),
            None => {}
        }
    }

    /// Takes an object whose verdict changes with time and is due.
    pub(crate) fn take_due_recheck(&mut self, now: Time) -> Option<ObjectId> {
        self.rechecks.take_due(now)
    }

    /// Enrolls a parent in the resync if it is not ready.
    pub(crate) fn enroll_unready(&mut self, id: ObjectId, graph: &mut ChildGraph, now: Time) {
        if graph.find_parent(id).is_some_and(|p| p.resync == ResyncStage::Outside)
            && graph.is_parent_unready(id)
            && let Some(stage) = graph.resync_stage_mut(id)
        {
            *stage = ResyncStage::Enrolled;
            self.resync.enroll_key(id, now);
        }
    }

    /// Records that a parent was evaluated: its next resyncs take place at the short period again.
    pub(crate) fn record_evaluated(&mut self, id: ObjectId, parent: &mut ParentNode, now: Time) {
        if parent.resync == ResyncStage::Resynced {
            parent.resync = ResyncStage::Enrolled;
            self.resync.record_change(id, now);
        }
    }

    /// Takes an unready parent whose resync is due. One that has become ready leaves.
    pub(crate) fn take_due_resync(&mut self, now: Time, graph: &mut ChildGraph) -> Option<ObjectId> {
        while let Some(id) = self.resync.take_due(now) {
            let unready = graph.is_parent_unready(id);
            if let Some(stage) = graph.resync_stage_mut(id) {
                *stage = if unready { ResyncStage::Resynced } else { ResyncStage::Outside };
            }
            if unready {
                return Some(id);
            }
            self.resync.withdraw_key(id);
        }
        None
    }

    /// How often an unready parent is resynced.
    pub(crate) fn resync_pace(&self, id: ObjectId) -> ResyncPace {
        self.resync.pace_of(id)
    }

    /// Withdraws an object that is no parent any more.
    pub(crate) fn withdraw_parent(&mut self, id: ObjectId, parent: Option<&mut ParentNode>) {
        self.resync.withdraw_key(id);
        if let Some(parent) = parent {
            parent.resync = ResyncStage::Outside;
        }
    }

    /// Number of parents enrolled in the resync.
    pub(crate) fn enrolled_count(&self) -> usize {
        self.resync.len()
    }

    /// Returns the time at which the next object has to be observed again.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        timer::earliest([self.rechecks.next_deadline(), self.resync.next_due()])
    }
}

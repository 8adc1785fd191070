//! The API server as far as it takes writes of a parent's status, and what becomes of these.

use std::time::Duration;

use aggregator::{DeliveryOutcome, ObjectId, WriteTicket};
use readiness::Time;

use crate::conditions::Status;
use crate::object::StoredObject;

/// Simulated outcome of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteFate {
    /// Accepted, if its preconditions hold.
    Lands,
    /// Refused for now.
    Retry(Duration),
    /// Accepted, but the response is lost.
    Unheard(Duration),
    /// Refused because a precondition failed.
    Conflict,
    /// Accepted, but the server drops the fields.
    Pruned,
}

/// A write in flight.
#[derive(Clone, Debug)]
pub(crate) struct PendingWrite {
    pub(crate) lands: Time,
    pub(crate) name: String,
    pub(crate) id: ObjectId,
    pub(crate) ticket: WriteTicket,
    pub(crate) uid: u32,
    pub(crate) generation: u32,
    pub(crate) before: Status,
    pub(crate) wanted: Status,
    pub(crate) fate: WriteFate,
}

/// A write that the server accepted.
#[derive(Clone, Debug)]
pub(crate) struct AcceptedWrite {
    /// Milliseconds since the start.
    pub(crate) at: i64,
    pub(crate) parent: String,
    pub(crate) uid: u32,
    /// Process that wrote it, counted by restarts.
    pub(crate) life: u32,
    pub(crate) after: Status,
}

/// Takes writes, and remembers those that it accepted.
pub(crate) struct StatusServer {
    /// Duration of a write.
    pub(crate) delay: Duration,
    /// Outcomes of the next writes; all later writes succeed.
    pub(crate) fates: Vec<WriteFate>,
    pub(crate) flights: Vec<PendingWrite>,
    /// Every accepted write.
    pub(crate) log: Vec<AcceptedWrite>,
    /// Each write to a parent increments its generation.
    pub(crate) moved_by_writes: bool,
}

impl StatusServer {
    /// A server at which every write takes 5 ms and succeeds.
    pub(crate) fn new() -> StatusServer {
        StatusServer {
            delay: Duration::from_millis(5),
            fates: Vec::new(),
            flights: Vec::new(),
            log: Vec::new(),
            moved_by_writes: false,
        }
    }

    /// Returns the outcome of the next write.
    pub(crate) fn next_fate(&mut self) -> WriteFate {
        if self.fates.is_empty() { WriteFate::Lands } else { self.fates.remove(0) }
    }

    /// Takes the writes that arrive by then.
    pub(crate) fn take_arrived(&mut self, now: Time) -> Vec<PendingWrite> {
        self.flights.extract_if(.., |f| f.lands <= now).collect()
    }

    /// Handles a write to this object, if there still is one of its name.
    pub(crate) fn accept(
        &mut self,
        write: &PendingWrite,
        object: Option<&mut StoredObject>,
        at: i64,
        life: u32,
    ) -> DeliveryOutcome {
        let Some(object) = object.filter(|o| o.uid == write.uid) else { return DeliveryOutcome::Gone };
        let generation = object.generation;
        let Some(parent) = &mut object.parent else { return DeliveryOutcome::Gone };
        match write.fate {
            WriteFate::Retry(after) => return DeliveryOutcome::Retry(after),
            WriteFate::Conflict => return DeliveryOutcome::Conflict,
            WriteFate::Pruned => return DeliveryOutcome::Pruned,
            WriteFate::Lands | WriteFate::Unheard(_) => {}
        }
        if generation != write.generation || parent.status != write.before {
            return DeliveryOutcome::Conflict;
        }
        assert_ne!(parent.status, write.wanted, "{} says so already", write.name);
        parent.status = write.wanted.clone();
        object.generation += u32::from(self.moved_by_writes);
        let (parent, uid) = (write.name.clone(), write.uid);
        self.log.push(AcceptedWrite { at, parent, uid, life, after: write.wanted.clone() });
        match write.fate {
            WriteFate::Unheard(after) => DeliveryOutcome::Retry(after),
            _ => DeliveryOutcome::Written,
        }
    }
}

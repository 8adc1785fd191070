//! When conditions are written to which parent, and what is withheld while another replica leads.

use std::collections::BTreeSet;
use std::time::Duration;

use readiness::Time;
use timer::{DeadlineQueue, Seed};

use crate::delivery::{DeliveryDecision, DeliveryOutcome, JitterKey, WriteTicket};
use crate::graph::{ChildGraph, ParentNode};
use crate::ids::ObjectId;
use crate::types::{ChangeOrigin, EntriesDigest};

/// What was read from a parent that concerns its delivery.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParentNews {
    /// Digest of the conditions.
    pub(crate) digest: EntriesDigest,
    /// The parent has a new generation.
    pub(crate) begins_anew: bool,
    /// What else its status has is of another shape.
    pub(crate) is_reshaped: bool,
}

/// Deliveries to all parents: each parent's own state is [`ParentNode::delivery`].
#[derive(Debug)]
pub(crate) struct DeliverySchedule {
    seed: Seed,
    /// Parents whose conditions are to be written, by the earliest time of the write.
    redeliver: DeadlineQueue<ObjectId, Time>,
    /// Parents with a write conflict, by the time at which it ends.
    conflict_ends: DeadlineQueue<ObjectId, Time>,
    /// How many writes were asked for, which numbers the next one.
    tickets: u64,
    /// Another replica is the leader.
    standby: bool,
    /// Parents whose conditions differ from what this replica would write, while it is in standby.
    withheld: BTreeSet<ObjectId>,
}

impl DeliverySchedule {
    /// Creates a schedule without parents; `seed` spreads their delays.
    pub(crate) fn new(seed: Seed) -> Self {
        DeliverySchedule {
            seed,
            redeliver: DeadlineQueue::default(),
            conflict_ends: DeadlineQueue::default(),
            tickets: 0,
            standby: false,
            withheld: BTreeSet::new(),
        }
    }

    /// Schedules a draft of a parent at `at`, or earlier if it already is.
    pub(crate) fn schedule_draft(&mut self, id: ObjectId, at: Time) {
        self.redeliver.set_if_earlier(id, at);
    }

    /// Takes a parent whose draft is due.
    pub(crate) fn take_due_draft(&mut self, now: Time) -> Option<ObjectId> {
        self.redeliver.take_due(now)
    }

    /// Compares the conditions read from a parent with those last written.
    pub(crate) fn observe_news(
        &mut self,
        id: ObjectId,
        parent: &mut ParentNode,
        news: ParentNews,
        now: Time,
    ) {
        let before = parent.delivery.clone();
        if news.begins_anew {
            parent.delivery.reset_write_window();
        }
        if news.is_reshaped {
            parent.delivery.retry_refused(now);
        }
        parent.delivery.observe_digest(news.digest, self.jitter_key(id), now);
        if before != parent.delivery {
            self.schedule_draft(id, now);
        }
        self.schedule_conflict_end(id, parent);
    }

    /// Decides whether to write a draft of this digest now. Returns the time at which it is made again, if that is known.
    pub(crate) fn offer_digest(
        &mut self,
        id: ObjectId,
        parent: &mut ParentNode,
        digest: EntriesDigest,
        window: Duration,
        now: Time,
    ) -> (DeliveryDecision, Option<Time>) {
        let ticket = WriteTicket(self.tickets);
        let (decision, again) = if self.standby {
            parent.delivery.compare_digest(digest)
        } else {
            parent.delivery.offer_digest(ticket, digest, window, now)
        };
        self.tickets += u64::from(decision == DeliveryDecision::Send(ticket));
        if self.standby && decision == DeliveryDecision::Later {
            self.withheld.insert(id);
        } else {
            self.withheld.remove(&id);
        }
        parent.origin = ChangeOrigin::PossiblyOwn;
        if let Some(at) = again {
            self.schedule_draft(id, at);
        }
        (decision, again)
    }

    /// Records the outcome of a write; `false` if none of that ticket is on its way to this parent.
    pub(crate) fn settle_write(
        &mut self,
        id: ObjectId,
        parent: &mut ParentNode,
        ticket: WriteTicket,
        outcome: DeliveryOutcome,
        now: Time,
    ) -> bool {
        if !parent.delivery.settle_write(ticket, outcome, self.jitter_key(id), now) {
            return false;
        }
        if outcome != DeliveryOutcome::Gone {
            self.schedule_draft(id, now);
        }
        self.schedule_conflict_end(id, parent);
        true
    }

    /// Enters or leaves standby. Afterwards exactly the drafts that were withheld are due again.
    pub(crate) fn set_standby(&mut self, now: Time, standby: bool, graph: &mut ChildGraph) {
        if std::mem::replace(&mut self.standby, standby) == standby {
            return;
        }
        for parent in std::mem::take(&mut self.withheld) {
            self.redeliver.set_if_earlier(parent, now);
        }
        if standby {
            // From here on the leader writes under the same field manager; its writes are not conflicts.
            graph.change_parents(|parent| parent.delivery.forget_own_writes());
        }
    }

    /// Parents whose conditions differ from what this replica would write as the leader.
    pub(crate) fn withheld(&self) -> impl Iterator<Item = ObjectId> + '_ {
        self.withheld.iter().copied()
    }

    /// Number of parents whose conditions differ from what this replica would write as the leader.
    pub(crate) fn withheld_count(&self) -> usize {
        self.withheld.len()
    }

    /// Ends the conflicts in which nothing was overwritten for long enough.
    pub(crate) fn end_due_conflicts(&mut self, now: Time, graph: &mut ChildGraph) {
        while let Some(id) = self.conflict_ends.take_due(now) {
            if let Some(parent) = graph.parent_mut(id) {
                parent.in_conflict = false;
                parent.delivery.end_conflict();
            }
        }
    }

    /// Forgets a conflict with a parent that was deleted.
    pub(crate) fn clear_conflict_end(&mut self, id: ObjectId) {
        self.conflict_ends.clear_deadline(id);
    }

    /// Forgets the drafts of an object that is no parent any more.
    pub(crate) fn withdraw_parent(&mut self, id: ObjectId) {
        self.redeliver.clear_deadline(id);
        self.withheld.remove(&id);
    }

    /// Returns the time at which the next draft is due or a conflict ends.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        timer::earliest([self.redeliver.next_deadline(), self.conflict_ends.next_deadline()])
    }

    fn schedule_conflict_end(&mut self, id: ObjectId, parent: &mut ParentNode) {
        let at = parent.delivery.conflict_ends_at();
        let awaited = std::mem::replace(&mut parent.in_conflict, at.is_some());
        match at {
            Some(at) => self.conflict_ends.set_deadline(id, at),
            None if awaited => _ = self.conflict_ends.clear_deadline(id),
            None => {}
        }
    }

    fn jitter_key(&self, id: ObjectId) -> JitterKey {
        JitterKey { seed: self.seed, key: u64::from(id.0) }
    }
}

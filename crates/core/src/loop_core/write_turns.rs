//! From the parents whose answers moved to the writes that are handed out.

use aggregator::{DeliveryDecision, DeliveryOutcome, ObjectId, ParentDraft, PolicyAnswer, PolicyId};
use readiness::Time;
use readiness::rollup::ParentReason;
use watcher::reflector::ObjectRow;
use watcher::status::WantedConditions;

use super::Core;
use crate::parent_write::{AddressedWrite, ParentWrite, PlannedWrite, is_told_of_generation};
use crate::write_queue::WriteRank;
use crate::write_schedule::WriteTurn;

/// Number of writes in a row that failed from which on a parent waits behind all others, whatever it says.
const FAILS_OFTEN: u32 = 5;

impl Core {
    /// Rank of a parent that has something to say, and may say True until then.
    pub(super) fn write_rank(&self, parent: ObjectId, says_true: bool) -> WriteRank {
        let failures = self.engine.write_failures(parent);
        let is_ready =
            |(_, answer): &(PolicyId, PolicyAnswer)| answer.reason == ParentReason::AllChildrenReady;
        let withdraws = || says_true && !self.engine.answers_to_write(parent).iter().all(is_ready);
        match failures {
            ..FAILS_OFTEN if withdraws() => WriteRank::Withdrawal,
            0 => WriteRank::Answer,
            _ => WriteRank::Retry,
        }
    }

    /// Renders the parents whose turn has come, while there is room. Those that waited, from before `first_new`, may have
    /// nothing to say any more, or something else.
    pub(super) fn take_writes(&mut self, now: Time, first_new: u64) -> Vec<ParentWrite> {
        let mut writes = Vec::new();
        while let Some(turn) = self.schedule.take_next(first_new, now) {
            if !self.engine.confirm_draft(turn.parent, now) || self.defer_blindness(turn.parent, now) {
                continue;
            }
            if turn.waited {
                self.quote_drafts(&[ParentDraft { parent: turn.parent }], now);
            }
            if let Some(write) = self.prepare_write(now, turn) {
                self.schedule.begin_write(turn, &write, now);
                writes.push(write);
            }
        }
        writes
    }

    /// Puts off what is to be said of a blindness while its end is near, and returns `true` if it did. A new generation is
    /// told at once.
    fn defer_blindness(&mut self, parent: ObjectId, now: Time) -> bool {
        let Some(until) = self.schedule.blindness_waits_until(now) else { return false };
        let answers = self.engine.answers_to_write(parent);
        let is_blind = answers.iter().any(|(_, answer)| answer.reason == ParentReason::WatchStale);
        let defers = is_blind && self.reflector.read_row(parent, is_told_of_generation).unwrap_or(false);
        if defers {
            self.engine.defer_draft(parent, until);
        }
        defers
    }

    /// Moves a parent that conditions only leave to those that are released at a pace, and returns `true` if it did.
    fn defer_release(&mut self, turn: WriteTurn, wanted: &WantedConditions) -> bool {
        let releases = |row: &ObjectRow| row.parent.as_ref().is_some_and(|row| row.status.only_loses(wanted));
        let kind = |row: &ObjectRow| releases(row).then_some(row.kind);
        let Some(kind) = self.reflector.read_row(turn.parent, kind).flatten() else { return false };
        self.schedule.enqueue_release(turn.parent, kind, turn.rank);
        // How long it waits for its pace is no latency.
        self.engine.take_first_touch(turn.parent);
        true
    }

    /// Prepares the write to a parent, if its entries differ from those wanted and its turn has come.
    fn prepare_write(&mut self, now: Time, turn: WriteTurn) -> Option<ParentWrite> {
        let parent = turn.parent;
        let judged = self.engine.parent_generation(parent);
        if !self.is_generation_current(parent, judged) {
            self.observe_objects(now, &[parent]);
            return None;
        }
        if self.engine.is_repeatedly_overwritten(parent) {
            self.reflector.use_fallback_type(parent);
        }
        let wanted = self.render_conditions(parent, now)?;
        if !turn.is_release && self.defer_release(turn, &wanted) {
            return None;
        }
        let digest = watcher::status::conditions_digest(&wanted.entries, wanted.observed_generation);
        let DeliveryDecision::Send(ticket) = self.engine.offer_digest(parent, digest, now) else {
            return None;
        };
        let policies = self.engine.answers_to_write(parent).into_iter().map(|(policy, _)| policy).collect();
        let kind = self.reflector.read_row(parent, |row| row.kind);
        let requires_list = kind.is_some_and(|kind| self.reflector.requires_list(kind));
        let plan = PlannedWrite { parent, ticket, policies, wanted, digest, judged, requires_list };
        let write = self.reflector.read_row(parent, |row| plan.address_to(row));
        match write.unwrap_or(AddressedWrite::Outdated) {
            AddressedWrite::Send(write) => Some(*write),
            AddressedWrite::Unsent(outcome) => {
                self.engine.settle_write(parent, ticket, outcome, now);
                None
            }
            // A newer generation arrived during rendering. Nothing was sent; the parent is evaluated again.
            AddressedWrite::Outdated => {
                self.settle_write(now, parent, ticket, DeliveryOutcome::Conflict);
                None
            }
        }
    }

    /// True if the parent's generation, as last read, is the one that was evaluated. Without an evaluated one, entries
    /// are only removed.
    pub(super) fn is_generation_current(&self, parent: ObjectId, judged: Option<u64>) -> bool {
        let read =
            self.reflector.read_row(parent, |row| row.parent.as_ref().map(|p| p.view.generation)).flatten();
        judged.is_none() || read.is_none() || judged == read
    }
}

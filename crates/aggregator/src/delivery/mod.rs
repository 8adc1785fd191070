//! Delivery of conditions to a parent: compares the wanted conditions with those on the parent, allows one write in
//! flight per parent, backs off after conflicts, and yields if another client keeps overwriting.

mod contention;
mod open_delivery;
mod outcome;
mod token_bucket;

use std::time::Duration;

use readiness::{OptionalTime, Time};
use timer::{Backoff, Seed};

use crate::types::EntriesDigest;
pub use open_delivery::{Brevity, WriteTicket};
use open_delivery::{DeliveryState, OpenDeliverySlot};
pub use outcome::{DeliveryOutcome, UnwrittenBecause};
use token_bucket::WriteTokenBucket;

/// Shortest interval between writes that change only the message.
const MESSAGE_WRITE_INTERVAL: Duration = Duration::from_secs(10);
/// Interval between attempts to write to a parent whose server drops the fields, to detect a mended schema. Nothing tells of
/// that: the parent is as it was.
const PRUNED_RETRY_INTERVAL: Duration = Duration::from_mins(10);
/// The same where the parent held conditions before: an admission webhook that takes them away may be gone any moment.
const STRIPPED_RETRY_INTERVAL: Duration = Duration::from_mins(1);
/// Number of writes in a row that failed, after which a parent counts as one that cannot be written.
const MANY_FAILURES: u32 = 3;
/// Number of consecutive overwrites after which another client counts as overwriting repeatedly.
const REPEATED_OVERWRITE_COUNT: u32 = 3;
/// Shortest interval between writes while yielding.
const YIELDING_WRITE_INTERVAL: Duration = Duration::from_mins(1);
/// Delay before an overwritten condition is written again: none the first time, then doubled with each overwrite.
const OVERWRITE_BACKOFF: Backoff = Backoff { base: Duration::from_secs(1), cap: YIELDING_WRITE_INTERVAL };
/// Span without overwrites after which a write conflict is over.
const CONFLICT_ENDS_AFTER: Duration = Duration::from_mins(5);
/// Delay after repeated conflicts: none the first time, then 50 ms, doubled with each further one.
const CONFLICT_BACKOFF: Backoff = Backoff { base: Duration::from_millis(50), cap: YIELDING_WRITE_INTERVAL };
/// Delay after writes to one parent that failed, were not permitted, or whose outcome is unknown: 1 s, doubled with each further
/// one. A server that has just started permits nobody anything for a moment.
const FAILURE_BACKOFF: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_mins(1) };
/// Time after which more is said again on a parent that took its conditions only briefly. 10 min.
const BREVITY_LASTS: Duration = Duration::from_mins(10);
/// Delay after a write that left the parent invalid, where its status has changed its shape since. 1 s.
const RESHAPED_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Delay after a write that was decided and never sent, or whose effect was not observed. 1 s.
const UNSENT_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Decision on a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryDecision {
    /// The parent already carries exactly these conditions.
    Same,
    /// Write it now; [`crate::Engine::settle_write`] must follow, with this ticket.
    Send(WriteTicket),
    /// Do not write yet. The engine produces the draft again by itself.
    Later,
}

/// Seed and key that make one parent's jitter differ from that of others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JitterKey {
    pub(crate) seed: Seed,
    pub(crate) key: u64,
}

/// Delivery state of one parent, over all its policies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ParentDelivery {
    /// Digest of the conditions on the parent as last read; zero if there are none.
    last_read: EntriesDigest,
    /// Digest, without messages, of the last write that was observed on the parent.
    last_written: Option<u64>,
    /// Time of the last write.
    sent_at: OptionalTime,
    /// Times of the last two writes that were not refused, the older one first.
    recent_writes: [OptionalTime; 2],
    write_tokens: WriteTokenBucket,
    open: OpenDeliverySlot,
}

// Every parent has one for as long as it exists.
const _: () = assert!(size_of::<ParentDelivery>() <= 72);

impl ParentDelivery {
    /// Records the conditions that were read from the parent.
    pub(crate) fn observe_digest(&mut self, told: EntriesDigest, apart: JitterKey, now: Time) {
        if self.last_read == told {
            return;
        }
        self.last_read = told;
        match self.open.state {
            DeliveryState::InFlight { .. } => return,
            DeliveryState::Pruned(_) => self.open.state = DeliveryState::Idle,
            DeliveryState::Idle => {}
        }
        self.confirm_late_write(now);
        if self.last_written.is_some_and(|written| written != told.without_messages) {
            self.record_overwrite(apart, now);
        }
        self.open.compact();
    }

    /// Takes what was last read from the parent for the write of which nobody knew what became, if it is that.
    fn confirm_late_write(&mut self, now: Time) -> bool {
        let is_ours = self.open.unconfirmed == Some(self.last_read);
        if is_ours {
            self.last_written = Some(self.last_read.without_messages);
            self.open.unconfirmed = None;
            self.write_tokens.spend_token(now);
        }
        is_ours
    }

    /// What else the parent's status has is of another shape: what could not be written to it may be now.
    pub(crate) fn retry_refused(&mut self, now: Time) {
        if self.is_pruned() {
            self.open.state = DeliveryState::Idle;
        }
        if self.open.is_invalid {
            let at = self.sent_at.get().map_or(now, |sent| sent + RESHAPED_RETRY_DELAY);
            self.open.not_before = self.open.not_before.map(|held| held.min(at));
        }
        self.open.compact();
    }

    fn record_overwrite(&mut self, apart: JitterKey, now: Time) {
        self.open.overwrites = self.open.overwrites.saturating_add(1);
        self.open.overwritten_at = Some(now);
        self.last_written = None;
        if self.open.overwrites > 1 {
            self.hold_until(
                now + OVERWRITE_BACKOFF.delay_with_exact_cap(self.open.overwrites - 1, apart.seed, apart.key),
            );
        }
    }

    fn hold_until(&mut self, at: Time) {
        self.open.not_before = Some(self.open.not_before.map_or(at, |old| old.max(at)));
    }

    /// Backs off after a conflict. The first conflict is not a failure: the state that was read live may be answered at
    /// once.
    fn back_off(&mut self, apart: JitterKey, now: Time) {
        self.open.conflicts = self.open.conflicts.saturating_add(1);
        if self.open.conflicts > 1 {
            self.hold_until(
                now + CONFLICT_BACKOFF.delay_after(self.open.conflicts - 1, apart.seed, apart.key),
            );
        }
    }

    /// Returns `true` if writes are slowed down because another client keeps overwriting the conditions, or because the
    /// write tokens are exhausted.
    pub(crate) fn is_yielding(&self) -> bool {
        self.is_repeatedly_overwritten() || self.write_tokens.is_exhausted()
    }

    /// Returns `true` if another client keeps overwriting the conditions.
    pub(crate) fn is_repeatedly_overwritten(&self) -> bool {
        self.open.overwrites >= REPEATED_OVERWRITE_COUNT
    }

    /// Time at which the conflict, or the exhaustion of write tokens, ends unless it continues.
    pub(crate) fn conflict_ends_at(&self) -> Option<Time> {
        let echoed = self.sent_at.get().filter(|_| self.write_tokens.is_exhausted());
        self.open.overwritten_at.max(echoed).map(|at| at + CONFLICT_ENDS_AFTER)
    }

    /// Ends the conflict; the next overwrite counts as the first.
    pub(crate) fn end_conflict(&mut self) {
        (self.open.overwrites, self.open.overwritten_at) = (0, None);
        self.open.compact();
        self.write_tokens.refill_all();
    }

    /// Records a change of something other than the parent itself.
    pub(crate) fn mark_external_change(&mut self, now: Time) {
        self.write_tokens.mark_external_change(now);
    }

    /// How briefly the parent is told what there is to say.
    pub(crate) fn brevity(&self, now: Time) -> Brevity {
        self.open.brevity.filter(|(_, until)| now < *until).map(|(brevity, _)| brevity).unwrap_or_default()
    }

    /// Returns `true` unless others keep writing the parent, so that a write which is bound to its version would be forestalled
    /// again.
    pub(crate) fn may_add_types(&self, now: Time) -> bool {
        self.open.contention.may_add_types(now)
    }

    /// Others forestalled a write that added types: it is repeated without them, and backs off where it was sent so already.
    fn withhold_types(&mut self, apart: JitterKey, now: Time) {
        if !self.open.contention.record_forestalled(now) {
            self.back_off(apart, now);
        }
    }

    /// The parent says all that it was to say.
    fn end_contention(&mut self, now: Time) {
        let left = self.open.contention.after_told(now);
        if left != self.open.contention {
            self.open.contention = left;
        }
    }

    /// Returns `true` if the server drops the conditions written to the parent.
    pub(crate) fn is_pruned(&self) -> bool {
        matches!(self.open.state, DeliveryState::Pruned(_))
    }

    /// Returns why the parent cannot be told what there is to say, if it cannot.
    pub(crate) fn unwritten(&self) -> Option<UnwrittenBecause> {
        match () {
            () if self.is_pruned() => Some(UnwrittenBecause::Pruned),
            () if self.open.is_invalid => Some(UnwrittenBecause::Refused),
            () if self.open.failures >= MANY_FAILURES => Some(UnwrittenBecause::Failing),
            () => None,
        }
    }

    /// Lifts the limit of writes per window because the parent has a new spec, which no earlier write may delay.
    pub(crate) fn reset_write_window(&mut self) {
        self.recent_writes = [OptionalTime::NONE; 2];
    }

    /// Decides whether to write `wanted` now. Any `window` contains at most two writes: the leading one and one more.
    /// `Later` without a moment means that the outcome of a write is awaited. A write that goes out bears `ticket`.
    pub(crate) fn offer_digest(
        &mut self,
        ticket: WriteTicket,
        wanted: EntriesDigest,
        window: Duration,
        now: Time,
    ) -> (DeliveryDecision, Option<Time>) {
        match self.open.state {
            DeliveryState::InFlight { .. } => return (DeliveryDecision::Later, None),
            DeliveryState::Idle | DeliveryState::Pruned(_) => {}
        }
        if wanted == self.last_read {
            self.end_contention(now);
            self.open.compact();
            return (DeliveryDecision::Same, self.open.contention.holds_until(now));
        }
        let mut at = self.open.not_before.max(self.recent_writes[0].get().map(|sent| sent + window));
        if self.write_tokens.is_exhausted() {
            at = at.max(self.sent_at.get().map(|sent| sent + YIELDING_WRITE_INTERVAL));
        }
        if self.is_pruned() {
            let interval =
                if self.open.is_stripped { STRIPPED_RETRY_INTERVAL } else { PRUNED_RETRY_INTERVAL };
            at = at.max(self.sent_at.get().map(|sent| sent + interval));
        }
        if wanted.without_messages == self.last_read.without_messages {
            at = at.max(self.sent_at.get().map(|sent| sent + MESSAGE_WRITE_INTERVAL));
        }
        if let Some(at) = at.filter(|at| *at > now) {
            return (DeliveryDecision::Later, Some(at));
        }
        self.open.state = DeliveryState::InFlight { ticket, sent: wanted, basis: self.last_read };
        self.open.not_before = None;
        self.sent_at = now.into();
        (DeliveryDecision::Send(ticket), None)
    }

    /// Like [`ParentDelivery::offer_digest`] in standby: everything that differs from the parent is left for later.
    pub(crate) fn compare_digest(&self, wanted: EntriesDigest) -> (DeliveryDecision, Option<Time>) {
        let same = wanted == self.last_read;
        (if same { DeliveryDecision::Same } else { DeliveryDecision::Later }, None)
    }

    /// Forgets its own writes because another replica writes from now on; changes of that replica do not count as
    /// overwrites.
    pub(crate) fn forget_own_writes(&mut self) {
        (self.last_written, self.open.unconfirmed) = (None, None);
        self.open.compact();
    }

    /// The write of this ticket ended so; `false` where none of that ticket is on its way.
    pub(crate) fn settle_write(
        &mut self,
        ticket: WriteTicket,
        outcome: DeliveryOutcome,
        apart: JitterKey,
        now: Time,
    ) -> bool {
        let DeliveryState::InFlight { ticket: awaited, sent, basis } = self.open.state else { return false };
        if awaited != ticket {
            return false;
        }
        self.open.state = DeliveryState::Idle;
        self.record_refusal(outcome, now);
        self.record_loss(outcome, basis);
        let landed = match outcome {
            DeliveryOutcome::Written | DeliveryOutcome::Unobserved => true,
            DeliveryOutcome::Retry(_) => self.last_read != basis,
            _ => false,
        };
        if landed {
            self.recent_writes = [self.recent_writes[1], self.sent_at];
            self.write_tokens.spend_token(now);
        }
        if outcome == DeliveryOutcome::Written {
            self.open.unconfirmed = None;
        }
        // What stands there is this write, or one before it of which nobody knew what became.
        let is_earlier_one = self.last_read != sent || !landed;
        let met_own_write = self.last_read != basis && is_earlier_one && self.confirm_late_write(now);
        self.count_failure(outcome, landed, apart, now);
        match outcome {
            DeliveryOutcome::Written if self.last_read == sent => {
                self.last_written = Some(sent.without_messages);
                self.open.conflicts = 0;
                self.end_contention(now);
            }
            // Accepted, but the parent shows something else; or another client changes the condition during the write.
            DeliveryOutcome::Written if self.last_read.without_messages != sent.without_messages => {
                self.record_overwrite(apart, now);
            }
            // A server that drops what we write changes nothing: of what is not there any more, somebody took a part away.
            DeliveryOutcome::Conflict | DeliveryOutcome::Contended | DeliveryOutcome::Pruned
                if self.last_read != basis && !met_own_write =>
            {
                self.record_overwrite(apart, now);
            }
            DeliveryOutcome::Contended => self.withhold_types(apart, now),
            // A parent that the server says is gone, and lists all the same, is still there to be written.
            DeliveryOutcome::Written | DeliveryOutcome::Conflict | DeliveryOutcome::Gone => {
                self.back_off(apart, now);
            }
            DeliveryOutcome::Pruned => self.open.state = DeliveryState::Pruned(sent),
            DeliveryOutcome::Retry(_) | DeliveryOutcome::Unobserved | DeliveryOutcome::Unsent
                if self.last_read == sent =>
            {
                self.last_written = Some(sent.without_messages);
            }
            DeliveryOutcome::Retry(_) | DeliveryOutcome::Unobserved => self.await_confirmation(sent),
            DeliveryOutcome::Denied
            | DeliveryOutcome::Invalid
            | DeliveryOutcome::Shortened(_)
            | DeliveryOutcome::Unsent => {}
        }
        self.open.compact();
        true
    }

    /// Nobody knows what became of this write.
    fn await_confirmation(&mut self, sent: EntriesDigest) {
        if self.open.unconfirmed.replace(sent).is_some_and(|earlier| earlier != sent) {
            // Of two such writes either may be what is read next: none of them was overwritten then.
            self.last_written = None;
        }
    }

    /// Records how briefly the parent takes what there is to say, and whether it takes it at all.
    fn record_refusal(&mut self, outcome: DeliveryOutcome, now: Time) {
        match outcome {
            DeliveryOutcome::Shortened(brevity) => self.open.brevity = Some((brevity, now + BREVITY_LASTS)),
            DeliveryOutcome::Invalid => (self.open.is_invalid, self.open.brevity) = (true, None),
            _ => self.open.is_invalid = false,
        }
    }

    /// Records whether the parent has lost what it held before.
    fn record_loss(&mut self, outcome: DeliveryOutcome, basis: EntriesDigest) {
        match outcome {
            DeliveryOutcome::Pruned => self.open.is_stripped |= basis != EntriesDigest::default(),
            DeliveryOutcome::Written => self.open.is_stripped = false,
            _ => {}
        }
    }

    /// Backs off after a failure, longer after each further one. Any other answer of the server, and a write that is known
    /// to have arrived, ends the row of failures.
    fn count_failure(&mut self, outcome: DeliveryOutcome, landed: bool, apart: JitterKey, now: Time) {
        let failures = if landed { 1 } else { self.open.failures.saturating_add(1) };
        let at_least = match outcome {
            DeliveryOutcome::Retry(after) => after,
            DeliveryOutcome::Denied | DeliveryOutcome::Invalid => Duration::ZERO,
            DeliveryOutcome::Unsent => return self.hold_until(now + UNSENT_RETRY_DELAY),
            DeliveryOutcome::Shortened(_) => return,
            DeliveryOutcome::Unobserved => {
                self.open.failures = 0;
                return self.hold_until(now + UNSENT_RETRY_DELAY);
            }
            _ => return self.open.failures = 0,
        };
        self.open.failures = failures;
        self.hold_until(now + FAILURE_BACKOFF.delay_after(failures, apart.seed, apart.key).max(at_least));
    }

    /// Returns `true` if an answer on the parent cannot have been decided since `begun`: no write that was sent since then is known
    /// to have arrived, and none that may arrive yet said the same (`is_sent`). Others may write beside it, so that the whole is
    /// not what was sent.
    pub(crate) fn is_older_than(&self, begun: Time, is_sent: bool) -> bool {
        let since = |at: Option<Time>| at.is_some_and(|at| at >= begun);
        let is_in_flight = is_sent && matches!(self.open.state, DeliveryState::InFlight { .. });
        let may_arrive = since(self.sent_at.get()) && (is_in_flight || self.open.unconfirmed.is_some());
        !may_arrive && !since(self.recent_writes[1].get()) && !since(self.open.overwritten_at)
    }

    /// Number of writes in a row that failed, or were refused after the first, and one where what was written did not stay.
    pub(crate) fn failures(&self) -> u32 {
        let refused = self.open.conflicts.saturating_sub(1);
        self.open.failures.max(refused).max(u32::from(self.is_repeatedly_overwritten()))
    }
}

#[cfg(test)]
mod tests;

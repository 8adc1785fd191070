//! Circuit breaker of writes: whatever the server answers, and for however many parents and kinds, what does not take effect
//! costs it at most twenty requests a second, live reads included ([`FailureBudget`]).
//!
//! A kind whose writes keep failing is probed by one write a second until one succeeds; other kinds go on, and one whose writes
//! take effect does not wait for the budget, either: ten thousand parents of one kind may be denied before it is asked again.
//!
//! A kind begins with few writes at once, and each that succeeds lets one more follow: so few are under way when a server
//! begins to fail, or where many of them fail: after a failure it begins again with few.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregator::{DeliveryOutcome, EntriesDigest, KindId, WriteTicket};
use readiness::Time;

use super::failure_budget::{Deposit, FailureBudget};

/// Number of consecutive failures, without a success between them, that opens the breaker of a kind; as many of whatever kinds
/// open those of all that took part.
const BREAKER_OPENS_AFTER: u32 = 5;
/// Shortest interval between two probes of one kind. 1 s.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Number of writes of one kind that may be under way at first, and again after a while in which none was sent.
const FIRST_WINDOW: usize = 3;
/// Time after a failure in which the window does not grow: longer than an unanswered write may take. 30 s.
const WINDOW_RESTS: Duration = Duration::from_secs(30);
/// Number of consecutive writes of a kind that took effect after which failures elsewhere hold up none of its writes.
const CLEAN_AFTER: u32 = 8;
/// Number of consecutive writes of whatever kinds without effect from which on they do: the server may fail at everything.
const MISSES_OF_OTHERS: u32 = 2;
/// Time without a write after which the window of a kind is reset. 1 s.
const WINDOW_LASTS: Duration = Duration::from_secs(1);

/// Effect of a write on those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WriteEffect {
    /// The write was acknowledged, and the parent shows it, as far as is known.
    Shown,
    /// The write failed or was not answered, and yet the parent shows it.
    Unacknowledged,
    /// It failed: the next one no earlier than after this delay.
    Failed(Duration),
    /// The server has handled the write, and the parent does not show it.
    Refused,
    /// It is not permitted.
    Denied,
    /// It was not sent.
    Unsent,
}

impl WriteEffect {
    /// `is_shown` says whether the parent shows what was sent; `None` if it is gone.
    fn of(outcome: DeliveryOutcome, is_shown: Option<bool>) -> WriteEffect {
        match outcome {
            DeliveryOutcome::Written if is_shown == Some(false) => WriteEffect::Refused,
            DeliveryOutcome::Written | DeliveryOutcome::Unobserved => WriteEffect::Shown,
            DeliveryOutcome::Retry(Duration::ZERO) if is_shown == Some(true) => WriteEffect::Unacknowledged,
            DeliveryOutcome::Retry(after) => WriteEffect::Failed(after),
            DeliveryOutcome::Conflict
            | DeliveryOutcome::Contended
            | DeliveryOutcome::Invalid
            | DeliveryOutcome::Shortened(_)
            | DeliveryOutcome::Pruned
            | DeliveryOutcome::Gone => WriteEffect::Refused,
            DeliveryOutcome::Denied => WriteEffect::Denied,
            DeliveryOutcome::Unsent => WriteEffect::Unsent,
        }
    }

    /// Counts it in two rows: of failures, which any answer ends with which the server has dealt with a write, and of writes
    /// without effect.
    fn count(self, failures: &mut u32, misses: &mut u32) {
        match self {
            WriteEffect::Shown | WriteEffect::Unacknowledged => (*failures, *misses) = (0, 0),
            WriteEffect::Refused => (*failures, *misses) = (0, misses.saturating_add(1)),
            WriteEffect::Denied => *misses = misses.saturating_add(1),
            WriteEffect::Failed(_) => {
                (*failures, *misses) = (failures.saturating_add(1), misses.saturating_add(1));
            }
            WriteEffect::Unsent => {}
        }
    }

    /// Counts it in one of two rows, and ends the other: of writes that took effect and were acknowledged, and of others.
    fn count_acknowledged(self, shown: &mut u32, others: &mut u32) {
        match self {
            WriteEffect::Shown => (*shown, *others) = (shown.saturating_add(1), 0),
            WriteEffect::Unsent => {}
            _ => (*shown, *others) = (0, others.saturating_add(1)),
        }
    }
}

/// Writes of one kind.
#[derive(Clone, Copy, Debug)]
struct KindBreaker {
    consecutive_failures: u32,
    /// Number of consecutive writes that did not take effect, failures among them.
    consecutive_misses: u32,
    /// Number of consecutive writes that took effect.
    consecutive_shown: u32,
    in_flight: usize,
    /// Most writes that may be in flight.
    window: usize,
    /// Time of the last write.
    sent_at: Time,
    /// Time until which the window does not grow.
    rests_until: Time,
    /// Earliest time of the next probe, if the breaker is open.
    probe_at: Time,
}

impl Default for KindBreaker {
    fn default() -> Self {
        KindBreaker {
            consecutive_failures: 0,
            consecutive_misses: 0,
            consecutive_shown: 0,
            in_flight: 0,
            window: FIRST_WINDOW,
            sent_at: Time::default(),
            rests_until: Time::default(),
            probe_at: Time::default(),
        }
    }
}

impl KindBreaker {
    /// True if there is room for one more write: while what is sent, or anything (`elsewhere`), does not take effect, for less
    /// and less.
    fn has_room(self, elsewhere: u32) -> bool {
        let missed = usize::try_from(self.consecutive_misses.max(elsewhere)).unwrap_or(usize::MAX);
        self.in_flight < self.window.saturating_sub(missed).max(1)
    }

    /// Returns `true` if its writes take effect: what fails elsewhere says nothing of them.
    fn is_clean(self) -> bool {
        self.consecutive_shown >= CLEAN_AFTER
    }

    /// Returns `true` if the server goes on and its writes do not take effect: denied, refused, or changed on their way. It leaves
    /// enough for a kind of which nothing is known.
    fn is_refused(self) -> bool {
        self.consecutive_failures == 0 && self.consecutive_misses >= BREAKER_OPENS_AFTER
    }

    fn begin_write(&mut self, now: Time) {
        if self.in_flight == 0 && self.sent_at + WINDOW_LASTS <= now {
            self.window = FIRST_WINDOW;
        }
        self.in_flight += 1;
        self.sent_at = now;
    }

    fn end_write(&mut self, effect: WriteEffect, now: Time) {
        self.in_flight = self.in_flight.saturating_sub(1);
        match effect {
            WriteEffect::Shown if self.rests_until <= now => self.window = self.window.saturating_add(1),
            WriteEffect::Failed(_) => (self.window, self.rests_until) = (FIRST_WINDOW, now + WINDOW_RESTS),
            _ => {}
        }
        effect.count(&mut self.consecutive_failures, &mut self.consecutive_misses);
        effect.count_acknowledged(&mut self.consecutive_shown, &mut 0);
        if let WriteEffect::Failed(after) = effect {
            self.probe_at = self.probe_at.max(now + after.max(PROBE_INTERVAL));
        }
    }
}

/// Write that is in flight.
#[derive(Clone, Copy, Debug)]
struct BegunWrite {
    kind: KindId,
    sent: EntriesDigest,
    deposit: Deposit,
}

/// Breakers of all kinds, and the writes in flight.
#[derive(Debug, Default)]
pub(super) struct WriteBreakers {
    kinds: BTreeMap<KindId, KindBreaker>,
    in_flight: BTreeMap<WriteTicket, BegunWrite>,
    budget: FailureBudget,
    /// Number of consecutive failures of any kinds, without a success between them.
    consecutive_failures: u32,
    /// Number of consecutive writes of any kinds that did not take effect.
    consecutive_misses: u32,
    /// Number of consecutive writes of any kinds that were not acknowledged with what they said, whether or not they landed.
    consecutive_unacknowledged: u32,
}

impl WriteBreakers {
    /// Returns `true` if a write of this kind may be sent now; `retries` if it has failed before and nobody waits for it.
    pub(super) fn may_write(&self, kind: KindId, retries: bool, now: Time) -> bool {
        self.next_write(kind, retries).is_some_and(|at| at <= now)
    }

    /// Time from which a write of this kind may be sent. `None` if an outcome is awaited first.
    pub(super) fn next_write(&self, kind: KindId, retries: bool) -> Option<Time> {
        let is_refused = self.kinds.get(&kind).is_some_and(|breaker| breaker.is_refused());
        let available = self.budget.available_at(retries || is_refused);
        let Some(breaker) = self.kinds.get(&kind) else { return Some(available) };
        if self.is_unhindered(*breaker) {
            return breaker.has_room(self.consecutive_misses).then_some(Time::default());
        }
        if self.is_open(*breaker) {
            return (breaker.in_flight == 0).then(|| breaker.probe_at.max(available));
        }
        breaker.has_room(self.consecutive_misses).then_some(available)
    }

    /// Returns `true` if the writes of this kind need not wait for the budget. Where every second write fails, a few of one kind that
    /// took effect in a row say nothing of those that follow.
    fn is_unhindered(&self, breaker: KindBreaker) -> bool {
        breaker.is_clean() && self.consecutive_unacknowledged < MISSES_OF_OTHERS && !self.budget.fails_often()
    }

    fn is_open(&self, breaker: KindBreaker) -> bool {
        let failures = breaker.consecutive_failures;
        failures >= BREAKER_OPENS_AFTER || failures > 0 && self.consecutive_failures >= BREAKER_OPENS_AFTER
    }

    /// Records a write of these conditions that is sent.
    pub(super) fn begin_write(&mut self, kind: KindId, ticket: WriteTicket, sent: EntriesDigest, now: Time) {
        let is_unhindered = self.kinds.get(&kind).is_some_and(|breaker| self.is_unhindered(*breaker));
        let deposit = if is_unhindered { Deposit::default() } else { self.budget.begin_write(now) };
        self.in_flight.insert(ticket, BegunWrite { kind, sent, deposit });
        self.kinds.entry(kind).or_default().begin_write(now);
        if self.kinds.get(&kind).is_some_and(|breaker| self.is_open(*breaker)) {
            self.kinds.entry(kind).or_default().probe_at = now + PROBE_INTERVAL;
        }
    }

    /// Records the outcome of a write after which the parent shows `shown`. Any answer with which the server has dealt with the
    /// write closes the breaker; what was denied or never sent says nothing about whether the server fails.
    pub(super) fn end_write(
        &mut self,
        ticket: WriteTicket,
        outcome: DeliveryOutcome,
        shown: Option<EntriesDigest>,
        now: Time,
    ) {
        let Some(BegunWrite { kind, sent, deposit }) = self.in_flight.remove(&ticket) else { return };
        let effect = WriteEffect::of(outcome, shown.map(|shown| shown == sent));
        // What lands without an answer takes a live read as well.
        let was_sent = effect != WriteEffect::Unsent;
        self.budget.end_write(deposit, was_sent.then_some(effect == WriteEffect::Shown), now);
        effect.count(&mut self.consecutive_failures, &mut self.consecutive_misses);
        effect.count_acknowledged(&mut 0, &mut self.consecutive_unacknowledged);
        self.kinds.entry(kind).or_default().end_write(effect, now);
    }

    /// Number of writes in flight.
    pub(super) fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }
}

#[cfg(test)]
mod tests;

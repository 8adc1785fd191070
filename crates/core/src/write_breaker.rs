//! Circuit breaker of writes: whatever the server answers, and for however many parents, what it refuses is asked at most eight
//! times a second. Each such write may cost a live read besides.
//!
//! A kind whose writes keep failing is probed by one write a second until one succeeds. Where they are refused (denied, in
//! conflict, dropped, changed on their way), six a second go on, because that may be about some objects alone. So do second
//! attempts for parents that failed while writes to others succeed. Other kinds go on.
//!
//! A kind begins with few writes at once, and each that succeeds lets one more follow: so few are under way when a server
//! begins to fail, or where many of them fail: after a failure it begins again with few.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregator::{DeliveryOutcome, EntriesDigest, KindId, WriteTicket};
use readiness::Time;

/// Number of consecutive failures, without a success between them, that opens the breaker of a kind; as many of whatever kinds
/// open those of all that took part.
const BREAKER_OPENS_AFTER: u32 = 5;
/// Number of consecutive refusals, without a success between them, from which on writes of a kind are spread, as of any
/// kinds those of all that took part; also of second attempts that did not succeed.
const SPREADS_AFTER: u32 = 5;
/// Shortest interval between two probes of one kind. 1 s.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Shortest interval between two probes, spread writes or second attempts, of any kinds: six a second.
const SPREAD_INTERVAL: Duration = Duration::from_millis(165);
/// Number of writes of one kind that may be under way at first, and again after a while in which none was sent.
const FIRST_WINDOW: usize = 4;
/// Time after a failure in which the window does not grow: longer than an unanswered write may take. 30 s.
const WINDOW_RESTS: Duration = Duration::from_secs(30);
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
            DeliveryOutcome::Conflict | DeliveryOutcome::Pruned | DeliveryOutcome::Gone => {
                WriteEffect::Refused
            }
            DeliveryOutcome::Denied => WriteEffect::Denied,
            DeliveryOutcome::Unsent => WriteEffect::Unsent,
        }
    }

    /// The parent shows what was sent.
    fn has_landed(self) -> bool {
        matches!(self, WriteEffect::Shown | WriteEffect::Unacknowledged)
    }
}

/// Writes of one kind.
#[derive(Clone, Copy, Debug)]
struct KindBreaker {
    consecutive_failures: u32,
    consecutive_refusals: u32,
    /// Number of writes to parents that failed before, in a row, none of which succeeded.
    failed_retries: u32,
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
            consecutive_refusals: 0,
            failed_retries: 0,
            in_flight: 0,
            window: FIRST_WINDOW,
            sent_at: Time::default(),
            rests_until: Time::default(),
            probe_at: Time::default(),
        }
    }
}

impl KindBreaker {
    /// True if there is room for one more write: while what is sent, or anything (`elsewhere`), fails or is refused, for less
    /// and less.
    fn has_room(self, elsewhere: u32) -> bool {
        let failed = self.consecutive_failures.saturating_add(self.consecutive_refusals).max(elsewhere);
        let failed = usize::try_from(failed).unwrap_or(usize::MAX);
        self.in_flight < self.window.saturating_sub(failed).max(1)
    }

    fn begin_write(&mut self, now: Time) {
        if self.in_flight == 0 && self.sent_at + WINDOW_LASTS <= now {
            self.window = FIRST_WINDOW;
        }
        self.in_flight += 1;
        self.sent_at = now;
    }

    /// `was_open` if the breaker was open until now: what is refused then is spread at once.
    fn end_write(&mut self, effect: WriteEffect, retries: bool, was_open: bool, now: Time) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if retries && effect != WriteEffect::Unsent {
            let failed = self.failed_retries.saturating_add(1);
            self.failed_retries = if effect.has_landed() { 0 } else { failed };
        }
        match effect {
            WriteEffect::Shown if self.rests_until <= now => self.window = self.window.saturating_add(1),
            WriteEffect::Failed(_) => (self.window, self.rests_until) = (FIRST_WINDOW, now + WINDOW_RESTS),
            _ => {}
        }
        match effect {
            WriteEffect::Shown | WriteEffect::Unacknowledged => {
                (self.consecutive_failures, self.consecutive_refusals) = (0, 0);
            }
            WriteEffect::Failed(_) => {
                self.consecutive_failures = self.consecutive_failures.saturating_add(1);
            }
            WriteEffect::Refused => {
                self.consecutive_failures = 0;
                let refusals = self.consecutive_refusals.saturating_add(1);
                self.consecutive_refusals = if was_open { refusals.max(SPREADS_AFTER) } else { refusals };
            }
            WriteEffect::Denied => {
                self.consecutive_refusals = self.consecutive_refusals.saturating_add(1);
            }
            WriteEffect::Unsent => {}
        }
    }
}

/// Write that is in flight.
#[derive(Clone, Copy, Debug)]
struct BegunWrite {
    kind: KindId,
    sent: EntriesDigest,
    retries: bool,
}

/// Breakers of all kinds, and the writes in flight.
#[derive(Debug, Default)]
pub(super) struct WriteBreakers {
    kinds: BTreeMap<KindId, KindBreaker>,
    in_flight: BTreeMap<WriteTicket, BegunWrite>,
    /// Number of consecutive failures of any kinds, without a success between them.
    consecutive_failures: u32,
    /// Number of consecutive refusals of any kinds, without a success between them.
    consecutive_refusals: u32,
    /// Earliest time of the next probe, spread write or second attempt of any kind.
    probe_at: Time,
}

impl WriteBreakers {
    /// Returns `true` if a write of this kind may be sent now; `retries` if the last one to the same parent failed.
    pub(super) fn may_write(&self, kind: KindId, retries: bool, now: Time) -> bool {
        let Some(breaker) = self.kinds.get(&kind) else { return true };
        breaker.has_room(self.consecutive_trouble())
            && (!self.is_spread(*breaker, retries)
                || self.next_probe(kind, retries).is_some_and(|at| at <= now))
    }

    /// Time from which a kind whose breaker is open may be probed, or a spread write may be sent. `None` if nothing
    /// spreads it, or an outcome is awaited first.
    pub(super) fn next_probe(&self, kind: KindId, retries: bool) -> Option<Time> {
        let breaker = self.kinds.get(&kind).filter(|breaker| self.is_spread(**breaker, retries))?;
        if self.is_open(*breaker) {
            return (breaker.in_flight == 0).then(|| breaker.probe_at.max(self.probe_at));
        }
        breaker.has_room(self.consecutive_trouble()).then_some(self.probe_at)
    }

    /// Number of consecutive writes of any kinds that failed or were refused.
    fn consecutive_trouble(&self) -> u32 {
        self.consecutive_failures.saturating_add(self.consecutive_refusals)
    }

    fn is_open(&self, breaker: KindBreaker) -> bool {
        let failures = breaker.consecutive_failures;
        failures >= BREAKER_OPENS_AFTER || failures > 0 && self.consecutive_failures >= BREAKER_OPENS_AFTER
    }

    /// True if a write is spread, be it a second attempt (`retries`) or a first one.
    fn is_spread(&self, breaker: KindBreaker, retries: bool) -> bool {
        let refusals = breaker.consecutive_refusals;
        self.is_open(breaker)
            || refusals >= SPREADS_AFTER
            || refusals > 0 && self.consecutive_refusals >= SPREADS_AFTER
            || retries && breaker.failed_retries >= SPREADS_AFTER
    }

    /// Records a write of these conditions that is sent.
    pub(super) fn begin_write(
        &mut self,
        kind: KindId,
        ticket: WriteTicket,
        sent: EntriesDigest,
        retries: bool,
        now: Time,
    ) {
        self.in_flight.insert(ticket, BegunWrite { kind, sent, retries });
        self.kinds.entry(kind).or_default().begin_write(now);
        if self.kinds.get(&kind).is_some_and(|breaker| self.is_spread(*breaker, retries)) {
            self.probe_at = now + SPREAD_INTERVAL;
            self.kinds.entry(kind).or_default().probe_at = now + PROBE_INTERVAL;
        }
    }

    /// Records the outcome of a write after which the parent shows `shown`. Any answer with which the server has dealt with the
    /// write closes the breaker; what was denied or never sent says nothing about whether the server fails. Only a write that
    /// is kept ends the spread.
    pub(super) fn end_write(
        &mut self,
        ticket: WriteTicket,
        outcome: DeliveryOutcome,
        shown: Option<EntriesDigest>,
        now: Time,
    ) {
        let Some(BegunWrite { kind, sent, retries }) = self.in_flight.remove(&ticket) else { return };
        let effect = WriteEffect::of(outcome, shown.map(|shown| shown == sent));
        let was_open = self.kinds.get(&kind).is_some_and(|breaker| self.is_open(*breaker));
        match effect {
            WriteEffect::Failed(_) => self.consecutive_failures = self.consecutive_failures.saturating_add(1),
            WriteEffect::Denied | WriteEffect::Unsent => {}
            WriteEffect::Shown | WriteEffect::Unacknowledged | WriteEffect::Refused => {
                self.consecutive_failures = 0;
            }
        }
        match effect {
            WriteEffect::Refused | WriteEffect::Denied => {
                self.consecutive_refusals = self.consecutive_refusals.saturating_add(1);
            }
            WriteEffect::Shown | WriteEffect::Unacknowledged => self.consecutive_refusals = 0,
            WriteEffect::Failed(_) | WriteEffect::Unsent => {}
        }
        if effect == WriteEffect::Refused
            && !self.kinds.get(&kind).is_some_and(|b| self.is_spread(*b, retries))
        {
            // What was sent before it was spread counts, so that in no second there are more than eight.
            let debt = self.probe_at.max(now) + SPREAD_INTERVAL;
            self.probe_at = debt.min(now + SPREAD_INTERVAL * SPREADS_AFTER);
        }
        let breaker = self.kinds.entry(kind).or_default();
        breaker.end_write(effect, retries, was_open, now);
        if let WriteEffect::Failed(after) = effect {
            breaker.probe_at = breaker.probe_at.max(now + after.max(PROBE_INTERVAL));
        }
    }

    /// Number of writes in flight.
    pub(super) fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }
}

#[cfg(test)]
mod tests;

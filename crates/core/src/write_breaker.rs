//! Circuit breaker of writes: a kind whose writes keep failing is probed by one write a second, however many of its
//! parents have something to say, until one succeeds. Where they are denied, ten a second go on, because a denial may be about
//! some objects alone. Other kinds go on.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregator::{DeliveryOutcome, KindId, WriteTicket};
use readiness::Time;

/// Number of consecutive failures, without a success between them, that opens the breaker of a kind.
const BREAKER_OPENS_AFTER: u32 = 5;
/// Number of consecutive denials, without a success between them, from which on writes of a kind are spread.
const SPREADS_AFTER: u32 = 5;
/// Shortest interval between two writes of a kind that is denied. 100 ms.
const DENIED_INTERVAL: Duration = Duration::from_millis(100);
/// Shortest interval between two probes of one kind. 1 s.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Shortest interval between two probes, or writes that are likely denied, of any kinds: at most twenty a second.
const SHARED_PROBE_INTERVAL: Duration = Duration::from_millis(50);

/// Writes of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct KindBreaker {
    consecutive_failures: u32,
    consecutive_denials: u32,
    in_flight: usize,
    /// Earliest time of the next probe.
    probe_at: Time,
}

impl KindBreaker {
    fn is_open(self) -> bool {
        self.consecutive_failures >= BREAKER_OPENS_AFTER
    }

    fn is_denied(self) -> bool {
        self.consecutive_denials >= SPREADS_AFTER
    }

    /// Shortest interval between two writes; `None` if nothing spreads them.
    fn interval(self) -> Option<Duration> {
        let denied = self.is_denied().then_some(DENIED_INTERVAL);
        if self.is_open() { Some(PROBE_INTERVAL) } else { denied }
    }
}

/// Breakers of all kinds, and the writes in flight.
#[derive(Debug, Default)]
pub(super) struct WriteBreakers {
    kinds: BTreeMap<KindId, KindBreaker>,
    in_flight: BTreeMap<WriteTicket, KindId>,
    /// Earliest time of the next probe of any kind.
    probe_at: Time,
}

impl WriteBreakers {
    /// Returns `true` if a write of this kind may be sent now.
    pub(super) fn may_write(&self, kind: KindId, now: Time) -> bool {
        let Some(breaker) = self.kinds.get(&kind) else { return true };
        breaker.interval().is_none() || self.next_probe(kind).is_some_and(|at| at <= now)
    }

    /// Time from which a kind whose breaker is open may be probed, or one that is denied may be written. `None` if nothing
    /// spreads its writes, or a probe is in flight.
    pub(super) fn next_probe(&self, kind: KindId) -> Option<Time> {
        let breaker = self.kinds.get(&kind).filter(|breaker| breaker.interval().is_some())?;
        let awaits_answer = breaker.is_open() && breaker.in_flight > 0;
        (!awaits_answer).then(|| breaker.probe_at.max(self.probe_at))
    }

    /// Records a write that is sent.
    pub(super) fn begin_write(&mut self, kind: KindId, ticket: WriteTicket, now: Time) {
        self.in_flight.insert(ticket, kind);
        let breaker = self.kinds.entry(kind).or_default();
        breaker.in_flight += 1;
        if let Some(interval) = breaker.interval() {
            breaker.probe_at = now + interval;
            self.probe_at = now + SHARED_PROBE_INTERVAL;
        }
    }

    /// Records the outcome of a write. Any answer with which the server has dealt with the write closes the breaker;
    /// what was denied or never sent says nothing about whether the server fails.
    pub(super) fn end_write(&mut self, ticket: WriteTicket, outcome: DeliveryOutcome, now: Time) {
        let Some(kind) = self.in_flight.remove(&ticket) else { return };
        let breaker = self.kinds.entry(kind).or_default();
        breaker.in_flight = breaker.in_flight.saturating_sub(1);
        match outcome {
            DeliveryOutcome::Retry(after) => {
                breaker.consecutive_failures = breaker.consecutive_failures.saturating_add(1);
                if breaker.is_open() {
                    breaker.probe_at = breaker.probe_at.max(now + after.max(PROBE_INTERVAL));
                }
            }
            DeliveryOutcome::Denied => {
                breaker.consecutive_denials = breaker.consecutive_denials.saturating_add(1);
            }
            DeliveryOutcome::Unsent => {}
            DeliveryOutcome::Written
            | DeliveryOutcome::Conflict
            | DeliveryOutcome::Pruned
            | DeliveryOutcome::Gone => {
                (breaker.consecutive_failures, breaker.consecutive_denials) = (0, 0);
            }
        }
    }

    /// Number of writes in flight.
    pub(super) fn in_flight_count(&self) -> usize {
        self.in_flight.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RETRY: DeliveryOutcome = DeliveryOutcome::Retry(Duration::ZERO);
    const WRITTEN: DeliveryOutcome = DeliveryOutcome::Written;

    /// Runs writes of `kinds` kinds, each turn every kind that may, answered at once, in steps of 10 ms; returns the number
    /// of requests within this span.
    fn requests(kinds: u16, outcome: DeliveryOutcome, from: i64, until: i64) -> usize {
        let (mut breakers, mut sent) = (WriteBreakers::default(), 0);
        for at in (0..until).step_by(10) {
            for kind in (0..kinds).map(KindId).collect::<Vec<_>>() {
                if breakers.may_write(kind, Time(at)) {
                    breakers.begin_write(kind, WriteTicket::default(), Time(at));
                    breakers.end_write(WriteTicket::default(), outcome, Time(at));
                    sent += usize::from(at >= from);
                }
            }
        }
        sent
    }

    #[test]
    fn one_probe_a_second_for_a_kind_and_twenty_for_all() {
        for (kinds, outcome, expected) in [
            (1, RETRY, 10),
            (5, RETRY, 50),
            (100, RETRY, 200),
            (1, DeliveryOutcome::Retry(Duration::from_secs(5)), 2),
            (1, DeliveryOutcome::Denied, 100),
            (5, DeliveryOutcome::Denied, 200),
            // Nothing of these says that the server fails.
            (1, WRITTEN, 1_000),
            (1, DeliveryOutcome::Conflict, 1_000),
        ] {
            let sent = requests(kinds, outcome, 10_000, 20_000);
            assert!(sent.abs_diff(expected) <= 1, "{kinds} kinds, {outcome:?}: {sent}");
        }
    }

    #[test]
    fn it_opens_after_failures_in_a_row_and_the_first_success_closes_it() {
        for (outcomes, open) in [
            (&[RETRY; 4][..], false),
            (&[RETRY; 5], true),
            (&[RETRY, RETRY, RETRY, RETRY, WRITTEN, RETRY], false),
            (&[RETRY, RETRY, RETRY, RETRY, DeliveryOutcome::Denied, RETRY], true),
            (&[RETRY, RETRY, RETRY, RETRY, RETRY, WRITTEN], false),
        ] {
            let mut breakers = WriteBreakers::default();
            for outcome in outcomes {
                breakers.begin_write(KindId(1), WriteTicket::default(), Time(0));
                breakers.end_write(WriteTicket::default(), *outcome, Time(0));
            }
            assert_eq!(!breakers.may_write(KindId(1), Time(0)), open, "{outcomes:?}");
            assert!(breakers.may_write(KindId(2), Time(0)), "another kind goes on");
        }
    }

    #[test]
    fn what_is_denied_holds_up_nobody_for_long() {
        let mut breakers = WriteBreakers::default();
        let mut write = |outcome, now| {
            breakers.begin_write(KindId(1), WriteTicket::default(), now);
            breakers.end_write(WriteTicket::default(), outcome, now);
            (breakers.may_write(KindId(1), now), breakers.next_probe(KindId(1)))
        };
        for _ in 0..4 {
            assert_eq!(write(DeliveryOutcome::Denied, Time(0)), (true, None));
        }
        let (may, _) = write(DeliveryOutcome::Denied, Time(0));
        assert!(may, "the next one is due");
        assert_eq!(write(DeliveryOutcome::Denied, Time(0)), (false, Some(Time(100))));
        assert_eq!(write(WRITTEN, Time(100)), (true, None), "one that is permitted ends it");
    }

    #[test]
    fn a_probe_without_an_answer_is_followed_by_no_other() {
        let mut breakers = WriteBreakers::default();
        for _ in 0..5 {
            breakers.begin_write(KindId(1), WriteTicket::default(), Time(0));
            breakers.end_write(WriteTicket::default(), RETRY, Time(0));
        }
        assert_eq!(breakers.next_probe(KindId(1)), Some(Time(1_000)));
        breakers.begin_write(KindId(1), WriteTicket::default(), Time(1_000));
        assert_eq!(
            (breakers.next_probe(KindId(1)), breakers.may_write(KindId(1), Time(9_000))),
            (None, false)
        );
        breakers.end_write(WriteTicket::default(), RETRY, Time(15_000));
        assert_eq!(breakers.next_probe(KindId(1)), Some(Time(16_000)));
    }
}

//! Circuit breaker of writes: whatever the server answers, and for however many parents, what it refuses is asked at most eight
//! times a second. Each such write may cost a live read besides.
//!
//! A kind whose writes keep failing is probed by one write a second until one succeeds. Where they are refused (denied, in
//! conflict, dropped), eight a second go on, because that may be about some objects alone. So do second attempts for parents
//! that failed while writes to others succeed. Other kinds go on.

use std::collections::BTreeMap;
use std::time::Duration;

use aggregator::{DeliveryOutcome, KindId, WriteTicket};
use readiness::Time;

/// Number of consecutive failures, without a success between them, that opens the breaker of a kind.
const BREAKER_OPENS_AFTER: u32 = 5;
/// Number of consecutive refusals, without a success between them, from which on writes of a kind are spread; also of
/// second attempts that did not succeed.
const SPREADS_AFTER: u32 = 5;
/// Shortest interval between two probes of one kind. 1 s.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);
/// Shortest interval between two probes, spread writes or second attempts, of any kinds: at most eight a second.
const SPREAD_INTERVAL: Duration = Duration::from_millis(125);

/// Writes of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct KindBreaker {
    consecutive_failures: u32,
    consecutive_refusals: u32,
    /// Number of writes to parents that failed before, in a row, none of which succeeded.
    failed_retries: u32,
    in_flight: usize,
    /// Earliest time of the next probe.
    probe_at: Time,
}

impl KindBreaker {
    fn is_open(self) -> bool {
        self.consecutive_failures >= BREAKER_OPENS_AFTER
    }

    /// True if a write is spread, be it a second attempt (`retries`) or a first one.
    fn is_spread(self, retries: bool) -> bool {
        self.is_open()
            || self.consecutive_refusals >= SPREADS_AFTER
            || retries && self.failed_retries >= SPREADS_AFTER
    }
}

/// Write that is in flight.
#[derive(Clone, Copy, Debug)]
struct BegunWrite {
    kind: KindId,
    retries: bool,
}

/// Breakers of all kinds, and the writes in flight.
#[derive(Debug, Default)]
pub(super) struct WriteBreakers {
    kinds: BTreeMap<KindId, KindBreaker>,
    in_flight: BTreeMap<WriteTicket, BegunWrite>,
    /// Earliest time of the next probe, spread write or second attempt of any kind.
    probe_at: Time,
}

impl WriteBreakers {
    /// Returns `true` if a write of this kind may be sent now; `retries` if the last one to the same parent failed.
    pub(super) fn may_write(&self, kind: KindId, retries: bool, now: Time) -> bool {
        let Some(breaker) = self.kinds.get(&kind) else { return true };
        !breaker.is_spread(retries) || self.next_probe(kind, retries).is_some_and(|at| at <= now)
    }

    /// Time from which a kind whose breaker is open may be probed, or a spread write may be sent. `None` if nothing
    /// spreads it, or a probe is in flight.
    pub(super) fn next_probe(&self, kind: KindId, retries: bool) -> Option<Time> {
        let breaker = self.kinds.get(&kind).filter(|breaker| breaker.is_spread(retries))?;
        if breaker.is_open() {
            return (breaker.in_flight == 0).then(|| breaker.probe_at.max(self.probe_at));
        }
        Some(self.probe_at)
    }

    /// Records a write that is sent.
    pub(super) fn begin_write(&mut self, kind: KindId, ticket: WriteTicket, retries: bool, now: Time) {
        self.in_flight.insert(ticket, BegunWrite { kind, retries });
        let breaker = self.kinds.entry(kind).or_default();
        breaker.in_flight += 1;
        if breaker.is_spread(retries) {
            breaker.probe_at = now + PROBE_INTERVAL;
            self.probe_at = now + SPREAD_INTERVAL;
        }
    }

    /// Records the outcome of a write. Any answer with which the server has dealt with the write closes the breaker;
    /// what was denied or never sent says nothing about whether the server fails. Only a write that is kept ends the spread.
    pub(super) fn end_write(&mut self, ticket: WriteTicket, outcome: DeliveryOutcome, now: Time) {
        let Some(BegunWrite { kind, retries }) = self.in_flight.remove(&ticket) else { return };
        let breaker = self.kinds.entry(kind).or_default();
        breaker.in_flight = breaker.in_flight.saturating_sub(1);
        if retries && outcome != DeliveryOutcome::Unsent {
            let failed = breaker.failed_retries.saturating_add(1);
            breaker.failed_retries = if outcome.is_accepted() { 0 } else { failed };
        }
        match outcome {
            DeliveryOutcome::Retry(after) => {
                breaker.consecutive_failures = breaker.consecutive_failures.saturating_add(1);
                if breaker.is_open() {
                    breaker.probe_at = breaker.probe_at.max(now + after.max(PROBE_INTERVAL));
                }
            }
            DeliveryOutcome::Denied => {
                breaker.consecutive_refusals = breaker.consecutive_refusals.saturating_add(1);
            }
            DeliveryOutcome::Unsent => {}
            DeliveryOutcome::Conflict | DeliveryOutcome::Pruned | DeliveryOutcome::Gone => {
                breaker.consecutive_failures = 0;
                breaker.consecutive_refusals = breaker.consecutive_refusals.saturating_add(1);
            }
            DeliveryOutcome::Written | DeliveryOutcome::Unobserved => {
                (breaker.consecutive_failures, breaker.consecutive_refusals) = (0, 0);
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
                if breakers.may_write(kind, false, Time(at)) {
                    breakers.begin_write(kind, WriteTicket::default(), false, Time(at));
                    breakers.end_write(WriteTicket::default(), outcome, Time(at));
                    sent += usize::from(at >= from);
                }
            }
        }
        sent
    }

    #[test]
    fn one_probe_a_second_for_a_kind_and_eight_for_all() {
        for (kinds, outcome, expected) in [
            (1, RETRY, 10),
            (5, RETRY, 50),
            (100, RETRY, 77),
            (1, DeliveryOutcome::Retry(Duration::from_secs(5)), 2),
            (1, DeliveryOutcome::Denied, 77),
            (5, DeliveryOutcome::Denied, 77),
            (5, DeliveryOutcome::Conflict, 77),
            (1, DeliveryOutcome::Gone, 77),
            (1, DeliveryOutcome::Pruned, 77),
            (1, WRITTEN, 1_000),
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
                breakers.begin_write(KindId(1), WriteTicket::default(), false, Time(0));
                breakers.end_write(WriteTicket::default(), *outcome, Time(0));
            }
            assert_eq!(!breakers.may_write(KindId(1), false, Time(0)), open, "{outcomes:?}");
            assert!(breakers.may_write(KindId(2), false, Time(0)), "another kind goes on");
        }
    }

    #[test]
    fn what_is_denied_holds_up_nobody_for_long() {
        let mut breakers = WriteBreakers::default();
        let mut write = |outcome, now| {
            breakers.begin_write(KindId(1), WriteTicket::default(), false, now);
            breakers.end_write(WriteTicket::default(), outcome, now);
            (breakers.may_write(KindId(1), false, now), breakers.next_probe(KindId(1), false))
        };
        for _ in 0..4 {
            assert_eq!(write(DeliveryOutcome::Denied, Time(0)), (true, None));
        }
        let (may, _) = write(DeliveryOutcome::Denied, Time(0));
        assert!(may, "the next one is due");
        assert_eq!(write(DeliveryOutcome::Denied, Time(0)), (false, Some(Time(125))));
        assert_eq!(write(WRITTEN, Time(125)), (true, None), "one that is permitted ends it");
    }

    #[test]
    fn a_probe_without_an_answer_is_followed_by_no_other() {
        let mut breakers = WriteBreakers::default();
        for _ in 0..5 {
            breakers.begin_write(KindId(1), WriteTicket::default(), false, Time(0));
            breakers.end_write(WriteTicket::default(), RETRY, Time(0));
        }
        assert_eq!(breakers.next_probe(KindId(1), false), Some(Time(1_000)));
        breakers.begin_write(KindId(1), WriteTicket::default(), false, Time(1_000));
        assert_eq!(
            (breakers.next_probe(KindId(1), false), breakers.may_write(KindId(1), false, Time(9_000))),
            (None, false)
        );
        breakers.end_write(WriteTicket::default(), RETRY, Time(15_000));
        assert_eq!(breakers.next_probe(KindId(1), false), Some(Time(16_000)));
    }

    #[test]
    fn second_attempts_are_spread_while_none_succeeds_though_first_ones_do() {
        let mut breakers = WriteBreakers::default();
        let mut write = |retries, outcome, now| {
            breakers.begin_write(KindId(1), WriteTicket::default(), retries, now);
            breakers.end_write(WriteTicket::default(), outcome, now);
            (breakers.may_write(KindId(1), false, now), breakers.may_write(KindId(1), true, now))
        };
        for _ in 0..4 {
            write(true, RETRY, Time(0));
            assert_eq!(write(false, WRITTEN, Time(0)), (true, true));
        }
        write(true, RETRY, Time(0));
        assert_eq!(write(false, WRITTEN, Time(0)), (true, true), "the next one is due");
        write(true, RETRY, Time(0));
        assert_eq!(write(false, WRITTEN, Time(0)), (true, false));
        assert_eq!(write(true, WRITTEN, Time(125)), (true, true), "one that succeeds ends it");
    }
}

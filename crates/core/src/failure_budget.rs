//! How many requests may be spent on writes that are not acknowledged with what they said, whatever part of all writes they are.
//!
//! A failed write costs two requests: itself, and the live read after it. They come from one token bucket for all kinds, so that
//! no mixture of kinds and of successes among the failures costs the server more than eight a second, and at most
//! twenty in any one. A write that is acknowledged costs nothing, but waits for its turn where others fail: where every second
//! one does, both together take less than twenty a second.

use std::time::Duration;

use readiness::Time;

/// Requests a second that writes without acknowledgement may cost. As one request costs a thousand, this is a gain a millisecond.
const REQUESTS_PER_SECOND: u32 = 8;
/// What one request costs.
const REQUEST_COST: i64 = 1_000;
/// Most that is saved up: four requests.
const MAX_BALANCE: i64 = 4 * REQUEST_COST;
/// What a write without acknowledgement costs, and its read.
const FAILURE_COST: i64 = 2 * REQUEST_COST;
/// Most that is owed, so that failures of a crowd that was under way hold up a first attempt for a second at most.
const MAX_DEBT: i64 = REQUESTS_PER_SECOND as i64 * REQUEST_COST - FAILURE_COST;
/// Number of failures among the remembered outcomes from which on the server as a whole fails often: a quarter of them.
const FAILS_OFTEN_AFTER: u32 = u64::BITS / 4;
/// Number of outcomes that are remembered.
const REMEMBERED: i64 = u64::BITS as i64;

// A second attempt would wait for ever.
const _: () = assert!(2 * FAILURE_COST <= MAX_BALANCE);

/// What a write has paid when it was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Deposit(i64);

/// Token bucket of requests that writes without effect may cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailureBudget {
    balance: i64,
    /// Time up to which the balance has grown.
    as_of: Time,
    /// The last outcomes, one bit each, set where the write was not acknowledged.
    recent: u64,
}

impl Default for FailureBudget {
    fn default() -> Self {
        FailureBudget { balance: MAX_BALANCE, as_of: Time::default(), recent: 0 }
    }
}

impl FailureBudget {
    /// Time from which a write may be sent. A second attempt (`retries`) leaves enough for a first one.
    pub(super) fn available_at(&self, retries: bool) -> Time {
        let spared = if retries { FAILURE_COST } else { 0 };
        let missing = u64::try_from(self.deposit().0 + spared - self.balance).unwrap_or(0);
        self.as_of + Duration::from_millis(missing.div_ceil(u64::from(REQUESTS_PER_SECOND)))
    }

    /// Pays for a write that is sent.
    pub(super) fn begin_write(&mut self, now: Time) -> Deposit {
        self.fill(now);
        let deposit = self.deposit();
        self.balance -= deposit.0;
        deposit
    }

    /// Settles what a write cost; `is_acknowledged` is `None` if it was never sent.
    pub(super) fn end_write(&mut self, deposit: Deposit, is_acknowledged: Option<bool>, now: Time) {
        self.fill(now);
        let cost = if is_acknowledged == Some(false) { FAILURE_COST } else { 0 };
        self.balance = (self.balance + deposit.0 - cost).clamp(-MAX_DEBT, MAX_BALANCE);
        if let Some(is_acknowledged) = is_acknowledged {
            self.recent = self.recent << 1 | u64::from(!is_acknowledged);
        }
    }

    /// Returns `true` if so many of the last writes, of whatever kinds, were not acknowledged that any may be the next.
    pub(super) fn fails_often(&self) -> bool {
        self.recent.count_ones() >= FAILS_OFTEN_AFTER
    }

    /// What a write pays when it is sent: eight times what it is expected to cost, and the whole where every eighth fails.
    fn deposit(&self) -> Deposit {
        let failed = i64::from(self.recent.count_ones());
        Deposit((8 * FAILURE_COST * failed / REMEMBERED).min(FAILURE_COST))
    }

    fn fill(&mut self, now: Time) {
        let elapsed = now.0.saturating_sub(self.as_of.0).max(0);
        let gained = elapsed.saturating_mul(i64::from(REQUESTS_PER_SECOND));
        self.balance = self.balance.saturating_add(gained).min(MAX_BALANCE);
        self.as_of = self.as_of.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGUN: i64 = 1_800_000_000_000;

    /// A server that lets writes fail, and takes this long to answer.
    struct FailingServer {
        /// Every how many-th write fails, as numerator and denominator.
        share: (u64, u64),
        latency: i64,
    }

    /// Times of requests that brought nothing, and of writes that were acknowledged.
    #[derive(Default)]
    struct Played {
        vain: Vec<i64>,
        landed: Vec<i64>,
    }

    impl Played {
        /// Most requests that brought nothing within so many seconds, after those in which failures are met first.
        fn busiest(&self, seconds: i64) -> usize {
            let late: Vec<_> = self.vain.iter().filter(|at| **at >= BEGUN + 10_000).collect();
            let within = |from: &&i64| {
                let span = **from..**from + seconds * 1_000;
                late.iter().filter(|at| span.contains(**at)).count()
            };
            late.iter().map(within).max().unwrap_or_default()
        }
    }

    impl FailingServer {
        /// Sends whatever may be sent, in steps of a millisecond; `retries` says which writes are second attempts.
        fn play(&self, seconds: i64, retries: bool) -> Played {
            let (mut budget, mut played) = (FailureBudget::default(), Played::default());
            let (mut under_way, mut sent) = (Vec::<(i64, i64, bool, Deposit)>::new(), 0_u64);
            // Which writes fail is drawn, so that no rhythm helps.
            let mut drawn = 0x9e37_79b9_7f4a_7c15_u64;
            for now in BEGUN..BEGUN + seconds * 1_000 {
                let (over, open): (Vec<_>, Vec<_>) = under_way.into_iter().partition(|write| write.0 <= now);
                under_way = open;
                for (_, sent_at, fails, deposit) in over {
                    budget.end_write(deposit, Some(!fails), Time(now));
                    if fails {
                        played.vain.extend([sent_at, now]);
                    } else {
                        played.landed.push(now);
                    }
                }
                while under_way.len() < 32 && budget.available_at(retries) <= Time(now) {
                    drawn =
                        drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let fails = (drawn >> 33) % self.share.1 < self.share.0;
                    let deposit = budget.begin_write(Time(now));
                    under_way.push((now + self.latency, now, fails, deposit));
                    sent += 1;
                }
            }
            assert!(sent > 0, "something is tried");
            played
        }
    }

    #[test]
    fn whatever_part_of_the_writes_fails_costs_few_requests_a_second() {
        for share in [(1, 1), (3, 4), (1, 2), (1, 4), (1, 10), (1, 100)] {
            // Of a server that takes its time more is under way when the next one fails.
            for (latency, most) in [(1, 14), (20, 20), (400, 20)] {
                for retries in [false, true] {
                    let played = FailingServer { share, latency }.play(120, retries);
                    let (busiest, lasting) = (played.busiest(1), played.busiest(10));
                    let what = format!("{share:?}, {latency} ms, {retries}");
                    assert!(busiest <= most, "{what}: {busiest} in a second");
                    assert!(lasting <= 92, "{what}: {lasting} in ten seconds");
                }
            }
        }
    }

    #[test]
    fn the_fewer_fail_the_more_is_written() {
        for (share, least) in [((1, 2), 3), ((1, 4), 10), ((1, 10), 30), ((1, 100), 300)] {
            let landed = FailingServer { share, latency: 1 }.play(60, false).landed.len() / 60;
            assert!(landed >= least, "{share:?}: {landed} a second");
        }
        let unhindered = FailingServer { share: (0, 1), latency: 1 }.play(10, false).landed.len();
        assert_eq!(unhindered, 32 * (10_000 - 1), "a server that never fails is held up by nothing");
    }

    #[test]
    fn failures_of_a_crowd_hold_up_the_others_for_a_second_at_most_and_are_forgotten_with_successes() {
        let now = Time(BEGUN);
        let mut budget = FailureBudget::default();
        let crowd: Vec<_> = (0..500).map(|_| budget.begin_write(now)).collect();
        for deposit in crowd {
            budget.end_write(deposit, Some(false), now);
        }
        let available = budget.available_at(false);
        assert!(available <= now + Duration::from_secs(1), "{available:?}");
        for _ in 0..64 {
            let deposit = budget.begin_write(available);
            budget.end_write(deposit, Some(true), available);
        }
        assert_eq!(budget.begin_write(available), Deposit(0));
    }

    #[test]
    fn a_second_attempt_leaves_enough_for_a_first_one_and_what_was_not_sent_costs_nothing() {
        let now = Time(BEGUN);
        let mut budget = FailureBudget::default();
        let fail = |budget: &mut FailureBudget| {
            let deposit = budget.begin_write(now);
            budget.end_write(deposit, Some(false), now);
        };
        fail(&mut budget);
        assert!(budget.available_at(false) <= now && budget.available_at(true) > now);
        let before = budget.balance;
        let deposit = budget.begin_write(now);
        budget.end_write(deposit, None, now);
        assert_eq!(budget.balance, before);
    }
}

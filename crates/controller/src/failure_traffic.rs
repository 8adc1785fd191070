//! Requests that failing writes cost: what else would ask the server leaves them room.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use watcher::RetryTurns;

/// Part of the time for which busy seconds count, each with the busiest of its own.
const SPAN: Duration = Duration::from_mins(1);
/// Number of those, the current one included: a second counts for two minutes at least, which is longer than the longest wait of
/// a write that fails, a minute, and its timeout.
const SPANS: usize = 3;
const SECOND: Duration = Duration::from_secs(1);

/// Requests of one second from which other reads that follow failures wait longer. 4.
const CROWD: u32 = 4;
/// Requests that failures are taken to cost in their busiest second where they have cost any: a few that happen to fall into one
/// second are known of only afterwards. 3.
const LEAST: u32 = 3;

/// Counts the writes that fail and the re-reads after them.
#[derive(Debug, Default)]
pub(crate) struct FailureTraffic {
    count: Mutex<Option<TrafficCount>>,
    /// Turns of other reads that follow a failure.
    turns: Arc<RetryTurns>,
}

#[derive(Clone, Copy, Debug)]
struct TrafficCount {
    second_start: Instant,
    in_second: u32,
    /// When the current span began.
    span_start: Instant,
    /// Most requests of a second in the current span, and in those before it.
    most: [u32; SPANS],
}

impl TrafficCount {
    fn new(now: Instant) -> TrafficCount {
        TrafficCount { second_start: now, in_second: 0, span_start: now, most: [0; SPANS] }
    }

    /// As it is now: of what was long ago nothing counts.
    fn at(mut self, now: Instant) -> TrafficCount {
        for _ in 0..SPANS {
            if now.duration_since(self.span_start) < SPAN {
                return self;
            }
            self.span_start += SPAN;
            self.most.rotate_right(1);
            self.most[0] = 0;
        }
        if now.duration_since(self.span_start) >= SPAN {
            self.span_start = now;
        }
        self
    }
}

impl FailureTraffic {
    /// Nothing is counted yet; reads that follow a failure take these turns.
    pub(crate) fn new(turns: Arc<RetryTurns>) -> FailureTraffic {
        FailureTraffic { count: Mutex::default(), turns }
    }

    /// Counts a write that failed, or a re-read after a write.
    pub(crate) fn record_request(&self, now: Instant) {
        let mut held = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let count = held.get_or_insert_with(|| TrafficCount::new(now));
        *count = count.at(now);
        if now.duration_since(count.second_start) >= SECOND {
            (count.second_start, count.in_second) = (now, 0);
        }
        count.in_second += 1;
        if count.in_second >= CROWD {
            self.turns.note_crowd(now);
        }
        count.most[0] = count.most[0].max(count.in_second);
    }

    /// Returns what failures leave of this many requests a second: three times what they took in their busiest second is theirs,
    /// since a second of the server's may begin in the midst of one of ours, and as many writes may succeed beside them. A tenth
    /// is left in any case.
    pub(crate) fn spare_rate(&self, rate: u32, now: Instant) -> u32 {
        let held = *self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let most = held.and_then(|count| count.at(now).most.into_iter().max()).unwrap_or_default();
        let taken = if most > 0 { most.max(LEAST) } else { 0 };
        rate.saturating_sub(taken.saturating_mul(3)).max(rate / 10).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_now_and_then_takes_half_and_a_crowd_leaves_a_tenth_for_two_minutes() {
        let (traffic, start) = (FailureTraffic::default(), Instant::now());
        assert_eq!(traffic.spare_rate(20, start), 20);
        traffic.record_request(start);
        assert_eq!((traffic.spare_rate(20, start), traffic.spare_rate(1, start)), (11, 1));
        (0..12).for_each(|_| traffic.record_request(start + SECOND));
        assert_eq!(traffic.spare_rate(20, start + SECOND), 2);
        traffic.record_request(start + SECOND * 90);
        assert_eq!(traffic.spare_rate(20, start + SECOND * 121), 2, "the busiest second counts");
        assert_eq!(traffic.spare_rate(20, start + SECOND * 181), 11, "and then the busiest since");
        traffic.record_request(start + SECOND * 200);
        assert_eq!(traffic.spare_rate(20, start + SECOND * 250), 11);
        assert_eq!(traffic.spare_rate(20, start + SECOND * 500), 20, "and no longer than that");
        traffic.record_request(start + SECOND * 1_000);
        assert_eq!(traffic.spare_rate(20, start + SECOND * 1_000), 11);
    }
}

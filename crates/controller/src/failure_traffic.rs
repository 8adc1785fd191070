//! Requests that failing writes cost: what else would ask the server leaves them room.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;
use watcher::RetryTurns;

/// Time for which the busiest second counts: longer than the longest wait of a write that fails, a minute, and its timeout.
const MEMORY: Duration = Duration::from_mins(2);
const SECOND: Duration = Duration::from_secs(1);

/// Requests of one second from which other reads that follow failures wait longer. 4.
const CROWD: u32 = 4;

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
    /// Most requests of a second lately, and when there were that many.
    most: u32,
    most_at: Instant,
}

impl FailureTraffic {
    /// Nothing is counted yet; reads that follow a failure take these turns.
    pub(crate) fn new(turns: Arc<RetryTurns>) -> FailureTraffic {
        FailureTraffic { count: Mutex::default(), turns }
    }

    /// Counts a write that failed, or a re-read after a write.
    pub(crate) fn record_request(&self, now: Instant) {
        let mut held = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let count =
            held.get_or_insert(TrafficCount { second_start: now, in_second: 0, most: 0, most_at: now });
        if now.duration_since(count.second_start) >= SECOND {
            (count.second_start, count.in_second) = (now, 0);
        }
        count.in_second += 1;
        if count.in_second >= CROWD {
            self.turns.note_crowd(now);
        }
        if count.in_second >= count.most || now.duration_since(count.most_at) > MEMORY {
            (count.most, count.most_at) = (count.in_second, now);
        }
    }

    /// Returns what failures leave of this many requests a second: three times what they took in their busiest second is theirs,
    /// since a second of the server's may begin in the midst of one of ours, and as many writes may succeed beside them. A tenth
    /// is left in any case.
    pub(crate) fn spare_rate(&self, rate: u32, now: Instant) -> u32 {
        let held = *self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let lately = held.filter(|count| now.duration_since(count.most_at) <= MEMORY);
        let most = lately.map_or(0, |count| count.most);
        rate.saturating_sub(most.saturating_mul(3)).max(rate / 10).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_now_and_then_takes_little_and_a_crowd_leaves_a_tenth_for_two_minutes() {
        let (traffic, start) = (FailureTraffic::default(), Instant::now());
        assert_eq!(traffic.spare_rate(20, start), 20);
        traffic.record_request(start);
        assert_eq!((traffic.spare_rate(20, start), traffic.spare_rate(1, start)), (17, 1));
        (0..12).for_each(|_| traffic.record_request(start + SECOND));
        assert_eq!(traffic.spare_rate(20, start + SECOND), 2);
        traffic.record_request(start + SECOND * 90);
        assert_eq!(traffic.spare_rate(20, start + SECOND * 121), 2, "the busiest second counts");
        assert_eq!(traffic.spare_rate(20, start + SECOND * 122), 20);
        traffic.record_request(start + SECOND * 130);
        assert_eq!(traffic.spare_rate(20, start + SECOND * 130), 17, "and no longer than that");
    }
}

//! The resync schedule: unready keys are read live again once per period.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{DeadlineQueue, Seed, TimePoint};

/// Number of resyncs without a change after which a key is resynced at the slow period only.
const UNCHANGED_PASSES_BEFORE_SLOW: u8 = 10;

/// Resync schedule of the keys that are not ready: each is due once per period, spread over it by the seed.
///
/// **Invariant:** every key in the schedule is not ready; a ready object costs nothing, not even a queue entry.
#[derive(Clone, Debug)]
pub struct ResyncSchedule<K, T> {
    period: Duration,
    slow_period: Duration,
    seed: Seed,
    due: DeadlineQueue<K, T>,
    /// Number of resyncs since the last change; kept small, because every key has one.
    unchanged: BTreeMap<K, u8>,
    /// Number of keys that are resynced at the slow period.
    slow_keys: usize,
}

/// How often a key is resynced, and how many others are as often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResyncPace {
    /// Time from one resync of the key to the next.
    pub interval: Duration,
    /// Number of keys with that interval, itself included.
    pub keys: usize,
}

impl<K: Copy + Ord + Into<u64>, T: TimePoint> ResyncSchedule<K, T> {
    /// Creates a schedule with a resync every `every`, and every `slow` for keys that ten resyncs found unchanged. An
    /// `every` of zero disables the resync.
    pub fn new(every: Duration, slow: Duration, seed: Seed) -> Self {
        ResyncSchedule {
            period: every,
            slow_period: slow.max(every),
            seed,
            due: DeadlineQueue::default(),
            unchanged: BTreeMap::new(),
            slow_keys: 0,
        }
    }

    /// Enrolls `key` because it is not ready. Its first resync is due within one period; enrolling it again changes
    /// nothing.
    pub fn enroll_key(&mut self, key: K, now: T) {
        if !self.period.is_zero() && !self.unchanged.contains_key(&key) {
            self.unchanged.insert(key, 0);
            let spread = self.seed.duration_below(self.period / 2, key.into());
            self.due.set_deadline(key, now + self.period / 2 + spread);
        }
    }

    /// Removes `key` because it is ready or deleted.
    pub fn withdraw_key(&mut self, key: K) {
        let passes = self.unchanged.remove(&key);
        self.slow_keys -= usize::from(passes.is_some_and(is_slow));
        self.due.clear_deadline(key);
    }

    /// Records a change of `key` and resets its count of unchanged resyncs.
    pub fn record_change(&mut self, key: K, now: T) {
        if let Some(unchanged) = self.unchanged.get_mut(&key)
            && is_slow(std::mem::take(unchanged))
        {
            self.slow_keys -= 1;
            self.due.set_if_earlier(key, now + self.period);
        }
    }

    /// Takes one key that is due at `now` and schedules its next resync.
    pub fn take_due(&mut self, now: T) -> Option<K> {
        let key = self.due.take_due(now)?;
        let passes = self.unchanged.entry(key).or_insert(0);
        let was_slow = is_slow(*passes);
        *passes = passes.saturating_add(1);
        self.slow_keys += usize::from(!was_slow && is_slow(*passes));
        let interval = self.pace_of(key).interval;
        self.due.set_deadline(key, now + interval);
        Some(key)
    }

    /// How often `key` is resynced from now on.
    pub fn pace_of(&self, key: K) -> ResyncPace {
        if self.unchanged.get(&key).is_some_and(|passes| is_slow(*passes)) {
            ResyncPace { interval: self.slow_period, keys: self.slow_keys }
        } else {
            ResyncPace { interval: self.period, keys: self.unchanged.len() - self.slow_keys }
        }
    }

    /// Returns the moment at which the next key is due.
    pub fn next_due(&self) -> Option<T> {
        self.due.next_deadline()
    }

    /// Number of enrolled keys.
    pub fn len(&self) -> usize {
        self.unchanged.len()
    }

    /// Returns `true` if no key is enrolled.
    pub fn is_empty(&self) -> bool {
        self.unchanged.is_empty()
    }
}

/// Whether a key that so many resyncs found unchanged is resynced at the slow period.
fn is_slow(unchanged: u8) -> bool {
    unchanged >= UNCHANGED_PASSES_BEFORE_SLOW
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "any moment will do as the origin")]
mod tests {
    use super::*;
    use std::time::Instant;

    const EVERY: Duration = Duration::from_secs(30);
    const SLOW: Duration = Duration::from_secs(600);

    fn passes(resync: &mut ResyncSchedule<u64, Instant>, start: Instant, seconds: u64) -> Vec<(u64, u64)> {
        let mut out = vec![];
        for s in 0..seconds {
            while let Some(key) = resync.take_due(start + Duration::from_secs(s)) {
                out.push((key, s));
                assert!(out.len() < 1_000, "a key that was taken is not due at once again");
            }
        }
        out
    }

    #[test]
    fn each_key_is_due_once_per_period_and_first_within_one() {
        let start = Instant::now();
        let mut resync = ResyncSchedule::new(EVERY, SLOW, Seed(1));
        (0..100).for_each(|key| resync.enroll_key(key, start));
        let seen = passes(&mut resync, start, 61);
        assert!((0..100).all(|key| (1..=2).contains(&seen.iter().filter(|(k, _)| *k == key).count())));
        assert!(seen.iter().all(|(_, s)| *s >= 15));
        assert!(!seen.windows(30).any(|w| w[0].1 == w[29].1), "the seed spreads them");
    }

    #[test]
    fn what_is_ready_costs_nothing() {
        let start = Instant::now();
        let mut resync = ResyncSchedule::new(EVERY, SLOW, Seed(1));
        resync.enroll_key(1_u64, start);
        resync.withdraw_key(1);
        assert!(resync.is_empty() && resync.next_due().is_none());
    }

    #[test]
    fn ten_unchanged_passes_slow_it_down_until_something_moves() {
        let start = Instant::now();
        let mut resync = ResyncSchedule::new(EVERY, SLOW, Seed(1));
        resync.enroll_key(1_u64, start);
        let seen = passes(&mut resync, start, 1_800);
        assert_eq!(seen.len(), 12, "{seen:?}");
        assert_eq!(resync.pace_of(1), ResyncPace { interval: SLOW, keys: 1 });
        resync.enroll_key(2, start);
        assert_eq!(resync.pace_of(2), ResyncPace { interval: EVERY, keys: 1 });
        let later = start + Duration::from_secs(1_800);
        resync.record_change(1, later);
        assert!(resync.next_due().unwrap() <= later + EVERY);
        assert_eq!(resync.pace_of(1), ResyncPace { interval: EVERY, keys: 2 });
        resync.withdraw_key(1);
        assert_eq!(resync.pace_of(2), ResyncPace { interval: EVERY, keys: 1 });
    }
}

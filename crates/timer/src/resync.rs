//! The periodic pass: who is to be read again live, and when.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Deadlines, Moment, Seed};

/// After so many passes that changed nothing, a key is read at the slow period only.
const PATIENCE: u32 = 10;

/// The keys that are not ready, each due once per period, spread over it by the seed.
///
/// **Invariant:** a key in here is not ready; what is ready costs nothing, not even a place in a queue.
#[derive(Clone, Debug)]
pub struct Resync<K, T> {
    every: Duration,
    slow: Duration,
    seed: Seed,
    due: Deadlines<K, T>,
    unchanged: BTreeMap<K, u32>,
}

impl<K: Copy + Ord + Into<u64>, T: Moment> Resync<K, T> {
    /// A pass each `every`, and each `slow` for those that ten passes found unchanged. `every` of zero: no pass.
    pub fn new(every: Duration, slow: Duration, seed: Seed) -> Self {
        Resync { every, slow: slow.max(every), seed, due: Deadlines::default(), unchanged: BTreeMap::new() }
    }

    /// `key` is not ready. Its first pass comes within one period; enrolling again changes nothing.
    pub fn enroll(&mut self, key: K, now: T) {
        if !self.every.is_zero() && !self.unchanged.contains_key(&key) {
            self.unchanged.insert(key, 0);
            let spread = self.seed.below(self.every / 2, key.into());
            self.due.arm(key, now + self.every / 2 + spread);
        }
    }

    /// `key` is ready, or gone.
    pub fn withdraw(&mut self, key: K) {
        self.unchanged.remove(&key);
        self.due.disarm(key);
    }

    /// Something about `key` moved: patience starts anew.
    pub fn moved(&mut self, key: K, now: T) {
        if let Some(unchanged) = self.unchanged.get_mut(&key)
            && std::mem::take(unchanged) >= PATIENCE
        {
            self.due.arm_by(key, now + self.every);
        }
    }

    /// One key that is due at `now`; its next pass is armed.
    pub fn take_due(&mut self, now: T) -> Option<K> {
        let key = self.due.take_due(now)?;
        let passes = self.unchanged.entry(key).or_insert(0);
        *passes = passes.saturating_add(1);
        let period = if *passes >= PATIENCE { self.slow } else { self.every };
        self.due.arm(key, now + period);
        Some(key)
    }

    /// When the next one is due.
    pub fn next(&self) -> Option<T> {
        self.due.next()
    }

    /// How many are enrolled.
    pub fn len(&self) -> usize {
        self.unchanged.len()
    }

    /// None is.
    pub fn is_empty(&self) -> bool {
        self.unchanged.is_empty()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "any moment will do as the origin")]
mod tests {
    use super::*;
    use std::time::Instant;

    const EVERY: Duration = Duration::from_secs(30);
    const SLOW: Duration = Duration::from_secs(600);

    fn passes(resync: &mut Resync<u64, Instant>, start: Instant, seconds: u64) -> Vec<(u64, u64)> {
        let mut out = vec![];
        for s in 0..seconds {
            while let Some(key) = resync.take_due(start + Duration::from_secs(s)) {
                out.push((key, s));
            }
        }
        out
    }

    #[test]
    fn each_key_is_due_once_per_period_and_first_within_one() {
        let start = Instant::now();
        let mut resync = Resync::new(EVERY, SLOW, Seed(1));
        (0..100).for_each(|key| resync.enroll(key, start));
        let seen = passes(&mut resync, start, 61);
        assert!((0..100).all(|key| (1..=2).contains(&seen.iter().filter(|(k, _)| *k == key).count())));
        assert!(seen.iter().all(|(_, s)| *s >= 15));
        assert!(!seen.windows(30).any(|w| w[0].1 == w[29].1), "the seed spreads them");
    }

    #[test]
    fn what_is_ready_costs_nothing() {
        let start = Instant::now();
        let mut resync = Resync::new(EVERY, SLOW, Seed(1));
        resync.enroll(1_u64, start);
        resync.withdraw(1);
        assert!(resync.is_empty() && resync.next().is_none());
    }

    #[test]
    fn ten_unchanged_passes_slow_it_down_until_something_moves() {
        let start = Instant::now();
        let mut resync = Resync::new(EVERY, SLOW, Seed(1));
        resync.enroll(1_u64, start);
        let seen = passes(&mut resync, start, 1_800);
        assert_eq!(seen.len(), 12, "{seen:?}");
        let later = start + Duration::from_secs(1_800);
        resync.moved(1, later);
        assert!(resync.next().unwrap() <= later + EVERY);
    }
}

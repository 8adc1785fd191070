//! Exponential backoff with seeded jitter.

use std::time::Duration;

use crate::Seed;

/// Exponential backoff: doubles from `base` to `cap`, minus a seeded jitter of up to a quarter, so that retries do not
/// synchronise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Delay after the first failure.
    pub base: Duration,
    /// Longest delay.
    pub cap: Duration,
}

impl Backoff {
    /// Returns the delay after `failures` consecutive failures (1 for the first).
    pub fn delay_after(&self, failures: u32, seed: Seed, key: u64) -> Duration {
        let full = self.delay_before_jitter(failures);
        full.saturating_sub(seed.duration_below(full / 4, key ^ u64::from(failures)))
    }

    /// Like [`Backoff::delay_after`], but exactly `cap`, without jitter, once the cap is reached: for caps that are
    /// promised.
    pub fn delay_with_exact_cap(&self, failures: u32, seed: Seed, key: u64) -> Duration {
        match self.delay_before_jitter(failures) {
            longest if longest == self.cap => longest,
            _ => self.delay_after(failures, seed, key),
        }
    }

    fn delay_before_jitter(&self, failures: u32) -> Duration {
        let doubled = self.base.saturating_mul(1_u32 << failures.saturating_sub(1).min(20));
        doubled.min(self.cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_cap_and_stay_near_it() {
        let b = Backoff { base: Duration::from_millis(100), cap: Duration::from_secs(30) };
        let waits: Vec<_> = (1..40).map(|n| b.delay_after(n, Seed(1), 9)).collect();
        assert!(waits[0] >= Duration::from_millis(75) && waits[0] <= Duration::from_millis(100));
        assert!(waits.windows(2).take(7).all(|w| w[0] < w[1]), "{waits:?}");
        assert!(waits[20..].iter().all(|w| *w > Duration::from_secs(22) && *w <= Duration::from_secs(30)));
    }

    #[test]
    fn a_cap_that_is_a_promise_is_kept_by_every_seed() {
        let b = Backoff { base: Duration::from_secs(1), cap: Duration::from_mins(1) };
        for (seed, key) in (0..50).flat_map(|seed| (0..50).map(move |key| (Seed(seed), key))) {
            let waits: Vec<_> = (1..30).map(|n| b.delay_with_exact_cap(n, seed, key)).collect();
            assert!(waits.is_sorted() && waits[0] >= Duration::from_millis(750), "{waits:?}");
            assert!(waits[6..].iter().all(|w| *w == Duration::from_mins(1)), "{waits:?}");
        }
        let first = |seed| b.delay_with_exact_cap(5, Seed(seed), 9);
        assert!((0..50).any(|seed| first(seed) != first(seed + 50)), "many do not come back together");
    }
}

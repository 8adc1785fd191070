//! How long to wait before the next try.

use std::time::Duration;

use crate::Seed;

/// Doubles from `base` to `cap`, less up to a quarter taken off by the seed, so that many do not come back together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The wait after the first failure.
    pub base: Duration,
    /// The longest wait.
    pub cap: Duration,
}

impl Backoff {
    /// The wait after `failures` failures in a row (1 for the first).
    pub fn after(&self, failures: u32, seed: Seed, key: u64) -> Duration {
        let doubled = self.base.saturating_mul(1_u32 << failures.saturating_sub(1).min(20));
        let full = doubled.min(self.cap);
        full.saturating_sub(seed.below(full / 4, key ^ u64::from(failures)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_the_cap_and_stay_near_it() {
        let b = Backoff { base: Duration::from_millis(100), cap: Duration::from_secs(30) };
        let waits: Vec<_> = (1..40).map(|n| b.after(n, Seed(1), 9)).collect();
        assert!(waits[0] >= Duration::from_millis(75) && waits[0] <= Duration::from_millis(100));
        assert!(waits.windows(2).take(7).all(|w| w[0] < w[1]), "{waits:?}");
        assert!(waits[20..].iter().all(|w| *w > Duration::from_secs(22) && *w <= Duration::from_secs(30)));
    }
}

//! Whether writes of parents keep failing, for those who then leave the server alone.

use std::sync::atomic::{AtomicU32, Ordering};

/// What a failure weighs; a write that succeeds takes one away.
const FAILURE_WEIGHT: u32 = 4;
/// Weight from which on writes count as failing: about every fifth does.
const FAILING: u32 = 2 * FAILURE_WEIGHT;
/// Largest weight: after an outage, so many writes have to succeed.
const MAX_WEIGHT: u32 = 4 * FAILURE_WEIGHT;

/// Tells whether writes keep failing. A conflict now and then does not count as that.
#[derive(Debug, Default)]
pub(crate) struct FailingWrites(AtomicU32);

impl FailingWrites {
    /// Records how a write ended.
    pub(crate) fn record_outcome(&self, has_failed: bool) {
        let weigh = |weight: u32| {
            Some(if has_failed {
                (weight + FAILURE_WEIGHT).min(MAX_WEIGHT)
            } else {
                weight.saturating_sub(1)
            })
        };
        // The closure never refuses.
        _ = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, weigh);
    }

    /// Returns `true` while about every fifth write fails, or more.
    pub(crate) fn keep_failing(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= FAILING
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often writes count as failing if every so many-th fails.
    fn failing(every: u32) -> usize {
        let writes = FailingWrites::default();
        let told = (1..=1_000).map(|number| {
            writes.record_outcome(number % every == 0);
            writes.keep_failing()
        });
        told.filter(|failing| *failing).count()
    }

    #[test]
    fn what_fails_often_counts_and_what_fails_now_and_then_does_not() {
        assert_eq!(failing(1), 999);
        assert!(failing(2) > 990, "{}", failing(2));
        assert_eq!((failing(10), failing(100)), (0, 0));
        let writes = FailingWrites::default();
        (0..100).for_each(|_| writes.record_outcome(true));
        (0..9).for_each(|_| writes.record_outcome(false));
        assert!(!writes.keep_failing(), "it ends with the outage");
    }
}

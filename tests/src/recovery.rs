//! How many rounds a fault is played, and how long it took each time until all was told again.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};

/// Rounds of a fault where everything that takes long is played, too.
const FULL_ROUNDS: u32 = 20;

/// Whether what takes long is played, too: `ROLLCALL_FULL=1`.
#[must_use]
pub fn is_full() -> bool {
    std::env::var("ROLLCALL_FULL").is_ok_and(|full| full == "1")
}

/// Number of rounds of a fault: so few, or twenty where what takes long is played, too.
#[must_use]
pub fn rounds(few: u32) -> u32 {
    if is_full() { FULL_ROUNDS } else { few }
}

/// How long what a fault held up took to be told, each time.
pub struct RecoveryTimes {
    fault: &'static str,
    bound: Duration,
    took: Vec<Duration>,
}

impl RecoveryTimes {
    /// Nothing was measured yet. None may take longer than this bound, which is one that the product promises and not one of
    /// the machine.
    #[must_use]
    pub fn new(fault: &'static str, bound: Duration) -> Self {
        Self { fault, bound, took: Vec::new() }
    }

    /// Adds one.
    ///
    /// # Errors
    ///
    /// It is longer than the bound.
    pub fn add(&mut self, took: Duration) -> Result<()> {
        self.took.push(took);
        ensure!(took <= self.bound, "{}: told after {took:.1?}, {:?} are allowed", self.fault, self.bound);
        Ok(())
    }

    /// Number of those that were measured.
    #[must_use]
    pub fn count(&self) -> usize {
        self.took.len()
    }
}

impl fmt::Display for RecoveryTimes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut took = self.took.clone();
        took.sort_unstable();
        write!(f, "{}, {} times: ", self.fault, took.len())?;
        let [shortest, .., longest] = took[..] else { return write!(f, "{took:.1?}") };
        // The nearest rank: of a hundred, the 99th.
        let p99 = took[(took.len() * 99).div_ceil(100) - 1];
        write!(
            f,
            "told after {shortest:.1?} (shortest), {:.1?} (median), {p99:.1?} (p99), {longest:.1?} (longest); {:?} are allowed",
            took[took.len() / 2],
            self.bound
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hundred_times_the_99th_is_the_p99_and_one_beyond_the_bound_is_an_error() {
        let mut times = RecoveryTimes::new("API server killed", Duration::from_secs(100));
        for seconds in (1..=100).rev() {
            times.add(Duration::from_secs(seconds)).unwrap();
        }
        assert_eq!(
            times.to_string(),
            "API server killed, 100 times: told after 1.0s (shortest), 51.0s (median), 99.0s (p99), 100.0s (longest); \
             100s are allowed"
        );
        let error = times.add(Duration::from_millis(100_100)).unwrap_err();
        assert_eq!(error.to_string(), "API server killed: told after 100.1s, 100s are allowed");
    }
}

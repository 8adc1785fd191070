//! Pace of the re-reads after writes: where a server begins to fail, all writes in flight fail at once, and their re-reads shall
//! not arrive at once, too.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Time between two re-reads once the first have been sent: less than seven a second, so that a crowd of writes that fail at once
/// holds up no other for two seconds, and leaves room for what else asks in one.
const INTERVAL: Duration = Duration::from_millis(150);
/// Number of re-reads that need not wait, if there was none for a while.
const BURST: u32 = 3;

/// Gives re-reads their turns.
#[derive(Debug, Default)]
pub(crate) struct RereadPace {
    /// Time up to which turns have been given.
    taken: Mutex<Option<Instant>>,
}

impl RereadPace {
    /// Waits until it is this re-read's turn.
    pub(crate) async fn wait_for_turn(&self) {
        sleep_until(self.take_turn(Instant::now())).await;
    }

    fn take_turn(&self, now: Instant) -> Instant {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let until = taken.map_or(now, |until| until.max(now)) + INTERVAL;
        *taken = Some(until);
        now.max(until - INTERVAL * BURST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(pace: &RereadPace, now: Instant, number: usize) -> Vec<u128> {
        (0..number).map(|_| (pace.take_turn(now) - now).as_millis()).collect()
    }

    #[test]
    fn a_few_are_sent_at_once_and_the_rest_one_by_one_until_there_is_rest() {
        let (pace, now) = (RereadPace::default(), Instant::now());
        assert_eq!(turns(&pace, now, 7), [0, 0, 0, 150, 300, 450, 600]);
        assert_eq!(
            turns(&pace, now + Duration::from_millis(750), 2),
            [0, 150],
            "a turn comes with each interval"
        );
        assert_eq!(turns(&pace, now + Duration::from_secs(10), 5), [0, 0, 0, 150, 300]);
    }
}

//! How soon the next request of one follow may go out.

use std::time::Duration;

use timer::{Backoff, Seed};
use tokio::time::Instant;

/// The longest that a server may keep us away by `Retry-After`.
const LONGEST_ASKED: Duration = Duration::from_secs(60);

/// Bounds the rate of requests whatever the server does.
///
/// **Invariant:** only a watch that stood for a while undoes a failure. A list that succeeds does not: a server that lists
/// well and then refuses every watch would otherwise be listed as fast as it answers.
#[derive(Debug)]
pub(crate) struct Pace {
    backoff: Backoff,
    seed: Seed,
    /// A watch that ends before this has failed.
    brief: Duration,
    failures: u32,
    asked: u64,
    not_before: Option<Instant>,
    /// How many watches have stood long enough.
    stood: u64,
    /// The watch that stands has said something unreadable, so it undoes nothing.
    doubted: bool,
}

impl Pace {
    pub(crate) fn new(backoff: Backoff, seed: Seed, brief: Duration) -> Self {
        Pace { backoff, seed, brief, failures: 0, asked: 0, not_before: None, stood: 0, doubted: false }
    }

    /// When the next request may go out; `None` for at once.
    pub(crate) fn not_before(&self) -> Option<Instant> {
        self.not_before
    }

    /// A request failed; the server may have said when to come back.
    pub(crate) fn failed(&mut self, now: Instant, come_back: Option<Duration>) {
        let wait = if let Some(asked) = come_back {
            self.obeyed(asked)
        } else {
            self.failures = self.failures.saturating_add(1);
            self.backoff.after(self.failures, self.seed, u64::from(self.failures))
        };
        self.not_before = self.not_before.max(Some(now + wait));
    }

    /// What the server asked for, never less than the shortest backoff, and spread: everybody was asked the same.
    fn obeyed(&mut self, asked: Duration) -> Duration {
        self.asked += 1;
        let asked = asked.clamp(self.backoff.base, LONGEST_ASKED);
        asked + self.seed.below(asked / 4, self.asked)
    }

    /// Something unreadable came over a watch: what follows is a list, and it must not become a habit.
    pub(crate) fn doubt(&mut self, now: Instant) {
        self.doubted = true;
        self.failed(now, None);
    }

    /// A watch that was opened has ended. True where it ended too soon.
    pub(crate) fn ended(&mut self, now: Instant, lived: Duration) -> bool {
        let doubted = std::mem::take(&mut self.doubted);
        if lived < self.brief {
            self.failed(now, None);
            return true;
        }
        if !doubted {
            self.failures = 0;
            self.not_before = None;
            self.stood += 1;
        }
        false
    }

    /// How many watches have stood long enough to be believed: whoever sees it move may forgive.
    pub(crate) fn stood(&self) -> u64 {
        self.stood
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff { base: Duration::from_millis(200), cap: Duration::from_secs(30) };

    fn pace() -> Pace {
        Pace::new(BACKOFF, Seed(1), Duration::from_secs(5))
    }

    fn wait(pace: &Pace, now: Instant) -> Duration {
        pace.not_before().map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_until_a_watch_has_stood() {
        let (mut pace, mut now, mut last) = (pace(), Instant::now(), Duration::ZERO);
        for _ in 0..7 {
            pace.failed(now, None);
            let next = wait(&pace, now);
            assert!(next > last, "{next:?} after {last:?}");
            (now, last) = (now + next, next);
        }
        assert!(pace.ended(now, Duration::from_secs(1)), "one second is too short");
        assert_eq!((pace.failures, pace.stood()), (8, 0));
        assert!(!pace.ended(now, Duration::from_secs(5)));
        assert_eq!((pace.failures, pace.stood(), wait(&pace, now)), (0, 1, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_names_a_time_is_obeyed_within_reason() {
        for (asked, least, most) in [(0, 200, 250), (1_000, 1_000, 1_250), (86_400_000, 60_000, 75_000)] {
            let (mut pace, now) = (pace(), Instant::now());
            pace.failed(now, Some(Duration::from_millis(asked)));
            let waits = wait(&pace, now).as_millis();
            assert!((least..=most).contains(&waits), "asked for {asked} ms, waits {waits} ms");
            assert_eq!(pace.failures, 0, "to be asked to wait is no failure");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_talked_nonsense_undoes_nothing() {
        let (mut pace, now) = (pace(), Instant::now());
        pace.doubt(now);
        assert!(!pace.ended(now, Duration::from_secs(60)));
        assert_eq!(pace.failures, 1);
        assert!(wait(&pace, now) > Duration::ZERO);
    }
}

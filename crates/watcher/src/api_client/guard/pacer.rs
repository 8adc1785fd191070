//! Pacing of the requests of one follow.

use std::time::Duration;

use timer::{Backoff, Seed};
use tokio::time::Instant;

/// Longest delay accepted from `Retry-After`.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

/// Longest own delay after an answer with `Retry-After`: a server that asks to come back soon, again and again, is asked less
/// and less often, and yet found soon after it has healed. 10 s.
const MAX_WAIT_BEYOND_RETRY_AFTER: Duration = Duration::from_secs(10);

/// Limits the rate of requests regardless of the server's behaviour.
///
/// **Invariant:** only a watch that stood for a while resets the failure count. A successful list does not: a server
/// that lists well and then refuses every watch would otherwise be listed as fast as it answers.
#[derive(Debug)]
pub(crate) struct RequestPacer {
    backoff: Backoff,
    seed: Seed,
    /// Shortest successful watch.
    brief: Duration,
    failures: u32,
    /// Answers with `Retry-After` since a watch last stood for a while.
    retry_afters: u32,
    not_before: Option<Instant>,
    /// Until then the server has asked to wait.
    asked_until: Option<Instant>,
    /// Number of watches that stood long enough.
    stable_watches: u64,
    /// The current watch delivered unreadable data, so it does not reset the failure count.
    watch_unreadable: bool,
    /// When the server last gave a sign of life; none before the first.
    proven: Option<Instant>,
    /// A watch brought nothing and was not ended by the server: what happened meanwhile may be lost.
    unproven: bool,
}

impl RequestPacer {
    pub(crate) fn new(backoff: Backoff, seed: Seed, brief: Duration) -> Self {
        RequestPacer {
            backoff,
            seed,
            brief,
            failures: 0,
            retry_afters: 0,
            not_before: None,
            asked_until: None,
            stable_watches: 0,
            watch_unreadable: false,
            proven: None,
            unproven: false,
        }
    }

    /// Earliest time of the next request; `None` for at once.
    pub(crate) fn not_before(&self) -> Option<Instant> {
        self.not_before
    }

    /// Whether the server itself has asked to wait until then.
    pub(crate) fn is_asked_to_wait(&self, now: Instant) -> bool {
        self.asked_until.is_some_and(|until| now < until)
    }

    /// The request that had to wait until then goes out; those after it need not wait.
    pub(crate) fn pass(&mut self, at: Instant) {
        self.not_before = self.not_before.filter(|later| *later != at);
    }

    /// Records a failed request; the server may have sent `Retry-After`.
    pub(crate) fn record_failure(&mut self, now: Instant, come_back: Option<Duration>) {
        let wait = if let Some(asked) = come_back {
            let wait = self.wait_as_asked(asked);
            self.asked_until = self.asked_until.max(Some(now + wait));
            wait
        } else {
            self.failures = self.failures.saturating_add(1);
            self.backoff.delay_after(self.failures, self.seed, u64::from(self.failures))
        };
        self.not_before = self.not_before.max(Some(now + wait));
    }

    /// Wait after `Retry-After`: at least the shortest backoff, with jitter, because all clients were sent the same value, and
    /// longer where the server asks so again and again.
    fn wait_as_asked(&mut self, asked: Duration) -> Duration {
        self.retry_afters = self.retry_afters.saturating_add(1);
        let asked = asked.clamp(self.backoff.base, MAX_RETRY_AFTER);
        let asked = asked + self.seed.duration_below(asked / 4, u64::from(self.retry_afters));
        let own = self.backoff.delay_after(self.retry_afters, self.seed, u64::from(self.retry_afters));
        asked.max(own.min(MAX_WAIT_BEYOND_RETRY_AFTER))
    }

    /// Records unreadable data on a watch: a relist follows, and it must not be repeated without delay.
    pub(crate) fn record_unreadable_watch(&mut self, now: Instant) {
        self.watch_unreadable = true;
        self.record_failure(now, None);
    }

    /// Records the end of a watch. Returns `true` if it ended too soon.
    pub(crate) fn record_watch_end(&mut self, now: Instant, lived: Duration) -> bool {
        let doubted = std::mem::take(&mut self.watch_unreadable);
        if lived < self.brief {
            self.record_failure(now, None);
            return true;
        }
        if !doubted {
            (self.failures, self.retry_afters) = (0, 0);
            self.not_before = None;
            self.stable_watches += 1;
        }
        false
    }

    /// The server gave a sign of life.
    pub(crate) fn prove(&mut self, now: Instant) {
        (self.proven, self.unproven) = (Some(now), false);
    }

    /// Something has failed since a watch last stood for a while.
    pub(crate) fn has_failed(&self) -> bool {
        self.failures > 0 || self.retry_afters > 0
    }

    /// A watch was given up over which nothing had come.
    pub(crate) fn disprove(&mut self) {
        self.unproven = true;
    }

    /// Returns `true` if there was no sign of life for this long. A watch that goes on from the old resourceVersion would
    /// deliver a backlog without saying when it is complete.
    pub(crate) fn is_blind(&self, now: Instant, limit: Duration) -> bool {
        self.unproven || self.proven.is_some_and(|at| now.duration_since(at) > limit)
    }

    /// Number of watches that stood long enough. An increase means that earlier failures no longer count.
    pub(crate) fn count_stable_watches(&self) -> u64 {
        self.stable_watches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKOFF: Backoff = Backoff { base: Duration::from_millis(200), cap: Duration::from_secs(30) };

    fn pace() -> RequestPacer {
        RequestPacer::new(BACKOFF, Seed(1), Duration::from_secs(5))
    }

    fn wait(pace: &RequestPacer, now: Instant) -> Duration {
        pace.not_before().map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    #[tokio::test(start_paused = true)]
    async fn waits_grow_until_a_watch_has_stood() {
        let (mut pace, mut now, mut last) = (pace(), Instant::now(), Duration::ZERO);
        for _ in 0..7 {
            pace.record_failure(now, None);
            let next = wait(&pace, now);
            assert!(next > last, "{next:?} after {last:?}");
            (now, last) = (now + next, next);
        }
        assert!(pace.record_watch_end(now, Duration::from_secs(1)), "one second is too short");
        assert_eq!((pace.failures, pace.count_stable_watches()), (8, 0));
        assert!(!pace.record_watch_end(now, Duration::from_secs(5)));
        assert_eq!((pace.failures, pace.count_stable_watches(), wait(&pace, now)), (0, 1, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_names_a_time_is_obeyed_within_reason() {
        for (asked, least, most) in [(0, 200, 250), (1_000, 1_000, 1_250), (86_400_000, 60_000, 75_000)] {
            let (mut pace, now) = (pace(), Instant::now());
            pace.record_failure(now, Some(Duration::from_millis(asked)));
            let waits = wait(&pace, now).as_millis();
            assert!((least..=most).contains(&waits), "asked for {asked} ms, waits {waits} ms");
            assert_eq!(pace.failures, 0, "to be asked to wait is no failure");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_names_a_short_time_for_ever_is_asked_less_and_less_often() {
        let (mut pace, mut now, mut asked) = (pace(), Instant::now(), 0);
        let end = now + Duration::from_hours(1);
        while now < end {
            pace.record_failure(now, Some(Duration::from_secs(1)));
            now += wait(&pace, now);
            asked += 1;
        }
        assert!((360..500).contains(&asked), "{asked} requests in an hour");
        assert!(!pace.record_watch_end(now, Duration::from_secs(60)));
        pace.record_failure(now, Some(Duration::from_secs(1)));
        assert!(wait(&pace, now) < Duration::from_millis(1_251), "a watch that stood ends it");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_talked_nonsense_undoes_nothing() {
        let (mut pace, now) = (pace(), Instant::now());
        pace.record_unreadable_watch(now);
        assert!(!pace.record_watch_end(now, Duration::from_secs(60)));
        assert_eq!(pace.failures, 1);
        assert!(wait(&pace, now) > Duration::ZERO);
    }
}

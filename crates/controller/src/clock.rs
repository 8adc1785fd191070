//! Time on this machine and on the API server.
//!
//! Objects carry timestamps of the server's clock (creation, deletion, last transition), and limits are measured from
//! these. With a local clock that is an hour ahead, every terminating object would be stuck at once, and a waiting
//! client would give up. The loop therefore uses the server's clock, as derived from the `Date` headers of its
//! responses.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use readiness::Time;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};
use tracing::warn;
use watcher::DateObserver;

/// A `Date` has a resolution of whole seconds, and servers behind one address differ a little: smaller differences (in
/// milliseconds) are ignored.
const CLOCK_SLACK_MS: i64 = 2_000;
/// Resolution of a `Date`, which is truncated (in milliseconds).
const DATE_RESOLUTION_MS: i64 = 1_000;
/// Year 9999, in milliseconds since 1970.
const MAX_CLOCK_MS: i64 = 253_402_300_799_000;
/// Smallest offset that is logged (in milliseconds).
const LOGGED_OFFSET_MS: i64 = 5_000;
/// Once the loop runs, a clock found to be wrong is slewed at one part in this many of real time. A step would fire
/// every pending timer, and a kind whose watch was healthy a minute ago would be reported as stale.
const SLEW_DIVISOR: i64 = 4;
/// Longest time for which a timer is set: one that waits for longer is set again then. A day.
const MAX_TIMER_WAIT: Duration = Duration::from_hours(24);

/// This machine's clock: wall time at the start plus a monotonic clock, so that it never goes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalClock {
    wall: Time,
    start: Instant,
}

impl LocalClock {
    /// Reads both clocks once.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub(crate) fn start() -> LocalClock {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        LocalClock { wall: Time::default() + wall, start: Instant::now() }
    }

    /// Current time.
    pub(crate) fn now(&self) -> Time {
        self.wall + Instant::now().duration_since(self.start)
    }

    /// Waits until `deadline`; forever if there is none.
    pub(crate) async fn sleep_until(&self, deadline: Option<Time>) {
        match deadline {
            Some(at) => tokio::time::sleep(at - self.now()).await,
            None => std::future::pending().await,
        }
    }
}

/// The API server's clock, as far as it is known. Cheap to clone; all clones return the same time.
#[derive(Clone, Debug)]
pub struct ServerClock {
    local: LocalClock,
    offset: Arc<Mutex<ClockOffset>>,
    answered: watch::Sender<bool>,
}

impl ServerClock {
    /// Clock of a server that is assumed to share this machine's clock.
    pub fn assume_local() -> ServerClock {
        ServerClock { local: LocalClock::start(), offset: Arc::default(), answered: watch::channel(true).0 }
    }

    /// Clock that is set by the server's responses.
    pub(crate) fn from_responses() -> ServerClock {
        ServerClock { answered: watch::channel(false).0, ..ServerClock::assume_local() }
    }

    /// This machine's clock, for measurements that involve no other clock.
    pub(crate) fn local_clock(&self) -> LocalClock {
        self.local
    }

    /// Time on the server. Never goes back.
    pub(crate) fn now(&self) -> Time {
        self.with_offset(ClockOffset::server_time)
    }

    /// Offset of the server's clock from this machine's, in seconds; negative if the server is behind.
    pub(crate) fn offset_seconds(&self) -> f64 {
        self.with_offset(|ahead, _| readiness::millis_to_seconds(ahead.target_ms))
    }

    /// Returns a timer whose deadline may move often.
    pub(crate) fn new_timer(&self) -> DeadlineTimer {
        DeadlineTimer { clock: self.clone(), sleep: Box::pin(tokio::time::sleep(Duration::ZERO)) }
    }

    /// True if the server has responded, or if no response is needed.
    pub(crate) fn is_known(&self) -> bool {
        *self.answered.borrow()
    }

    /// Waits for the first response of the server: its time is unknown before.
    pub(crate) async fn wait_until_known(&self) {
        // The sender is owned by this clock, so it cannot be closed.
        let _ = self.answered.subscribe().wait_for(|heard| *heard).await;
    }

    fn with_offset<T>(&self, read: impl FnOnce(&mut ClockOffset, Time) -> T) -> T {
        read(&mut self.offset.lock().unwrap_or_else(PoisonError::into_inner), self.local.now())
    }
}

/// Timer for a deadline that moves with nearly every event. To set a timer earlier wakes the runtime's driver, which is two system
/// calls: so one that is set is left as it is while it is early enough, and set anew when it has fired too early.
#[derive(Debug)]
pub(crate) struct DeadlineTimer {
    clock: ServerClock,
    sleep: Pin<Box<Sleep>>,
}

impl DeadlineTimer {
    /// Waits until `deadline`; forever if there is none.
    pub(crate) async fn wait_until(&mut self, deadline: Option<Time>) {
        let Some(deadline) = deadline else { return std::future::pending().await };
        loop {
            let wait = (deadline - self.clock.now()).min(MAX_TIMER_WAIT);
            if wait.is_zero() {
                return;
            }
            let at = Instant::now() + wait;
            if self.sleep.is_elapsed() || at < self.sleep.deadline() {
                self.sleep.as_mut().reset(at);
            }
            self.sleep.as_mut().await;
        }
    }
}

impl DateObserver for ServerClock {
    fn local_time(&self) -> Time {
        self.local.now()
    }

    fn on_date(&self, sent: Time, date: Option<Time>) {
        let first = !self.is_known();
        let moved =
            self.with_offset(|ahead, now| date.and_then(|date| ahead.observe_date(sent, now, date, first)));
        if let Some(goal) = moved.filter(|goal| goal.abs() >= LOGGED_OFFSET_MS) {
            // Positive if the server's clock is ahead, as in `rollcall_clock_offset_seconds`.
            warn!(
                offset_seconds = goal / 1_000,
                "the API server's clock differs from this machine's; using the server's"
            );
        }
        self.answered.send_if_modified(|heard| !std::mem::replace(heard, true));
    }
}

/// Offset of the server's clock, in milliseconds. Pure: times are arguments.
#[derive(Debug, Default)]
struct ClockOffset {
    /// Offset to reach.
    target_ms: i64,
    /// Offset currently applied.
    applied_ms: i64,
    /// Local time up to which `applied_ms` has been slewed.
    applied_at: Time,
}

impl ClockOffset {
    /// Time on the server at the local time `own`.
    fn server_time(&mut self, own: Time) -> Time {
        let step = i64::try_from((own - self.applied_at).as_millis()).unwrap_or(i64::MAX) / SLEW_DIVISOR;
        if self.applied_ms == self.target_ms || step > 0 {
            self.applied_ms += (self.target_ms - self.applied_ms).clamp(-step, step);
            self.applied_at = own;
        }
        Time(own.0.saturating_add(self.applied_ms))
    }

    /// Handles a response with header `date` to a request sent at `sent` and answered at `now`. These bound the offset;
    /// an offset within the bounds, or almost, is kept. Returns the new target offset if it changes.
    fn observe_date(&mut self, sent: Time, now: Time, date: Time, first: bool) -> Option<i64> {
        // Times outside the range of any clock are ignored.
        let within = |time: Time| (0..=MAX_CLOCK_MS).contains(&time.0);
        if !within(sent) || !within(now) || !within(date) {
            return None;
        }
        let (least, most) = (date.0 - now.0, date.0 + DATE_RESOLUTION_MS - sent.0);
        if (least - CLOCK_SLACK_MS..=most + CLOCK_SLACK_MS).contains(&self.target_ms) {
            return None;
        }
        self.server_time(now);
        self.target_ms = self.target_ms.clamp(least, most.max(least));
        if first {
            self.applied_ms = self.target_ms;
        }
        Some(self.target_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;

    /// Offset after responses given as (sent, received, date), all in milliseconds since the second day.
    fn after(answers: &[(i64, i64, i64)]) -> ClockOffset {
        let mut ahead = ClockOffset::default();
        for (number, (sent, received, date)) in answers.iter().enumerate() {
            let at = |time: &i64| Time(time.saturating_add(DAY));
            ahead.observe_date(at(sent), at(received), at(date), number == 0);
        }
        ahead
    }

    #[test]
    fn clocks_that_agree_are_left_alone() {
        for answers in [
            vec![],
            vec![(10_000, 10_020, 10_000)],
            // The second is truncated, the response took long, and one server is a little behind.
            vec![(10_900, 10_990, 10_000), (20_000, 50_000, 21_000), (60_000, 60_010, 58_000)],
        ] {
            assert_eq!(after(&answers).server_time(Time(DAY)), Time(DAY), "{answers:?}");
        }
    }

    #[test]
    fn the_first_answer_sets_the_clock() {
        for (date, least, most) in
            [(HOUR + 10_000, HOUR - 20, HOUR + 1_000), (10_000 - HOUR, -HOUR - 20, 1_000 - HOUR)]
        {
            let ahead = after(&[(10_000, 10_020, date)]).server_time(Time(DAY)).0 - DAY;
            assert!((least..=most).contains(&ahead), "{ahead} of {date}");
        }
    }

    #[test]
    fn a_clock_that_is_set_later_is_walked_to_and_never_goes_back() {
        for side in [1, -1] {
            let mut ahead = after(&[(0, 10, 0), (10_000, 10_010, 10_000 + side * HOUR)]);
            let mut before = Time(i64::MIN);
            for second in 10..(10 + 4 * 3_600 + 20) {
                for own in [Time(DAY + second * 1_000 + 11), Time(DAY + second * 1_000 + 12)] {
                    let now = ahead.server_time(own);
                    assert!(now >= before, "{now:?} after {before:?}");
                    let since = now.0 - own.0;
                    assert!((second > 10 + 4) || since.abs() <= 1_250, "a leap of {since} ms");
                    before = now;
                }
            }
            let reached = ahead.server_time(Time(2 * DAY)).0 - 2 * DAY;
            assert!((reached - side * HOUR).abs() <= 1_010, "{reached}");
        }
    }

    #[test]
    fn nonsense_does_no_harm() {
        for date in [i64::MIN, i64::MAX, 0, -1] {
            after(&[(10_000, 10_010, date), (20_000, 20_010, i64::MAX), (30_000, 30_010, i64::MIN)])
                .server_time(Time(HOUR));
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_a_clock_that_is_shared() {
        ServerClock::assume_local().wait_until_known().await;
        let told = ServerClock::from_responses();
        let keeper = told.clone();
        keeper.on_date(Time(0), None);
        told.wait_until_known().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_timer_fires_at_the_deadline_of_its_last_wait_whatever_came_before() {
        let clock = ServerClock::assume_local();
        let mut timer = clock.new_timer();
        let begun = clock.now();
        let at = |seconds| Some(begun + Duration::from_secs(seconds));
        for (earlier, deadline) in [(10, 20), (40, 30), (35, 50)] {
            let short = tokio::time::timeout(Duration::from_secs(1), timer.wait_until(at(earlier))).await;
            assert!(short.is_err(), "{earlier}");
            timer.wait_until(at(deadline)).await;
            assert_eq!(Some(clock.now()), at(deadline), "{deadline}");
        }
        let far = tokio::time::timeout(Duration::from_secs(1), timer.wait_until(Some(Time(i64::MAX)))).await;
        assert!(far.is_err(), "no deadline is too far");
        timer.wait_until(at(3)).await;
        assert_eq!(Some(clock.now()), at(51), "what is past does not wait");
        let never = tokio::time::timeout(Duration::from_secs(100), timer.wait_until(None)).await;
        assert!(never.is_err());
    }
}

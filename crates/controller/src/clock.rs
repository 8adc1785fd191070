//! What time it is: on this machine, and on the API server.
//!
//! Objects carry moments of the server's clock (since when they exist, are being deleted, are not ready), and limits are
//! counted from these. With a clock of our own that is an hour ahead, whatever is being deleted would be stuck at once, and a
//! reader would give up on it. So the loop goes by the server's clock, as the `Date` of its answers tells it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use readiness::Time;
use tokio::sync::watch;
use tracing::warn;
use watcher::Timekeeper;

/// A `Date` says whole seconds, and several servers behind one address differ a little: below this (in milliseconds) nothing
/// is wrong.
const SLACK: i64 = 2_000;
/// A `Date` cuts off less than this (in milliseconds).
const SECOND: i64 = 1_000;
/// The year 9999, in milliseconds since 1970.
const FAR: i64 = 253_402_300_799_000;
/// What is told in the log (in milliseconds).
const WORTH_TELLING: i64 = 5_000;
/// Once the loop runs, a clock that is found to be wrong walks there at this part of the speed of time. A leap would end every
/// wait that is under way, and a kind that was heard of a minute ago would be called blind.
const WALK: i64 = 4;

/// This machine's clock: wall time at the start, and from then on what a monotonic clock adds, so that it never goes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    wall: Time,
    start: Instant,
}

impl Clock {
    /// Reads both clocks, once.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub(crate) fn start() -> Clock {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { wall: Time::default() + wall, start: Instant::now() }
    }

    /// The time.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    pub(crate) fn now(&self) -> Time {
        self.wall + Instant::now().duration_since(self.start)
    }

    /// Waits until then; for ever, where there is no such moment.
    pub(crate) async fn until(&self, deadline: Option<Time>) {
        match deadline {
            Some(at) => tokio::time::sleep(at - self.now()).await,
            None => std::future::pending().await,
        }
    }
}

/// The API server's clock, as far as it is known. Cheap to clone; all clones tell the same time.
#[derive(Clone, Debug)]
pub struct ServerClock {
    own: Clock,
    ahead: Arc<Mutex<Ahead>>,
    heard: watch::Sender<bool>,
}

impl ServerClock {
    /// This machine's clock, which the server is taken to share.
    pub fn shared() -> ServerClock {
        ServerClock { own: Clock::start(), ahead: Arc::default(), heard: watch::channel(true).0 }
    }

    /// A clock that is told by answers of the server what time it is there.
    pub(crate) fn told() -> ServerClock {
        ServerClock { heard: watch::channel(false).0, ..ServerClock::shared() }
    }

    /// This machine's clock, for what nobody else's clock is part of.
    pub(crate) fn own(&self) -> Clock {
        self.own
    }

    /// The server's time. Never goes back.
    pub(crate) fn now(&self) -> Time {
        self.with(Ahead::now)
    }

    /// How far the server's clock is ahead of this machine's, in seconds; negative where it is behind.
    pub(crate) fn ahead(&self) -> f64 {
        self.with(|ahead, _| ahead.goal as f64 / 1_000.0)
    }

    /// Waits until then; for ever, where there is no such moment.
    pub(crate) async fn until(&self, deadline: Option<Time>) {
        match deadline {
            // A clock that walks towards the server's may be late or early by a part of the wait: who waits looks again.
            Some(at) => tokio::time::sleep(at - self.now()).await,
            None => std::future::pending().await,
        }
    }

    /// Has the server answered yet, or need it not?
    pub(crate) fn is_known(&self) -> bool {
        *self.heard.borrow()
    }

    /// Waits for the first answer of the server: before it, nobody knows what time it is there.
    pub(crate) async fn known(&self) {
        // The sender is this very clock's, so that it cannot be gone.
        let _ = self.heard.subscribe().wait_for(|heard| *heard).await;
    }

    fn with<T>(&self, read: impl FnOnce(&mut Ahead, Time) -> T) -> T {
        read(&mut self.ahead.lock().unwrap_or_else(PoisonError::into_inner), self.own.now())
    }
}

impl Timekeeper for ServerClock {
    fn here(&self) -> Time {
        self.own.now()
    }

    fn heard(&self, sent: Time, date: Option<Time>) {
        let first = !self.is_known();
        let moved = self.with(|ahead, now| date.and_then(|date| ahead.hear(sent, now, date, first)));
        if let Some(goal) = moved.filter(|goal| goal.abs() >= WORTH_TELLING) {
            let (by, side) = (goal.unsigned_abs() / 1_000, if goal > 0 { "ahead of" } else { "behind" });
            warn!(seconds = by, "the API server's clock is {side} this machine's: the server's is used");
        }
        self.heard.send_if_modified(|heard| !std::mem::replace(heard, true));
    }
}

/// How far the server is ahead, in milliseconds. Times are given.
#[derive(Debug, Default)]
struct Ahead {
    /// As far as was heard.
    goal: i64,
    /// As far as it is told.
    told: i64,
    /// Until when `told` has walked, on this machine's clock.
    at: Time,
}

impl Ahead {
    /// What it is at the server, when it is `own` here.
    fn now(&mut self, own: Time) -> Time {
        let step = i64::try_from((own - self.at).as_millis()).unwrap_or(i64::MAX) / WALK;
        if self.told == self.goal || step > 0 {
            self.told += (self.goal - self.told).clamp(-step, step);
            self.at = own;
        }
        Time(own.0.saturating_add(self.told))
    }

    /// A request that went at `sent` was answered at `now`, and meanwhile it was `date` there. What it says has bounds; what
    /// lies between them, or almost, is left as it is. Gives where the clock is to go if that is somewhere else.
    fn hear(&mut self, sent: Time, now: Time, date: Time, first: bool) -> Option<i64> {
        // What is beyond any clock's range is no time.
        let within = |time: Time| (0..=FAR).contains(&time.0);
        if !within(sent) || !within(now) || !within(date) {
            return None;
        }
        let (least, most) = (date.0 - now.0, date.0 + SECOND - sent.0);
        if (least - SLACK..=most + SLACK).contains(&self.goal) {
            return None;
        }
        self.now(now);
        self.goal = self.goal.clamp(least, most.max(least));
        if first {
            self.told = self.goal;
        }
        Some(self.goal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;
    const DAY: i64 = 24 * HOUR;

    /// After answers as (sent, received, date), all in milliseconds since the second day: what it is at the server.
    fn after(answers: &[(i64, i64, i64)]) -> Ahead {
        let mut ahead = Ahead::default();
        for (number, (sent, received, date)) in answers.iter().enumerate() {
            let at = |time: &i64| Time(time.saturating_add(DAY));
            ahead.hear(at(sent), at(received), at(date), number == 0);
        }
        ahead
    }

    #[test]
    fn clocks_that_agree_are_left_alone() {
        for answers in [
            vec![],
            vec![(10_000, 10_020, 10_000)],
            // The second is cut off, the answer took long, and one server is a little behind.
            vec![(10_900, 10_990, 10_000), (20_000, 50_000, 21_000), (60_000, 60_010, 58_000)],
        ] {
            assert_eq!(after(&answers).now(Time(DAY)), Time(DAY), "{answers:?}");
        }
    }

    #[test]
    fn the_first_answer_sets_the_clock() {
        for (date, least, most) in
            [(HOUR + 10_000, HOUR - 20, HOUR + 1_000), (10_000 - HOUR, -HOUR - 20, 1_000 - HOUR)]
        {
            let ahead = after(&[(10_000, 10_020, date)]).now(Time(DAY)).0 - DAY;
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
                    let now = ahead.now(own);
                    assert!(now >= before, "{now:?} after {before:?}");
                    let since = now.0 - own.0;
                    assert!((second > 10 + 4) || since.abs() <= 1_250, "a leap of {since} ms");
                    before = now;
                }
            }
            let reached = ahead.now(Time(2 * DAY)).0 - 2 * DAY;
            assert!((reached - side * HOUR).abs() <= 1_010, "{reached}");
        }
    }

    #[test]
    fn nonsense_does_no_harm() {
        for date in [i64::MIN, i64::MAX, 0, -1] {
            after(&[(10_000, 10_010, date), (20_000, 20_010, i64::MAX), (30_000, 30_010, i64::MIN)])
                .now(Time(HOUR));
        }
    }

    #[tokio::test]
    async fn nobody_waits_for_a_clock_that_is_shared() {
        ServerClock::shared().known().await;
        let told = ServerClock::told();
        let keeper = told.clone();
        keeper.heard(Time(0), None);
        told.known().await;
    }
}

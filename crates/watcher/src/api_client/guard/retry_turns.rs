//! Turns of requests that follow a failure, over all follows of a process.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// Interval between requests that follow a failure. 500 ms.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// The same at first, and when the server has healed: most failures are short. 200 ms: a list that succeeds is followed by a watch.
const EAGER_INTERVAL: Duration = Duration::from_millis(200);
/// Time for which it is that short. 3 s.
const EAGER_FOR: Duration = Duration::from_secs(3);
/// Time without a failure after which the next one is a first one, and from one healing to the next that is taken for one: a
/// server may answer lists, and no watch. 1 min.
const FIRST_AFTER: Duration = Duration::from_mins(1);
/// Time for which other requests that fail in a crowd go first. 2 s.
const CROWD_LASTS: Duration = Duration::from_secs(2);

/// Spaces requests that follow a failure: a server that fails is asked as often by many follows as by few.
///
/// Each follow has a backoff of its own, but all of them begin with the shortest wait, and a connection that breaks is a failure
/// of all at once.
#[derive(Debug, Default)]
pub struct RetryTurns {
    taken: Mutex<TakenTurns>,
    restored: Notify,
}

#[derive(Debug, Default)]
struct TakenTurns {
    next: Option<Instant>,
    eager_until: Option<Instant>,
    crowded_until: Option<Instant>,
}

impl TakenTurns {
    fn is_eager(&self, now: Instant) -> bool {
        let is_before = |until: Option<Instant>| until.is_some_and(|until| now < until);
        is_before(self.eager_until) && !is_before(self.crowded_until)
    }
}

impl RetryTurns {
    /// Waits for a turn.
    pub async fn wait_turn(&self) {
        loop {
            let (turn, was_eager) = self.take_turn(Instant::now());
            sleep_until(turn).await;
            // A crowd that came meanwhile goes first.
            if !was_eager || self.lock().is_eager(Instant::now()) {
                break;
            }
        }
    }

    /// The connections are there again: whoever waits because of how they failed comes for a turn now. However long others have failed,
    /// these turns stay apart.
    pub fn note_restored(&self) {
        self.restored.notify_waiters();
    }

    /// Waits until the connections are there again.
    pub(super) async fn wait_until_restored(&self) {
        self.restored.notified().await;
    }

    /// The server answers again: those that wait need not wait for long.
    pub(super) fn note_healed(&self, now: Instant) {
        let mut taken = self.lock();
        if taken.eager_until.is_none_or(|until| now > until + FIRST_AFTER) {
            taken.eager_until = Some(now + EAGER_FOR);
        }
    }

    /// Many other requests fail now: these turns are further apart.
    pub fn note_crowd(&self, now: Instant) {
        self.lock().crowded_until = Some(now + CROWD_LASTS);
    }

    fn take_turn(&self, now: Instant) -> (Instant, bool) {
        let mut taken = self.lock();
        if taken.next.is_none_or(|next| now > next + FIRST_AFTER) {
            taken.eager_until = Some(now + EAGER_FOR);
        }
        let turn = taken.next.map_or(now, |next| next.max(now));
        let is_eager = taken.is_eager(turn);
        taken.next = Some(turn + if is_eager { EAGER_INTERVAL } else { RETRY_INTERVAL });
        (turn, is_eager)
    }

    fn lock(&self) -> MutexGuard<'_, TakenTurns> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(turns: &RetryTurns, now: Instant) -> Vec<u128> {
        (0..4).map(|_| turns.take_turn(now).0.duration_since(now).as_millis()).collect()
    }

    #[test]
    fn turns_are_close_at_first_and_when_the_server_has_healed() {
        let (turns, start) = (RetryTurns::default(), Instant::now());
        assert_eq!(waits(&turns, start), [0, 200, 400, 600]);
        let later = start + Duration::from_secs(4);
        assert_eq!(waits(&turns, later), [0, 500, 1_000, 1_500]);
        turns.note_healed(later + Duration::from_secs(2));
        assert_eq!(waits(&turns, later + Duration::from_secs(2)), [0, 500, 1_000, 1_500], "again so soon?");
        let healed = later + Duration::from_secs(60);
        turns.note_healed(healed);
        assert_eq!(waits(&turns, healed), [0, 200, 400, 600]);
        let next_day = healed + Duration::from_hours(24);
        assert_eq!(waits(&turns, next_day), [0, 200, 400, 600], "that is another failure");
    }

    #[test]
    fn beside_a_crowd_they_are_not() {
        let (turns, start) = (RetryTurns::default(), Instant::now());
        turns.note_crowd(start);
        assert_eq!(waits(&turns, start), [0, 500, 1_000, 1_500]);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_already_lets_a_crowd_go_first() {
        let (turns, start) = (RetryTurns::default(), Instant::now());
        let wait = async || {
            turns.wait_turn().await;
            start.elapsed().as_millis()
        };
        let crowd = async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            turns.note_crowd(Instant::now());
        };
        let ((first, second), third, ()) =
            futures::join!(futures::future::join(wait(), wait()), wait(), crowd);
        assert_eq!((first, second, third), (0, 600, 1_100));
    }
}

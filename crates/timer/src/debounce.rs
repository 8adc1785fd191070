//! Quiet first, but never longer than a cap.

use std::time::Duration;

use crate::Moment;

/// How long to wait for quiet, and how long at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Debounce {
    /// Fire once nothing happened for so long.
    pub quiet: Duration,
    /// Fire at the latest so long after the first touch: a chatty child cannot starve its parent.
    pub cap: Duration,
}

/// What one key remembers between touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touched<T> {
    first: Option<T>,
    fired: Option<T>,
    led: Option<T>,
}

impl<T> Default for Touched<T> {
    fn default() -> Self {
        Touched { first: None, fired: None, led: None }
    }
}

impl<T: Moment> Touched<T> {
    /// It is touched at `now`: when it is to fire. The first touch after a long quiet fires at once.
    pub fn touch(&mut self, now: T, debounce: Debounce) -> T {
        if self.first.is_none() && self.fired.is_none_or(|fired| fired + debounce.cap <= now) {
            self.first = Some(now);
            return now;
        }
        let first = *self.first.get_or_insert(now);
        (now + debounce.quiet).min(first + debounce.cap)
    }

    /// It fired at `now`.
    pub fn fire(&mut self, now: T) {
        self.led = self.led.or(self.first.take());
        self.fired = Some(now);
    }

    /// The first touch of all that led to it firing since this was last asked.
    pub fn take_led(&mut self) -> Option<T> {
        self.led.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const D: Debounce = Debounce { quiet: Duration::from_millis(100), cap: Duration::from_secs(1) };

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any moment will do as the origin")]
    fn a_chatty_key_fires_at_once_and_then_once_per_cap() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let (mut touched, mut due, mut fired) = (Touched::default(), None, vec![]);
        for ms in (0..5_000).step_by(50) {
            let when = touched.touch(at(ms), D);
            due = Some(when);
            if due.is_some_and(|d| d <= at(ms)) {
                touched.fire(at(ms));
                fired.push(ms);
                due = None;
            }
        }
        assert!(due.is_some());
        assert_eq!(fired, [0, 1_050, 2_100, 3_150, 4_200]);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any moment will do as the origin")]
    fn a_second_touch_soon_after_waits_for_quiet() {
        let start = Instant::now();
        let mut touched = Touched::default();
        assert_eq!(touched.touch(start, D), start);
        touched.fire(start);
        let soon = start + Duration::from_millis(10);
        assert_eq!(touched.touch(soon, D), soon + D.quiet);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any moment will do as the origin")]
    fn the_first_touch_is_remembered_until_somebody_asks() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut touched = Touched::default();
        touched.fire(at(0));
        assert_eq!(touched.take_led(), None, "it fired by itself");
        for ms in [10, 20] {
            touched.touch(at(ms), D);
        }
        touched.fire(at(120));
        touched.touch(at(130), D);
        touched.fire(at(230));
        assert_eq!(touched.take_led(), Some(at(10)));
        touched.fire(at(300));
        assert_eq!(touched.take_led(), None);
    }
}

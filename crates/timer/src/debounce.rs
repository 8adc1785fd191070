//! Debouncing: fires after a quiet period, but no later than a cap.

use std::marker::PhantomData;
use std::time::Duration;

use crate::TimePoint;

/// Quiet period and longest delay of a debounce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebounceConfig {
    /// Fires once no touch has arrived for this long.
    pub quiet: Duration,
    /// Longest delay after the first touch, so that a chatty child cannot starve its parent.
    pub cap: Duration,
}

/// Debounce state of one key. `O` is how an optional moment is stored: where many states are kept, in less room than an
/// `Option`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DebounceState<T, O = Option<T>> {
    first_touch: O,
    fired_at: O,
    cause_at: O,
    moment: PhantomData<T>,
}

impl<T, O: Default> Default for DebounceState<T, O> {
    fn default() -> Self {
        let (first_touch, fired_at, cause_at) = (O::default(), O::default(), O::default());
        DebounceState { first_touch, fired_at, cause_at, moment: PhantomData }
    }
}

impl<T: TimePoint, O: Copy + Default + From<Option<T>> + Into<Option<T>>> DebounceState<T, O> {
    /// Records a touch at `now` and returns the moment to fire at. The first touch after a quiet span of `cap` fires at
    /// once.
    pub fn record_touch(&mut self, now: T, debounce: DebounceConfig) -> T {
        let first_touch: Option<T> = self.first_touch.into();
        let fired_at: Option<T> = self.fired_at.into();
        let first = first_touch.unwrap_or(now);
        self.first_touch = Some(first).into();
        if first_touch.is_none() && fired_at.is_none_or(|fired| fired + debounce.cap <= now) {
            return now;
        }
        (now + debounce.quiet).min(first + debounce.cap)
    }

    /// Records that the key fired at `now`.
    pub fn record_fire(&mut self, now: T) {
        let first_touch = std::mem::take(&mut self.first_touch).into();
        self.cause_at = self.cause_at.into().or(first_touch).into();
        self.fired_at = Some(now).into();
    }

    /// Takes the earliest touch that led to a fire since the last call.
    pub fn take_first_touch(&mut self) -> Option<T> {
        std::mem::take(&mut self.cause_at).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const D: DebounceConfig =
        DebounceConfig { quiet: Duration::from_millis(100), cap: Duration::from_secs(1) };

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any moment will do as the origin")]
    fn a_chatty_key_fires_at_once_and_then_once_per_cap() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let (mut touched, mut due, mut fired) = (DebounceState::<Instant>::default(), None, vec![]);
        for ms in (0..5_000).step_by(50) {
            let when = touched.record_touch(at(ms), D);
            due = Some(when);
            if due.is_some_and(|d| d <= at(ms)) {
                touched.record_fire(at(ms));
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
        let mut touched = DebounceState::<Instant>::default();
        assert_eq!(touched.record_touch(start, D), start);
        touched.record_fire(start);
        let soon = start + Duration::from_millis(10);
        assert_eq!(touched.record_touch(soon, D), soon + D.quiet);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "any moment will do as the origin")]
    fn the_first_touch_is_remembered_until_somebody_asks() {
        let start = Instant::now();
        let at = |ms: u64| start + Duration::from_millis(ms);
        let mut touched = DebounceState::<Instant>::default();
        touched.record_fire(at(0));
        assert_eq!(touched.take_first_touch(), None, "it fired by itself");
        for ms in [10, 20] {
            touched.record_touch(at(ms), D);
        }
        touched.record_fire(at(120));
        touched.record_touch(at(130), D);
        touched.record_fire(at(230));
        assert_eq!(touched.take_first_touch(), Some(at(10)));
        touched.record_fire(at(300));
        assert_eq!(touched.take_first_touch(), None);
    }
}

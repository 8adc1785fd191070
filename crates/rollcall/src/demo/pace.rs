//! Timing of the story: durations of its steps and pauses for readers.

use std::time::Duration;

/// Time to read one new line on the screen.
const READING_TIME: Duration = Duration::from_millis(2_800);
/// Lowest accepted speed.
const MIN_SPEED: f64 = 0.05;

/// Speed at which the story is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StoryPace {
    speed: f64,
    readers: bool,
}

impl StoryPace {
    /// Returns the pace for a speed. Zero leaves out every pause; without readers there are no reading pauses.
    pub(super) fn new(speed: f64, readers: bool) -> Self {
        StoryPace { speed, readers }
    }

    /// Returns the real duration of `span` in the story.
    pub(super) fn scale_duration(self, span: Duration) -> Duration {
        if self.speed == 0.0 { Duration::ZERO } else { span.div_f64(self.speed) }
    }

    /// Returns the reading pause.
    pub(super) fn reading_time(self) -> Duration {
        if self.readers { self.scale_duration(READING_TIME) } else { Duration::ZERO }
    }
}

/// Parses `--speed`.
pub(super) fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if speed == 0.0 || (speed.is_finite() && speed >= MIN_SPEED) {
        Ok(speed.abs())
    } else {
        Err(format!("0 for no pauses, else at least {MIN_SPEED}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_that_make_no_sense_are_refused() {
        for text in ["-1", "NaN", "inf", "fast", "0.0001", ""] {
            assert!(speed(text).is_err(), "{text}");
        }
        for (text, wanted) in [("0", 0.0), ("-0", 0.0), ("0.5", 0.5), ("1000", 1_000.0)] {
            assert_eq!(speed(text).map(f64::to_bits), Ok(f64::to_bits(wanted)), "{text}");
        }
    }

    #[test]
    fn at_speed_zero_nothing_takes_any_time() {
        let second = Duration::from_secs(1);
        assert_eq!(StoryPace::new(0.0, true).scale_duration(second), Duration::ZERO);
        assert_eq!(StoryPace::new(0.0, true).reading_time(), Duration::ZERO);
        assert_eq!(StoryPace::new(4.0, false).scale_duration(second), Duration::from_millis(250));
        assert_eq!(StoryPace::new(1.0, false).reading_time(), Duration::ZERO);
    }
}

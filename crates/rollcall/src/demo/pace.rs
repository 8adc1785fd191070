//! How long things take in the story, and how long a reader needs.

use std::time::Duration;

/// What one new line on the screen takes to be read.
const READING: Duration = Duration::from_millis(2_800);
/// Slower than this nobody would sit through it.
const SLOWEST: f64 = 0.05;

/// How fast the story is played.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    speed: f64,
    readers: bool,
}

impl Pace {
    /// Zero leaves out every pause. Without readers nobody waits for them.
    pub(super) fn new(speed: f64, readers: bool) -> Self {
        Pace { speed, readers }
    }

    /// What takes `span` in the story.
    pub(super) fn takes(self, span: Duration) -> Duration {
        if self.speed == 0.0 { Duration::ZERO } else { span.div_f64(self.speed) }
    }

    /// Time to read.
    pub(super) fn reading(self) -> Duration {
        if self.readers { self.takes(READING) } else { Duration::ZERO }
    }
}

/// A speed as the command line has it.
pub(super) fn speed(text: &str) -> Result<f64, String> {
    let speed: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if speed == 0.0 || (speed.is_finite() && speed >= SLOWEST) {
        Ok(speed.abs())
    } else {
        Err(format!("0 for no pauses, else at least {SLOWEST}"))
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
        assert_eq!(Pace::new(0.0, true).takes(second), Duration::ZERO);
        assert_eq!(Pace::new(0.0, true).reading(), Duration::ZERO);
        assert_eq!(Pace::new(4.0, false).takes(second), Duration::from_millis(250));
        assert_eq!(Pace::new(1.0, false).reading(), Duration::ZERO);
    }
}

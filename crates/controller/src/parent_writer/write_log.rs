//! Log lines about writes that succeeded: as many as anyone reads. Where thousands of parents turn, or a server that fails now and
//! then lets some through for hours, the rest is counted; at debug level every one of them is logged.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use readiness::Time;
use rollcall_core::ParentWrite;
use tokio::time::Instant;
use tracing::{debug, info};

/// Number of lines that may be logged at once.
const MAX_LINES_AT_ONCE: u32 = 500;
/// Interval at which another one is allowed. 2 s: an hour of writes takes less than 1 MB of log.
const LINE_INTERVAL: Duration = Duration::from_secs(2);

/// How many lines there is room for.
#[derive(Debug)]
struct LineAllowance {
    left: u32,
    /// Time up to which lines were allowed.
    filled_to: Time,
    held_back: u64,
}

impl LineAllowance {
    /// Returns the number of lines held back since the one before, if another may be logged.
    fn take_line(&mut self, now: Time) -> Option<u64> {
        let intervals = (now - self.filled_to).as_millis() / LINE_INTERVAL.as_millis();
        let gained = u32::try_from(intervals).unwrap_or(u32::MAX).min(MAX_LINES_AT_ONCE);
        self.left = (self.left + gained).min(MAX_LINES_AT_ONCE);
        self.filled_to =
            if self.left == MAX_LINES_AT_ONCE { now } else { self.filled_to + gained * LINE_INTERVAL };
        if self.left == 0 {
            self.held_back += 1;
            return None;
        }
        self.left -= 1;
        Some(std::mem::take(&mut self.held_back))
    }
}

/// Log of accepted writes.
#[derive(Debug)]
pub(crate) struct WriteLog {
    allowance: Mutex<LineAllowance>,
    start: Instant,
}

impl Default for WriteLog {
    fn default() -> Self {
        let allowance = LineAllowance { left: MAX_LINES_AT_ONCE, filled_to: Time::default(), held_back: 0 };
        WriteLog { allowance: Mutex::new(allowance), start: Instant::now() }
    }
}

impl WriteLog {
    /// Logs what was written to this object, one line for each condition that says whether it is ready.
    pub(super) fn log_write(&self, object: &str, write: &ParentWrite) {
        let told =
            write.wanted.entries.iter().filter(|entry| !matches!(&*entry.r#type, "Reconciling" | "Stalled"));
        for entry in told {
            let (condition, status, reason) = (&entry.r#type, &entry.status, &entry.reason);
            let now = Time::default() + self.start.elapsed();
            let taken = self.allowance.lock().unwrap_or_else(PoisonError::into_inner).take_line(now);
            match taken {
                Some(0) => info!(object, condition, status, reason, entry.message, "status written"),
                Some(held_back) => {
                    info!(object, condition, status, reason, entry.message, held_back, "status written");
                }
                None => debug!(object, condition, status, reason, entry.message, "status written"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_is_logged_up_to_a_limit_and_then_one_line_every_two_seconds_says_how_many_it_stands_for() {
        let mut allowance =
            LineAllowance { left: MAX_LINES_AT_ONCE, filled_to: Time::default(), held_back: 0 };
        let second = Duration::from_secs(1);
        let at_once: Vec<_> = (0..800).map_while(|_| allowance.take_line(Time::default())).collect();
        assert_eq!(at_once, vec![0; 500]);
        let mut lines = Vec::new();
        for tenth in 1_u32..=36_000 {
            let now = Time::default() + tenth * (second / 10);
            lines.extend(allowance.take_line(now));
        }
        assert_eq!(lines.len(), 1_800, "one every two seconds of an hour");
        // The one that ended the first crowd is among them.
        assert_eq!(lines.iter().sum::<u64>(), 1 + 36_000 - 1_800);
    }

    #[test]
    fn what_is_written_now_and_then_is_logged_each_time() {
        let mut allowance =
            LineAllowance { left: MAX_LINES_AT_ONCE, filled_to: Time::default(), held_back: 0 };
        for minute in 0_u32..10_000 {
            let now = Time::default() + minute * Duration::from_mins(1);
            assert_eq!([allowance.take_line(now), allowance.take_line(now)], [Some(0), Some(0)]);
        }
    }
}

//! How far a run has come, on standard error.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Width of the bar.
const BAR_WIDTH: usize = 24;

/// A bar with an estimate on terminals, and a line per step elsewhere.
pub(crate) struct RunProgress {
    begun: Instant,
    done: usize,
    all: usize,
    is_terminal: bool,
}

impl RunProgress {
    /// Begins with nothing done.
    pub(crate) fn begin(all: usize) -> RunProgress {
        RunProgress { begun: Instant::now(), done: 0, all, is_terminal: std::io::stderr().is_terminal() }
    }

    /// Shows what is done next.
    pub(crate) fn show(&self, what: &str) {
        let text = progress_text(self.done, self.all, self.begun.elapsed(), what);
        let mut stderr = std::io::stderr().lock();
        // A terminal that is gone is no reason to stop measuring.
        let _ = if self.is_terminal {
            write!(stderr, "\r\x1b[2K{text}").and_then(|()| stderr.flush())
        } else {
            writeln!(stderr, "{text}")
        };
    }

    /// Counts a step as done.
    pub(crate) fn step(&mut self) {
        self.step_by(1);
    }

    /// Counts several as done, or one that is as long as several.
    pub(crate) fn step_by(&mut self, steps: usize) {
        self.done += steps;
    }

    /// Clears the bar.
    pub(crate) fn end(&self) {
        if self.is_terminal {
            let mut stderr = std::io::stderr().lock();
            let _ = write!(stderr, "\r\x1b[2K").and_then(|()| stderr.flush());
        }
    }
}

fn progress_text(done: usize, all: usize, elapsed: Duration, what: &str) -> String {
    let full = BAR_WIDTH * done / all.max(1);
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(BAR_WIDTH - full));
    let left = match u32::try_from(done) {
        Ok(steps @ 1..) => {
            let left = elapsed / steps * u32::try_from(all - done).unwrap_or(u32::MAX);
            format!("about {} left", duration_text(left))
        }
        _ => "no estimate yet".to_owned(),
    };
    format!("[{bar}] {done}/{all} {left}: {what}")
}

fn duration_text(duration: Duration) -> String {
    match duration.as_secs() {
        seconds @ ..90 => format!("{seconds} s"),
        seconds => format!("{} min", seconds.div_ceil(60)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_estimated_from_what_is_done() {
        let text = progress_text(6, 24, Duration::from_secs(60), "kopf");
        assert_eq!(text, "[######..................] 6/24 about 3 min left: kopf");
        assert_eq!(
            progress_text(0, 2, Duration::ZERO, "kopf"),
            "[........................] 0/2 no estimate yet: kopf"
        );
    }
}

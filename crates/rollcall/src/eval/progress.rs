//! Progress bar on a terminal, for long runs.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::rc::Rc;

/// Minimum number of objects before the bar is shown; fewer are done too quickly.
const MIN_OBJECTS_SHOWN: usize = 1_000;
/// Number of objects between two redraws.
const OBJECTS_PER_REDRAW: usize = 500;
/// Width of the bar.
const BAR_WIDTH: u64 = 30;

#[derive(Debug, Default)]
pub(super) struct EvalProgress {
    done: usize,
    shown: bool,
    /// Number of bytes read so far, and in total. A JSON file is read at once and standard input has no size: objects
    /// are then counted and no bar is drawn.
    pub(super) bytes_read: Rc<Cell<u64>>,
    total: u64,
}

impl EvalProgress {
    /// Adds the sizes of the files to be read.
    pub(super) fn expect_files(&mut self, files: &[PathBuf]) {
        self.total = files.iter().filter_map(|file| Some(std::fs::metadata(file).ok()?.len())).sum();
    }

    /// Counts one evaluated object.
    pub(super) fn count_object(&mut self) {
        self.done += 1;
        if self.done > MIN_OBJECTS_SHOWN
            && self.done.is_multiple_of(OBJECTS_PER_REDRAW)
            && io::stderr().is_terminal()
        {
            self.shown = true;
            let bar = render_bar(self.bytes_read.get(), self.total);
            let _ = write!(io::stderr(), "\r\x1b[K{bar}{} objects judged", self.done);
        }
    }

    /// Clears the line.
    pub(super) fn clear_line(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// Returns `[#####     ]  50 %  `, or an empty string if the total is unknown.
fn render_bar(read: u64, total: u64) -> String {
    if read >= total {
        return String::new();
    }
    let cells = |count: u64| usize::try_from(count).unwrap_or(0);
    let full = read * BAR_WIDTH / total;
    let empty = BAR_WIDTH - full;
    format!("[{}{}] {:>3} %  ", "#".repeat(cells(full)), " ".repeat(cells(empty)), read * 100 / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_the_part_that_was_read_and_nothing_where_it_is_not_known() {
        assert_eq!(render_bar(1, 2), format!("[{}{}]  50 %  ", "#".repeat(15), " ".repeat(15)));
        assert_eq!((render_bar(0, 0).as_str(), render_bar(7, 7).as_str()), ("", ""));
    }
}

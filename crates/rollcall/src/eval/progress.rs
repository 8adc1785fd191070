//! How far it is, on a terminal, where it takes long enough to ask.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::rc::Rc;

/// Fewer objects than this are over before anybody looks.
const FROM: usize = 1_000;
/// So many objects between two looks.
const EVERY: usize = 500;
/// So wide is the bar.
const WIDTH: u64 = 30;

#[derive(Debug, Default)]
pub(super) struct Progress {
    done: usize,
    shown: bool,
    /// Bytes that were read, of how many. A file of JSON is read at once, standard input has no size: then objects
    /// are counted and no bar is drawn.
    pub(super) read: Rc<Cell<u64>>,
    total: u64,
}

impl Progress {
    /// All of these will be read.
    pub(super) fn expect(&mut self, files: &[PathBuf]) {
        self.total = files.iter().filter_map(|file| Some(std::fs::metadata(file).ok()?.len())).sum();
    }

    /// One more object is judged.
    pub(super) fn step(&mut self) {
        self.done += 1;
        if self.done > FROM && self.done.is_multiple_of(EVERY) && io::stderr().is_terminal() {
            self.shown = true;
            let bar = bar(self.read.get(), self.total);
            let _ = write!(io::stderr(), "\r\x1b[K{bar}{} objects judged", self.done);
        }
    }

    /// Gives the line back.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// `[#####     ]  50 %  `, or nothing where that cannot be known.
fn bar(read: u64, total: u64) -> String {
    if read >= total {
        return String::new();
    }
    let full = (read * WIDTH / total) as usize;
    let empty = WIDTH as usize - full;
    format!("[{}{}] {:>3} %  ", "#".repeat(full), " ".repeat(empty), read * 100 / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_the_part_that_was_read_and_nothing_where_it_is_not_known() {
        assert_eq!(bar(1, 2), format!("[{}{}]  50 %  ", "#".repeat(15), " ".repeat(15)));
        assert_eq!((bar(0, 0).as_str(), bar(7, 7).as_str()), ("", ""));
    }
}

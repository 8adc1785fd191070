//! How far it is, on a terminal, where it takes long enough to ask.

use std::io::{self, IsTerminal, Write};

/// Fewer objects than this are over before anybody looks.
const FROM: usize = 1_000;
/// So many objects between two looks.
const EVERY: usize = 500;

#[derive(Debug, Default)]
pub(super) struct Progress {
    done: usize,
    shown: bool,
}

impl Progress {
    /// One more object is judged.
    pub(super) fn step(&mut self) {
        self.done += 1;
        if self.done > FROM && self.done.is_multiple_of(EVERY) && io::stderr().is_terminal() {
            self.shown = true;
            let _ = write!(io::stderr(), "\r\x1b[Kjudged {} objects …", self.done);
        }
    }

    /// Gives the line back.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

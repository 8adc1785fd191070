//! What one judgement by CEL may cost, counted while it runs.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::value::Fault;
use crate::lua::Limit;

/// Operations, and elements walked: some milliseconds. The rules that people write need a few hundred.
pub(super) const STEPS: u32 = 100_000;

/// Bytes that an evaluation may make. What it made and dropped counts too.
pub(super) const BYTES: usize = 8 << 20;

/// Steps decide, so that the same object gets the same verdict on a busy machine. This is for what nobody counted,
/// and longer than a container that has used up its share of CPU has to wait for the next.
const TIME: Duration = Duration::from_millis(250);

/// The account of one judgement.
#[derive(Debug, Default)]
pub(super) struct Meter {
    steps: Cell<u32>,
    bytes: Cell<usize>,
    started: Cell<Option<Instant>>,
    spent: Cell<Option<Limit>>,
}

impl Meter {
    /// Takes `count` steps. Once a bound is reached every further step fails too: no operator can absorb that.
    pub(super) fn walk(&self, count: usize) -> Result<(), Fault> {
        let before = self.steps.get();
        let after = before.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        self.steps.set(after);
        if after > STEPS {
            return Err(self.spend(Limit::Steps));
        }
        // Few judgements get this far, so that most never read the clock.
        if before / 4096 == after / 4096 { Ok(()) } else { self.look_at_the_clock() }
    }

    /// Makes a value of so many bytes: a step for the making, and one more for each 64 bytes.
    pub(super) fn make(&self, bytes: usize) -> Result<(), Fault> {
        let made = self.bytes.get().saturating_add(bytes);
        self.bytes.set(made);
        if made > BYTES {
            return Err(self.spend(Limit::Memory));
        }
        self.read(bytes)
    }

    /// Reads so many bytes.
    pub(super) fn read(&self, bytes: usize) -> Result<(), Fault> {
        self.walk(1 + bytes / 64)
    }

    pub(super) fn spent(&self) -> Option<Limit> {
        self.spent.get()
    }

    pub(super) fn spend(&self, limit: Limit) -> Fault {
        let first = self.spent.get().unwrap_or(limit);
        self.spent.set(Some(first));
        Fault::Limit(first)
    }

    #[expect(clippy::disallowed_methods, reason = "a bound on effort, no part of a verdict")]
    fn look_at_the_clock(&self) -> Result<(), Fault> {
        let now = Instant::now();
        match self.started.get() {
            None => {
                self.started.set(Some(now));
                Ok(())
            }
            Some(started) if now.duration_since(started) > TIME => Err(self.spend(Limit::Time)),
            Some(_) => Ok(()),
        }
    }
}

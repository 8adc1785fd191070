//! What one call of a script may cost.

use std::cell::Cell;
use std::fmt;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The bound that a call ran into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// More loop turns and calls than any rule needs.
    Steps,
    /// Longer than a rule may run.
    Time,
    /// More memory than a rule may hold.
    Memory,
    /// Calls within calls, deeper than the stack.
    Depth,
    /// A pattern, a text or a result too large to work on.
    Size,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Steps => "it took too many steps",
            Limit::Time => "it ran for too long",
            Limit::Memory => "it used too much memory",
            Limit::Depth => "it called itself too deeply",
            Limit::Size => "it worked on too large a text",
        })
    }
}

/// Turns and calls; scripts of Argo CD's library need some hundreds.
const STEPS: u32 = 100_000;

/// Half of what a hostile call may cost: the other half is for the one native call that a check may have to wait for.
const TIME: Duration = Duration::from_millis(5);

/// The account of the call that is running. Shared with the functions that a script calls.
#[derive(Clone, Default)]
pub(super) struct Budget(Rc<Account>);

#[derive(Default)]
struct Account {
    steps: Cell<u32>,
    deadline: Cell<Option<Instant>>,
    spent: Cell<Option<Limit>>,
}

impl Budget {
    pub(super) fn open(&self) {
        self.0.steps.set(0);
        self.0.spent.set(None);
        self.0.deadline.set(Some(clock() + TIME));
    }

    /// Closes the account: no bound holds for what the machine does by itself.
    pub(super) fn close(&self) {
        self.0.deadline.set(None);
    }

    /// One step. Once a bound is reached every further step fails too, so that a script cannot catch it and go on.
    pub(super) fn step(&self) -> Result<(), Limit> {
        let Some(deadline) = self.0.deadline.get() else { return Ok(()) };
        let steps = self.0.steps.get() + 1;
        self.0.steps.set(steps);
        match self.0.spent.get() {
            Some(limit) => Err(limit),
            None if steps > STEPS => Err(self.spend(Limit::Steps)),
            None if clock() > deadline => Err(self.spend(Limit::Time)),
            None => Ok(()),
        }
    }

    pub(super) fn spend(&self, limit: Limit) -> Limit {
        self.0.spent.set(Some(self.0.spent.get().unwrap_or(limit)));
        limit
    }

    pub(super) fn spent(&self) -> Option<Limit> {
        self.0.spent.get()
    }

    pub(super) fn steps(&self) -> u32 {
        self.0.steps.get()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a call may take is a bound on effort, no part of a verdict"
)]
fn clock() -> Instant {
    Instant::now()
}

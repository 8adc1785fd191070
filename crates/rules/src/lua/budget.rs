//! Budget of one script call.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use rollcall_cel::CostLimit;

/// Maximum number of loop iterations and calls; scripts of Argo CD's library need some hundreds.
const MAX_SCRIPT_STEPS: u32 = 100_000;

/// Maximum cost of reading the object: a step per value and per 64 bytes of text. The largest object that a server
/// stores needs about half of it. It bounds the memory too, as a value of Lua has some 64 bytes.
const MAX_READ_STEPS: usize = 200_000;

/// Last resort for reading: Lua's table of strings has no secret in its hash, so that keys can be chosen that collide.
const MAX_READ_TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 10_000 } else { 250 });

/// Half of the cost allowed to a hostile call: the other half is for the one native call that a check may have to wait
/// for.
const MAX_SCRIPT_TIME: Duration = Duration::from_millis(5);

/// Counters of the running call, shared with the functions that a script calls.
#[derive(Clone, Default)]
pub(super) struct ScriptBudget(Rc<BudgetAccount>);

#[derive(Default)]
struct BudgetAccount {
    steps: Cell<u32>,
    /// Steps spent on reading the object.
    read_steps: Cell<usize>,
    /// Time spent on reading the object, before the reading that is under way.
    read_time: Cell<Duration>,
    /// Since when the object is being read.
    reading: Cell<Option<Instant>>,
    deadline: Cell<Option<Instant>>,
    spent: Cell<Option<CostLimit>>,
}

impl ScriptBudget {
    /// Opens the budget of one evaluation, before anything is read of its object.
    pub(super) fn open(&self) {
        self.0.steps.set(0);
        self.0.read_steps.set(0);
        self.0.read_time.set(Duration::ZERO);
        self.0.spent.set(None);
        self.0.deadline.set(None);
    }

    /// Starts the script itself.
    pub(super) fn start_call(&self) {
        self.0.deadline.set(Some(read_clock() + MAX_SCRIPT_TIME));
    }

    /// Reads some of the object within its own bounds. What that takes is not taken from the script's time.
    pub(super) fn while_reading<T>(&self, read: impl FnOnce() -> T) -> T {
        let started = read_clock();
        self.0.reading.set(Some(started));
        let done = read();
        self.0.reading.set(None);
        let took = read_clock() - started;
        self.0.read_time.set(self.0.read_time.get() + took);
        self.0.deadline.set(self.0.deadline.get().map(|deadline| deadline + took));
        done
    }

    /// Charges a value of the object with this many bytes of text.
    #[inline]
    pub(super) fn charge_read(&self, bytes: usize) -> Result<(), CostLimit> {
        self.charge_read_steps(1 + bytes / 64)
    }

    /// Charges the text of a value that was charged without it.
    #[inline]
    pub(super) fn charge_read_text(&self, bytes: usize) -> Result<(), CostLimit> {
        if bytes < 64 { Ok(()) } else { self.charge_read_steps(bytes / 64) }
    }

    /// Every value of an object comes through here: it looks closer only now and then, and once a limit is reached.
    #[inline]
    fn charge_read_steps(&self, steps: usize) -> Result<(), CostLimit> {
        let before = self.0.read_steps.get();
        let after = before + steps;
        self.0.read_steps.set(after);
        if after <= MAX_READ_STEPS && before / 256 == after / 256 {
            return Ok(());
        }
        self.check_reading(after)
    }

    fn check_reading(&self, steps: usize) -> Result<(), CostLimit> {
        if let Some(limit) = self.0.spent.get() {
            return Err(limit);
        }
        if steps > MAX_READ_STEPS {
            return Err(self.record_limit(CostLimit::Size));
        }
        if let Some(started) = self.0.reading.get()
            && read_clock() - started + self.0.read_time.get() > MAX_READ_TIME
        {
            // No small number of steps, by which a thread that was descheduled is known.
            self.0.steps.set(MAX_SCRIPT_STEPS);
            return Err(self.record_limit(CostLimit::Time));
        }
        Ok(())
    }

    /// Ends the call: no limit applies to the interpreter's own work.
    pub(super) fn end_call(&self) {
        self.0.deadline.set(None);
    }

    /// Charges one step. Once a limit is reached every further step fails too, so that a script cannot catch the error
    /// and continue.
    pub(super) fn charge_step(&self) -> Result<(), CostLimit> {
        let Some(deadline) = self.0.deadline.get() else { return Ok(()) };
        let steps = self.0.steps.get() + 1;
        self.0.steps.set(steps);
        match self.0.spent.get() {
            Some(limit) => Err(limit),
            None if steps > MAX_SCRIPT_STEPS => Err(self.record_limit(CostLimit::Steps)),
            None if read_clock() > deadline => Err(self.record_limit(CostLimit::Time)),
            None => Ok(()),
        }
    }

    pub(super) fn record_limit(&self, limit: CostLimit) -> CostLimit {
        self.0.spent.set(Some(self.0.spent.get().unwrap_or(limit)));
        // Whatever is read from now on is refused.
        self.0.read_steps.set(MAX_READ_STEPS);
        limit
    }

    pub(super) fn spent_limit(&self) -> Option<CostLimit> {
        self.0.spent.get()
    }

    pub(super) fn steps_taken(&self) -> u32 {
        self.0.steps.get()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "how long a call may take is a bound on effort, no part of a verdict"
)]
fn read_clock() -> Instant {
    Instant::now()
}

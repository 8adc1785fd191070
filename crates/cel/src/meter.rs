//! Budget of one CEL evaluation, charged while it runs.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::CostLimit;
use crate::fault::EvalFault;

/// Maximum number of operations and elements walked: some milliseconds. Typical rules need a few hundred.
pub(crate) const MAX_EVALUATION_STEPS: u32 = 100_000;

/// Maximum number of bytes that an evaluation may allocate, including those it has dropped.
pub(crate) const MAX_EVALUATION_BYTES: usize = 8 << 20;

/// Last resort for uncounted work. Steps decide, so that the same object gets the same verdict on a busy machine; this
/// time is longer than a container that has used up its CPU quota waits for the next period. Without optimisation the
/// steps alone may take as long.
const MAX_EVALUATION_TIME: Duration =
    Duration::from_millis(if cfg!(debug_assertions) { 10_000 } else { 250 });

/// What an evaluation may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CostBounds {
    pub(crate) steps: u32,
    /// Bytes that it may allocate, and bytes of the values that it may keep of the object.
    pub(crate) bytes: usize,
}

impl Default for CostBounds {
    fn default() -> CostBounds {
        CostBounds { steps: MAX_EVALUATION_STEPS, bytes: MAX_EVALUATION_BYTES }
    }
}

/// Counters of one evaluation, or of several that share a budget.
#[derive(Debug, Default)]
pub(crate) struct CostMeter {
    bounds: CostBounds,
    steps: Cell<u32>,
    bytes: Cell<usize>,
    /// Values of the object that were kept.
    kept: Cell<usize>,
    started: Cell<Option<Instant>>,
    spent: Cell<Option<CostLimit>>,
}

impl CostMeter {
    pub(crate) fn with_bounds(bounds: CostBounds) -> CostMeter {
        CostMeter { bounds, ..CostMeter::default() }
    }

    /// Steps charged so far.
    pub(crate) fn steps(&self) -> u32 {
        self.steps.get()
    }

    /// Charges `count` steps. Once a limit is reached every further step fails too: no operator can absorb that.
    pub(crate) fn charge_steps(&self, count: usize) -> Result<(), EvalFault> {
        let before = self.steps.get();
        let after = before.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        self.steps.set(after);
        if after > self.bounds.steps {
            return Err(self.record_limit(CostLimit::Steps));
        }
        // Few evaluations get this far, so that most never read the clock.
        if before / 4096 == after / 4096 { Ok(()) } else { self.check_time() }
    }

    /// Charges the allocation of this many bytes: one step, and one more per 64 bytes.
    pub(crate) fn charge_allocation(&self, bytes: usize) -> Result<(), EvalFault> {
        let made = self.bytes.get().saturating_add(bytes);
        self.bytes.set(made);
        if made > self.bounds.bytes {
            return Err(self.record_limit(CostLimit::Memory));
        }
        self.charge_read(bytes)
    }

    /// Charges the parsing of this many bytes of the object: a step per 256 of them.
    #[inline]
    pub(crate) fn charge_scan(&self, bytes: usize) -> Result<(), EvalFault> {
        // Most keys cost nothing: there is no step to charge.
        if bytes < 256 { Ok(()) } else { self.charge_steps(bytes / 256) }
    }

    /// Charges a value of the object that is kept for the evaluation. Its memory decides, not its step: the largest
    /// object that a server stores has fewer values than the limit.
    #[inline]
    pub(crate) fn charge_kept_value(&self, bytes: usize) -> Result<(), EvalFault> {
        let kept = self.kept.get() + 1;
        self.kept.set(kept);
        if kept.is_multiple_of(8) { self.charge_kept_values(kept, bytes) } else { Ok(()) }
    }

    /// Charges the step of eight values that are kept.
    fn charge_kept_values(&self, kept: usize, bytes: usize) -> Result<(), EvalFault> {
        if kept.saturating_mul(bytes) > self.bounds.bytes {
            return Err(self.record_limit(CostLimit::Memory));
        }
        self.charge_steps(1)
    }

    /// Charges reading this many bytes.
    pub(crate) fn charge_read(&self, bytes: usize) -> Result<(), EvalFault> {
        self.charge_steps(1 + bytes / 64)
    }

    pub(crate) fn spent_limit(&self) -> Option<CostLimit> {
        self.spent.get()
    }

    pub(crate) fn record_limit(&self, limit: CostLimit) -> EvalFault {
        let first = self.spent.get().unwrap_or(limit);
        self.spent.set(Some(first));
        EvalFault::Limit(first)
    }

    #[expect(clippy::disallowed_methods, reason = "a bound on effort, no part of a verdict")]
    fn check_time(&self) -> Result<(), EvalFault> {
        let now = Instant::now();
        match self.started.get() {
            None => {
                self.started.set(Some(now));
                Ok(())
            }
            Some(started) if now.duration_since(started) > MAX_EVALUATION_TIME => {
                Err(self.record_limit(CostLimit::Time))
            }
            Some(_) => Ok(()),
        }
    }
}

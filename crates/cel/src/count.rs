//! An expression that yields a count.

use crate::cel_type::CelType;
use crate::errors::{CompileError, EvalError};
use crate::meter::{CostBounds, CostMeter};
use crate::name_scope::RootNames;
use crate::object_json::ObjectJson;
use crate::program::CelProgram;
use crate::value::CelValue;

/// An expression over one named object that yields a count.
#[derive(Debug)]
pub struct CountExpression(CelProgram);

/// What the counts of one object may cost together. Counts are computed where an object is taken in, so they may do less than a
/// rule: a count reads a number, or the size of a list.
#[derive(Debug)]
pub struct CountBudget(CostMeter);

impl CountBudget {
    /// Most steps: enough for 60 counts of an object of 75 kB, and for some of the largest that a server stores.
    pub const MAX_STEPS: u32 = 20_000;

    /// The same for objects whose authors have brought the expressions too, and may be many: enough for three counts of an object
    /// of 75 kB.
    pub const MAX_STEPS_OF_AUTHOR: u32 = 4_000;

    /// Most bytes allocated, and most bytes of values kept.
    pub const MAX_BYTES: usize = 4 << 20;

    /// Returns what the counts of an object may cost whose author has brought them.
    pub fn of_author() -> CountBudget {
        CountBudget::with_steps(CountBudget::MAX_STEPS_OF_AUTHOR)
    }

    fn with_steps(steps: u32) -> CountBudget {
        CountBudget(CostMeter::with_bounds(CostBounds { steps, bytes: CountBudget::MAX_BYTES }))
    }

    /// Returns the number of steps spent.
    pub fn spent_steps(&self) -> u32 {
        self.0.steps()
    }
}

impl Default for CountBudget {
    fn default() -> CountBudget {
        CountBudget::with_steps(CountBudget::MAX_STEPS)
    }
}

impl CountExpression {
    /// Compiles `source`, in which the object is named `id`.
    pub fn compile(source: &str, id: &str) -> Result<CountExpression, CompileError> {
        CelProgram::compile(source, RootNames::Object(id), CelType::Int).map(CountExpression)
    }

    /// Returns the count for this object, for which a budget of its own is there.
    pub fn evaluate_count(&self, object: ObjectJson<'_>) -> Result<u32, EvalError> {
        self.evaluate_count_within(object, &CountBudget::default())
    }

    /// Returns the count for this object. A negative result counts as zero. Once the budget is spent every count fails.
    pub fn evaluate_count_within(
        &self,
        object: ObjectJson<'_>,
        budget: &CountBudget,
    ) -> Result<u32, EvalError> {
        let CountBudget(meter) = budget;
        let fields = self.0.needs.read_object(object, meter).map_err(EvalError::from_read_error)?;
        match self.0.evaluate_value(&fields, meter)? {
            CelValue::Int(number) => Ok(u32::try_from(number.max(0)).unwrap_or(u32::MAX)),
            other => Err(EvalError::with_message(format!(
                "the expression yields '{}', not 'int'",
                other.cel_type().name()
            ))),
        }
    }
}

//! An expression that yields a count.

use crate::cel_type::CelType;
use crate::errors::{CompileError, EvalError};
use crate::meter::CostMeter;
use crate::object_json::ObjectJson;
use crate::program::CelProgram;
use crate::value::CelValue;

/// An expression over one named object that yields a count.
#[derive(Debug)]
pub struct CountExpression(CelProgram);

impl CountExpression {
    /// Compiles `source`, in which the object is named `id`.
    pub fn compile(source: &str, id: &str) -> Result<CountExpression, CompileError> {
        CelProgram::compile(source, Some(id), CelType::Int).map(CountExpression)
    }

    /// Returns the count for this object. A negative result counts as zero.
    pub fn evaluate_count(&self, object: ObjectJson<'_>) -> Result<u32, EvalError> {
        let meter = CostMeter::default();
        let fields = self.0.needs.read_object(object, &meter).map_err(EvalError::from_read_error)?;
        match self.0.evaluate_value(&fields, &meter)? {
            CelValue::Int(number) => Ok(u32::try_from(number.max(0)).unwrap_or(u32::MAX)),
            other => Err(EvalError::with_message(format!(
                "the expression yields '{}', not 'int'",
                other.cel_type().name()
            ))),
        }
    }
}

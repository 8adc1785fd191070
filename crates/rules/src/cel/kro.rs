//! kro's `readyWhen`.

use super::meter::Meter;
use super::tree::Needs;
use super::value::Ty;
use super::{CompileError, EvalError, Program};
use crate::lua::Object;

/// kro's `readyWhen`: expressions that must all be true.
#[derive(Debug)]
pub struct ReadyWhen {
    programs: Vec<Program>,
    needs: Needs,
}

impl ReadyWhen {
    /// Compiles the expressions, with or without kro's `${…}` around them. `id` is the name of the object in them; without
    /// it the names are those of [`HealthCheck`](super::HealthCheck). An error comes with the place of its expression.
    pub fn compile(expressions: &[&str], id: Option<&str>) -> Result<ReadyWhen, (usize, CompileError)> {
        let mut programs = Vec::with_capacity(expressions.len());
        let mut needs = Needs::default();
        for (at, source) in expressions.iter().enumerate() {
            let inner = source.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
            let program =
                Program::compile(inner.unwrap_or(source), id, Ty::Bool).map_err(|error| (at, error))?;
            needs.add(&program.needs);
            programs.push(program);
        }
        Ok(ReadyWhen { programs, needs })
    }

    /// The place of the first expression that is not true, if there is one; or of the first that has no value.
    pub fn judge(&self, object: Object<'_>) -> Result<Option<usize>, (usize, EvalError)> {
        let fields = self.needs.read(object).map_err(|why| (0, EvalError::unreadable(why)))?;
        let meter = Meter::default();
        for (at, program) in self.programs.iter().enumerate() {
            if !program.holds(&fields, &meter).map_err(|error| (at, error))? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// The top-level fields that are read; `None` for the whole object.
    pub fn fields(&self) -> Option<Vec<&str>> {
        self.needs.names()
    }
}

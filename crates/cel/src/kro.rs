//! kro's `readyWhen`.

use crate::cel_type::CelType;
use crate::errors::{CompileError, EvalError};
use crate::json_tree::NeededFields;
use crate::meter::CostMeter;
use crate::name_scope::RootNames;
use crate::object_json::ObjectJson;
use crate::program::CelProgram;

/// kro's `readyWhen`: expressions that must all be true.
#[derive(Debug)]
pub struct ReadyWhen {
    programs: Vec<CelProgram>,
    needs: NeededFields,
}

impl ReadyWhen {
    /// Compiles the expressions, with or without kro's `${…}` around them. `id` is the name of the object in them;
    /// without it the names are those of [`HealthCheck`](crate::HealthCheck). An error comes with the index of its
    /// expression.
    pub fn compile(expressions: &[&str], id: Option<&str>) -> Result<ReadyWhen, (usize, CompileError)> {
        let mut programs = Vec::with_capacity(expressions.len());
        let mut needs = NeededFields::default();
        for (at, source) in expressions.iter().enumerate() {
            let inner = source.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
            let roots = id.map_or(RootNames::Fields, RootNames::Object);
            let program = CelProgram::compile(inner.unwrap_or(source), roots, CelType::Bool)
                .map_err(|error| (at, error))?;
            needs.merge_needs(&program.needs);
            programs.push(program);
        }
        Ok(ReadyWhen { programs, needs })
    }

    /// Returns the index of the first expression that is not true, if any; an error with the index of the first that
    /// has no value.
    pub fn find_unmet(&self, object: ObjectJson<'_>) -> Result<Option<usize>, (usize, EvalError)> {
        let meter = CostMeter::default();
        let fields =
            self.needs.read_object(object, &meter).map_err(|why| (0, EvalError::from_read_error(why)))?;
        for (at, program) in self.programs.iter().enumerate() {
            if !program.evaluate_bool(&fields, &meter).map_err(|error| (at, error))? {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Returns the top-level fields that the expressions read; `None` for the whole object.
    pub fn referenced_fields(&self) -> Option<Vec<&str>> {
        self.needs.field_names()
    }
}

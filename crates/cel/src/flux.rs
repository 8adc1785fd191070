//! Flux's `healthCheckExprs`.

use crate::cel_type::CelType;
use crate::errors::{CompileError, EvalError};
use crate::json_tree::{JsonFields, JsonTree, NeededFields};
use crate::meter::CostMeter;
use crate::name_scope::RootNames;
use crate::object_json::ObjectJson;
use crate::program::CelProgram;

/// Result of Flux's three expressions for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthCheckResult {
    /// `current` is true.
    Current,
    /// The observed generation is not the current one.
    Stale {
        /// `status.observedGeneration`.
        observed: i64,
        /// `metadata.generation`.
        generation: i64,
    },
    /// `inProgress` is true.
    InProgress,
    /// `failed` is true.
    Failed,
    /// No expression is true, which counts as in progress.
    None,
}

/// Flux's `healthCheckExprs` for one kind.
#[derive(Debug)]
pub struct HealthCheck {
    in_progress: Option<CelProgram>,
    failed: Option<CelProgram>,
    current: CelProgram,
    needs: NeededFields,
}

impl HealthCheck {
    /// Compiles the expressions. An error comes with the name of its expression: `current`, `inProgress` or `failed`.
    pub fn compile(
        current: &str,
        in_progress: Option<&str>,
        failed: Option<&str>,
    ) -> Result<HealthCheck, (&'static str, CompileError)> {
        let program = |name: &'static str, source: &str| {
            CelProgram::compile(source, RootNames::Fields, CelType::Bool).map_err(|error| (name, error))
        };
        let in_progress = in_progress.map(|source| program("inProgress", source)).transpose()?;
        let failed = failed.map(|source| program("failed", source)).transpose()?;
        let current = program("current", current)?;
        let mut needs = NeededFields::default();
        needs.require_subfield("status", "observedGeneration");
        needs.require_subfield("metadata", "generation");
        [&in_progress, &failed].into_iter().flatten().for_each(|program| needs.merge_needs(&program.needs));
        needs.merge_needs(&current.needs);
        Ok(HealthCheck { in_progress, failed, current, needs })
    }

    /// Evaluates an object in Flux's order: the generation first, then `inProgress`, `failed`, `current`. The first
    /// error ends the evaluation, with the name of the expression; a missing field is an error.
    pub fn evaluate_health(
        &self,
        object: ObjectJson<'_>,
    ) -> Result<HealthCheckResult, (&'static str, EvalError)> {
        let meter = CostMeter::default();
        let fields =
            self.needs.read_object(object, &meter).map_err(|why| ("", EvalError::from_read_error(why)))?;
        if let Some((observed, generation)) = generation_mismatch(&fields) {
            return Ok(HealthCheckResult::Stale { observed, generation });
        }
        let in_order = [
            ("inProgress", self.in_progress.as_ref(), HealthCheckResult::InProgress),
            ("failed", self.failed.as_ref(), HealthCheckResult::Failed),
            ("current", Some(&self.current), HealthCheckResult::Current),
        ];
        for (name, program, health) in in_order {
            if let Some(program) = program
                && program.evaluate_bool(&fields, &meter).map_err(|error| (name, error))?
            {
                return Ok(health);
            }
        }
        Ok(HealthCheckResult::None)
    }

    /// Returns the top-level fields that the expressions read; `None` for the whole object.
    pub fn referenced_fields(&self) -> Option<Vec<&str>> {
        self.needs.field_names()
    }
}

/// Returns the observed and the current generation if they differ. A value that is no integer is ignored; Flux ends with
/// an error there.
fn generation_mismatch(object: &JsonFields<'_>) -> Option<(i64, i64)> {
    let integer = |root: &str, field: &str| match object.get(root) {
        Some(JsonTree::Map(fields)) => match fields.get(field) {
            Some(JsonTree::Int(number)) => Some(*number),
            _ => None,
        },
        _ => None,
    };
    let (observed, generation) =
        (integer("status", "observedGeneration")?, integer("metadata", "generation")?);
    (observed != generation).then_some((observed, generation))
}

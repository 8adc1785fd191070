//! Flux's `healthCheckExprs`.

use super::meter::Meter;
use super::tree::{Fields, Needs, Tree};
use super::value::Ty;
use super::{CompileError, EvalError, Program};
use crate::lua::Object;

/// What an object is by Flux's three expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// `current` is true.
    Current,
    /// What was observed is not the generation that is.
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
    /// None is true, which is in progress.
    None,
}

/// Flux's `healthCheckExprs` for one kind.
#[derive(Debug)]
pub struct HealthCheck {
    in_progress: Option<Program>,
    failed: Option<Program>,
    current: Program,
    needs: Needs,
}

impl HealthCheck {
    /// Compiles the expressions. Where one is wrong, the error comes with its name: `current`, `inProgress` or `failed`.
    pub fn compile(
        current: &str,
        in_progress: Option<&str>,
        failed: Option<&str>,
    ) -> Result<HealthCheck, (&'static str, CompileError)> {
        let program = |name: &'static str, source: &str| {
            Program::compile(source, None, Ty::Bool).map_err(|error| (name, error))
        };
        let in_progress = in_progress.map(|source| program("inProgress", source)).transpose()?;
        let failed = failed.map(|source| program("failed", source)).transpose()?;
        let current = program("current", current)?;
        let mut needs = Needs::default();
        needs.part_of("status", "observedGeneration");
        needs.part_of("metadata", "generation");
        [&in_progress, &failed].into_iter().flatten().for_each(|program| needs.add(&program.needs));
        needs.add(&current.needs);
        Ok(HealthCheck { in_progress, failed, current, needs })
    }

    /// Judges an object in Flux's order: the generation first, then `inProgress`, `failed`, `current`. The first error
    /// ends it, with the name of the expression; a missing field is one.
    pub fn judge(&self, object: Object<'_>) -> Result<Health, (&'static str, EvalError)> {
        let fields = self.needs.read(object).map_err(|why| ("", EvalError::unreadable(why)))?;
        if let Some((observed, generation)) = generations(&fields) {
            return Ok(Health::Stale { observed, generation });
        }
        let meter = Meter::default();
        let in_order = [
            ("inProgress", self.in_progress.as_ref(), Health::InProgress),
            ("failed", self.failed.as_ref(), Health::Failed),
            ("current", Some(&self.current), Health::Current),
        ];
        for (name, program, health) in in_order {
            if let Some(program) = program
                && program.holds(&fields, &meter).map_err(|error| (name, error))?
            {
                return Ok(health);
            }
        }
        Ok(Health::None)
    }

    /// The top-level fields that are read; `None` for the whole object.
    pub fn fields(&self) -> Option<Vec<&str>> {
        self.needs.names()
    }
}

/// Observed and real generation, where they differ. What is no integer is passed over, as Flux does it.
fn generations(object: &Fields<'_>) -> Option<(i64, i64)> {
    let integer = |root: &str, field: &str| match object.get(root) {
        Some(Tree::Map(fields)) => match fields.get(field) {
            Some(Tree::Int(number)) => Some(*number),
            _ => None,
        },
        _ => None,
    };
    let (observed, generation) =
        (integer("status", "observedGeneration")?, integer("metadata", "generation")?);
    (observed != generation).then_some((observed, generation))
}

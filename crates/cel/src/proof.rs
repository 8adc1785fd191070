//! An expression over a parent and its children that shows whether the parent was handled.

use crate::cel_type::CelType;
use crate::errors::{CompileError, EvalError};
use crate::field_paths::FieldPaths;
use crate::field_projection::FieldProjection;
use crate::meter::{CostBounds, CostMeter};
use crate::name_scope::RootNames;
use crate::object_json::ObjectJson;
use crate::program::CelProgram;

/// Names in a proof.
const PROOF_NAMES: [(&str, CelType); 2] = [("parent", CelType::Map), ("children", CelType::List)];
/// What one evaluation may cost: a comparison of a few fields of some thousand children.
const PROOF_BOUNDS: CostBounds =
    CostBounds { steps: ProofExpression::MAX_STEPS, bytes: ProofExpression::MAX_BYTES };

/// An expression over `parent` and the list `children` that yields a boolean. It is evaluated on what it reads of these
/// objects ([`FieldProjection`]).
#[derive(Debug)]
pub struct ProofExpression {
    program: CelProgram,
    parent: FieldProjection,
    child: FieldProjection,
}

/// Result of one evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProofResult {
    /// Whether the expression holds, or why it has no value.
    pub holds: Result<bool, EvalError>,
    /// Number of steps that were spent.
    pub steps: u32,
}

impl ProofExpression {
    /// Most steps of one evaluation.
    pub const MAX_STEPS: u32 = 50_000;
    /// Most bytes that one evaluation may allocate, its children among them. 4 MiB.
    pub const MAX_BYTES: usize = 4 << 20;

    /// Compiles `source`.
    pub fn compile(source: &str) -> Result<ProofExpression, CompileError> {
        let program = CelProgram::compile(source, RootNames::Values(&PROOF_NAMES), CelType::Bool)?;
        let FieldPaths { parent, child, .. } = FieldPaths::of_expression(&program.node);
        Ok(ProofExpression { program, parent, child })
    }

    /// Returns the fields that are read of the parent.
    pub fn parent_fields(&self) -> &FieldProjection {
        &self.parent
    }

    /// Returns the fields that are read of each child.
    pub fn child_fields(&self) -> &FieldProjection {
        &self.child
    }

    /// Evaluates the expression on the JSON texts of a parent and of its children, in this order.
    pub fn evaluate_proof<'t>(
        &self,
        parent: &str,
        children: impl IntoIterator<Item = &'t str>,
    ) -> ProofResult {
        let meter = CostMeter::with_bounds(PROOF_BOUNDS);
        let holds = self.evaluate_within(&meter, parent, children);
        ProofResult { holds, steps: meter.steps() }
    }

    fn evaluate_within<'t>(
        &self,
        meter: &CostMeter,
        parent: &str,
        children: impl IntoIterator<Item = &'t str>,
    ) -> Result<bool, EvalError> {
        let mut text = format!(r#"{{"parent":{parent},"children":["#);
        for (at, child) in children.into_iter().enumerate() {
            meter.charge_allocation(child.len()).map_err(|fault| EvalError::from_fault(&fault))?;
            text.push_str(if at == 0 { "" } else { "," });
            text.push_str(child);
        }
        text.push_str("]}");
        let fields = self.program.needs.read_object(ObjectJson::Text(&text), meter);
        self.program.evaluate_bool(&fields.map_err(EvalError::from_read_error)?, meter)
    }
}

#[cfg(test)]
mod tests;

//! A compiled expression and its evaluation.

use crate::cel_type::CelType;
use crate::errors::{CompileError, EvalError};
use crate::eval::EvalFrame;
use crate::fault::EvalFault;
use crate::json_tree::{JsonFields, NeededFields};
use crate::lower::LoweringContext;
use crate::meter::CostMeter;
use crate::name_scope::RootNames;
use crate::node::ExprNode;
use crate::parse;
use crate::value::CelValue;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct CelProgram {
    pub(crate) node: ExprNode,
    pub(crate) needs: NeededFields,
}

impl CelProgram {
    pub(crate) fn compile(
        source: &str,
        roots: RootNames<'_>,
        wanted: CelType,
    ) -> Result<CelProgram, CompileError> {
        parse::with_syntax_tree(source, |tree, places| {
            let mut lower = LoweringContext::new(places, roots);
            let (node, ty) = lower.lower_expression(tree)?;
            if !ty.is_compatible(wanted) {
                let message = format!("the expression yields '{}', not '{}'", ty.name(), wanted.name());
                return places.error_at(tree, message);
            }
            Ok(CelProgram { node, needs: lower.into_needs() })
        })
    }

    pub(crate) fn evaluate_value<'t>(
        &'t self,
        object: &'t JsonFields<'t>,
        meter: &'t CostMeter,
    ) -> Result<CelValue<'t>, EvalError> {
        let mut frame = EvalFrame { object, meter, locals: Vec::new() };
        let result = frame.eval_node(&self.node);
        match (meter.spent_limit(), result) {
            (Some(limit), _) => Err(EvalError::from_fault(&EvalFault::Limit(limit))),
            (None, Ok(value)) => Ok(value),
            (None, Err(fault)) => Err(EvalError::from_fault(&fault)),
        }
    }

    pub(crate) fn evaluate_bool(
        &self,
        object: &JsonFields<'_>,
        meter: &CostMeter,
    ) -> Result<bool, EvalError> {
        match self.evaluate_value(object, meter)? {
            CelValue::Bool(flag) => Ok(flag),
            other => Err(EvalError::with_message(format!(
                "the expression yields '{}', not 'bool'",
                other.cel_type().name()
            ))),
        }
    }
}

//! Flux with `healthCheckExprs`: expressions that replace the rules of kstatus for a kind.

use rollcall_cel::{HealthCheck, HealthCheckResult, ObjectJson};
use serde_json::Value;

use super::status::{CURRENT, FAILED, IN_PROGRESS, UNKNOWN};
use crate::branch::RuleBranch;
use crate::json::{self, ObjectGvk, WrongType};
use crate::peer_verdict::PeerVerdict;

/// Returns the verdict of Flux on an object of a kind that has `healthCheckExprs`, and the branch that decided.
///
/// The expressions replace kstatus altogether: a deletion, `Reconciling` and `Stalled` count only where an expression
/// reads them. `None` for a Job: its own rule stands before the expressions in Flux, so that they are never evaluated.
pub fn judge_by_flux_expressions(
    object: &Value,
    check: &HealthCheck,
) -> Option<(PeerVerdict, RuleBranch<'static>)> {
    let gvk = ObjectGvk::of_object(object);
    if (gvk.group, gvk.kind) == ("batch", "Job") {
        return None;
    }
    if let Err(error) = check_generation_types(object) {
        return Some(failed_rule(format!("failed to read the object: {error}")));
    }
    let (status, message, branch) = match check.evaluate_health(ObjectJson::Tree(object)) {
        Ok(HealthCheckResult::Stale { observed, generation }) => (
            IN_PROGRESS,
            format!("observed generation is {observed}, the object is at {generation}"),
            RuleBranch::Generation { observed, generation },
        ),
        Ok(HealthCheckResult::InProgress) => by_expression(IN_PROGRESS, "inProgress"),
        Ok(HealthCheckResult::Failed) => by_expression(FAILED, "failed"),
        Ok(HealthCheckResult::Current) => by_expression(CURRENT, "current"),
        Ok(HealthCheckResult::None) => {
            (IN_PROGRESS, "no expression is true".to_owned(), RuleBranch::NoneTrue)
        }
        Err(("", error)) => return Some(failed_rule(error.to_string())),
        Err((expression, error)) => return Some(failed_rule(format!("{expression}: {error}"))),
    };
    Some((PeerVerdict { status: Some(status), message }, branch))
}

/// Flux ends with an error if a generation that it compares is no integer.
fn check_generation_types(object: &Value) -> Result<(), WrongType> {
    if json::integer_at(object, &["status", "observedGeneration"])?.is_some() {
        json::integer_at(object, &["metadata", "generation"])?;
    }
    Ok(())
}

fn by_expression(
    status: &'static str,
    expression: &'static str,
) -> (&'static str, String, RuleBranch<'static>) {
    (status, format!("{expression} is true"), RuleBranch::True(expression))
}

fn failed_rule(message: String) -> (PeerVerdict, RuleBranch<'static>) {
    (PeerVerdict { status: Some(UNKNOWN), message }, RuleBranch::RuleFailed)
}

//! Rules for Namespace, Node, APIService and CustomResourceDefinition: usable by other objects.

use crate::branch::Branch;
use crate::facts::{ConditionFacts, Facts, TruthValue};
use crate::readiness_ruling::ReadinessRuling;
use crate::stuck_limits::StuckLimits;
use crate::text::BoundedText;
use crate::{Level, Reason};

pub(super) fn judge_namespace(f: &Facts) -> ReadinessRuling<'_> {
    let phase = f.status.state_text("phase");
    let branch = Branch::Text("status.phase", phase.unwrap_or_default());
    match phase {
        Some("Active") => ReadinessRuling::ready(Reason::Ready, branch),
        Some("Terminating") => ReadinessRuling::new(Level::Terminating, Reason::Terminating, branch),
        _ => ReadinessRuling::progressing(Reason::NotStarted, branch),
    }
}

/// Returns the content that remains in a namespace that is being deleted, as reported by its controller.
pub(crate) fn remaining_namespace_content(f: &Facts) -> Option<Reason> {
    let left =
        ["NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionContentFailure"];
    let condition = left.into_iter().find_map(|name| f.status.find_true_condition(name))?;
    Some(Reason::SaysTerminating(BoundedText::from_foreign(&condition.message)))
}

pub(super) fn judge_node<'a>(f: &'a Facts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    let s = &f.status;
    let ready = match s.find_condition("Ready") {
        Some(ready) if ready.status == TruthValue::True => ready,
        Some(ready) => return stuck_if_lasting(ready, limits),
        None => {
            return ReadinessRuling::progressing(
                Reason::NotStarted,
                Branch::Fact("conditions[Ready] is absent"),
            );
        }
    };
    let pressures = ["NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure"];
    if let Some(pressure) = pressures.into_iter().find_map(|name| s.find_true_condition(name)) {
        return ReadinessRuling::progressing(
            Reason::SaysError(BoundedText::new(&pressure.name)),
            Branch::Condition(pressure),
        );
    }
    if f.spec.unschedulable == Some(true) {
        return ReadinessRuling::suspended(Reason::Cordoned, Branch::Fact("spec.unschedulable is true"));
    }
    ReadinessRuling::ready(Reason::Ready, Branch::Condition(ready))
}

pub(super) fn judge_api_service<'a>(f: &'a Facts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    match f.status.find_condition("Available") {
        Some(available) if available.status == TruthValue::True => {
            ReadinessRuling::ready(Reason::Ready, Branch::Condition(available))
        }
        Some(available) => stuck_if_lasting(available, limits),
        None => {
            ReadinessRuling::progressing(Reason::NotStarted, Branch::Fact("conditions[Available] is absent"))
        }
    }
}

/// Rules progressing on a condition that is not met, and stuck if that lasts beyond the limit.
fn stuck_if_lasting<'a>(condition: &'a ConditionFacts, limits: &StuckLimits) -> ReadinessRuling<'a> {
    let text =
        BoundedText::new(if condition.reason.is_empty() { &condition.name } else { &condition.reason });
    ReadinessRuling::progressing(Reason::SaysProgressing(text), Branch::Condition(condition)).escalate_after(
        condition.since,
        limits.pending,
        Level::Stuck,
    )
}

pub(super) fn judge_definition(f: &Facts) -> ReadinessRuling<'_> {
    let s = &f.status;
    if let Some(terminating) = s.find_true_condition("Terminating") {
        return ReadinessRuling::new(Level::Terminating, Reason::Terminating, Branch::Condition(terminating));
    }
    let refused = s.find_condition("NamesAccepted").filter(|c| c.status == TruthValue::False);
    let unapproved = || {
        s.find_condition("KubernetesAPIApprovalPolicyConformant").filter(|c| c.status == TruthValue::False)
    };
    if let Some(wrong) = refused.or_else(|| s.find_true_condition("NonStructuralSchema")).or_else(unapproved)
    {
        let text = BoundedText::new(if wrong.reason.is_empty() { &wrong.name } else { &wrong.reason });
        return ReadinessRuling::failed(Reason::SaysError(text), Branch::Condition(wrong));
    }
    match s.find_condition("Established") {
        Some(established) if established.status == TruthValue::True => {
            ReadinessRuling::ready(Reason::Ready, Branch::Condition(established))
        }
        Some(other) => ReadinessRuling::progressing(
            Reason::SaysProgressing(BoundedText::new("installing")),
            Branch::Condition(other),
        ),
        None => ReadinessRuling::progressing(
            Reason::NotStarted,
            Branch::Fact("conditions[Established] is absent"),
        ),
    }
}

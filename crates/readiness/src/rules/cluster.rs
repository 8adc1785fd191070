//! Namespace, Node, APIService, CustomResourceDefinition: can others build on it?

use crate::assess::{Limits, Ruling};
use crate::branch::Branch;
use crate::facts::{Condition, Facts, Truth};
use crate::text::Text;
use crate::{Level, Reason};

pub(super) fn namespace(f: &Facts) -> Ruling<'_> {
    let phase = f.status.word("phase");
    let branch = Branch::Text("status.phase", phase.unwrap_or_default());
    match phase {
        Some("Active") => Ruling::ready(Reason::Ready, branch),
        Some("Terminating") => Ruling::new(Level::Terminating, Reason::Terminating, branch),
        _ => Ruling::progressing(Reason::NotStarted, branch),
    }
}

/// What is left in a namespace that is being deleted, as its controller says.
pub(crate) fn namespace_content(f: &Facts) -> Option<Reason> {
    let left =
        ["NamespaceFinalizersRemaining", "NamespaceContentRemaining", "NamespaceDeletionContentFailure"];
    let condition = left.into_iter().find_map(|name| f.status.holds(name))?;
    Some(Reason::SaysTerminating(Text::foreign(&condition.message)))
}

pub(super) fn node<'a>(f: &'a Facts, limits: &Limits) -> Ruling<'a> {
    let s = &f.status;
    let ready = match s.condition("Ready") {
        Some(ready) if ready.status == Truth::True => ready,
        Some(ready) => return waits(ready, limits),
        None => return Ruling::progressing(Reason::NotStarted, Branch::Fact("conditions[Ready] is absent")),
    };
    let pressures = ["NetworkUnavailable", "MemoryPressure", "DiskPressure", "PIDPressure"];
    if let Some(pressure) = pressures.into_iter().find_map(|name| s.holds(name)) {
        return Ruling::progressing(
            Reason::SaysError(Text::new(&pressure.name)),
            Branch::Condition(pressure),
        );
    }
    if f.spec.unschedulable == Some(true) {
        return Ruling::suspended(Reason::Cordoned, Branch::Fact("spec.unschedulable is true"));
    }
    Ruling::ready(Reason::Ready, Branch::Condition(ready))
}

pub(super) fn api_service<'a>(f: &'a Facts, limits: &Limits) -> Ruling<'a> {
    match f.status.condition("Available") {
        Some(available) if available.status == Truth::True => {
            Ruling::ready(Reason::Ready, Branch::Condition(available))
        }
        Some(available) => waits(available, limits),
        None => Ruling::progressing(Reason::NotStarted, Branch::Fact("conditions[Available] is absent")),
    }
}

/// Not there, and stuck if that lasts.
fn waits<'a>(condition: &'a Condition, limits: &Limits) -> Ruling<'a> {
    let text = Text::new(if condition.reason.is_empty() { &condition.name } else { &condition.reason });
    Ruling::progressing(Reason::SaysProgressing(text), Branch::Condition(condition)).until(
        condition.since,
        limits.pending,
        Level::Stuck,
    )
}

pub(super) fn definition(f: &Facts) -> Ruling<'_> {
    let s = &f.status;
    if let Some(terminating) = s.holds("Terminating") {
        return Ruling::new(Level::Terminating, Reason::Terminating, Branch::Condition(terminating));
    }
    let refused = s.condition("NamesAccepted").filter(|c| c.status == Truth::False);
    let unapproved =
        || s.condition("KubernetesAPIApprovalPolicyConformant").filter(|c| c.status == Truth::False);
    if let Some(wrong) = refused.or_else(|| s.holds("NonStructuralSchema")).or_else(unapproved) {
        let text = Text::new(if wrong.reason.is_empty() { &wrong.name } else { &wrong.reason });
        return Ruling::failed(Reason::SaysError(text), Branch::Condition(wrong));
    }
    match s.condition("Established") {
        Some(established) if established.status == Truth::True => {
            Ruling::ready(Reason::Ready, Branch::Condition(established))
        }
        Some(other) => {
            Ruling::progressing(Reason::SaysProgressing(Text::new("installing")), Branch::Condition(other))
        }
        None => Ruling::progressing(Reason::NotStarted, Branch::Fact("conditions[Established] is absent")),
    }
}

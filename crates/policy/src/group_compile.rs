//! Compiles what stands for ReadinessGroups.

use api::ReadinessPolicySpec;
use api::policy::{ChildRole, ChildSpec};

use super::admission::check_spec;
use super::compile::{CompiledPolicy, compile_checked};
use super::group_selection::{EARLIER_GROUPS, GroupSelection};
use super::problem::PolicyProblem;
use super::protected_kinds::PolicySettings;

/// Compiles what stands for these ReadinessGroups. A group with members that have to be ready is never ready without one,
/// whatever comes before it.
pub(super) fn compile_for_groups(
    spec: &ReadinessPolicySpec,
    settings: &PolicySettings,
    groups: &GroupSelection,
) -> Result<CompiledPolicy, Vec<PolicyProblem>> {
    let mut problems = check_spec(spec);
    // No policy of the cluster may name this kind, nor remember what its parents select: they may select it anywhere.
    problems
        .retain(|problem| problem.field != "spec.parent.group" && !problem.field.ends_with(".afterDeletion"));
    let compiled = compile_checked(spec, settings, problems)?;
    let GroupSelection { shape, labels, .. } = groups.clone();
    let is_earlier = |child: &ChildSpec| {
        child.find.as_ref().is_some_and(|find| find.refs.as_deref() == Some(EARLIER_GROUPS))
    };
    let is_critical = |child: &ChildSpec| child.role == ChildRole::Critical && !is_earlier(child);
    let (mut children, min) = if shape.is_refused() {
        (Vec::new(), 0)
    } else {
        (compiled.groups, u32::from(spec.children.iter().any(is_critical)))
    };
    for (group, child) in children.iter_mut().zip(&spec.children) {
        group.is_prerequisite = is_earlier(child);
    }
    Ok(CompiledPolicy { shape: Some(shape), selector: labels, groups: children, min, ..compiled })
}

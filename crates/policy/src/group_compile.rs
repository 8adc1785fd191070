//! Compiles what stands for ReadinessGroups.

use api::ReadinessPolicySpec;
use api::policy::ChildRole;

use super::admission::check_spec;
use super::compile::{CompiledPolicy, compile_checked};
use super::group_selection::GroupSelection;
use super::problem::PolicyProblem;
use super::protected_kinds::PolicySettings;

/// Compiles what stands for these ReadinessGroups. A group with members that have to be ready is never ready without one.
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
    let is_critical = spec.children.iter().any(|child| child.role == ChildRole::Critical);
    let (children, min) =
        if shape.is_refused() { (Vec::new(), 0) } else { (compiled.groups, u32::from(is_critical)) };
    Ok(CompiledPolicy { shape: Some(shape), selector: labels, groups: children, min, ..compiled })
}

//! Compiles what stands for ReadinessGroups.

use std::sync::Arc;

use aggregator::JointCount;
use api::ReadinessPolicySpec;
use api::policy::{ChildRole, ChildSpec};
use watcher::plan::NamespaceScope;
use watcher::status::OF_CATEGORY;

use super::admission::check_spec;
use super::compile::{CompiledPolicy, JointExpectation, compile_checked};
use super::group_selection::{
    CategoryMembers, EARLIER_GROUPS, GROUP_KIND, GroupSelection, MEMBERS, member_of,
};
use super::groups::CompiledGroup;
use super::problem::PolicyProblem;
use super::protected_kinds::PolicySettings;

/// What the kinds of a category have in common: how many of their objects there are in all, and that none of them counts which an
/// object of another one has made. Its controller counts, and waits for it: a Deployment does for its ReplicaSets and Pods, which
/// carry the labels of its template, and those of an earlier template for as long as they are there. What an object of a foreign
/// kind has made counts itself, such as the managed resources that a composite of Crossplane's controls, or the ReplicaSets of a
/// Rollout of Argo's: nothing else of the category would stand for it. By kinds that are named each one counts, as whoever named
/// them has decided.
fn join_kinds(children: &mut [CompiledGroup], categories: &[CategoryMembers]) -> Vec<JointExpectation> {
    let mut joint = Vec::new();
    for CategoryMembers { category, children: at, min, max } in categories {
        let Some(members) = children.get_mut(at.clone()) else { continue };
        let kind =
            |group: &CompiledGroup| (group.kind.group.as_str().into(), group.kind.kind.as_str().into());
        let kinds: Arc<[_]> = members.iter().map(kind).collect();
        let Some((first, last)) = members.first().zip(members.last()) else { continue };
        let count = JointCount { groups: first.at..last.at + 1, min: *min, max: *max };
        joint.push(JointExpectation { of: format!("{OF_CATEGORY}{category}"), count });
        for group in members {
            group.made_by_none_of = kinds.clone();
        }
    }
    joint
}

/// What a rule says of Rollcall's own objects would rest on what Rollcall has written.
fn refuse_rules_on_own_kinds(spec: &ReadinessPolicySpec) -> impl Iterator<Item = PolicyProblem> {
    let is_own = |(_, child): &(usize, &ChildSpec)| child.ready.is_some() && child.kind.group == GROUP_KIND.0;
    spec.children.iter().enumerate().filter(is_own).map(|(at, child)| PolicyProblem {
        field: format!("spec.children[{at}].ready"),
        what: format!("no rule judges a {}, which Rollcall writes itself: remove ready", child.kind.kind),
        at: None,
    })
}

/// Where an administrator has switched them off, whoever creates groups has nothing evaluated.
fn refuse_rules(
    spec: &ReadinessPolicySpec,
    settings: &PolicySettings,
) -> impl Iterator<Item = PolicyProblem> {
    let evaluated = |(at, child): (usize, &ChildSpec)| {
        let is_computed = child.expect.as_ref().is_some_and(|expect| expect.cel.is_some());
        let fields = [("ready", child.ready.is_some()), ("expect.cel", is_computed)];
        fields.into_iter().filter(|(_, is_there)| *is_there).map(move |(field, _)| (at, field))
    };
    let evaluated = spec.children.iter().enumerate().flat_map(evaluated);
    evaluated.filter(|_| !settings.group_rules).map(|(at, field)| PolicyProblem {
        field: format!("spec.children[{at}].{field}"),
        what: format!(
            "rules of groups are switched off (--group-rules=false): remove {field}, or have an administrator write a policy"
        ),
        at: None,
    })
}

/// The problems by the fields of the group, each once: the kinds of a member share its rule.
fn name_members(problems: Vec<PolicyProblem>, spec: &ReadinessPolicySpec) -> Vec<PolicyProblem> {
    let field_of_group = |field: &str| {
        let (at, rest) = field.strip_prefix("spec.children[")?.split_once(']')?;
        let member = member_of(spec.children.get(at.parse::<usize>().ok()?)?)?;
        Some(format!("{MEMBERS}[{member}]{rest}"))
    };
    let mut named: Vec<PolicyProblem> = Vec::new();
    for problem in problems {
        let field = field_of_group(&problem.field).unwrap_or(problem.field);
        let problem = PolicyProblem { field, ..problem };
        if !named.contains(&problem) {
            named.push(problem);
        }
    }
    named
}

/// Whoever writes a group has its rules evaluated where such groups are and nowhere else: not even the time that a rule takes may
/// tell of an object in another namespace.
fn keep_within(children: &mut [CompiledGroup], scope: &NamespaceScope) {
    for child in children {
        child.scope = scope.clone();
    }
}

/// Compiles what stands for these ReadinessGroups. A group with members that have to be ready is never ready without one,
/// whatever comes before it.
pub(super) fn compile_for_groups(
    spec: &ReadinessPolicySpec,
    settings: &PolicySettings,
    groups: &GroupSelection,
) -> Result<CompiledPolicy, Vec<PolicyProblem>> {
    let mut problems = check_spec(spec);
    // No policy of the cluster may name this kind, nor remember what its parents select: they may select it anywhere.
    // Which namespaces a group may name does not stand in the policy.
    let is_for_policies = |problem: &PolicyProblem| {
        let of_children = [".afterDeletion", ".find.namespaces", ".find.allowedNamespaces"];
        problem.field == "spec.parent.group" || of_children.iter().any(|field| problem.field.ends_with(field))
    };
    problems.retain(|problem| !is_for_policies(problem));
    problems.extend(refuse_rules_on_own_kinds(spec));
    problems.extend(refuse_rules(spec, settings));
    let compiled =
        compile_checked(spec, settings, problems).map_err(|problems| name_members(problems, spec))?;
    let GroupSelection { shape, labels, categories, scope, .. } = groups.clone();
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
    keep_within(&mut children, &scope);
    let joint = if shape.is_refused() { Vec::new() } else { join_kinds(&mut children, &categories) };
    Ok(CompiledPolicy {
        joint,
        scope,
        foreign: settings.group_namespaces.clone(),
        shape: Some(shape),
        selector: labels,
        groups: children,
        min,
        ..compiled
    })
}

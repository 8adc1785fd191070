//! Compiles `children`: their kinds, selection, expected number, and readiness rules.

use std::collections::BTreeMap;
use std::sync::Arc;

use aggregator::{ChildGroup, GroupRole, Quorum};
use api::policy::{AfterDeletion, ChildRole, ChildSpec, FindSpec, KindRef, ReadyRule};
use rollcall_cel::CountExpression;
use watcher::plan::{
    AllowedNamespaces, LabelMatcher, NamespaceScope, OutcomeRetention, ParentTemplate, ReferencePath,
};

use super::policy_checker::{PolicyChecker, compile_selector};
use super::problem::PolicyProblem;
use super::ready_rule::GroupRule;

/// Kinds of children of a policy that names none.
const DEFAULT_CHILD_KINDS: [(&str, &str); 7] = [
    ("apps", "DaemonSet"),
    ("apps", "Deployment"),
    ("apps", "ReplicaSet"),
    ("apps", "StatefulSet"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    ("", "Pod"),
];

/// Most `children` of one policy: sets of groups are kept as the bits of a `u64`.
pub(super) const MAX_GROUPS: u8 = 64;

/// One entry of `children`, compiled.
#[derive(Clone, Debug)]
pub struct CompiledGroup {
    /// Its place among the `children` of its policy, of which there are at most 64.
    pub at: u8,
    /// Kind of the children.
    pub kind: KindRef,
    /// Label selection as key and value; empty selects by ownerReference.
    pub labels: Vec<(String, ParentTemplate)>,
    /// Namespaces to search; empty for the parent's own.
    pub namespaces: Vec<ParentTemplate>,
    /// Namespaces that a template or a reference may lead to, and whose objects a cluster-scoped parent may own.
    pub allowed: AllowedNamespaces,
    /// Selection by references in the parent.
    pub references: Option<ReferencePath>,
    /// Minimum number, computed from the parent.
    pub count: Option<GroupCount>,
    /// Names of expected children.
    pub names: Vec<ParentTemplate>,
    /// Label selector of excluded children.
    pub ignore: Option<LabelMatcher>,
    /// Group and kind of controllers whose objects are excluded.
    pub made_by_none_of: Arc<[(Box<str>, Box<str>)]>,
    /// Namespaces of the children.
    pub scope: NamespaceScope,
    /// Critical or optional.
    pub role: GroupRole,
    /// Minimum number of children.
    pub min: u32,
    /// Maximum number of children.
    pub max: Option<u32>,
    /// Number of children that must be ready.
    pub quorum: Quorum,
    /// Readiness rule; `None` for the native rules.
    pub rule: Option<GroupRule>,
    /// Treatment of the outcome of a deleted child.
    pub after: OutcomeRetention,
    /// Its children are awaited and belong to others: the groups that come before a ReadinessGroup.
    pub is_prerequisite: bool,
}

/// CEL expression over the parent that yields the expected number of children.
#[derive(Clone)]
pub struct GroupCount {
    /// Compiled expression.
    pub count: Arc<CountExpression>,
    /// Source of the expression.
    pub source: Arc<str>,
}

impl std::fmt::Debug for GroupCount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "GroupCount({:?})", self.source)
    }
}

impl CompiledGroup {
    /// Returns `true` if it remembers outcomes of children that the parent selects by labels or by name.
    pub fn remembers_selected(&self) -> bool {
        self.after != OutcomeRetention::Forget && (self.references.is_some() || !self.labels.is_empty())
    }

    /// Returns `true` if its children are owned by the parent, and none of them counts after it is gone.
    pub fn counts_dependents(&self) -> bool {
        let is_by_owner = self.references.is_none() && self.labels.is_empty();
        is_by_owner && self.after == OutcomeRetention::Forget
    }

    /// The group in the engine's terms.
    pub fn to_engine_group(&self, kind: aggregator::KindId) -> ChildGroup {
        ChildGroup {
            kind,
            role: self.role,
            min: self.min,
            max: self.max,
            quorum: self.quorum,
            is_prerequisite: self.is_prerequisite,
        }
    }
}

pub(super) fn default_groups() -> Vec<CompiledGroup> {
    let group = |(at, (group, kind)): (u8, (&str, &str))| CompiledGroup {
        at,
        kind: KindRef { group: group.into(), version: None, kind: kind.into() },
        labels: Vec::new(),
        namespaces: Vec::new(),
        allowed: AllowedNamespaces::default(),
        references: None,
        count: None,
        names: Vec::new(),
        ignore: None,
        made_by_none_of: Arc::default(),
        scope: NamespaceScope::default(),
        role: GroupRole::Critical,
        min: 0,
        max: None,
        quorum: Quorum::All,
        rule: None,
        after: OutcomeRetention::Forget,
        is_prerequisite: false,
    };
    (0..).zip(DEFAULT_CHILD_KINDS).map(group).collect()
}

/// Of a Job that its parent owns; the rules of the schema allow no other.
fn outcome_retention(after: Option<AfterDeletion>) -> OutcomeRetention {
    match after {
        None | Some(AfterDeletion::Forget) => OutcomeRetention::Forget,
        Some(AfterDeletion::Remember) => OutcomeRetention::Remember,
        Some(AfterDeletion::RememberGeneration) => OutcomeRetention::RememberGeneration,
    }
}

pub(super) fn compile_groups(check: &mut PolicyChecker<'_>, children: &[ChildSpec]) -> Vec<CompiledGroup> {
    (0..MAX_GROUPS)
        .zip(children)
        .map(|(at, child)| compile_group(check, at, &format!("spec.children[{at}]"), child))
        .collect()
}

fn compile_group(check: &mut PolicyChecker<'_>, at: u8, field: &str, child: &ChildSpec) -> CompiledGroup {
    let find = child.find.clone().unwrap_or_default();
    let expect = child.expect.clone().unwrap_or_default();
    let (labels, namespaces) = compile_labels(check, field, &find.labels, &find.namespaces);
    let names = check.compile_templates(&format!("{field}.expect.names"), &expect.names);
    let quorum = parse_quorum(check, field, child.quorum.as_deref());
    let selector = child.ignore.as_ref().map(|i| &i.selector);
    let optional = child.role == ChildRole::Optional;
    // Names, like an expression, already define the expected number.
    let said = !names.is_empty() || expect.cel.is_some();
    let default_min = u32::from(!optional && !said && expect.max != Some(0));
    CompiledGroup {
        at,
        kind: child.kind.clone(),
        labels,
        namespaces,
        allowed: AllowedNamespaces::listed(find.allowed_namespaces.iter().map(String::as_str)),
        references: compile_references(check, field, &find),
        count: expect.cel.as_deref().and_then(|source| compile_count(check, field, source)),
        names,
        ignore: compile_selector(selector),
        made_by_none_of: Arc::default(),
        scope: NamespaceScope::default(),
        role: if optional { GroupRole::Optional } else { GroupRole::Critical },
        min: expect.min.unwrap_or(default_min),
        max: expect.max,
        quorum,
        rule: child.ready.as_ref().and_then(|ready| compile_rule(check, field, &child.kind, ready)),
        after: outcome_retention(child.after_deletion),
        is_prerequisite: false,
    }
}

fn compile_rule(
    check: &mut PolicyChecker<'_>,
    field: &str,
    of: &KindRef,
    ready: &ReadyRule,
) -> Option<GroupRule> {
    if check.settings.is_protected(of) {
        let what = format!(
            "rules never read a {} beyond its metadata: remove ready (it then counts as ready while it exists), or \
             judge the object that uses it",
            of.kind
        );
        check.add_problem(&format!("{field}.ready"), what);
        return None;
    }
    let compiled = check.compile_ready(ready);
    let place = |problem: PolicyProblem| PolicyProblem {
        field: format!("{field}.ready{}", problem.field),
        ..problem
    };
    compiled.map_err(|problems| add_rule_problems(check, problems.into_iter().map(place))).ok()
}

/// Adds the problems of a rule, each with its own place; none where the schema refuses it already.
fn add_rule_problems(check: &mut PolicyChecker<'_>, problems: impl Iterator<Item = PolicyProblem>) {
    let known: Vec<_> = check.problems.iter().map(|problem| problem.field.clone()).collect();
    check.problems.extend(problems.filter(|problem| !known.contains(&problem.field)));
}

fn compile_references(check: &mut PolicyChecker<'_>, field: &str, find: &FindSpec) -> Option<ReferencePath> {
    let text = find.refs.as_deref()?;
    let field = format!("{field}.find.refs");
    if let Some(kind) = &check.protected_parent {
        let what = format!("policies never read a {kind} beyond its metadata: find its children by labels");
        check.add_problem(&field, what);
    }
    ReferencePath::parse(text).map_err(|error| check.add_problem(&field, error.to_string())).ok()
}

fn compile_count(check: &mut PolicyChecker<'_>, field: &str, source: &str) -> Option<GroupCount> {
    if let Some(kind) = &check.protected_parent {
        let what = format!("rules never read a {kind} beyond its metadata: use expect.min");
        check.add_problem(&format!("{field}.expect.cel"), what);
    }
    match CountExpression::compile(source, "parent") {
        Ok(count) => Some(GroupCount { count: Arc::new(count), source: source.into() }),
        Err(error) => {
            let (at, what) = (Some((error.line, error.column)), error.message);
            check.problems.push(PolicyProblem { field: format!("{field}.expect.cel"), what, at });
            None
        }
    }
}

fn compile_labels(
    check: &mut PolicyChecker<'_>,
    field: &str,
    labels: &BTreeMap<String, String>,
    namespaces: &[String],
) -> (Vec<(String, ParentTemplate)>, Vec<ParentTemplate>) {
    let mut compiled = Vec::new();
    for (key, value) in labels {
        let field = format!("{field}.find.labels[{key}]");
        compiled.extend(check.compile_template(&field, value).map(|template| (key.clone(), template)));
    }
    (compiled, check.compile_templates(&format!("{field}.find.namespaces"), namespaces))
}

fn parse_quorum(check: &mut PolicyChecker<'_>, field: &str, text: Option<&str>) -> Quorum {
    let Some(text) = text.filter(|t| *t != "all") else { return Quorum::All };
    let percent = text.strip_suffix('%');
    match (percent.unwrap_or(text).parse::<u32>(), percent) {
        (Ok(n @ 1..=100), Some(_)) => Quorum::Percent(n),
        (Ok(n @ 1..), None) => Quorum::Count(n),
        _ => {
            check.add_problem(&format!("{field}.quorum"), format!("{text:?} is not a quorum"));
            Quorum::All
        }
    }
}

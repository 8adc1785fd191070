//! ReadinessGroups as policies: groups that select members in the same ways, with whatever values, share one policy, whose
//! templates read those values from each group.

mod categories;
mod group_quota;
mod members;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use api::{ReadinessGroupSpec, ReadinessPolicySpec};
use readiness::Time;
use ring::digest::{SHA256, digest};
use watcher::plan::{LabelMatcher, NamespaceScope, ShapeMatcher, ShapeRefusal};
use watcher::{ParentObject, ServedKinds};

use super::admission::check_group_spec;
use super::compile::CompiledPolicy;
use super::found_policy::FoundPolicy;
use super::group_selection::{GROUP_KIND, GroupSelection};
use super::problem::PolicyProblem;

use categories::{ExpandedShape, categories_of, depends_on_served, expand_shape};

pub use group_quota::policies_of_groups;

/// Most bytes of what is said of a group that cannot be judged.
const MAX_WHY: usize = 1_000;

/// The way out for a group whose spec is refused.
const TAKE_ANOTHER_SPEC: &str = "mend it, or apply again a spec that was judged";

/// Bytes of the hash by which a shape is named: no two texts with equal ones can be found.
const SHAPE_NAME_BYTES: usize = 20;

/// A ReadinessGroup as far as a plan depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundGroup {
    uid: Box<str>,
    generation: i64,
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Creation time: where there are too many shapes, those of older groups are in force.
    pub created: Option<Time>,
    /// The shape of its spec, or why it has none.
    pub shape: Result<Arc<str>, Arc<str>>,
    /// Namespaces that its members name.
    named_namespaces: Box<[Box<str>]>,
}

impl FoundGroup {
    /// Returns `true` if it is this object, and of this generation.
    pub fn is_same(&self, uid: &str, generation: i64) -> bool {
        (&*self.uid, self.generation) == (uid, generation)
    }

    /// Returns `true` if the same plan is for both.
    pub fn asks_the_same(&self, other: &FoundGroup) -> bool {
        (&self.shape, &self.named_namespaces) == (&other.shape, &other.named_namespaces)
    }
}

/// Reads a group.
pub fn read_group(group: &ParentObject) -> FoundGroup {
    let meta = &group.child.meta;
    let spec = spec_of(group.text.get());
    FoundGroup {
        uid: (*meta.uid).into(),
        generation: meta.generation,
        namespace: (*meta.namespace).into(),
        name: (*meta.name).into(),
        created: meta.created,
        named_namespaces: spec.as_ref().map(members::named_namespaces).unwrap_or_default(),
        shape: shape_of_read(spec).map(Into::into).map_err(Into::into),
    }
}

/// The spec of a policy for groups like this one, as JSON text.
fn shape_of(group: &str) -> Result<String, String> {
    shape_of_read(spec_of(group))
}

fn spec_of(group: &str) -> Result<ReadinessGroupSpec, String> {
    #[derive(serde::Deserialize)]
    struct GroupManifest {
        spec: ReadinessGroupSpec,
    }
    serde_json::from_str(group).map(|GroupManifest { spec }| spec).map_err(|error| error.to_string())
}

fn shape_of_read(spec: Result<ReadinessGroupSpec, String>) -> Result<String, String> {
    let told = |problems: Vec<PolicyProblem>| PolicyProblem::join_all(&problems);
    let shape = spec.and_then(|spec| shape_of_spec(&spec).map_err(told));
    shape.map_err(|why| not_judged(&why))
}

fn shape_of_spec(spec: &ReadinessGroupSpec) -> Result<String, Vec<PolicyProblem>> {
    let problems = check_group_spec(spec);
    if !problems.is_empty() {
        return Err(problems);
    }
    let policy = members::policy_spec(spec).map_err(|problem| vec![problem])?;
    let unwritable = |error: serde_json::Error| {
        vec![PolicyProblem { field: "spec".to_owned(), what: error.to_string(), at: None }]
    };
    serde_json::to_string(&policy).map_err(unwritable)
}

/// The policy by which a group with this spec is judged, or why there is none. One with a category of kinds is refused until
/// [`fill_in_kinds`].
pub fn policy_of_group(spec: &ReadinessGroupSpec) -> Result<FoundPolicy, Vec<PolicyProblem>> {
    let shape = shape_of_spec(spec)?.into();
    Ok(policy_of_shape(&shape, &LabelMatcher::default(), &ServedKinds::default()))
}

/// Returns `true` if what these groups select may change with the kinds that are served.
pub fn depend_on_served_kinds<'g>(
    groups: impl Iterator<Item = &'g FoundGroup>,
    served: &ServedKinds,
) -> bool {
    let shapes: BTreeSet<_> = groups.filter_map(|group| group.shape.as_ref().ok()).collect();
    shapes.into_iter().any(|shape| depends_on_served(shape, served))
}

/// The categories whose kinds the group of a policy leaves to the API server.
pub fn categories_of_policy(policy: &FoundPolicy) -> Vec<String> {
    let shape = policy.groups.as_ref().and_then(|selection| selection.shape.shape());
    shape.map(categories_of).unwrap_or_default()
}

/// The categories of a policy's group whose kinds are not filled in.
pub fn open_categories(policy: &CompiledPolicy) -> Vec<String> {
    let refused = policy.shape.as_ref().filter(|shape| shape.is_refused());
    refused.and_then(ShapeMatcher::shape).map(categories_of).unwrap_or_default()
}

/// A policy that was read from a file, with the kinds of the categories that its group names.
#[must_use]
pub fn fill_in_kinds(policy: FoundPolicy, served: &ServedKinds) -> FoundPolicy {
    let Some(selection) = &policy.groups else { return policy };
    let Some(shape) = selection.shape.shape() else { return policy };
    let filled = policy_of_shape(&shape.into(), &selection.labels, served);
    let groups = filled.groups.map(|groups| GroupSelection {
        group: selection.group.clone(),
        scope: selection.scope.clone(),
        ..groups
    });
    FoundPolicy { spec: filled.spec, groups, ..policy }
}

/// What a group is told whose spec is refused, with the way out.
///
/// It is told that of the generation that it has, and nothing that was accepted before stays in force, as it does for a policy.
/// That speaks of other objects, whose generations are not its own; a group is what it speaks of. Who has applied a spec and
/// waits for it (`kubectl wait`, kstatus, Argo CD) must not read the answer to an earlier one: with the number of this generation
/// it would be false, and with the number of the earlier one all of them would wait without a word of why.
fn not_judged(why: &str) -> String {
    let why = format!("it cannot be judged: {why}");
    format!("{}; {TAKE_ANOTHER_SPEC}", cut(&why))
}

/// As much of a refusal as a condition has room for: it quotes what somebody wrote.
fn cut(why: &str) -> &str {
    let end = (0..=why.len().min(MAX_WHY)).rev().find(|end| why.is_char_boundary(*end));
    &why[..end.unwrap_or(0)]
}

/// The policy for the groups of a shape.
fn policy_of_shape(shape: &Arc<str>, labels: &LabelMatcher, served: &ServedKinds) -> FoundPolicy {
    match expand_shape(shape, served) {
        Ok(expanded) => policy_of_expanded(shape, expanded, labels, NamespaceScope::default()),
        Err(why) => refusal_of_shape(
            shape,
            ShapeRefusal { why: cut(&why).into(), by_namespace: BTreeMap::new() },
            labels,
        ),
    }
}

fn policy_of_expanded(
    shape: &Arc<str>,
    expanded: ExpandedShape,
    labels: &LabelMatcher,
    scope: NamespaceScope,
) -> FoundPolicy {
    let ExpandedShape { spec, categories } = expanded;
    let matcher = ShapeMatcher::is(shape.clone(), shape_of);
    let found = found_policy(&shape_name(shape), Ok(spec), matcher, labels);
    let groups = found.groups.map(|groups| GroupSelection { categories, scope, ..groups });
    FoundPolicy { groups, ..found }
}

/// The policy that tells the groups of a shape why they are not judged.
fn refusal_of_shape(shape: &Arc<str>, refusal: ShapeRefusal, labels: &LabelMatcher) -> FoundPolicy {
    let matcher = ShapeMatcher::is(shape.clone(), shape_of).refused(refusal);
    found_policy(&shape_name(shape), Ok(members::empty_policy_spec()), matcher, labels)
}

/// The policy that tells all other groups why they are not judged.
fn refusal_of_others(why: &str, labels: &LabelMatcher) -> FoundPolicy {
    let matcher = ShapeMatcher::refusing_others(why.into(), shape_of);
    found_policy(&format!("{}/refused", GROUP_KIND.1), Ok(members::empty_policy_spec()), matcher, labels)
}

/// Its name, which no policy of the cluster can have, tells in metrics and in the log which shape it is for. It is that of no
/// other shape either: who chooses the text of theirs must not be able to choose the name of somebody else's.
fn shape_name(shape: &str) -> String {
    let digest = digest(&SHA256, shape.as_bytes());
    let digits = digest.as_ref().iter().take(SHAPE_NAME_BYTES).map(|byte| format!("{byte:02x}"));
    format!("{}/{}", GROUP_KIND.1, digits.collect::<String>())
}

fn found_policy(
    name: &str,
    spec: Result<ReadinessPolicySpec, String>,
    shape: ShapeMatcher,
    labels: &LabelMatcher,
) -> FoundPolicy {
    FoundPolicy {
        name: name.to_owned(),
        uid: name.to_owned(),
        version: 0,
        generation: 1,
        created: None,
        labels: Vec::new(),
        text: None,
        spec,
        groups: Some(GroupSelection {
            shape,
            categories: Vec::new(),
            labels: labels.clone(),
            scope: NamespaceScope::default(),
            group: None,
        }),
        status: api::ReadinessPolicyStatus::default(),
    }
}

#[cfg(test)]
mod category_tests;
#[cfg(test)]
mod expectation_tests;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod namespace_tests;
#[cfg(test)]
mod rule_tests;
#[cfg(test)]
mod tests;

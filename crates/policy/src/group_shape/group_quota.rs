//! How many shapes of groups are in force. Whoever may create groups chooses by which labels objects are indexed, and what is
//! listed for it: without a limit the author of one namespace's groups could take what all others need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::categories::{ExpandedShape, expand_shape};
use super::{FoundGroup, cut, not_judged, policy_of_expanded, refusal_of_others, refusal_of_shape};
use crate::found_policy::FoundPolicy;
use crate::protected_kinds::PolicySettings;
use api::policy::ChildSpec;
use watcher::ServedKinds;
use watcher::plan::{LabelMatcher, NamespaceScope, ShapeRefusal};

/// Most ways to select, a member and a kind each, that are in force for groups of one namespace, beyond those that are for older
/// ones elsewhere. Each object of a kind is indexed once for every way whose label keys it carries, wherever it is: without
/// a limit the ways of one namespace could take all memory.
const MAX_WAYS_OF_NAMESPACE: usize = 64;
/// Most ways that are in force.
const MAX_WAYS: usize = 512;
/// Ways of one namespace that come before the further ones of all others: a group that is edited is as old as before, and must
/// not take what younger groups have.
const WAYS_OF_ROUND: usize = 16;
/// Most shapes that are refused in their own words.
const MAX_NAMED_REFUSALS: usize = 32;

/// What a group is told that is not known to be refused, or one of more than are refused in their own words.
pub(super) const NOT_IN_FORCE: &str = "it selects members in a way that is not in force: it was asked for a moment ago, or by more groups than fit";
/// The way out.
const TAKE_A_KNOWN_WAY: &str = "select by the kinds, label keys and settings of an older one";

/// The policies by which these groups are judged, and what stands for one where a group is refused.
///
/// `labels` are those by which this release is for groups: all of these have them. `served` has the kinds of categories, and the
/// scopes of kinds. By `settings` some rules are refused.
pub fn policies_of_groups<'g>(
    groups: impl Iterator<Item = &'g FoundGroup>,
    labels: &LabelMatcher,
    served: &ServedKinds,
    settings: &PolicySettings,
) -> Vec<FoundPolicy> {
    let mut groups: Vec<_> = groups.collect();
    if groups.is_empty() {
        return Vec::new();
    }
    groups.sort_by(|a, b| (a.created, &a.namespace, &a.name).cmp(&(b.created, &b.namespace, &b.name)));
    let mut expanded: BTreeMap<_, _> = groups
        .iter()
        .filter_map(|group| group.shape.as_ref().ok())
        .map(|shape| (shape, expand_shape(shape, served)))
        .collect();
    let mut quota = ShapeQuota::default();
    for request in in_rounds(&groups, &expanded) {
        quota.request_shape(&request);
    }
    let mut refused: BTreeMap<Arc<str>, ShapeRefusal> = BTreeMap::new();
    for (shape, by_namespace) in quota.refused.iter().filter(|(shape, _)| !quota.in_force.contains(*shape)) {
        let refusal = ShapeRefusal { why: NOT_IN_FORCE.into(), by_namespace: by_namespace.clone() };
        refused.insert(shape.clone(), refusal);
    }
    for (shape, why) in
        expanded.iter().filter_map(|(shape, expanded)| Some((*shape, expanded.as_ref().err()?)))
    {
        let refusal = ShapeRefusal { why: cut(why).into(), by_namespace: BTreeMap::new() };
        refused.insert(shape.clone(), refusal);
    }
    let in_force = quota.in_force.iter().filter_map(|shape| Some((shape, expanded.remove(shape)?.ok()?)));
    let policy_in_force = |(shape, expanded)| {
        let scope = scope_of(shape, &expanded, &groups, settings);
        let policy = policy_of_expanded(shape, expanded, labels, scope);
        refuse_unless_compiled(policy, shape, labels, settings)
    };
    let mut policies: Vec<_> = in_force.map(policy_in_force).collect();
    let refused = refused.into_iter().take(MAX_NAMED_REFUSALS);
    policies.extend(refused.map(|(shape, refusal)| refusal_of_shape(&shape, refusal, labels)));
    policies.push(refusal_of_others(NOT_IN_FORCE, labels));
    policies
}

/// The namespaces in which groups of a shape are judged. A rule that groups bring is evaluated in their own ones only, and in those
/// that are open to them, and comes into force in another one as a new shape does.
fn scope_of(
    shape: &Arc<str>,
    expanded: &ExpandedShape,
    groups: &[&FoundGroup],
    settings: &PolicySettings,
) -> NamespaceScope {
    if expanded.spec.children.iter().all(|child| child.ready.is_none()) {
        return NamespaceScope::default();
    }
    let grants = &settings.group_namespaces.grants;
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for group in groups.iter().filter(|group| group.shape.as_ref() == Ok(shape)) {
        let named = group.named_namespaces.iter().filter(|other| grants.allows(&group.namespace, other));
        open.extend(named.chain([&group.namespace]).map(|namespace| &**namespace));
    }
    NamespaceScope::only(open)
}

/// The policy, or where it has a rule that cannot be, the one that says so. It has taken its ways: how many are refused with words of
/// their own stays bounded by those.
fn refuse_unless_compiled(
    policy: FoundPolicy,
    shape: &Arc<str>,
    labels: &LabelMatcher,
    settings: &PolicySettings,
) -> FoundPolicy {
    let is_computed = |child: &ChildSpec| child.expect.as_ref().is_some_and(|expect| expect.cel.is_some());
    let has_rule = |child: &ChildSpec| child.ready.is_some() || is_computed(child);
    if policy.spec.as_ref().is_ok_and(|spec| !spec.children.iter().any(has_rule)) {
        return policy;
    }
    let Err(why) = policy.compile_spec(settings) else { return policy };
    let why = not_judged(&why).into();
    refusal_of_shape(shape, ShapeRefusal { why, by_namespace: BTreeMap::new() }, labels)
}

/// A shape that a group of this namespace asks for.
struct ShapeRequest<'g> {
    round: usize,
    namespace: &'g str,
    shape: &'g Arc<str>,
    /// Number of ways in which groups of the shape select.
    ways: usize,
}

/// The shapes of these groups, which are in order of their age: those with which their namespace has few ways come first.
fn in_rounds<'g>(
    groups: &[&'g FoundGroup],
    expanded: &BTreeMap<&Arc<str>, Result<ExpandedShape, String>>,
) -> Vec<ShapeRequest<'g>> {
    let mut known: BTreeMap<&str, (usize, BTreeSet<&Arc<str>>)> = BTreeMap::new();
    let mut requests = Vec::new();
    for group in groups {
        let Ok(shape) = &group.shape else { continue };
        let Some(Ok(ExpandedShape { spec, .. })) = expanded.get(shape) else { continue };
        let (ways, shapes) = known.entry(&group.namespace).or_default();
        if shapes.insert(shape) {
            let own = spec.children.len();
            *ways += own;
            let round = ways.saturating_sub(1) / WAYS_OF_ROUND;
            requests.push(ShapeRequest { round, namespace: &group.namespace, shape, ways: own });
        }
    }
    // Stable: within a round by age.
    requests.sort_by_key(|request| request.round);
    requests
}

#[derive(Default)]
struct ShapeQuota {
    in_force: BTreeSet<Arc<str>>,
    /// Number of ways that are in force, and of those that each namespace brought.
    ways: usize,
    by_namespace: BTreeMap<Box<str>, usize>,
    /// What is said of a shape that is refused, in each namespace that asked for it: it names no other one.
    refused: BTreeMap<Arc<str>, BTreeMap<Box<str>, Arc<str>>>,
}

impl ShapeQuota {
    fn request_shape(&mut self, request: &ShapeRequest<'_>) {
        let ShapeRequest { namespace, shape, ways, .. } = *request;
        if self.in_force.contains(shape) {
            return;
        }
        let of_namespace = self.by_namespace.entry(namespace.into()).or_default();
        let (whose, most) = if *of_namespace + ways > MAX_WAYS_OF_NAMESPACE {
            (format!("namespace {namespace}"), MAX_WAYS_OF_NAMESPACE)
        } else if self.ways + ways > MAX_WAYS {
            ("all namespaces".to_owned(), MAX_WAYS)
        } else {
            *of_namespace += ways;
            self.ways += ways;
            self.in_force.insert(shape.clone());
            return;
        };
        let why = format!(
            "it cannot be judged: with it, groups of {whose} would select in more than {most} ways, each a member and a \
             kind: {TAKE_A_KNOWN_WAY}"
        );
        self.refused.entry(shape.clone()).or_default().insert(namespace.into(), why.into());
    }
}

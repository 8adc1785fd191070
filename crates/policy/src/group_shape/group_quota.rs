//! How many shapes of groups are in force. Whoever may create groups chooses by which labels objects are indexed, and what is
//! listed for it: without a limit the author of one namespace's groups could take what all others need.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{FoundGroup, policy_of_shape, refusal_of_others, refusal_of_shape};
use crate::found_policy::FoundPolicy;
use watcher::plan::LabelMatcher;

/// Most ways to select, a member and a kind each, that are in force for groups of one namespace, beyond those that are for older
/// ones elsewhere. Each object of a kind is indexed once for every way whose label keys it carries, wherever it is: without
/// a limit the ways of one namespace could take all memory.
const MAX_WAYS_OF_NAMESPACE: usize = 64;
/// Most ways that are in force.
const MAX_WAYS: usize = 512;
/// Most shapes that are refused in their own words.
const MAX_NAMED_REFUSALS: usize = 32;

/// The way out.
const TAKE_A_KNOWN_WAY: &str = "select by the kinds, label keys and settings of an older one";

/// The policies by which these groups are judged, and what stands for one where a group is refused.
///
/// `labels` are those by which this release is for groups: all of these have them.
pub fn policies_of_groups<'g>(
    groups: impl Iterator<Item = &'g FoundGroup>,
    labels: &LabelMatcher,
) -> Vec<FoundPolicy> {
    let mut groups: Vec<_> = groups.collect();
    if groups.is_empty() {
        return Vec::new();
    }
    groups.sort_by(|a, b| (a.created, &a.namespace, &a.name).cmp(&(b.created, &b.namespace, &b.name)));
    let mut quota = ShapeQuota::default();
    for group in &groups {
        if let Ok(shape) = &group.shape {
            quota.request_shape(&group.namespace, shape);
        }
    }
    let mut policies: Vec<_> = quota.in_force.iter().map(|shape| policy_of_shape(shape, labels)).collect();
    let refused = quota.refused.iter().filter(|(shape, _)| !quota.in_force.contains(*shape));
    policies
        .extend(refused.take(MAX_NAMED_REFUSALS).map(|(shape, why)| refusal_of_shape(shape, why, labels)));
    let others = "it selects members in a way that is not in force: it was asked for a moment ago, or by more groups than fit";
    policies.push(refusal_of_others(others, labels));
    policies
}

#[derive(Default)]
struct ShapeQuota {
    in_force: BTreeSet<Arc<str>>,
    /// Number of ways that are in force, and of those that each namespace brought.
    ways: usize,
    by_namespace: BTreeMap<Box<str>, usize>,
    refused: BTreeMap<Arc<str>, String>,
}

impl ShapeQuota {
    fn request_shape(&mut self, namespace: &str, shape: &Arc<str>) {
        if self.in_force.contains(shape) {
            return;
        }
        let ways = count_ways(shape);
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
        self.refused.entry(shape.clone()).or_insert(why);
    }
}

/// Number of ways in which groups of a shape select.
fn count_ways(shape: &str) -> usize {
    #[derive(serde::Deserialize)]
    struct Ways {
        children: Vec<serde::de::IgnoredAny>,
    }
    serde_json::from_str::<Ways>(shape).map_or(0, |spec| spec.children.len())
}

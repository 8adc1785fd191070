//! Since when the objects that are waited for have been as they are.

use std::collections::BTreeMap;

use readiness::rollup::ParentReason;
use readiness::{Level, Time};
use rollcall_core::{NodeReason, TreeNode};
use watcher::ParentObject;
use watcher::status::{OwnTypes, OwnedCondition, ParentStatus};

use super::super::node_reason::is_node_ready;
use super::super::pick::{TreeObjectIndex, missing_targets, node_key};
use super::super::policy_cluster::PolicyCluster;
use super::super::target::ObjectTarget;

/// How long nothing has come, gone or been edited among the targets and what is below them, as far as it was seen here. Where
/// nothing but quiet shows that an operator is done, `settle` counts from there.
#[derive(Debug, Default)]
pub(super) struct QuietSpan {
    /// Generation of each, by uid.
    members: BTreeMap<Box<str>, i64>,
    since: Option<Time>,
}

impl QuietSpan {
    /// The targets, which `pick` finds among these objects if all have been as they are since the time that it is given.
    pub(super) fn find_targets(
        &mut self,
        cluster: &PolicyCluster,
        objects: &[&ParentObject],
        targets: &[ObjectTarget],
        now: Time,
        pick: impl Fn(Time) -> Vec<TreeNode>,
    ) -> Vec<TreeNode> {
        let find_since = |since| add_unquiet(pick(since), targets, || pick(Time(i64::MIN)));
        let found = find_since(self.since.unwrap_or(now));
        let index = TreeObjectIndex::new(objects);
        let known = |node| Some((node, index.get(node)?));
        let roots: Vec<(&TreeNode, &ParentObject)> = found.iter().filter_map(known).collect();
        // The service has seen it settle.
        if !roots.is_empty() && roots.iter().all(|(node, object)| is_told_ready(cluster, node, object)) {
            return pick(Time(i64::MIN));
        }
        let mut members = BTreeMap::new();
        for node in &found {
            add_members(node, &index, &mut members);
        }
        let is_first = self.since.is_none();
        if members == self.members && !is_first {
            return found;
        }
        (self.members, self.since) = (members, Some(now));
        if is_first { found } else { find_since(now) }
    }
}

/// Adds the targets of which nothing is said yet, because what they rest on has just changed; `settled` is what will be said of
/// them if nothing changes any more.
fn add_unquiet(
    mut found: Vec<TreeNode>,
    targets: &[ObjectTarget],
    settled: impl FnOnce() -> Vec<TreeNode>,
) -> Vec<TreeNode> {
    if missing_targets(&found, targets).is_empty() {
        return found;
    }
    for node in settled() {
        let is_same = |other: &TreeNode| node_key(other) == node_key(&node);
        if found.iter().any(is_same) {
            continue;
        }
        found.push(if is_node_ready(&node) {
            TreeNode {
                verdict: Level::Progressing.as_str(),
                reason: NodeReason::Parent(ParentReason::ChildrenSettling),
                detail: "waiting for quiet".to_owned(),
                ..node
            }
        } else {
            // Whether it is too late, only its own time tells.
            TreeNode { stalled: false, ..node }
        });
    }
    found
}

/// Returns `true` if Rollcall has written on this object that it is ready, of its generation and by the policy that judges it here,
/// which is in force.
fn is_told_ready(cluster: &PolicyCluster, node: &TreeNode, object: &ParentObject) -> bool {
    let Some(policy) = cluster.find_policy_in_force(&node.policy) else { return false };
    let status = ParentStatus::read(&object.text, &OwnTypes::of([&*policy.condition]));
    status.our_entry(&policy.condition).map(OwnedCondition::to_entry).is_some_and(|said| {
        said.is_true()
            && said.parent_reason() == Some(ParentReason::AllChildrenReady)
            && said.observed_generation == Some(object.child.meta.generation)
    })
}

fn add_members(node: &TreeNode, index: &TreeObjectIndex<'_>, members: &mut BTreeMap<Box<str>, i64>) {
    if let Some(object) = index.get(node) {
        members.insert(object.child.meta.uid.clone(), object.child.meta.generation);
    }
    for child in &node.children {
        add_members(child, index, members);
    }
}

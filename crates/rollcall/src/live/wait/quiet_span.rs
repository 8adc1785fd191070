//! Since when the objects that are waited for have been as they are.

use std::collections::BTreeMap;

use inspect::api_group;
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
        let roots: Vec<&ParentObject> = found.iter().filter_map(|node| index.get(node)).collect();
        // The service has seen it settle.
        if !roots.is_empty() && roots.iter().all(|object| is_told_ready(cluster, object)) {
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

/// Returns `true` if Rollcall has written on this object that it is ready, of its generation and by a policy that is in force.
fn is_told_ready(cluster: &PolicyCluster, object: &ParentObject) -> bool {
    let meta = &object.child.meta;
    let of_kind = cluster
        .policies_in_force()
        .filter(|policy| policy.parent.group == api_group(object) && policy.parent.kind == *meta.kind);
    let conditions: Vec<&str> = of_kind.map(|policy| &*policy.condition).collect();
    let status = ParentStatus::read(&object.text, &OwnTypes::of(conditions.iter().copied()));
    conditions.iter().filter_map(|condition| status.our_entry(condition)).map(OwnedCondition::to_entry).any(
        |said| {
            said.is_true()
                && said.parent_reason() == Some(ParentReason::AllChildrenReady)
                && said.observed_generation == Some(meta.generation)
        },
    )
}

fn add_members(node: &TreeNode, index: &TreeObjectIndex<'_>, members: &mut BTreeMap<Box<str>, i64>) {
    if let Some(object) = index.get(node) {
        members.insert(object.child.meta.uid.clone(), object.child.meta.generation);
    }
    for child in &node.children {
        add_members(child, index, members);
    }
}

//! Since when the objects that are waited for have been as they are.

use std::collections::BTreeMap;

use readiness::Time;
use readiness::rollup::ParentReason;
use rollcall_core::TreeNode;
use watcher::ParentObject;
use watcher::status::{OwnTypes, OwnedCondition, ParentStatus};

use super::super::pick::TreeObjectIndex;
use super::super::policy_cluster::{PolicyCluster, api_group};

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
        now: Time,
        pick: impl Fn(Time) -> Vec<TreeNode>,
    ) -> Vec<TreeNode> {
        let since = self.since.unwrap_or(now);
        let found = pick(since);
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
        if self.since.is_some() && members == self.members {
            return found;
        }
        (self.members, self.since) = (members, Some(now));
        pick(now)
    }
}

/// Returns `true` if Rollcall has written on this object that it is ready, of its generation and by a policy that is in force.
fn is_told_ready(cluster: &PolicyCluster, object: &ParentObject) -> bool {
    let meta = &object.child.meta;
    let of_kind = cluster
        .policies
        .iter()
        .filter(|(_, policy)| policy.parent.group == api_group(object) && policy.parent.kind == *meta.kind);
    let conditions: Vec<&str> = of_kind.map(|(_, policy)| &*policy.condition).collect();
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

//! What targets are judged by that no policy chooses: default policies, and built-in rules.

use std::collections::BTreeSet;

use anyhow::bail;
use api::ReadinessPolicySpec;
use api::policy::ParentSpec;
use inspect::api_group;
use inspect::owned_index::object_hash;
use policy::{CompiledPolicy, compile};
use readiness::rollup::ParentReason;
use readiness::{RuleKind, Time};
use rollcall_core::{NodeToken, TreeNode};
use watcher::plan::AllowedNamespaces;
use watcher::status::{OwnTypes, ParentStatus};
use watcher::{ApiKind, ParentObject};

use super::leaf_node::{leaf_node, unready_word, verdict_node};
use super::node_reason::is_node_ready;
use super::pick::TreeObjectIndex;
use super::target::KindName;
use crate::limits::STUCK_AFTER;

/// Kinds of targets that are parents in no policy, or not all of which are.
#[derive(Default)]
pub(super) struct DefaultPolicies {
    /// A policy for each that is no built-in kind: it selects common workloads that the parent owns.
    pub(super) compiled: Vec<(String, CompiledPolicy)>,
    kinds: BTreeSet<KindName>,
    /// Built-in kinds, which are evaluated by themselves.
    standalone: BTreeSet<KindName>,
}

impl DefaultPolicies {
    /// Adds a kind whose objects are judged where no policy has them as parents.
    pub(super) fn add_kind(&mut self, kind: &KindName) -> anyhow::Result<()> {
        if !matches!(RuleKind::from_group_kind(&kind.group, &kind.kind), RuleKind::Other | RuleKind::Run) {
            self.standalone.insert(kind.clone());
        } else if self.kinds.insert(kind.clone()) {
            self.compiled.push(default_policy(kind)?);
        }
        Ok(())
    }

    /// Returns `true` if objects of this kind are judged that no policy chooses.
    pub(super) fn has_kind(&self, kind: &KindName) -> bool {
        self.kinds.contains(kind) || self.standalone.contains(kind)
    }

    /// Returns `true` if there is no target of such a kind.
    pub(super) fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.standalone.is_empty()
    }

    /// Kinds that are evaluated by themselves.
    pub(super) fn standalone_kinds(&self) -> impl Iterator<Item = &KindName> {
        self.standalone.iter()
    }

    /// Returns `true` for a kind that is evaluated by itself.
    pub(super) fn is_standalone(&self, api: &ApiKind) -> bool {
        self.standalone.iter().any(|kind| kind.group == api.group && kind.kind == api.kind)
    }

    /// Adds the objects of these kinds that stand nowhere in the trees of the policies; `judged` is what default policies say of
    /// them.
    pub(super) fn complete_trees(
        &self,
        trees: &mut Vec<TreeNode>,
        judged: Vec<TreeNode>,
        objects: &[&ParentObject],
        now: Time,
    ) {
        if self.is_empty() {
            return;
        }
        let mut counted = BTreeSet::new();
        for tree in &*trees {
            self.collect_counted(tree, &mut counted);
        }
        let is_of = |kinds: &BTreeSet<KindName>, group: &str, kind: &str| {
            kinds.iter().any(|known| known.group == *group && known.kind == *kind)
        };
        let index = TreeObjectIndex::new(if self.kinds.is_empty() { &[] } else { objects });
        for mut tree in judged {
            if !is_of(&self.kinds, &tree.group, &tree.kind) || counted.contains(&hash_node(&tree)) {
                continue;
            }
            if let Some(object) = index.get(&tree) {
                // Without a policy, no children are required.
                if is_childless(&tree) {
                    tree = leaf_node(object, now);
                } else if is_node_ready(&tree) {
                    add_own_word(&mut tree, object, now);
                }
            }
            trees.push(tree);
        }
        let alone = objects
            .iter()
            .filter(|object| is_of(&self.standalone, api_group(object), &object.child.meta.kind));
        let alone = alone.map(|object| leaf_node(object, now));
        trees.extend(alone.filter(|node| !counted.contains(&hash_node(node))));
    }

    /// Collects the objects of these kinds that stand in a tree.
    fn collect_counted(&self, node: &TreeNode, counted: &mut BTreeSet<u64>) {
        let is = |kind: &KindName| kind.group == node.group && kind.kind == node.kind;
        if self.kinds.iter().chain(&self.standalone).any(is) {
            counted.insert(hash_node(node));
        }
        for child in &node.children {
            self.collect_counted(child, counted);
        }
    }
}

fn hash_node(node: &TreeNode) -> u64 {
    object_hash(&node.group, &node.kind, &node.namespace, &node.name)
}

fn is_childless(tree: &TreeNode) -> bool {
    let lacks = matches!(
        tree.reason.token(),
        NodeToken::Parent(
            ParentReason::ChildrenMissing | ParentReason::ChildrenPending | ParentReason::OperatorSilent
        )
    );
    lacks && tree.children.is_empty()
}

/// What a parent says of itself counts too where no policy says what does: one that is at work is not ready by what it owns. One that
/// says nothing is judged by what it owns alone.
fn add_own_word(tree: &mut TreeNode, object: &ParentObject, now: Time) {
    let status = ParentStatus::read(&object.text, &OwnTypes::any());
    if let Some(own) = unready_word(object, &status) {
        let children = std::mem::take(&mut tree.children);
        *tree = TreeNode { children, ..verdict_node(object, &own, now) };
    }
}

/// Returns the default policy: common workloads that the parent owns.
fn default_policy(kind: &KindName) -> anyhow::Result<(String, CompiledPolicy)> {
    let spec: ReadinessPolicySpec = serde_json::from_value(serde_json::json!({
        "parent": ParentSpec { group: kind.group.clone(), kind: kind.kind.clone(), ..ParentSpec::default() },
    }))?;
    match compile(&spec, STUCK_AFTER) {
        Ok(mut compiled) => {
            // Who looks has rights of their own, and sees no more than these allow.
            compiled.groups.iter_mut().for_each(|group| group.allowed = AllowedNamespaces::any());
            Ok(("(none)".to_owned(), compiled))
        }
        Err(problems) => bail!(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")),
    }
}

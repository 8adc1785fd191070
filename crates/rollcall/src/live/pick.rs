//! Selects the requested nodes of the trees.

use std::collections::{BTreeMap, BTreeSet};

use inspect::api_group;
use readiness::{Time, UnreadySince};
use rollcall_core::TreeNode;
use watcher::ParentObject;

use super::since::state_since;
use super::target::ObjectTarget;

/// Returns the target nodes at any depth. A large tree is moved, not copied.
pub(super) fn pick_targets(trees: Vec<TreeNode>, targets: &[ObjectTarget]) -> Vec<TreeNode> {
    let mut picked = TargetPicker { targets, found: Vec::new(), known: BTreeSet::new() };
    for tree in trees {
        picked.take_tree(tree);
    }
    picked.found
}

struct TargetPicker<'t> {
    targets: &'t [ObjectTarget],
    found: Vec<TreeNode>,
    /// Kind, group, namespace and name of the nodes found.
    known: BTreeSet<[String; 4]>,
}

impl TargetPicker<'_> {
    fn take_tree(&mut self, node: TreeNode) {
        if self.targets.iter().any(|target| target.matches_node(&node)) && self.is_new(&node) {
            let at = self.found.len();
            self.found.push(TreeNode::default());
            self.copy_below(&node);
            self.found[at] = node;
        } else {
            node.children.into_iter().for_each(|child| self.take_tree(child));
        }
    }

    /// Selects descendants of a selected node separately only if they were requested by name; the others are shown with
    /// it.
    fn copy_below(&mut self, node: &TreeNode) {
        for child in &node.children {
            let named = self.targets.iter().any(|target| target.name.is_some() && target.matches_node(child));
            if named && self.is_new(child) {
                self.found.push(child.clone());
            }
            self.copy_below(child);
        }
    }

    fn is_new(&mut self, node: &TreeNode) -> bool {
        let (group, kind, namespace, name) = node_key(node);
        self.known.insert([group, kind, namespace, name].map(str::to_owned))
    }
}

/// Returns the targets that no object was found for.
pub(super) fn missing_targets<'t>(found: &[TreeNode], targets: &'t [ObjectTarget]) -> Vec<&'t ObjectTarget> {
    let lacks = |target: &&ObjectTarget| !found.iter().any(|node| target.matches_node(node));
    targets.iter().filter(lacks).collect()
}

/// Identity of an object for a person: group, kind, namespace, name.
pub(super) type TreeNodeKey<'a> = (&'a str, &'a str, &'a str, &'a str);

pub(super) fn node_key(node: &TreeNode) -> TreeNodeKey<'_> {
    (&node.group, &node.kind, &node.namespace, &node.name)
}

/// Known times of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeTimes {
    pub(super) created: Option<Time>,
    pub(super) since: Option<UnreadySince>,
}

/// Looks up the object of a node.
pub(super) struct TreeObjectIndex<'o>(BTreeMap<TreeNodeKey<'o>, &'o ParentObject>);

impl<'o> TreeObjectIndex<'o> {
    pub(super) fn new(objects: &[&'o ParentObject]) -> TreeObjectIndex<'o> {
        let key = |object: &'o ParentObject| {
            let meta = &object.child.meta;
            ((api_group(object), &*meta.kind, &*meta.namespace, &*meta.name), object)
        };
        TreeObjectIndex(objects.iter().map(|object| key(object)).collect())
    }

    /// Returns the object's creation time, and the time since which it has its current state.
    pub(super) fn node_times(&self, node: &TreeNode) -> NodeTimes {
        let object = self.get(node);
        NodeTimes {
            created: object.and_then(|object| object.child.meta.created),
            since: object.and_then(|object| state_since(object, node)),
        }
    }

    pub(super) fn get(&self, node: &TreeNode) -> Option<&'o ParentObject> {
        let (group, kind, namespace, name) = node_key(node);
        self.0.get(&(group, kind, namespace, name)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::target::KindName;
    use super::*;

    fn node(kind: &str, name: &str, children: Vec<TreeNode>) -> TreeNode {
        TreeNode { kind: kind.to_owned(), name: name.to_owned(), children, ..TreeNode::default() }
    }

    fn target(kind: &str, group: &str, name: Option<&str>) -> ObjectTarget {
        let kind = KindName { group: group.to_owned(), kind: kind.to_owned() };
        ObjectTarget { kind, namespaced: true, namespace: None, name: name.map(str::to_owned) }
    }

    #[test]
    fn an_object_is_found_wherever_it_stands() {
        let forest =
            || vec![node("Shop", "books", vec![node("Database", "db", vec![node("Pod", "a", vec![])])])];
        assert_eq!(pick_targets(forest(), &[target("Database", "", Some("db"))])[0].children.len(), 1);
        assert!(pick_targets(forest(), &[target("Database", "", Some("other"))]).is_empty());
        assert!(pick_targets(forest(), &[target("Database", "other.io", None)]).is_empty());
        let placed = |namespace: &str| ObjectTarget {
            namespace: Some(namespace.to_owned()),
            ..target("Database", "", Some("db"))
        };
        assert_eq!(["", "vault"].map(|namespace| pick_targets(forest(), &[placed(namespace)]).len()), [1, 0]);
        assert_eq!(pick_targets(forest(), &[target("Shop", "", None)]).len(), 1);
        let both = [target("Shop", "", Some("books")), target("Database", "", Some("db"))];
        assert_eq!(pick_targets(forest(), &both).len(), 2, "one below the other");
        assert_eq!(pick_targets(forest(), &[target("Shop", "", None), target("Pod", "", None)]).len(), 1);
    }

    #[test]
    fn what_was_not_found_is_named() {
        let found = [node("Shop", "books", vec![])];
        let targets = [target("Shop", "", Some("books")), target("Shop", "", Some("toys"))];
        assert_eq!(missing_targets(&found, &targets), [&targets[1]]);
    }
}

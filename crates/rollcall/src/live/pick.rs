//! From everything to what was asked for.

use std::collections::{BTreeMap, BTreeSet};

use controller::core::TreeNode;
use readiness::{Since, Time};
use watcher::Parent;

use super::gather::group;
use super::since::since;
use super::target::Target;

/// The nodes that are meant, wherever they stand. A large tree is taken as it is, not copied.
pub(super) fn pick(trees: Vec<TreeNode>, targets: &[Target]) -> Vec<TreeNode> {
    let mut picked = Picked { targets, found: Vec::new(), known: BTreeSet::new() };
    for tree in trees {
        picked.take(tree);
    }
    picked.found
}

struct Picked<'t> {
    targets: &'t [Target],
    found: Vec<TreeNode>,
    /// Kind, group, namespace and name of those that were found.
    known: BTreeSet<[String; 4]>,
}

impl Picked<'_> {
    fn take(&mut self, node: TreeNode) {
        if self.targets.iter().any(|target| target.is(&node)) && self.is_new(&node) {
            let at = self.found.len();
            self.found.push(TreeNode::default());
            self.copy_below(&node);
            self.found[at] = node;
        } else {
            node.children.into_iter().for_each(|child| self.take(child));
        }
    }

    /// What stands below one that is shown is shown with it, unless it was asked for by its name.
    fn copy_below(&mut self, node: &TreeNode) {
        for child in &node.children {
            let named = self.targets.iter().any(|target| target.name.is_some() && target.is(child));
            if named && self.is_new(child) {
                self.found.push(child.clone());
            }
            self.copy_below(child);
        }
    }

    fn is_new(&mut self, node: &TreeNode) -> bool {
        let (group, kind, namespace, name) = key(node);
        self.known.insert([group, kind, namespace, name].map(str::to_owned))
    }
}

/// The targets that nothing was found for, as a person wrote them.
pub(super) fn lacking(found: &[TreeNode], targets: &[Target]) -> Vec<String> {
    let lacks = |target: &&Target| !found.iter().any(|node| target.is(node));
    targets.iter().filter(lacks).map(ToString::to_string).collect()
}

/// What tells two objects apart for a person: group, kind, namespace, name.
pub(super) type Key<'a> = (&'a str, &'a str, &'a str, &'a str);

pub(super) fn key(node: &TreeNode) -> Key<'_> {
    (&node.group, &node.kind, &node.namespace, &node.name)
}

/// What is known of the time of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moments {
    pub(super) created: Option<Time>,
    pub(super) since: Option<Since>,
}

/// Finds the object behind a node.
pub(super) struct Index<'o>(BTreeMap<Key<'o>, &'o Parent>);

impl<'o> Index<'o> {
    pub(super) fn new(objects: &[&'o Parent]) -> Index<'o> {
        let key = |object: &'o Parent| {
            let meta = &object.child.meta;
            ((group(object), &*meta.kind, &*meta.namespace, &*meta.name), object)
        };
        Index(objects.iter().map(|object| key(object)).collect())
    }

    /// When it was created, and since when it has been as it is.
    pub(super) fn moments(&self, node: &TreeNode) -> Moments {
        let object = self.get(node);
        Moments {
            created: object.and_then(|object| object.child.meta.created),
            since: object.and_then(|object| since(object, node)),
        }
    }

    pub(super) fn get(&self, node: &TreeNode) -> Option<&'o Parent> {
        let (group, kind, namespace, name) = key(node);
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

    fn target(kind: &str, group: &str, name: Option<&str>) -> Target {
        let kind = KindName { group: group.to_owned(), kind: kind.to_owned() };
        Target { kind, namespaced: true, name: name.map(str::to_owned) }
    }

    #[test]
    fn an_object_is_found_wherever_it_stands() {
        let forest =
            || vec![node("Shop", "books", vec![node("Database", "db", vec![node("Pod", "a", vec![])])])];
        assert_eq!(pick(forest(), &[target("Database", "", Some("db"))])[0].children.len(), 1);
        assert!(pick(forest(), &[target("Database", "", Some("other"))]).is_empty());
        assert!(pick(forest(), &[target("Database", "other.io", None)]).is_empty());
        assert_eq!(pick(forest(), &[target("Shop", "", None)]).len(), 1);
        let both = [target("Shop", "", Some("books")), target("Database", "", Some("db"))];
        assert_eq!(pick(forest(), &both).len(), 2, "one below the other");
        assert_eq!(pick(forest(), &[target("Shop", "", None), target("Pod", "", None)]).len(), 1);
    }

    #[test]
    fn what_was_not_found_is_named() {
        let found = [node("Shop", "books", vec![])];
        let targets = [target("Shop", "", Some("books")), target("Shop", "", Some("toys"))];
        assert_eq!(lacking(&found, &targets), ["Shop toys"]);
    }
}

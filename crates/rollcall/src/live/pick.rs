//! From everything to what was asked for.

use std::collections::{BTreeMap, BTreeSet};

use controller::core::TreeNode;
use readiness::Time;
use watcher::Parent;

use super::gather::group;
use super::target::Target;

/// The nodes that are meant, wherever they stand.
pub(super) fn pick(trees: &[TreeNode], targets: &[Target]) -> Vec<TreeNode> {
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    let mut open: Vec<(&TreeNode, bool)> = trees.iter().rev().map(|node| (node, false)).collect();
    while let Some((node, shown)) = open.pop() {
        let meant: Vec<&Target> = targets.iter().filter(|target| target.is(node)).collect();
        // What stands below one that is shown is shown with it, unless it was asked for by its name.
        if meant.iter().any(|target| target.name.is_some() || !shown) && known.insert(key(node)) {
            found.push(node.clone());
        }
        let shown = shown || !meant.is_empty();
        open.extend(node.children.iter().rev().map(|child| (child, shown)));
    }
    found
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

    /// When the object behind a node was created, and now.
    pub(super) fn age(&self, node: &TreeNode, now: Time) -> Option<(i64, i64)> {
        Some((self.get(node)?.child.meta.created?.0, now.0))
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
        let forest = [node("Shop", "books", vec![node("Database", "db", vec![node("Pod", "a", vec![])])])];
        assert_eq!(pick(&forest, &[target("Database", "", Some("db"))])[0].children.len(), 1);
        assert!(pick(&forest, &[target("Database", "", Some("other"))]).is_empty());
        assert!(pick(&forest, &[target("Database", "other.io", None)]).is_empty());
        assert_eq!(pick(&forest, &[target("Shop", "", None)]).len(), 1);
        let both = [target("Shop", "", Some("books")), target("Database", "", Some("db"))];
        assert_eq!(pick(&forest, &both).len(), 2, "one below the other");
        assert_eq!(pick(&forest, &[target("Shop", "", None), target("Pod", "", None)]).len(), 1);
    }

    #[test]
    fn what_was_not_found_is_named() {
        let found = [node("Shop", "books", vec![])];
        let targets = [target("Shop", "", Some("books")), target("Shop", "", Some("toys"))];
        assert_eq!(lacking(&found, &targets), ["Shop toys"]);
    }
}

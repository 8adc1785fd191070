//! Index of label selectors: children carry a selector id and parents select by it, in any order of observation. A
//! parent selects by its own selector or by one that another object lends it.

use std::collections::{BTreeMap, BTreeSet};

use crate::ids::{ObjectId, PolicyId, SelectorId};
use crate::types::{ChildLink, LinkTarget};

/// Every selector that a child carries or a parent selects by.
#[derive(Clone, Debug, Default)]
pub(crate) struct SelectorIndex {
    by: BTreeMap<SelectorId, SelectorEntry>,
}

#[derive(Clone, Debug, Default)]
struct SelectorEntry {
    /// The parent, and the object the selector comes from: the parent itself or the one that lends it.
    parents: BTreeSet<(ObjectId, PolicyId, ObjectId)>,
    children: BTreeSet<(ObjectId, ChildLink)>,
}

impl SelectorEntry {
    fn children_of(&self, policy: PolicyId) -> Vec<(ObjectId, ChildLink)> {
        self.children.iter().copied().filter(|(_, link)| link.policy == policy).collect()
    }
}

impl SelectorIndex {
    /// Returns the parents that select by `selector` under `policy`.
    pub(crate) fn selecting_parents(&self, selector: SelectorId, policy: PolicyId) -> Vec<ObjectId> {
        let parents = self.by.get(&selector).into_iter().flat_map(|s| &s.parents);
        let mut parents: Vec<_> = parents.filter(|(_, p, _)| *p == policy).map(|(id, ..)| *id).collect();
        parents.dedup();
        parents
    }

    /// Returns `true` if `parent` selects by `selector` under `policy`.
    pub(crate) fn has_selecting_parent(
        &self,
        parent: ObjectId,
        policy: PolicyId,
        selector: SelectorId,
    ) -> bool {
        let all = (parent, policy, ObjectId(0))..=(parent, policy, ObjectId(u32::MAX));
        self.by.get(&selector).is_some_and(|s| s.parents.range(all).next().is_some())
    }

    /// Adds or removes a child of a selector.
    pub(crate) fn set_child(&mut self, child: ObjectId, link: ChildLink, on: bool) {
        let LinkTarget::Selector(selector) = link.target() else { return };
        if on {
            self.by.entry(selector).or_default().children.insert((child, link));
        } else {
            self.remove_and_prune(selector, |s| s.children.remove(&(child, link)));
        }
    }

    /// Adds or removes a selection of a parent by its own selector or a lent one; returns the children that it gains or
    /// may lose.
    pub(crate) fn set_parent(
        &mut self,
        parent: ObjectId,
        (policy, selector): (PolicyId, SelectorId),
        by: ObjectId,
        on: bool,
    ) -> Vec<(ObjectId, ChildLink)> {
        if on {
            let selected = self.by.entry(selector).or_default();
            selected.parents.insert((parent, policy, by));
            return selected.children_of(policy);
        }
        let lost = self.by.get(&selector).map(|s| s.children_of(policy)).unwrap_or_default();
        self.remove_and_prune(selector, |s| s.parents.remove(&(parent, policy, by)));
        lost
    }

    fn remove_and_prune(&mut self, selector: SelectorId, remove: impl FnOnce(&mut SelectorEntry) -> bool) {
        if let Some(selected) = self.by.get_mut(&selector) {
            remove(selected);
            if selected.children.is_empty() && selected.parents.is_empty() {
                self.by.remove(&selector);
            }
        }
    }
}

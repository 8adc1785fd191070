//! Who selects whom by labels: children hang on a selector, parents select by it, in whichever order they are seen. A
//! parent selects by itself, or because something that counts for it lends it the selector.

use std::collections::{BTreeMap, BTreeSet};

use crate::types::{Link, ObjectId, PolicyId, SelectorId, Target};

/// Every selector that anything hangs on or selects by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selectors {
    by: BTreeMap<SelectorId, Selected>,
}

#[derive(Clone, Debug, Default)]
struct Selected {
    /// The parent, and whose selector it is: its own, or that of whoever lends it.
    parents: BTreeSet<(ObjectId, PolicyId, ObjectId)>,
    children: BTreeSet<(ObjectId, Link)>,
}

impl Selected {
    fn children_of(&self, policy: PolicyId) -> Vec<(ObjectId, Link)> {
        self.children.iter().copied().filter(|(_, link)| link.policy == policy).collect()
    }
}

impl Selectors {
    /// Those that select by `selector` under `policy`.
    pub(crate) fn parents(&self, selector: SelectorId, policy: PolicyId) -> Vec<ObjectId> {
        let parents = self.by.get(&selector).into_iter().flat_map(|s| &s.parents);
        let mut parents: Vec<_> = parents.filter(|(_, p, _)| *p == policy).map(|(id, ..)| *id).collect();
        parents.dedup();
        parents
    }

    /// Does `parent` select by `selector` under `policy`?
    pub(crate) fn selects(&self, parent: ObjectId, policy: PolicyId, selector: SelectorId) -> bool {
        let all = (parent, policy, ObjectId(0))..=(parent, policy, ObjectId(u32::MAX));
        self.by.get(&selector).is_some_and(|s| s.parents.range(all).next().is_some())
    }

    /// Remembers, or forgets, that a child hangs on a selector.
    pub(crate) fn hang(&mut self, child: ObjectId, link: Link, on: bool) {
        let Target::Selector(selector) = link.target() else { return };
        if on {
            self.by.entry(selector).or_default().children.insert((child, link));
        } else {
            self.forget(selector, |s| s.children.remove(&(child, link)));
        }
    }

    /// A parent starts, or stops, selecting `by` itself or another; the children that it gains or may lose.
    pub(crate) fn select(
        &mut self,
        parent: ObjectId,
        (policy, selector): (PolicyId, SelectorId),
        by: ObjectId,
        on: bool,
    ) -> Vec<(ObjectId, Link)> {
        if on {
            let selected = self.by.entry(selector).or_default();
            selected.parents.insert((parent, policy, by));
            return selected.children_of(policy);
        }
        let lost = self.by.get(&selector).map(|s| s.children_of(policy)).unwrap_or_default();
        self.forget(selector, |s| s.parents.remove(&(parent, policy, by)));
        lost
    }

    fn forget(&mut self, selector: SelectorId, remove: impl FnOnce(&mut Selected) -> bool) {
        if let Some(selected) = self.by.get_mut(&selector) {
            remove(selected);
            if selected.children.is_empty() && selected.parents.is_empty() {
                self.by.remove(&selector);
            }
        }
    }
}

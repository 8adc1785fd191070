//! The walk from an object down its owner references.

use std::collections::BTreeSet;

use watcher::ApiKind;

use super::owned_index::{OwnedIndex, OwnedMeta};

/// Levels below an object that are searched.
const MAX_OWNED_DEPTH: usize = 16;

/// One object that was found, with what it owns.
#[derive(Debug)]
pub struct OwnedBranch<'o> {
    /// The object.
    pub meta: &'o OwnedMeta,
    /// What it owns.
    pub children: Vec<OwnedBranch<'o>>,
}

impl<'o> OwnedBranch<'o> {
    /// Adds the object and all below it to a list.
    pub fn collect_metas(&self, into: &mut Vec<&'o OwnedMeta>) {
        into.push(self.meta);
        for child in &self.children {
            child.collect_metas(into);
        }
    }
}

/// Finds each object once, however many own it.
pub struct OwnedWalk<'o, 'd> {
    index: &'o OwnedIndex,
    /// Says below which kinds is searched.
    descends: &'d dyn Fn(&ApiKind) -> bool,
    known: BTreeSet<&'o str>,
    /// Number of objects that may still be found.
    room: usize,
    /// Objects for which there was no room; without what these own.
    pub left_out: Vec<&'o OwnedMeta>,
}

impl<'o, 'd> OwnedWalk<'o, 'd> {
    /// A walk that finds at most `room` objects.
    pub fn new(
        index: &'o OwnedIndex,
        room: usize,
        descends: &'d dyn Fn(&ApiKind) -> bool,
    ) -> OwnedWalk<'o, 'd> {
        OwnedWalk { index, descends, known: BTreeSet::new(), room, left_out: Vec::new() }
    }

    /// Excludes an object, as known already.
    pub fn exclude_uid(&mut self, uid: &'o str) {
        self.known.insert(uid);
    }

    /// What the object with this uid and namespace owns, and has not been found yet.
    pub fn find_below(&mut self, uid: &str, namespace: &str) -> Vec<OwnedBranch<'o>> {
        self.find_at_depth(uid, namespace, 0)
    }

    fn find_at_depth(&mut self, uid: &str, namespace: &str, depth: usize) -> Vec<OwnedBranch<'o>> {
        let mut found = Vec::new();
        if depth == MAX_OWNED_DEPTH {
            return found;
        }
        let index = self.index;
        for meta in index.owned_by(uid, namespace) {
            if !self.known.insert(&meta.uid) {
                continue;
            }
            if self.room == 0 {
                self.left_out.push(meta);
                continue;
            }
            self.room -= 1;
            found.push(OwnedBranch { meta, children: Vec::new() });
        }
        // Siblings take up the room before their descendants.
        for branch in &mut found {
            if (self.descends)(&index.kinds[branch.meta.kind]) {
                branch.children = self.find_at_depth(&branch.meta.uid, &branch.meta.namespace, depth + 1);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::owned_index::{OwnedEntry, OwnedList};
    use super::*;

    fn kind(name: &str) -> ApiKind {
        ApiKind {
            group: "acme.io".to_owned(),
            version: "v1".to_owned(),
            kind: name.to_owned(),
            plural: format!("{}s", name.to_lowercase()),
            namespaced: true,
            has_status: true,
        }
    }

    /// An index of one kind, of owners and what they own: names are uids.
    fn index(edges: &[(&str, &str)]) -> OwnedIndex {
        let entry = |(owner, name): &(&str, &str)| OwnedEntry {
            owner: (*owner).into(),
            namespace: "a".into(),
            name: (*name).into(),
            uid: (*name).into(),
        };
        let list = OwnedList { entries: edges.iter().map(entry).collect(), ..OwnedList::default() };
        let mut index = OwnedIndex::of_kinds(vec![kind("Part")]);
        index.add_list(0, list);
        index.sort();
        index
    }

    fn drawn(branches: &[OwnedBranch<'_>]) -> String {
        let draw = |branch: &OwnedBranch<'_>| match drawn(&branch.children) {
            below if below.is_empty() => branch.meta.name.to_string(),
            below => format!("{}({below})", branch.meta.name),
        };
        branches.iter().map(draw).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn each_object_is_found_once_and_in_order_whatever_owns_it_and_in_rings() {
        let index =
            index(&[("r", "b"), ("r", "a"), ("a", "c"), ("b", "c"), ("c", "a"), ("c", "r"), ("x", "y")]);
        let mut walk = OwnedWalk::new(&index, 9, &|_| true);
        walk.exclude_uid("r");
        assert_eq!(drawn(&walk.find_below("r", "a")), "a(c) b");
        assert_eq!(drawn(&walk.find_below("x", "b")), "", "a namespaced object owns nothing elsewhere");
        assert_eq!(drawn(&walk.find_below("x", "")), "y");
    }

    #[test]
    fn the_parent_of_an_apply_set_has_its_members_below_it_and_what_it_owns_once() {
        let mut index = index(&[("r", "a"), ("applyset-x", "a"), ("applyset-x", "b"), ("applyset-y", "c")]);
        let sets = [("r", "applyset-x"), ("s", "applyset-z")].map(|(uid, id)| (uid.into(), id.into()));
        index.add_list(0, OwnedList { apply_sets: sets.to_vec(), ..OwnedList::default() });
        let mut walk = OwnedWalk::new(&index, 9, &|_| true);
        assert_eq!(drawn(&walk.find_below("r", "a")), "a b");
        assert_eq!(drawn(&walk.find_below("s", "a")), "");
    }

    #[test]
    fn what_finds_no_room_is_counted_and_siblings_come_before_what_is_below_them() {
        let index = index(&[("r", "a"), ("r", "b"), ("a", "c"), ("c", "d"), ("b", "e")]);
        let mut walk = OwnedWalk::new(&index, 3, &|_| true);
        assert_eq!(drawn(&walk.find_below("r", "a")), "a(c) b");
        assert_eq!(walk.left_out.len(), 2);
        let mut shallow = OwnedWalk::new(&index, 9, &|_| false);
        assert_eq!(drawn(&shallow.find_below("r", "a")), "a b");
    }

    #[test]
    fn a_chain_is_followed_to_its_bound() {
        let names: Vec<String> = (0..40).map(|at| format!("n{at:02}")).collect();
        let edges: Vec<_> = names.windows(2).map(|pair| (&*pair[0], &*pair[1])).collect();
        let index = index(&edges);
        let mut found = Vec::new();
        let branches = OwnedWalk::new(&index, 99, &|_| true).find_below("n00", "a");
        for branch in &branches {
            branch.collect_metas(&mut found);
        }
        assert_eq!(found.len(), MAX_OWNED_DEPTH);
    }
}

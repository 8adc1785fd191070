//! The unready children of one evaluation, in the order in which they are reported.

use std::collections::BTreeSet;

use readiness::rollup::ChildWeight;

use crate::ids::{KindId, ObjectId};

/// An unready child; entries are ordered worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UnreadyEntry {
    pub(crate) weight: ChildWeight,
    pub(crate) group: u8,
    pub(crate) kind: KindId,
    pub(crate) child: ObjectId,
}

/// Largest number of entries kept in a sorted vector, which allocates nothing when one entry is added or removed.
const MAX_ROW_LEN: usize = 16;

/// An ordered set that is almost always small.
#[expect(clippy::box_collection, reason = "an enum is as wide as its widest variant")]
#[derive(Clone, Debug)]
pub(crate) enum UnreadySet {
    Row(Vec<UnreadyEntry>),
    /// Behind a pointer, so that the set is no wider for what few have.
    Tree(Box<BTreeSet<UnreadyEntry>>),
}

impl Default for UnreadySet {
    fn default() -> Self {
        UnreadySet::Row(Vec::new())
    }
}

impl UnreadySet {
    pub(crate) fn insert(&mut self, trouble: UnreadyEntry) {
        match self {
            UnreadySet::Row(row) if row.len() < MAX_ROW_LEN => {
                if let Err(at) = row.binary_search(&trouble) {
                    row.insert(at, trouble);
                }
            }
            UnreadySet::Row(row) => {
                let tree = row.drain(..).chain([trouble]).collect();
                *self = UnreadySet::Tree(Box::new(tree));
            }
            UnreadySet::Tree(tree) => _ = tree.insert(trouble),
        }
    }

    pub(crate) fn remove(&mut self, trouble: UnreadyEntry) {
        match self {
            UnreadySet::Row(row) => {
                if let Ok(at) = row.binary_search(&trouble) {
                    row.remove(at);
                }
            }
            UnreadySet::Tree(tree) => {
                tree.remove(&trouble);
                // Half of the limit, so that one child at the border does not cause repeated conversions.
                if tree.len() <= MAX_ROW_LEN / 2 {
                    *self = UnreadySet::Row(tree.iter().copied().collect());
                }
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &UnreadyEntry> {
        let (row, tree) = match self {
            UnreadySet::Row(row) => (Some(row), None),
            UnreadySet::Tree(tree) => (None, Some(&**tree)),
        };
        row.into_iter().flatten().chain(tree.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use readiness::Level;

    use super::*;

    #[test]
    fn many_troubles_are_kept_in_the_same_order_as_few() {
        let trouble = |child: u32| UnreadyEntry {
            weight: ChildWeight::of([Level::Failed, Level::Unknown][child as usize % 2]),
            group: 0,
            kind: KindId(0),
            child: ObjectId(child * 7 % 50),
        };
        let (mut troubles, mut model) = (UnreadySet::default(), BTreeSet::new());
        for round in 0..100 {
            let one = trouble(round % 50);
            if round < 50 {
                troubles.insert(one);
                model.insert(one);
            } else {
                troubles.remove(one);
                model.remove(&one);
            }
            assert!(troubles.iter().eq(&model), "{round}");
        }
        assert!(matches!(troubles, UnreadySet::Row(_)));
    }

    #[test]
    fn up_to_sixteen_are_a_row_and_more_a_tree_until_half_of_them_are_left() {
        let trouble = |child| UnreadyEntry {
            weight: ChildWeight::of(Level::Failed),
            group: 0,
            kind: KindId(0),
            child: ObjectId(child),
        };
        let is_row = |troubles: &UnreadySet| matches!(troubles, UnreadySet::Row(_));
        let mut troubles = UnreadySet::default();
        for child in 1..=17 {
            troubles.insert(trouble(child));
            assert_eq!(is_row(&troubles), child <= 16, "{child} were added");
        }
        for child in (1..=17).rev() {
            troubles.remove(trouble(child));
            assert_eq!(is_row(&troubles), child - 1 <= 8, "{child} were there");
        }
    }
}

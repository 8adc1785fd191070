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

/// An ordered set that is almost always empty, and else almost always small.
#[expect(clippy::box_collection, reason = "an enum is as wide as its widest variant")]
#[derive(Clone, Debug, Default)]
pub(crate) enum UnreadySet {
    #[default]
    Empty,
    One(UnreadyEntry),
    /// Several of which one may be left, so that one child that comes and goes causes no conversions.
    Row(Box<Vec<UnreadyEntry>>),
    Tree(Box<BTreeSet<UnreadyEntry>>),
}

// Every parent has one per policy for as long as it exists.
const _: () = assert!(size_of::<UnreadySet>() == 16);

impl UnreadySet {
    pub(crate) fn insert(&mut self, trouble: UnreadyEntry) {
        match self {
            UnreadySet::Empty => *self = UnreadySet::One(trouble),
            UnreadySet::One(one) if *one == trouble => {}
            UnreadySet::One(one) => {
                *self = UnreadySet::Row(Box::new(vec![trouble.min(*one), trouble.max(*one)]));
            }
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
            UnreadySet::Empty => {}
            UnreadySet::One(one) => {
                if *one == trouble {
                    *self = UnreadySet::Empty;
                }
            }
            UnreadySet::Row(row) => {
                if let Ok(at) = row.binary_search(&trouble) {
                    row.remove(at);
                }
                if row.is_empty() {
                    *self = UnreadySet::Empty;
                }
            }
            UnreadySet::Tree(tree) => {
                tree.remove(&trouble);
                // Half of the limit, so that one child at the border does not cause repeated conversions.
                if tree.len() <= MAX_ROW_LEN / 2 {
                    *self = UnreadySet::Row(Box::new(tree.iter().copied().collect()));
                }
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &UnreadyEntry> {
        let (row, tree): (&[UnreadyEntry], _) = match self {
            UnreadySet::Empty => (&[], None),
            UnreadySet::One(one) => (std::slice::from_ref(one), None),
            UnreadySet::Row(row) => (row, None),
            UnreadySet::Tree(tree) => (&[], Some(&**tree)),
        };
        row.iter().chain(tree.into_iter().flatten())
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
        assert!(matches!(troubles, UnreadySet::Empty));
    }

    #[test]
    fn up_to_sixteen_are_a_row_and_more_a_tree_until_half_of_them_are_left() {
        let trouble = |child| UnreadyEntry {
            weight: ChildWeight::of(Level::Failed),
            group: 0,
            kind: KindId(0),
            child: ObjectId(child),
        };
        let is_row = |troubles: &UnreadySet| !matches!(troubles, UnreadySet::Tree(_));
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

    #[test]
    fn one_alone_and_none_take_no_memory_beside_the_set() {
        let trouble = |child| UnreadyEntry {
            weight: ChildWeight::of(Level::Failed),
            group: 0,
            kind: KindId(0),
            child: ObjectId(child),
        };
        let mut troubles = UnreadySet::default();
        for child in [1, 1] {
            troubles.insert(trouble(child));
            assert!(matches!(troubles, UnreadySet::One(_)), "the same twice is one");
        }
        troubles.remove(trouble(2));
        assert!(troubles.iter().eq(&[trouble(1)]), "another one was removed");
        troubles.insert(trouble(2));
        troubles.remove(trouble(1));
        assert!(matches!(troubles, UnreadySet::Row(_)), "the second may come back at once");
        troubles.remove(trouble(2));
        assert!(matches!(troubles, UnreadySet::Empty), "what is ready again takes nothing");
    }
}

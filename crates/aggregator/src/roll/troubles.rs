//! The children of one roll that are not ready, in the order in which trouble is told.

use std::collections::BTreeSet;

use readiness::rollup::Weight;

use crate::types::{KindId, ObjectId};

/// A child that is not ready: worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Trouble {
    pub(crate) weight: Weight,
    pub(crate) group: u8,
    pub(crate) kind: KindId,
    pub(crate) child: ObjectId,
}

/// Up to so many are kept in a row, which costs no allocation when one comes and goes.
const ROW: usize = 16;

/// An ordered set that is almost always small.
#[derive(Clone, Debug)]
pub(crate) enum Troubles {
    Row(Vec<Trouble>),
    Tree(BTreeSet<Trouble>),
}

impl Default for Troubles {
    fn default() -> Self {
        Troubles::Row(Vec::new())
    }
}

impl Troubles {
    pub(crate) fn insert(&mut self, trouble: Trouble) {
        match self {
            Troubles::Row(row) if row.len() < ROW => {
                if let Err(at) = row.binary_search(&trouble) {
                    row.insert(at, trouble);
                }
            }
            Troubles::Row(row) => {
                let tree = row.drain(..).chain([trouble]).collect();
                *self = Troubles::Tree(tree);
            }
            Troubles::Tree(tree) => _ = tree.insert(trouble),
        }
    }

    pub(crate) fn remove(&mut self, trouble: Trouble) {
        match self {
            Troubles::Row(row) => {
                if let Ok(at) = row.binary_search(&trouble) {
                    row.remove(at);
                }
            }
            Troubles::Tree(tree) => {
                tree.remove(&trouble);
                // Half of a row, so that one child at the border does not move all of them to and fro.
                if tree.len() <= ROW / 2 {
                    *self = Troubles::Row(tree.iter().copied().collect());
                }
            }
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Trouble> {
        let (row, tree) = match self {
            Troubles::Row(row) => (Some(row), None),
            Troubles::Tree(tree) => (None, Some(tree)),
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
        let trouble = |child: u32| Trouble {
            weight: Weight { level: [Level::Failed, Level::Unknown][child as usize % 2], terminal: false },
            group: 0,
            kind: KindId(0),
            child: ObjectId(child * 7 % 50),
        };
        let (mut troubles, mut model) = (Troubles::default(), BTreeSet::new());
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
        assert!(matches!(troubles, Troubles::Row(_)));
    }
}

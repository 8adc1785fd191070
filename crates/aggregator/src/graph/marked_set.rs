//! A set of small integers that is filled, and then taken whole.

/// Ids that are marked, each once, in the order in which they were.
#[derive(Clone, Debug, Default)]
pub(super) struct MarkedSet {
    bits: Vec<u64>,
    ids: Vec<u32>,
}

impl MarkedSet {
    pub(super) fn contains(&self, id: u32) -> bool {
        let (word, bit) = place_of(id);
        self.bits.get(word).is_some_and(|bits| bits & bit != 0)
    }

    /// Marks an id; returns `true` if it was not marked.
    #[inline]
    pub(super) fn insert(&mut self, id: u32) -> bool {
        let (word, bit) = place_of(id);
        match self.bits.get_mut(word) {
            Some(bits) if *bits & bit != 0 => return false,
            Some(bits) => *bits |= bit,
            None => self.insert_beyond(word, bit),
        }
        self.ids.push(id);
        true
    }

    #[cold]
    fn insert_beyond(&mut self, word: usize, bit: u64) {
        self.bits.resize(word + 1, 0);
        self.bits[word] |= bit;
    }

    /// Takes all ids, and with them the room that they took.
    pub(super) fn take_all(&mut self) -> Vec<u32> {
        let ids = std::mem::take(&mut self.ids);
        for id in &ids {
            let (word, bit) = place_of(*id);
            self.bits[word] &= !bit;
        }
        ids
    }
}

fn place_of(id: u32) -> (usize, u64) {
    (id as usize / 64, 1 << (id % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_marked_once_until_all_are_taken() {
        let mut set = MarkedSet::default();
        for id in [700, 0, 63, 64, 0, 700, 64] {
            set.insert(id);
        }
        assert_eq!(
            [0, 1, 63, 64, 65, 700, 701, 10_000].map(|id| set.contains(id)),
            [true, false, true, true, false, true, false, false]
        );
        assert_eq!(set.take_all(), [700, 0, 63, 64]);
        assert_eq!((set.contains(64), set.take_all()), (false, vec![]));
        assert_eq!((set.insert(64), set.insert(64), set.take_all()), (true, false, vec![64]));
    }
}

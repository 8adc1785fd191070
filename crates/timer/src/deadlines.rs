//! A deadline queue with one deadline per key.

use std::collections::{BTreeMap, BTreeSet};

use crate::TimePoint;

/// Returns the earliest of these moments; `None` if there is none.
#[inline]
pub fn earliest<T: Ord, const N: usize>(moments: [Option<T>; N]) -> Option<T> {
    moments.into_iter().fold(None, |first, at| match (first, at) {
        (Some(first), Some(at)) => Some(first.min(at)),
        (first, at) => first.or(at),
    })
}

/// Queue of at most one deadline per key, taken in the order of their moments. Ties are broken by key, so that a replay
/// takes the same order.
#[derive(Clone, Debug)]
pub struct DeadlineQueue<K, T> {
    at: BTreeMap<K, T>,
    queue: BTreeSet<(T, K)>,
}

impl<K: Copy + Ord, T: TimePoint> Default for DeadlineQueue<K, T> {
    fn default() -> Self {
        DeadlineQueue { at: BTreeMap::new(), queue: BTreeSet::new() }
    }
}

impl<K: Copy + Ord, T: TimePoint> DeadlineQueue<K, T> {
    /// Sets the deadline of `key` and replaces an earlier setting.
    pub fn set_deadline(&mut self, key: K, at: T) {
        if let Some(old) = self.at.insert(key, at) {
            if old == at {
                return;
            }
            self.queue.remove(&(old, key));
        }
        self.queue.insert((at, key));
    }

    /// Sets the deadline of `key` unless it already has an earlier one.
    pub fn set_if_earlier(&mut self, key: K, at: T) {
        let earliest = self.get(key).map_or(at, |old| old.min(at));
        self.set_deadline(key, earliest);
    }

    /// Removes the deadline of `key`; returns `true` if there was one.
    pub fn clear_deadline(&mut self, key: K) -> bool {
        self.at.remove(&key).is_some_and(|at| self.queue.remove(&(at, key)))
    }

    /// Returns the deadline of `key`.
    pub fn get(&self, key: K) -> Option<T> {
        self.at.get(&key).copied()
    }

    /// Returns the earliest deadline of all keys.
    pub fn next_deadline(&self) -> Option<T> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Removes and returns one key whose deadline has passed, the earliest first.
    #[inline]
    pub fn take_due(&mut self, now: T) -> Option<K> {
        if self.next_deadline()? > now {
            return None;
        }
        self.take_first()
    }

    /// Removes and returns the key with the earliest deadline.
    fn take_first(&mut self) -> Option<K> {
        let (_, key) = self.queue.pop_first()?;
        self.at.remove(&key);
        Some(key)
    }

    /// Number of keys that have a deadline.
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// Returns `true` if no key has a deadline.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct TestMoment(u64);
    impl std::ops::Add<Duration> for TestMoment {
        type Output = TestMoment;
        fn add(self, d: Duration) -> TestMoment {
            TestMoment(self.0 + u64::try_from(d.as_millis()).unwrap())
        }
    }

    #[test]
    fn a_key_has_one_deadline_and_the_latest_setting_counts() {
        let mut d = DeadlineQueue::default();
        d.set_deadline("a", TestMoment(5));
        d.set_deadline("b", TestMoment(3));
        d.set_deadline("a", TestMoment(1));
        assert_eq!((d.next_deadline(), d.len()), (Some(TestMoment(1)), 2));
        assert_eq!(
            (d.take_due(TestMoment(2)), d.take_due(TestMoment(2)), d.take_due(TestMoment(3))),
            (Some("a"), None, Some("b"))
        );
        assert!(d.is_empty());
    }

    #[test]
    fn the_earliest_moment_is_found_wherever_it_stands_and_none_is_no_moment() {
        let (none, early, late) = (None, Some(TestMoment(3)), Some(TestMoment(5)));
        for moments in [[none, early, late], [late, none, early], [early, late, none], [early, none, none]] {
            assert_eq!(earliest(moments), early, "{moments:?}");
        }
        assert_eq!(earliest([none; 2]), None);
    }

    #[test]
    fn arming_by_keeps_the_earlier_moment() {
        let mut d = DeadlineQueue::default();
        d.set_if_earlier("a", TestMoment(5));
        d.set_if_earlier("a", TestMoment(9));
        assert_eq!(d.get("a"), Some(TestMoment(5)));
        d.set_if_earlier("a", TestMoment(2));
        assert_eq!(d.get("a"), Some(TestMoment(2)));
        assert!(d.clear_deadline("a") && !d.clear_deadline("a"));
        assert_eq!(d.take_due(TestMoment(100)), None);
    }
}

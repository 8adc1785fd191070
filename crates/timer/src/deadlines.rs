//! What is due when: one moment per key.

use std::collections::{BTreeMap, BTreeSet};

use crate::Moment;

/// At most one deadline per key, taken in the order of their moments (ties by key, so that a replay takes the same).
#[derive(Clone, Debug)]
pub struct Deadlines<K, T> {
    at: BTreeMap<K, T>,
    queue: BTreeSet<(T, K)>,
}

impl<K: Copy + Ord, T: Moment> Default for Deadlines<K, T> {
    fn default() -> Self {
        Deadlines { at: BTreeMap::new(), queue: BTreeSet::new() }
    }
}

impl<K: Copy + Ord, T: Moment> Deadlines<K, T> {
    /// Sets the deadline of `key`, in place of an earlier setting.
    pub fn arm(&mut self, key: K, at: T) {
        if let Some(old) = self.at.insert(key, at) {
            if old == at {
                return;
            }
            self.queue.remove(&(old, key));
        }
        self.queue.insert((at, key));
    }

    /// Sets the deadline of `key` unless it already has an earlier one.
    pub fn arm_by(&mut self, key: K, at: T) {
        if self.at.get(&key).is_none_or(|old| *old > at) {
            self.arm(key, at);
        }
    }

    /// Takes the deadline of `key` away; `true` where there was one.
    pub fn disarm(&mut self, key: K) -> bool {
        self.at.remove(&key).is_some_and(|at| self.queue.remove(&(at, key)))
    }

    /// The deadline of `key`.
    pub fn get(&self, key: K) -> Option<T> {
        self.at.get(&key).copied()
    }

    /// The earliest deadline of all.
    pub fn next(&self) -> Option<T> {
        self.queue.first().map(|(at, _)| *at)
    }

    /// Takes one key whose deadline has come, the earliest first.
    pub fn take_due(&mut self, now: T) -> Option<K> {
        let (at, key) = *self.queue.first()?;
        if at > now {
            return None;
        }
        self.queue.remove(&(at, key));
        self.at.remove(&key);
        Some(key)
    }

    /// How many keys have a deadline.
    pub fn len(&self) -> usize {
        self.at.len()
    }

    /// No key has one.
    pub fn is_empty(&self) -> bool {
        self.at.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    struct At(u64);
    impl std::ops::Add<Duration> for At {
        type Output = At;
        fn add(self, d: Duration) -> At {
            At(self.0 + d.as_millis() as u64)
        }
    }

    #[test]
    fn a_key_has_one_deadline_and_the_latest_setting_counts() {
        let mut d = Deadlines::default();
        d.arm("a", At(5));
        d.arm("b", At(3));
        d.arm("a", At(1));
        assert_eq!((d.next(), d.len()), (Some(At(1)), 2));
        assert_eq!((d.take_due(At(2)), d.take_due(At(2)), d.take_due(At(3))), (Some("a"), None, Some("b")));
        assert!(d.is_empty());
    }

    #[test]
    fn arming_by_keeps_the_earlier_moment() {
        let mut d = Deadlines::default();
        d.arm_by("a", At(5));
        d.arm_by("a", At(9));
        assert_eq!(d.get("a"), Some(At(5)));
        d.arm_by("a", At(2));
        assert_eq!(d.get("a"), Some(At(2)));
        assert!(d.disarm("a") && !d.disarm("a"));
        assert_eq!(d.take_due(At(100)), None);
    }
}

//! Short-lived caches of what was read for viewers, so that many viewers of one object cost one look at it.

use std::hash::Hash;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lru::LruCache;
use readiness::Time;

/// A value with what it takes up of the cache's size, and the time at which it was put there.
struct CachedValue<V> {
    value: V,
    weight: usize,
    at: Time,
}

/// Keeps values for a short time, and those used last if there are too many.
pub(super) struct TtlCache<K: Eq + Hash, V> {
    ttl: Duration,
    /// Maximum sum of the weights of the values.
    max_weight: usize,
    kept: Mutex<(LruCache<K, CachedValue<V>>, usize)>,
}

impl<K: Eq + Hash, V: Clone> TtlCache<K, V> {
    pub(super) fn new(ttl: Duration, max_weight: usize) -> TtlCache<K, V> {
        TtlCache { ttl, max_weight, kept: Mutex::new((LruCache::unbounded(), 0)) }
    }

    fn kept(&self) -> MutexGuard<'_, (LruCache<K, CachedValue<V>>, usize)> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn get(&self, key: &K, now: Time) -> Option<V> {
        let mut kept = self.kept();
        kept.0.get(key).filter(|kept| now - kept.at < self.ttl).map(|kept| kept.value.clone())
    }

    /// Keeps a value that takes up `weight` of the size. One that is larger than the cache is not kept.
    pub(super) fn put(&self, key: K, value: V, weight: usize, now: Time) {
        if weight > self.max_weight {
            return;
        }
        let (entries, sum) = &mut *self.kept();
        let before = entries.put(key, CachedValue { value, weight, at: now });
        *sum = *sum + weight - before.map_or(0, |before| before.weight);
        while *sum > self.max_weight
            && let Some((_, oldest)) = entries.pop_lru()
        {
            *sum -= oldest.weight;
        }
    }

    /// Removes what is too old.
    pub(super) fn remove_expired(&self, now: Time) {
        let (entries, sum) = &mut *self.kept();
        let mut fresh = LruCache::unbounded();
        while let Some((key, kept)) = entries.pop_lru() {
            if now - kept.at < self.ttl {
                fresh.put(key, kept);
            } else {
                *sum -= kept.weight;
            }
        }
        *entries = fresh;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(5);

    fn kept(cache: &TtlCache<&'static str, u8>, second: i64) -> Vec<&'static str> {
        let now = Time(second * 1_000);
        ["a", "b", "c"].into_iter().filter(|key| cache.get(key, now).is_some()).collect()
    }

    #[test]
    fn a_value_is_kept_for_its_time_and_no_longer() {
        let cache = TtlCache::new(TTL, 10);
        cache.put("a", 1, 1, Time(0));
        cache.put("b", 2, 1, Time(3_000));
        assert_eq!(kept(&cache, 4), ["a", "b"]);
        assert_eq!(kept(&cache, 5), ["b"]);
        cache.remove_expired(Time(5_000));
        let kept = cache.kept();
        assert_eq!((kept.0.len(), kept.1), (1, 1), "what is too old takes up no room");
    }

    #[test]
    fn those_used_last_are_kept_within_the_size() {
        let cache = TtlCache::new(TTL, 10);
        for key in ["a", "b"] {
            cache.put(key, 0, 4, Time(0));
        }
        assert_eq!(cache.get(&"a", Time(0)), Some(0));
        cache.put("c", 0, 4, Time(0));
        assert_eq!(kept(&cache, 0), ["a", "c"]);
        cache.put("b", 0, 11, Time(0));
        assert_eq!(kept(&cache, 0), ["a", "c"], "what is larger than the cache displaces nothing");
        cache.put("c", 0, 10, Time(0));
        assert_eq!(kept(&cache, 0), ["c"]);
        cache.put("c", 0, 1, Time(0));
        assert_eq!(cache.kept().1, 1);
    }
}

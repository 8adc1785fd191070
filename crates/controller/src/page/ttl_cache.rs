//! Short-lived cache of the contexts of objects, so that many viewers of one object cost one look at it.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use lru::LruCache;
use readiness::Time;
use serde_json::Value;

/// Time for which the context of an object is cached, for all viewers. 5 s.
const AROUND_CACHE_TTL: Duration = Duration::from_secs(5);
/// Maximum number of cached contexts.
const AROUND_CACHE_SIZE: NonZeroUsize = NonZeroUsize::new(64).expect("invariant: not zero");

/// Uid of an object, and the resources of its context that the viewer may not read.
pub(super) type AroundKey = (Box<str>, BTreeSet<&'static str>);

/// Short-lived cache of objects' contexts.
#[derive(Debug)]
pub(super) struct AroundCache(Mutex<LruCache<AroundKey, (Value, Time)>>);

impl Default for AroundCache {
    fn default() -> Self {
        AroundCache(Mutex::new(LruCache::new(AROUND_CACHE_SIZE)))
    }
}

impl AroundCache {
    pub(super) fn get(&self, key: &AroundKey, now: Time) -> Option<Value> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(key).filter(|(_, at)| now - *at < AROUND_CACHE_TTL).map(|(value, _)| value.clone())
    }

    pub(super) fn put(&self, key: AroundKey, value: Value, now: Time) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(key, (value, now));
    }
}

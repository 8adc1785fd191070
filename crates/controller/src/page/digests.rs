//! Fingerprints of the children that are not ready: they tell whether anything shown has changed.

use std::hash::{Hash, Hasher};

use aggregator::{ChildOf, ObjectId};
use readiness::{Level, Time};
use rustc_hash::{FxHashMap, FxHasher};
use watcher::reflector::Reflector;

/// One fingerprint per child that is not ready.
pub(super) fn child_digests(edges: &[ChildOf], reflector: &Reflector, now: Time) -> FxHashMap<ObjectId, u64> {
    let digest = |edge: &ChildOf| {
        let read = reflector.read_row(edge.child, |row| {
            let verdict = row.assessment_for(edge.rule_index).verdict_at(now);
            let since = row.unready_since(edge.rule_index).map(|since| since.at);
            (verdict.level != Level::Ready).then(|| hash_of((verdict, &row.name, since)))
        });
        read.flatten().map(|digest| (edge.child, digest))
    };
    edges.iter().filter_map(digest).collect()
}

/// Fingerprint of a value.
pub(super) fn hash_of(what: impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    what.hash(&mut hasher);
    hasher.finish()
}

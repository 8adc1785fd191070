//! Fingerprints of what below a parent is not ready: they tell whether anything that is shown has moved.

use aggregator::{ChildOf, ObjectId};
use readiness::{Level, Time};
use rustc_hash::FxHashMap;
use watcher::reflector::Reflector;

use super::shown::hash;

/// One of each child that is not ready.
pub(super) fn digests(edges: &[ChildOf], reflector: &Reflector, now: Time) -> FxHashMap<ObjectId, u64> {
    let digest = |edge: &ChildOf| {
        let read = reflector.read(edge.child, |row| {
            let verdict = row.through(edge.lens).at(now);
            let since = row.since(edge.lens).map(|since| since.at);
            (verdict.level != Level::Ready).then(|| hash((verdict, &row.name, since)))
        });
        read.flatten().map(|digest| (edge.child, digest))
    };
    edges.iter().filter_map(digest).collect()
}

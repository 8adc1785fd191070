//! Fingerprints of the children that are not ready: they tell whether anything shown has changed.

use aggregator::{ChildOf, ObjectId};
use readiness::{Level, Time};
use rustc_hash::FxHashMap;
use watcher::reflector::Reflector;

use super::view::hash_of;

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

//! The comparison of a live list of metadata with what is held, page by page.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::{KindId, ObjectId};
use timer::Seed;
use watcher::reflector::Reflector;
use watcher::wire::WireMeta;

use super::live_reads::{HeldObject, LiveRead, held_objects};

/// What a comparison leaves to be read.
#[derive(Debug)]
pub struct OutdatedReads {
    /// Reads of objects that are newer in the list, older in it than they were held before, missing from the cache, or missing
    /// from the list.
    pub reads: Vec<LiveRead>,
    /// All of them are there; otherwise the rest was left to the next comparison.
    pub are_all: bool,
}

/// A comparison under way. Of the pages that it has seen it keeps ids alone.
#[derive(Clone, Debug)]
pub struct MetadataComparison {
    kind: KindId,
    /// Objects that were held before the list began: those missing from it are deleted.
    held: Vec<HeldObject>,
    versions: BTreeMap<ObjectId, u64>,
    seen: BTreeSet<ObjectId>,
    listed: usize,
    behind: Vec<LiveRead>,
}

impl MetadataComparison {
    /// Takes what is held of a kind, in one namespace or in all. Must be called before the list is asked for.
    pub fn begin(reflector: &Reflector, kind: KindId, namespace: Option<&str>) -> MetadataComparison {
        let held = held_objects(reflector, kind, namespace);
        let versions = held.iter().map(|held| (held.known.id(), held.known.version())).collect();
        MetadataComparison { kind, held, versions, seen: BTreeSet::new(), listed: 0, behind: Vec::new() }
    }

    /// Digest of what was held, objects and versions: where it is the same as before, nothing was observed since.
    pub fn held_digest(&self) -> u64 {
        let mixed = |(id, version): (&ObjectId, &u64)| Seed(u64::from(*id)).number_for(*version);
        self.versions.iter().map(mixed).fold(0, u64::wrapping_add)
    }

    /// Compares a page.
    pub fn compare_page(&mut self, reflector: &Reflector, metas: &[WireMeta]) {
        self.listed += metas.len();
        for meta in metas {
            let id = reflector.find_object(&meta.uid);
            self.seen.extend(id);
            let version = id.and_then(|id| reflector.read_row(id, |row| row.version));
            let wanted = || reflector.wants_object(self.kind, meta);
            let is_older =
                |id: &ObjectId| self.versions.get(id).is_some_and(|held| *held > meta.resource_version);
            let older = id.filter(is_older);
            if older.is_some() || version.map_or_else(wanted, |version| version < meta.resource_version) {
                let (namespace, name) = (meta.namespace.to_string(), meta.name.to_string());
                self.behind.push(LiveRead::One { kind: self.kind, namespace, name, expected: older });
            }
        }
    }

    /// The list begins again: what was seen of it is void.
    pub fn restart(&mut self) {
        self.seen.clear();
        self.behind.clear();
        self.listed = 0;
    }

    /// Number of objects that the list had so far.
    pub fn listed_count(&self) -> usize {
        self.listed
    }

    /// Ends the comparison after the last page. At most `most` of what is behind, and of what is missing from the list.
    pub fn into_outdated(self, most: usize) -> OutdatedReads {
        let MetadataComparison { held, seen, behind, .. } = self;
        let missing: Vec<_> = held.into_iter().filter(|held| !seen.contains(&held.known.id())).collect();
        let are_all = behind.len().max(missing.len()) <= most;
        let missing = missing.into_iter().map(HeldObject::into_read).take(most);
        OutdatedReads { reads: behind.into_iter().take(most).chain(missing).collect(), are_all }
    }
}

//! Live reads: the requests of resync and audit, and the handling of their responses.

use std::collections::{BTreeMap, BTreeSet};

use aggregator::{Engine, KindId, ObjectId};
use watcher::ReflectorObject;
use watcher::reflector::{ApplyOutcome, AwaitedVersion, ObjectRow, ReadStart, Reflector};
use watcher::wire::WireMeta;

/// Number of children of one parent above which one list per kind and namespace is cheaper than single reads.
const MAX_SINGLE_READS: usize = 20;

/// Live read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LiveRead {
    /// One object.
    One {
        /// Its kind.
        kind: KindId,
        /// Its namespace; empty for cluster-scoped objects.
        namespace: String,
        /// Its name.
        name: String,
        /// Object expected under that name. Its version is that of the moment at which the read is sent.
        expected: Option<ObjectId>,
    },
    /// All objects of a kind in one namespace.
    All {
        /// The kind.
        kind: KindId,
        /// The namespace; empty for all.
        namespace: String,
    },
}

/// Object as held when the read was sent. Its name may belong to another object by the time of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownObject {
    id: ObjectId,
    version: u64,
}

impl KnownObject {
    /// The object of this uid as it is held now; `None` where it is not.
    pub fn of(reflector: &Reflector, uid: &str) -> Option<KnownObject> {
        let id = reflector.find_object(uid)?;
        let version =
            reflector.read_row(id, |row| (!row.is_remembered()).then_some(row.version)).flatten()?;
        Some(KnownObject { id, version })
    }

    /// Which object it is.
    pub fn id(self) -> ObjectId {
        self.id
    }

    /// The version that is held.
    pub fn version(self) -> u64 {
        self.version
    }
}

/// Object as held before a list began.
#[derive(Clone, Debug)]
pub struct HeldObject {
    /// Its kind.
    pub kind: KindId,
    /// Its namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Which object it is, and its version.
    pub known: KnownObject,
}

impl HeldObject {
    fn from_row(id: ObjectId, row: &ObjectRow) -> HeldObject {
        let known = KnownObject { id, version: row.version };
        let (namespace, name) = (row.namespace.to_string(), row.name.to_string());
        HeldObject { kind: row.kind, namespace, name, known }
    }

    /// The read that shows whether it is still there.
    pub fn into_read(self) -> LiveRead {
        let HeldObject { kind, namespace, name, known } = self;
        LiveRead::One { kind, namespace, name, expected: Some(known.id) }
    }
}

impl LiveRead {
    /// Kind that is read.
    pub fn kind(&self) -> KindId {
        match self {
            LiveRead::One { kind, .. } | LiveRead::All { kind, .. } => *kind,
        }
    }

    /// Namespace in which is read; empty for objects without one, and for all.
    pub fn namespace(&self) -> &str {
        match self {
            LiveRead::One { namespace, .. } | LiveRead::All { namespace, .. } => namespace,
        }
    }

    /// The object that is expected, as it is held now. Must be asked for before the read is sent. `None` where that object is
    /// not held any more: its id may belong to another one by now.
    pub fn expected_object(&self, reflector: &Reflector) -> Option<KnownObject> {
        let LiveRead::One { kind, namespace, name, expected: Some(id) } = self else { return None };
        let known = |row: &ObjectRow| {
            let is_same = row.kind == *kind && *row.namespace == **namespace && *row.name == **name;
            (is_same && !row.is_remembered()).then_some(KnownObject { id: *id, version: row.version })
        };
        reflector.read_row(*id, known).flatten()
    }

    /// Returns `true` if the object that was to be read is known to be gone by now, so that no read is needed.
    pub fn is_obsolete(&self, reflector: &Reflector) -> bool {
        matches!(self, LiveRead::One { expected: Some(_), .. }) && self.expected_object(reflector).is_none()
    }
}

/// Change that a live read observed before the watch did, or an older version than was known when it was sent: then the
/// server's history has gone back, as it does when etcd is restored from a backup, and the watch waits for versions that come
/// again much later.
#[derive(Clone, Debug)]
pub struct WatchLag {
    /// `namespace/name`.
    pub object: String,
    /// Cached version; 0 if the object was not cached.
    pub before: u64,
    /// Version read; 0 if the object is deleted.
    pub live: u64,
    /// Change that the watch is given some time to deliver.
    pub awaited: AwaitedVersion,
}

impl WatchLag {
    /// Returns `true` if the server's history has gone back.
    pub fn went_back(&self) -> bool {
        self.live > 0 && self.live < self.before
    }
}

/// Reads of a parent's resync: the parent, the children that hold it back, and kinds of which an expected child is
/// missing.
pub(super) fn resync_reads(engine: &Engine, reflector: &Reflector, parent: ObjectId) -> Vec<LiveRead> {
    let (children, kinds) = engine.resync_targets(parent);
    let namespace = reflector.read_row(parent, |row| row.namespace.to_string()).unwrap_or_default();
    let mut reads: Vec<LiveRead> = read_of_object(reflector, parent).into_iter().collect();
    if children.len() > MAX_SINGLE_READS {
        let place = |id: &ObjectId| {
            reflector
                .read_row(*id, |row| LiveRead::All { kind: row.kind, namespace: row.namespace.to_string() })
        };
        reads.extend(children.iter().filter_map(place).collect::<BTreeSet<_>>());
    } else {
        reads.extend(children.iter().filter_map(|id| read_of_object(reflector, *id)));
    }
    reads.extend(kinds.into_iter().map(|kind| LiveRead::All { kind, namespace: namespace.clone() }));
    reads
}

/// Reads of objects whose rule reads the clock, to evaluate them again.
pub(super) fn reevaluation_reads(reflector: &Reflector, due: Vec<ObjectId>) -> Vec<LiveRead> {
    let mut by_place = BTreeMap::<(KindId, String), Vec<LiveRead>>::new();
    for read in due.into_iter().filter_map(|id| read_of_object(reflector, id)) {
        let LiveRead::One { kind, namespace, .. } = &read else { continue };
        by_place.entry((*kind, namespace.clone())).or_default().push(read);
    }
    let place_reads = |((kind, namespace), single): ((KindId, String), Vec<LiveRead>)| {
        if single.len() > MAX_SINGLE_READS { vec![LiveRead::All { kind, namespace }] } else { single }
    };
    by_place.into_iter().flat_map(place_reads).collect()
}

fn read_of_object(reflector: &Reflector, id: ObjectId) -> Option<LiveRead> {
    // A remembered object is deleted, so there is nothing to read.
    let held = |row: &ObjectRow| (!row.is_remembered()).then(|| HeldObject::from_row(id, row));
    reflector.read_row(id, held).flatten().map(HeldObject::into_read)
}

/// Applies the result of a single read like a watch event; `known` is the object expected, as it was held when the read was
/// sent. If the result is new, the
/// watch is given some time to deliver it too.
pub fn apply_live_read<K: ReflectorObject>(
    reflector: &Reflector,
    kind: KindId,
    start: ReadStart,
    known: Option<KnownObject>,
    live: Option<&K>,
) -> Vec<WatchLag> {
    let uid = live.map(|live| &*live.as_child().meta.uid);
    let id = uid.and_then(|uid| reflector.find_object(uid));
    // No object has that name, or a different one has it now.
    let gone = known.filter(|known| uid.is_none() || id != Some(known.id));
    let vanished = gone.and_then(|known| apply_vanished(reflector, known));
    let older = known.zip(live).filter(|(known, _)| id == Some(known.id));
    let older = older.and_then(|(known, live)| find_older(reflector, kind, known, &live.as_child().meta));
    let listed = live.and_then(|live| apply_live_object(reflector, kind, start, live));
    vanished.into_iter().chain(older).chain(listed).collect()
}

/// A version that is older than the one that was held before the read was sent. It is not applied: the list that follows tells
/// what holds.
fn find_older(reflector: &Reflector, kind: KindId, known: KnownObject, meta: &WireMeta) -> Option<WatchLag> {
    let version = meta.resource_version;
    (0 < version && version < known.version).then(|| {
        let object = format!("{}/{}", meta.namespace, meta.name);
        let awaited = reflector.expect_version(kind, &meta.uid, version);
        WatchLag { object, before: known.version, live: version, awaited }
    })
}

/// Applies one object of a live list.
pub fn apply_live_object<K: ReflectorObject>(
    reflector: &Reflector,
    kind: KindId,
    start: ReadStart,
    live: &K,
) -> Option<WatchLag> {
    let meta = &live.as_child().meta;
    let (applied, awaited) = reflector.apply_live(kind, start, live.as_child(), live.raw_text());
    let ApplyOutcome::Moved(before) = applied else { return None };
    let object = format!("{}/{}", meta.namespace, meta.name);
    Some(WatchLag { object, before, live: meta.resource_version, awaited: awaited? })
}

fn apply_vanished(reflector: &Reflector, known: KnownObject) -> Option<WatchLag> {
    let object = reflector.read_row(known.id, |row| format!("{}/{}", row.namespace, row.name))?;
    // An object that changed since was observed later than the read was sent.
    let awaited = reflector.apply_live_absence(known.id, known.version)?;
    Some(WatchLag { object, before: known.version, live: 0, awaited })
}

/// Cached objects of a kind before a list begins, in one namespace or in all: those missing from the list are deleted.
pub fn held_objects(reflector: &Reflector, kind: KindId, namespace: Option<&str>) -> Vec<HeldObject> {
    let mut held = Vec::new();
    reflector.for_each_row_in(kind, namespace, |id, row| {
        if !row.is_remembered() {
            held.push(HeldObject::from_row(id, row));
        }
    });
    held
}

/// Reads that follow a complete list: of objects that were held before it began and are missing from it. At most `most`.
pub fn unlisted_reads<K: ReflectorObject>(
    reflector: &Reflector,
    held: Vec<HeldObject>,
    listed: &[K],
    most: usize,
) -> Vec<LiveRead> {
    let seen: BTreeSet<ObjectId> =
        listed.iter().filter_map(|live| reflector.find_object(&live.as_child().meta.uid)).collect();
    let missing = held.into_iter().filter(|held| !seen.contains(&held.known.id));
    missing.map(HeldObject::into_read).take(most).collect()
}

#[cfg(test)]
mod tests;

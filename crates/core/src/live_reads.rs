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
        /// Object expected under that name.
        known: Option<KnownObject>,
    },
    /// All objects of a kind in one namespace.
    All {
        /// The kind.
        kind: KindId,
        /// The namespace; empty for all.
        namespace: String,
    },
}

/// Object as cached when the read was ordered. Its name may belong to another object by the time of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
}

impl LiveRead {
    /// Kind that is read.
    pub fn kind(&self) -> KindId {
        match self {
            LiveRead::One { kind, .. } | LiveRead::All { kind, .. } => *kind,
        }
    }

    /// The object that is expected, by its id.
    fn known(&self) -> Option<(ObjectId, KnownObject)> {
        match self {
            LiveRead::One { known: Some(known), .. } => Some((known.id, *known)),
            LiveRead::One { known: None, .. } | LiveRead::All { .. } => None,
        }
    }
}

/// Change that a live read observed before the watch did, or an older version than was known when it was ordered: then the
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

fn read_of_object(reflector: &Reflector, id: ObjectId) -> Option<LiveRead> {
    let one = |row: &ObjectRow| {
        // A remembered object is deleted, so there is nothing to read.
        (!row.is_remembered()).then(|| LiveRead::One {
            kind: row.kind,
            namespace: row.namespace.to_string(),
            name: row.name.to_string(),
            known: Some(KnownObject { id, version: row.version }),
        })
    };
    reflector.read_row(id, one).flatten()
}

/// Applies the result of a single read like a watch event; `known` is the object expected. If the result is new, the
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

pub(super) fn apply_vanished(reflector: &Reflector, known: KnownObject) -> Option<WatchLag> {
    let object = reflector.read_row(known.id, |row| format!("{}/{}", row.namespace, row.name))?;
    // An object that changed since was observed later than the read was ordered.
    let awaited = reflector.apply_live_absence(known.id, known.version)?;
    Some(WatchLag { object, before: known.version, live: 0, awaited })
}

/// Cached objects of a kind before a list begins, in one namespace or in all: those missing from the list are deleted.
pub fn held_objects(reflector: &Reflector, kind: KindId, namespace: Option<&str>) -> Vec<LiveRead> {
    let mut held = Vec::new();
    reflector.for_each_row(|id, row| {
        if row.kind == kind && !row.is_remembered() && namespace.is_none_or(|n| *n == *row.namespace) {
            let (namespace, name) = (row.namespace.to_string(), row.name.to_string());
            let known = Some(KnownObject { id, version: row.version });
            held.push(LiveRead::One { kind, namespace, name, known });
        }
    });
    held
}

/// Reads that follow a metadata list: objects that are newer in the list, older in it than they were held before, missing from
/// the cache, or missing from the list. At most `most` of either.
pub fn outdated_reads(
    reflector: &Reflector,
    kind: KindId,
    held: Vec<LiveRead>,
    listed: &[WireMeta],
    most: usize,
) -> Vec<LiveRead> {
    let (mut seen, mut behind) = (BTreeSet::new(), Vec::new());
    let known_before: BTreeMap<ObjectId, KnownObject> = held.iter().filter_map(LiveRead::known).collect();
    for meta in listed {
        let id = reflector.find_object(&meta.uid);
        seen.extend(id);
        let version = id.and_then(|id| reflector.read_row(id, |row| row.version));
        let wanted = || reflector.wants_object(kind, meta);
        let older =
            id.and_then(|id| known_before.get(&id)).filter(|held| held.version > meta.resource_version);
        if older.is_some() || version.map_or_else(wanted, |version| version < meta.resource_version) {
            let (namespace, name) = (meta.namespace.to_string(), meta.name.to_string());
            behind.push(LiveRead::One { kind, namespace, name, known: older.copied() });
        }
    }
    let unlisted = |read: &LiveRead| matches!(read, LiveRead::One { known: Some(known), .. } if !seen.contains(&known.id));
    let gone = held.into_iter().filter(unlisted).take(most);
    behind.into_iter().take(most).chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use aggregator::PolicyId;
    use watcher::plan::{
        AllowedNamespaces, AssessmentRule, ChildRule, FindChildrenBy, Interest, OutcomeRetention,
    };
    use watcher::wire::ChildObject;

    use super::*;

    const KIND: KindId = KindId(3);

    fn interest() -> Interest {
        let find = FindChildrenBy::Owner { group: "example.com".into(), kind: "Database".into() };
        Interest {
            assessment_rules: vec![AssessmentRule {
                limits: readiness::StuckLimits::default(),
                rule: None,
                remembers_outcome: false,
            }],
            child: vec![ChildRule {
                policy: PolicyId(1),
                group: 0,
                rule_index: 0,
                find,
                allowed: AllowedNamespaces::default(),
                ignore: None,
                retention: OutcomeRetention::Forget,
            }],
            ..Interest::for_kind(KIND, "apps", "Deployment")
        }
    }

    fn uid(n: u32) -> String {
        format!("00000000-0000-4000-8000-0000000000{n:02}")
    }

    fn deployment(n: u32, version: u32) -> ChildObject {
        let owner = serde_json::json!([{"apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": uid(99)}]);
        let object = serde_json::json!({"metadata": {"namespace": "shop", "name": "web", "uid": uid(n),
            "resourceVersion": version.to_string(), "ownerReferences": owner}});
        serde_json::from_str(&object.to_string()).unwrap()
    }

    fn shown(n: u32, version: u32) -> (Reflector, Option<KnownObject>) {
        let reflector = Reflector::new(|| ());
        reflector.set_interest(interest());
        let pass = reflector.begin_list(KIND, None);
        reflector.finish_list(&pass);
        reflector.apply_object(KIND, &deployment(n, version), None);
        let Some(LiveRead::One { known, .. }) = held_objects(&reflector, KIND, None).pop() else {
            panic!("nothing held")
        };
        (reflector, known)
    }

    fn holds(reflector: &Reflector, n: u32) -> bool {
        reflector.find_object(&uid(n)).is_some_and(|id| reflector.read_row(id, |_| ()).is_some())
    }

    #[test]
    fn where_another_one_bears_the_name_the_one_that_was_expected_is_gone() {
        let (reflector, known) = shown(1, 5);
        let start = reflector.start_read();
        assert_eq!(apply_live_read(&reflector, KIND, start, known, Some(&deployment(2, 8))).len(), 2);
        assert!(!holds(&reflector, 1) && holds(&reflector, 2));
    }

    #[test]
    fn a_version_older_than_was_known_shows_that_the_history_has_gone_back_and_is_not_applied() {
        let (reflector, known) = shown(1, 5);
        let start = reflector.start_read();
        let lags = apply_live_read(&reflector, KIND, start, known, Some(&deployment(1, 3)));
        assert!(matches!(&lags[..], [lag] if lag.went_back() && reflector.is_still_awaited(&lag.awaited)));
        let version = |reflector: &Reflector| {
            let id = reflector.find_object(&uid(1)).unwrap();
            reflector.read_row(id, |row| row.version)
        };
        assert_eq!(version(&reflector), Some(5));
        // What was observed since the read was ordered is newer than its answer, and nothing is wrong.
        reflector.apply_object(KIND, &deployment(1, 6), None);
        assert!(apply_live_read(&reflector, KIND, start, known, Some(&deployment(1, 5))).is_empty());
    }

    #[test]
    fn a_list_with_an_older_version_than_was_held_before_it_began_calls_for_a_read() {
        let (reflector, known) = shown(1, 5);
        let held = held_objects(&reflector, KIND, None);
        reflector.apply_object(KIND, &deployment(1, 9), None);
        let reads = |version| {
            outdated_reads(&reflector, KIND, held.clone(), &[deployment(1, version).meta.clone()], 9)
        };
        assert!(reads(5).is_empty() && reads(7).is_empty(), "it may be overtaken");
        assert!(matches!(&reads(4)[..], [LiveRead::One { known: of, .. }] if *of == known));
    }

    #[test]
    fn an_answer_that_was_overtaken_takes_nobody_away() {
        let (reflector, known) = shown(1, 5);
        reflector.apply_object(KIND, &deployment(1, 6), None);
        let start = reflector.start_read();
        assert!(apply_live_read::<ChildObject>(&reflector, KIND, start, known, None).is_empty());
        assert!(holds(&reflector, 1));
        let (reflector, known) = shown(1, 5);
        let start = reflector.start_read();
        assert_eq!(apply_live_read::<ChildObject>(&reflector, KIND, start, known, None).len(), 1);
        assert!(!holds(&reflector, 1));
    }
}

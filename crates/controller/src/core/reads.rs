//! Live reads: what the pass and the audit ask the server for, and what becomes of its answers.

use std::collections::BTreeSet;

use aggregator::{KindId, ObjectId};
use watcher::Feed;
use watcher::plan::Interest;
use watcher::reflector::{Applied, Awaited, Reflector, Row};
use watcher::wire::Meta;

use super::Core;

/// Beyond so many children of one parent, one list per kind and namespace is cheaper than reads one by one.
const ONE_BY_ONE: usize = 20;

/// One live read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Read {
    /// One object.
    One {
        /// Its kind.
        kind: KindId,
        /// Its namespace; empty for cluster-scoped objects.
        namespace: String,
        /// Its name.
        name: String,
        /// The object that is expected there.
        known: Option<Known>,
    },
    /// All objects of a kind in one namespace.
    All {
        /// The kind.
        kind: KindId,
        /// The namespace; empty for all.
        namespace: String,
    },
}

/// An object as it was held when a read was ordered: until it is answered, its place may be another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Known {
    id: ObjectId,
    version: u64,
}

impl Read {
    /// What is read.
    pub fn kind(&self) -> KindId {
        match self {
            Read::One { kind, .. } | Read::All { kind, .. } => *kind,
        }
    }
}

/// Something that a live read knew before the watch did.
#[derive(Clone, Debug)]
pub struct Ahead {
    /// `namespace/name`.
    pub object: String,
    /// The version that was held; 0 for none.
    pub before: u64,
    /// The version that was read; 0 where it is gone.
    pub live: u64,
    /// What the watch is given a while to bring.
    pub awaited: Awaited,
}

impl Core {
    /// What the pass of one parent reads: the parent, the children that hold it back, and kinds of which a child is
    /// expected but unseen.
    pub fn reads(&self, parent: ObjectId) -> Vec<Read> {
        let (children, kinds) = self.engine.pass(parent);
        let namespace = self.reflector.read(parent, |row| row.namespace.to_string()).unwrap_or_default();
        let mut reads: Vec<Read> = one(&self.reflector, parent).into_iter().collect();
        if children.len() > ONE_BY_ONE {
            let place = |id: &ObjectId| {
                self.reflector
                    .read(*id, |row| Read::All { kind: row.kind, namespace: row.namespace.to_string() })
            };
            reads.extend(children.iter().filter_map(place).collect::<BTreeSet<_>>());
        } else {
            reads.extend(children.iter().filter_map(|id| one(&self.reflector, *id)));
        }
        reads.extend(kinds.into_iter().map(|kind| Read::All { kind, namespace: namespace.clone() }));
        reads
    }
}

fn one(reflector: &Reflector, id: ObjectId) -> Option<Read> {
    let one = |row: &Row| {
        // There is nothing to be read of what is gone.
        (!row.is_remembered()).then(|| Read::One {
            kind: row.kind,
            namespace: row.namespace.to_string(),
            name: row.name.to_string(),
            known: Some(Known { id, version: row.version }),
        })
    };
    reflector.read(id, one).flatten()
}

/// What one live read found; `known` is the object that was expected there. It is applied like any event, and where it
/// was news, the watch is given a while to bring it too.
pub fn found<K: Feed>(
    reflector: &Reflector,
    interest: &Interest,
    known: Option<Known>,
    live: Option<&K>,
) -> Vec<Ahead> {
    let uid = live.map(|live| &*live.child().meta.uid);
    let id = uid.and_then(|uid| reflector.find(uid));
    // There is none of that name, or another one bears it now.
    let gone = known.filter(|known| uid.is_none() || id != Some(known.id));
    let vanished = gone.and_then(|known| vanished(reflector, known));
    let listed = live.and_then(|live| listed(reflector, interest, live));
    vanished.into_iter().chain(listed).collect()
}

/// One object of a live list.
pub fn listed<K: Feed>(reflector: &Reflector, interest: &Interest, live: &K) -> Option<Ahead> {
    let meta = &live.child().meta;
    let (applied, awaited) = reflector.apply_live(interest, live.child(), live.text());
    let Applied::Moved(before) = applied else { return None };
    let object = format!("{}/{}", meta.namespace, meta.name);
    Some(Ahead { object, before, live: meta.resource_version, awaited: awaited? })
}

fn vanished(reflector: &Reflector, known: Known) -> Option<Ahead> {
    let held = |row: &Row| (row.version, format!("{}/{}", row.namespace, row.name));
    let (before, object) = reflector.read(known.id, held)?;
    // What has moved since was seen later than the read was ordered.
    let awaited = (before == known.version).then(|| reflector.vanish(known.id))??;
    Some(Ahead { object, before, live: 0, awaited })
}

/// Everything of a kind that is held before a list begins, in one namespace or in all: what of it the list does not
/// have is gone.
pub fn held(reflector: &Reflector, kind: KindId, namespace: Option<&str>) -> Vec<Read> {
    let mut held = Vec::new();
    reflector.each(|id, row| {
        if row.kind == kind && !row.is_remembered() && namespace.is_none_or(|n| *n == *row.namespace) {
            let (namespace, name) = (row.namespace.to_string(), row.name.to_string());
            let known = Some(Known { id, version: row.version });
            held.push(Read::One { kind, namespace, name, known });
        }
    });
    held
}

/// What is to be read whole after a list of metadata: what it has newer, what it has and we lack, what we hold and it
/// lacks. At most `most` of either.
pub fn differing(
    reflector: &Reflector,
    interest: &Interest,
    held: Vec<Read>,
    listed: &[Meta],
    most: usize,
) -> Vec<Read> {
    let (mut seen, mut behind) = (BTreeSet::new(), Vec::new());
    for meta in listed {
        let id = reflector.find(&meta.uid);
        seen.extend(id);
        let version = id.and_then(|id| reflector.read(id, |row| row.version));
        let wanted = || reflector.wants(interest, meta);
        if version.map_or_else(wanted, |version| version < meta.resource_version) {
            let (namespace, name) = (meta.namespace.to_string(), meta.name.to_string());
            behind.push(Read::One { kind: interest.id, namespace, name, known: None });
        }
    }
    let unlisted =
        |read: &Read| matches!(read, Read::One { known: Some(known), .. } if !seen.contains(&known.id));
    let gone = held.into_iter().filter(unlisted).take(most);
    behind.into_iter().take(most).chain(gone).collect()
}

#[cfg(test)]
mod tests {
    use aggregator::PolicyId;
    use watcher::plan::{After, ChildRule, Find, Lens};
    use watcher::wire::Child;

    use super::*;

    const KIND: KindId = KindId(3);

    fn interest() -> Interest {
        let find = Find::Owner { group: "example.com".into(), kind: "Database".into() };
        Interest {
            lenses: vec![Lens { limits: readiness::Limits::default(), rule: None, remembers: false }],
            child: vec![ChildRule {
                policy: PolicyId(1),
                group: 0,
                lens: 0,
                find,
                ignore: None,
                after: After::Forget,
            }],
            ..Interest::of(KIND, "apps", "Deployment")
        }
    }

    fn uid(n: u32) -> String {
        format!("00000000-0000-4000-8000-0000000000{n:02}")
    }

    fn deployment(n: u32, version: u32) -> Child {
        let owner = serde_json::json!([{"apiVersion": "example.com/v1", "kind": "Database", "name": "db", "uid": uid(99)}]);
        let object = serde_json::json!({"metadata": {"namespace": "shop", "name": "web", "uid": uid(n),
            "resourceVersion": version.to_string(), "ownerReferences": owner}});
        serde_json::from_str(&object.to_string()).unwrap()
    }

    fn shown(n: u32, version: u32) -> (Reflector, Option<Known>) {
        let reflector = Reflector::new(|| ());
        reflector.apply(&interest(), &deployment(n, version), None);
        let Some(Read::One { known, .. }) = held(&reflector, KIND, None).pop() else {
            panic!("nothing held")
        };
        (reflector, known)
    }

    fn holds(reflector: &Reflector, n: u32) -> bool {
        reflector.find(&uid(n)).is_some_and(|id| reflector.read(id, |_| ()).is_some())
    }

    #[test]
    fn where_another_one_bears_the_name_the_one_that_was_expected_is_gone() {
        let (reflector, known) = shown(1, 5);
        assert_eq!(found(&reflector, &interest(), known, Some(&deployment(2, 8))).len(), 2);
        assert!(!holds(&reflector, 1) && holds(&reflector, 2));
    }

    #[test]
    fn an_answer_that_was_overtaken_takes_nobody_away() {
        let (reflector, known) = shown(1, 5);
        reflector.apply(&interest(), &deployment(1, 6), None);
        assert!(found::<Child>(&reflector, &interest(), known, None).is_empty());
        assert!(holds(&reflector, 1));
        let (reflector, known) = shown(1, 5);
        assert_eq!(found::<Child>(&reflector, &interest(), known, None).len(), 1);
        assert!(!holds(&reflector, 1));
    }
}

//! Everything that objects own, by the uid of the owner: metadata alone, of every kind that was listed.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use readiness::{Facts, RuleKind};
use watcher::ApiKind;
use watcher::wire::WireMeta;

/// Kinds whose objects say nothing of the readiness of their owners, and are many.
const IGNORED_KINDS: [(&str, &str); 5] = [
    ("", "Endpoints"),
    ("apps", "ControllerRevision"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("metrics.k8s.io", "PodMetrics"),
];

/// Label of the parent of an ApplySet, and of its members, with the id of the set (KEP-3659). `kubectl apply --applyset` sets them, and
/// kro, whose instances own nothing by reference.
const APPLY_SET_ID: &str = "applyset.kubernetes.io/id";
const APPLY_SET_MEMBER: &str = "applyset.kubernetes.io/part-of";
/// How each such id begins; no uid does.
const APPLY_SET_PREFIX: &str = "applyset-";

/// The id of an ApplySet in this label, if that is one.
fn apply_set_in<'m>(meta: &'m WireMeta, label: &str) -> Option<&'m str> {
    let (_, id) = meta.labels.iter().find(|(key, _)| **key == *label)?;
    id.starts_with(APPLY_SET_PREFIX).then_some(&**id)
}

/// Retains the kinds in which something may be that an object in this namespace owns, or a cluster-scoped object.
pub fn retain_searched_kinds(kinds: &mut Vec<ApiKind>, namespace: Option<&str>) {
    // What a namespaced object owns is in its namespace.
    kinds.retain(|kind| kind.namespaced || namespace.is_none());
    kinds.retain(|kind| !IGNORED_KINDS.contains(&(&*kind.group, &*kind.kind)));
}

/// Returns `true` for workloads, which own Pods by way of their controllers, and for Pods.
pub fn is_workload_kind(group: &str, kind: &str) -> bool {
    let kind = RuleKind::from_group_kind(group, kind);
    kind.owns_pods() || matches!(kind, RuleKind::CronJob | RuleKind::Pod)
}

/// Returns `true` for a ReplicaSet that wants no Pods and has none, as a Deployment keeps for its way back.
pub fn is_idle_replica_set(api: &ApiKind, facts: &Facts) -> bool {
    RuleKind::from_group_kind(&api.group, &api.kind) == RuleKind::ReplicaSet
        && facts.spec.replicas == Some(0)
        && facts.status.replicas.is_none_or(|replicas| replicas == 0)
        && facts.deleted.is_none()
}

/// Hash of an object's group, kind, namespace and name: there may be a hundred thousand.
pub fn object_hash(group: &str, kind: &str, namespace: &str, name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (group, kind, namespace, name).hash(&mut hasher);
    hasher.finish()
}

/// The objects that are known before the search, by [`object_hash`].
#[derive(Debug, Default)]
pub struct KnownObjects {
    all: BTreeSet<u64>,
    /// Those below which is searched, and whose uids are therefore wanted.
    searched: BTreeSet<u64>,
}

impl KnownObjects {
    /// Adds an object, and whether its uid is wanted.
    pub fn add_object(&mut self, hash: u64, is_searched: bool) {
        self.all.insert(hash);
        if is_searched {
            self.searched.insert(hash);
        }
    }
}

/// One object that another one owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedEntry {
    /// Uid of the owner; of a member of an ApplySet, the id of that.
    pub owner: Box<str>,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// Uid.
    pub uid: Box<str>,
}

/// What the list of one kind contributes.
#[derive(Clone, Debug, Default)]
pub struct OwnedList {
    /// What is owned, without the objects that were known before.
    pub entries: Vec<OwnedEntry>,
    /// Uids of the known objects below which is searched, by [`object_hash`].
    pub(super) uids: Vec<(u64, Box<str>)>,
    /// Parents of ApplySets: uid, and id of the set.
    pub(super) apply_sets: Vec<(Box<str>, Box<str>)>,
    /// Number of objects in the list.
    pub(super) listed: usize,
    /// The list went on, and was not followed.
    pub is_cut: bool,
}

impl OwnedList {
    pub(super) fn add_object(&mut self, api: &ApiKind, meta: &WireMeta, known: &KnownObjects) {
        self.listed += 1;
        let hash = object_hash(&api.group, &api.kind, &meta.namespace, &meta.name);
        if known.searched.contains(&hash) {
            self.uids.push((hash, meta.uid.clone()));
        }
        if let Some(id) = apply_set_in(meta, APPLY_SET_ID) {
            self.apply_sets.push((meta.uid.clone(), id.into()));
        }
        if known.all.contains(&hash) {
            return;
        }
        let owners = meta.owners.iter().map(|owner| &*owner.uid).chain(apply_set_in(meta, APPLY_SET_MEMBER));
        for owner in owners {
            self.entries.push(OwnedEntry {
                owner: owner.into(),
                namespace: meta.namespace.clone(),
                name: meta.name.clone(),
                uid: meta.uid.clone(),
            });
        }
    }
}

/// Metadata of one object that something owns.
#[derive(Clone, Debug)]
pub struct OwnedMeta {
    /// Index into [`OwnedIndex::kinds`].
    pub kind: usize,
    /// Namespace; empty for cluster-scoped objects.
    pub namespace: Box<str>,
    /// Name.
    pub name: Box<str>,
    /// Uid.
    pub uid: Box<str>,
}

/// Everything that is owned.
#[derive(Debug, Default)]
pub struct OwnedIndex {
    /// The kinds that were to be listed.
    pub kinds: Vec<ApiKind>,
    /// By the uid of the owner, or the id of the ApplySet, in the order of kinds and names.
    by_owner: BTreeMap<Box<str>, Vec<OwnedMeta>>,
    /// Ids of ApplySets by the uids of their parents.
    apply_sets: BTreeMap<Box<str>, Box<str>>,
    /// Uids of known objects, by [`object_hash`].
    uids: BTreeMap<u64, Box<str>>,
    /// Kinds that could not be listed, by the reason.
    pub unread: BTreeMap<String, Vec<String>>,
    /// Indexes of kinds that were not searched to their end, with the number of objects that were.
    pub cut: BTreeMap<usize, usize>,
}

impl OwnedIndex {
    /// An index of these kinds, in which nothing is yet.
    pub fn of_kinds(kinds: Vec<ApiKind>) -> OwnedIndex {
        OwnedIndex { kinds, ..OwnedIndex::default() }
    }

    /// Adds what the list of the kind with this index contributes.
    pub fn add_list(&mut self, kind: usize, list: OwnedList) {
        self.uids.extend(list.uids);
        self.apply_sets.extend(list.apply_sets);
        for entry in list.entries {
            let OwnedEntry { owner, namespace, name, uid } = entry;
            self.by_owner.entry(owner).or_default().push(OwnedMeta { kind, namespace, name, uid });
        }
        if list.is_cut {
            self.cut.insert(kind, list.listed);
        }
    }

    /// Records why the kind with this index was not listed.
    pub fn note_unread(&mut self, kind: usize, why: String) {
        self.unread.entry(why).or_default().push(self.kinds[kind].to_string());
    }

    /// Puts what each object owns into the order of kinds and names, whatever list came first.
    pub fn sort(&mut self) {
        let kinds = &self.kinds;
        let order = |of: &OwnedMeta| (kinds[of.kind].kind.clone(), of.name.clone(), of.uid.clone());
        for of in self.by_owner.values_mut() {
            of.sort_by_cached_key(order);
        }
    }

    /// Uid of a known object below which is searched.
    pub fn known_uid(&self, hash: u64) -> Option<&str> {
        self.uids.get(&hash).map(AsRef::as_ref)
    }

    /// Uids of all objects that own something, or whose ApplySet has members.
    pub fn owner_uids(&self) -> impl Iterator<Item = &str> {
        let owns = |owner: &str| self.by_owner.contains_key(owner);
        let sets = self.apply_sets.iter().filter(move |(uid, id)| owns(id) && !owns(uid));
        self.by_owner.keys().chain(sets.map(|(uid, _)| uid)).map(AsRef::as_ref)
    }

    /// All objects that are owned; one that several own, several times.
    pub fn owned_metas(&self) -> impl Iterator<Item = &OwnedMeta> {
        self.by_owner.values().flatten()
    }

    /// Objects that name this one as their owner, and may: a namespaced one owns nothing outside of its namespace; and the members
    /// of its ApplySet there.
    pub(super) fn owned_by(&self, uid: &str, namespace: &str) -> impl Iterator<Item = &OwnedMeta> {
        let members = self.apply_sets.get(uid).and_then(|id| self.by_owner.get(id));
        let owned = self.by_owner.get(uid).into_iter().chain(members).flatten();
        owned.filter(move |of| namespace.is_empty() || *of.namespace == *namespace)
    }
}

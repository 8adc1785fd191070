//! Everything that is owned by anything, of every kind that the cluster serves: by metadata alone, one pass by kind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use readiness::RuleKind;
use rollcall_core::TreeNode;
use tokio::time::{Instant, timeout, timeout_at};
use watcher::wire::{ChildObject, WireMeta};
use watcher::{ApiFailureCause, ApiKind, LivePage, LiveReadError, stream_live_head_pages};

use super::discover::listable_kinds;
use super::pick::node_key;
use super::survey::hash_key;

/// Maximum number of kinds listed concurrently.
const MAX_CONCURRENT_LISTS: usize = 8;
/// Longest time that the reads of one kind may take: the others are shown without it. 10 s.
const KIND_READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time that the lists of all kinds may take: what was not listed by then is named. 30 s.
const LISTS_TIMEOUT: Duration = Duration::from_secs(30);
/// Kinds whose objects say nothing of the readiness of their owners, and are many.
const IGNORED_KINDS: [(&str, &str); 5] = [
    ("", "Endpoints"),
    ("apps", "ControllerRevision"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("metrics.k8s.io", "PodMetrics"),
];

/// One object that something owns.
#[derive(Clone, Debug)]
pub(super) struct OwnedMeta {
    /// Index into [`OwnedObjects::kinds`].
    pub(super) kind: usize,
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
    pub(super) uid: Box<str>,
}

/// The objects of trees, by hashes of their names: there may be a hundred thousand.
#[derive(Debug, Default)]
struct TreeKeys {
    all: BTreeSet<u64>,
    /// Those below which is searched.
    searched: BTreeSet<u64>,
}

impl TreeKeys {
    fn add_tree(&mut self, node: &TreeNode, is_root: bool) {
        let key = hash_key(node_key(node));
        self.all.insert(key);
        if is_root || !is_workload(node) {
            self.searched.insert(key);
        }
        for child in &node.children {
            self.add_tree(child, false);
        }
    }
}

/// What workloads and Pods own is the matter of their controllers.
pub(super) fn is_workload(node: &TreeNode) -> bool {
    let kind = RuleKind::from_group_kind(&node.group, &node.kind);
    kind.owns_pods() || matches!(kind, RuleKind::CronJob | RuleKind::Pod)
}

/// Everything that is owned.
#[derive(Debug, Default)]
pub(super) struct OwnedObjects {
    pub(super) kinds: Vec<ApiKind>,
    /// By the uid of the owner, in the order of kinds and names; without what stands in the trees already.
    by_owner: BTreeMap<Box<str>, Vec<OwnedMeta>>,
    /// Uids of the objects of the trees below which is searched, by hashes of their names.
    uids: BTreeMap<u64, Box<str>>,
    /// Kinds that could not be listed, by the reason.
    pub(super) unread: BTreeMap<String, Vec<String>>,
}

impl OwnedObjects {
    /// Lists the metadata of all kinds in this namespace, or everywhere, and finds the uids of the objects in these trees. Only
    /// what is owned is kept.
    pub(super) async fn read(
        client: &kube::Client,
        namespace: Option<&str>,
        trees: &[TreeNode],
    ) -> anyhow::Result<OwnedObjects> {
        let mut kinds = listable_kinds(client).await?;
        // What a namespaced object owns is in its namespace.
        kinds.retain(|kind| kind.namespaced || namespace.is_none());
        kinds.retain(|kind| !IGNORED_KINDS.contains(&(&*kind.group, &*kind.kind)));
        let mut keys = TreeKeys::default();
        for tree in trees {
            keys.add_tree(tree, true);
        }
        let lists = kinds.iter().enumerate().map(|(at, api)| {
            let scope = namespace.filter(|_| api.namespaced);
            let pages = stream_live_head_pages::<ChildObject>(client, api, scope).boxed();
            list_owned(at, api.clone(), pages, &keys)
        });
        let lists: Vec<_> = lists.collect();
        let mut owned = OwnedObjects::default();
        let mut lists = stream::iter(lists).buffer_unordered(MAX_CONCURRENT_LISTS);
        let (deadline, mut open) =
            (Instant::now() + LISTS_TIMEOUT, (0..kinds.len()).collect::<BTreeSet<_>>());
        while let Ok(Some((at, listed))) = timeout_at(deadline, lists.next()).await {
            open.remove(&at);
            match listed {
                Ok(list) => {
                    owned.uids.extend(list.uids);
                    for (owner, of) in list.owned {
                        owned.by_owner.entry(owner).or_default().push(of);
                    }
                }
                Err(why) => owned.unread.entry(why).or_default().push(kinds[at].to_string()),
            }
        }
        if !open.is_empty() {
            let why = format!("all kinds together took more than {} s", LISTS_TIMEOUT.as_secs());
            owned.unread.insert(why, open.into_iter().map(|at| kinds[at].to_string()).collect());
        }
        let order = |of: &OwnedMeta| (kinds[of.kind].kind.clone(), of.name.clone(), of.uid.clone());
        for of in owned.by_owner.values_mut() {
            of.sort_by_cached_key(order);
        }
        owned.kinds = kinds;
        Ok(owned)
    }

    /// Uid of the object of a node of the trees that were read for.
    pub(super) fn node_uid(&self, node: &TreeNode) -> Option<&str> {
        self.uids.get(&hash_key(node_key(node))).map(AsRef::as_ref)
    }

    /// Objects that name this one as their owner, and may: a namespaced one owns nothing outside of its namespace.
    pub(super) fn owned_by(&self, uid: &str, namespace: &str) -> Vec<&OwnedMeta> {
        let owned = self.by_owner.get(uid).into_iter().flatten();
        owned.filter(|of| namespace.is_empty() || *of.namespace == *namespace).collect()
    }
}

/// What one kind contributes.
#[derive(Default)]
struct OwnedOfKind {
    uids: Vec<(u64, Box<str>)>,
    /// By the uid of the owner.
    owned: Vec<(Box<str>, OwnedMeta)>,
}

/// Lists a kind page by page, of which only what is owned is kept.
async fn list_owned(
    at: usize,
    api: ApiKind,
    mut pages: BoxStream<'static, Result<LivePage<ChildObject>, LiveReadError>>,
    keys: &TreeKeys,
) -> (usize, Result<OwnedOfKind, String>) {
    let mut list = OwnedOfKind::default();
    loop {
        // Each page has its time: a large kind may have many.
        match answer_in_time("list", pages.try_next()).await {
            Ok(None) => return (at, Ok(list)),
            Ok(Some(LivePage::Restart)) => list = OwnedOfKind::default(),
            Ok(Some(LivePage::Objects(objects))) => {
                for object in objects {
                    list.add_object(at, &api, &object.meta, keys);
                }
            }
            Err(why) => return (at, Err(why)),
        }
    }
}

impl OwnedOfKind {
    fn add_object(&mut self, kind: usize, api: &ApiKind, meta: &WireMeta, keys: &TreeKeys) {
        let key = hash_key((&api.group, &api.kind, &meta.namespace, &meta.name));
        if keys.searched.contains(&key) {
            self.uids.push((key, meta.uid.clone()));
        }
        if keys.all.contains(&key) {
            return;
        }
        for owner in &meta.owners {
            let (namespace, name, uid) = (meta.namespace.clone(), meta.name.clone(), meta.uid.clone());
            self.owned.push((owner.uid.clone(), OwnedMeta { kind, namespace, name, uid }));
        }
    }
}

/// Awaits a read of one kind, at most for [`KIND_READ_TIMEOUT`], and returns why it failed, with the right that it lacks.
pub(super) async fn answer_in_time<T>(
    verb: &str,
    read: impl Future<Output = Result<T, LiveReadError>>,
) -> Result<T, String> {
    match timeout(KIND_READ_TIMEOUT, read).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) if error.cause == ApiFailureCause::Forbidden => {
            Err(format!("you may not {verb} them"))
        }
        Ok(Err(error)) => Err(error.detail),
        Err(_) => Err(format!("no answer within {} s", KIND_READ_TIMEOUT.as_secs())),
    }
}

//! Everything that is owned by anything, of every kind that the cluster serves: by metadata alone, one pass by kind.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::{StreamExt, stream};
use rollcall_core::TreeNode;
use tokio::time::timeout;
use watcher::wire::{ChildObject, WireMeta};
use watcher::{ApiFailureCause, ApiKind, LiveReadError, list_live_heads};

use super::discover::listable_kinds;
use super::pick::node_key;

/// Maximum number of kinds listed concurrently.
const MAX_CONCURRENT_LISTS: usize = 8;
/// Longest time that the reads of one kind may take: the others are shown without it. 10 s.
const KIND_READ_TIMEOUT: Duration = Duration::from_secs(10);
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
    pub(super) meta: WireMeta,
}

/// Everything that is owned.
#[derive(Debug, Default)]
pub(super) struct OwnedObjects {
    pub(super) kinds: Vec<ApiKind>,
    /// By the uid of the owner, in the order of kinds and names.
    by_owner: BTreeMap<Box<str>, Vec<OwnedMeta>>,
    /// Uids of the objects that were asked for.
    uids: BTreeMap<[String; 4], Box<str>>,
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
        let mut wanted = BTreeSet::new();
        for tree in trees {
            add_keys(tree, &mut wanted);
        }
        let mut owned = OwnedObjects { kinds, ..OwnedObjects::default() };
        let lists = (0..owned.kinds.len()).map(|at| {
            let (client, api) = (client.clone(), owned.kinds[at].clone());
            let scope = namespace.filter(|_| api.namespaced).map(str::to_owned);
            async move {
                let list = list_live_heads::<ChildObject>(&client, &api, scope.as_deref());
                (at, answer_in_time("list", list).await)
            }
        });
        let lists: Vec<_> = lists.collect();
        let mut lists = stream::iter(lists).buffer_unordered(MAX_CONCURRENT_LISTS);
        while let Some((at, listed)) = lists.next().await {
            match listed {
                Ok(objects) => {
                    for object in objects {
                        owned.add_object(at, &object.meta, &wanted);
                    }
                }
                Err(why) => owned.note_unread(at, why),
            }
        }
        let order = |of: &OwnedMeta| {
            let OwnedMeta { kind, meta } = of;
            (owned.kinds[*kind].kind.clone(), meta.name.clone(), meta.uid.clone())
        };
        for of in owned.by_owner.values_mut() {
            of.sort_by_cached_key(order);
        }
        Ok(owned)
    }

    fn add_object(&mut self, kind: usize, meta: &WireMeta, wanted: &BTreeSet<[String; 4]>) {
        let api = &self.kinds[kind];
        let key = [&*api.group, &*api.kind, &*meta.namespace, &*meta.name].map(str::to_owned);
        if wanted.contains(&key) {
            self.uids.insert(key, meta.uid.clone());
        }
        for owner in &meta.owners {
            self.by_owner.entry(owner.uid.clone()).or_default().push(OwnedMeta { kind, meta: meta.clone() });
        }
    }

    fn note_unread(&mut self, kind: usize, why: String) {
        self.unread.entry(why).or_default().push(self.kinds[kind].to_string());
    }

    /// Uid of the object of a node of the trees that were read for.
    pub(super) fn node_uid(&self, node: &TreeNode) -> Option<&str> {
        let (group, kind, namespace, name) = node_key(node);
        self.uids.get(&[group, kind, namespace, name].map(str::to_owned)).map(AsRef::as_ref)
    }

    /// Objects that name this one as their owner, and may: a namespaced one owns nothing outside of its namespace.
    pub(super) fn owned_by(&self, uid: &str, namespace: &str) -> Vec<&OwnedMeta> {
        let owned = self.by_owner.get(uid).into_iter().flatten();
        owned.filter(|of| namespace.is_empty() || *of.meta.namespace == *namespace).collect()
    }
}

fn add_keys(node: &TreeNode, keys: &mut BTreeSet<[String; 4]>) {
    let (group, kind, namespace, name) = node_key(node);
    keys.insert([group, kind, namespace, name].map(str::to_owned));
    for child in &node.children {
        add_keys(child, keys);
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

//! Reads what objects own: the metadata of whole kinds, page by page, and the contents of what was found.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::try_join_all;
use futures::{StreamExt, TryStreamExt, stream};
use tokio::time::{Instant, timeout, timeout_at};
use watcher::wire::ChildObject;
use watcher::{
    ApiFailureCause, ApiKind, LivePage, LiveReadError, ParentObject, get_live, get_live_head,
    stream_live_head_pages, stream_live_pages,
};

use super::owned_index::{KnownObjects, OwnedIndex, OwnedList, OwnedMeta};

/// Number of objects of one kind and namespace from which on they are listed instead of read one by one.
const LISTED_FROM: usize = 4;

/// Bounds of a search.
#[derive(Clone, Copy, Debug)]
pub struct OwnedReadLimits {
    /// Maximum number of concurrent requests.
    pub concurrent: usize,
    /// Longest time that one page of a kind may take: the others are shown without the kind.
    pub page_timeout: Duration,
    /// Longest time that the lists of all kinds may take, and again the contents of all: what was not read by then is named.
    pub total_timeout: Duration,
    /// Maximum number of objects of one kind that are searched.
    pub objects_per_kind: usize,
    /// Maximum size of the contents of one kind and namespace, in bytes of JSON.
    pub bytes_per_kind: usize,
}

/// Reads with the rights of its client.
#[derive(Clone)]
pub struct OwnedReader {
    client: kube::Client,
    /// Subject of what is said of a refused read: `you`, `Rollcall`.
    requester: &'static str,
    limits: OwnedReadLimits,
}

impl OwnedReader {
    /// A reader with these bounds.
    pub fn new(client: kube::Client, requester: &'static str, limits: OwnedReadLimits) -> OwnedReader {
        OwnedReader { client, requester, limits }
    }

    /// Lists a kind page by page, of which only what is owned is kept.
    pub async fn list_owned(
        &self,
        api: &ApiKind,
        namespace: Option<&str>,
        known: &KnownObjects,
    ) -> Result<OwnedList, String> {
        let scope = namespace.filter(|_| api.namespaced);
        let mut pages = Box::pin(stream_live_head_pages::<ChildObject>(&self.client, api, scope));
        let mut list = OwnedList::default();
        loop {
            // Each page has its time: a large kind may have many.
            match self.answer_in_time("list", pages.try_next()).await? {
                None => return Ok(list),
                Some(LivePage::Restart) => list = OwnedList::default(),
                Some(LivePage::Objects(_)) if list.listed >= self.limits.objects_per_kind => {
                    list.is_cut = true;
                    return Ok(list);
                }
                Some(LivePage::Objects(objects)) => {
                    for object in objects {
                        list.add_object(api, &object.meta, known);
                    }
                }
            }
        }
    }

    /// Lists all of these kinds by `list`, and indexes what they contribute. What was not listed is named.
    pub async fn index_kinds<F>(&self, kinds: Vec<ApiKind>, list: impl Fn(ApiKind) -> F) -> OwnedIndex
    where
        F: Future<Output = Result<OwnedList, String>>,
    {
        let lists = kinds.iter().enumerate().map(|(at, api)| {
            let listed = list(api.clone());
            async move { (at, listed.await) }
        });
        let lists: Vec<_> = lists.collect();
        let (deadline, mut open) =
            (Instant::now() + self.limits.total_timeout, (0..kinds.len()).collect::<BTreeSet<_>>());
        let mut index = OwnedIndex::of_kinds(kinds);
        let mut lists = stream::iter(lists).buffer_unordered(self.limits.concurrent);
        while let Ok(Some((at, listed))) = timeout_at(deadline, lists.next()).await {
            open.remove(&at);
            match listed {
                Ok(list) => index.add_list(at, list),
                Err(why) => index.note_unread(at, why),
            }
        }
        for at in open {
            index.note_unread(at, self.overrun_text("kinds"));
        }
        index.sort();
        index
    }

    /// Reads what was found in full, one by one or by lists, and keeps of each object what `judge` makes of it.
    pub async fn read_contents<T>(
        &self,
        index: &OwnedIndex,
        found: &[&OwnedMeta],
        judge: impl Fn(&ApiKind, &ChildObject) -> T,
    ) -> OwnedContents<T> {
        let mut by_kind: BTreeMap<(usize, &str), Vec<&OwnedMeta>> = BTreeMap::new();
        for of in found {
            by_kind.entry((of.kind, &of.namespace)).or_default().push(of);
        }
        let (judge, mut open) = (&judge, BTreeSet::new());
        let mut reads = Vec::new();
        for ((kind, namespace), found) in by_kind {
            let place = (kind, namespace.to_owned());
            open.insert(place.clone());
            reads.push(
                async move { (place, self.read_kind(&index.kinds[kind], namespace, &found, judge).await) },
            );
        }
        let deadline = Instant::now() + self.limits.total_timeout;
        let mut reads = stream::iter(reads).buffer_unordered(self.limits.concurrent);
        let mut contents = OwnedContents { by_uid: BTreeMap::new(), unread: BTreeMap::new() };
        while let Ok(Some((place, read))) = timeout_at(deadline, reads.next()).await {
            open.remove(&place);
            match read {
                Ok(judged) => contents.by_uid.extend(judged),
                Err(why) => _ = contents.unread.insert(place, why),
            }
        }
        contents.unread.extend(open.into_iter().map(|place| (place, self.overrun_text("contents"))));
        contents
    }

    fn overrun_text(&self, what: &str) -> String {
        format!("all {what} together took more than {} s", self.limits.total_timeout.as_secs())
    }

    async fn read_kind<T>(
        &self,
        api: &ApiKind,
        namespace: &str,
        found: &[&OwnedMeta],
        judge: impl Fn(&ApiKind, &ChildObject) -> T,
    ) -> Result<Vec<(Box<str>, T)>, String> {
        let scope = Some(namespace).filter(|_| api.namespaced);
        // Nothing but the metadata of a Secret is read.
        if api.group.is_empty() && api.kind == "Secret" {
            return Ok(Vec::new());
        }
        let judged = |child: &ChildObject| (child.meta.uid.clone(), judge(api, child));
        if found.len() >= LISTED_FROM {
            let uids: BTreeSet<&str> = found.iter().map(|of| &*of.uid).collect();
            return self.read_by_list(api, scope, &uids, judged).await;
        }
        let reads = found.iter().map(|of| async {
            if has_only_metadata(api) {
                get_live_head::<ChildObject>(&self.client, api, scope, &of.name).await
            } else {
                get_live::<ChildObject>(&self.client, api, scope, &of.name).await
            }
        });
        let objects = self.answer_in_time("get", try_join_all(reads)).await?;
        Ok(objects.iter().flatten().map(judged).collect())
    }

    async fn read_by_list<T>(
        &self,
        api: &ApiKind,
        scope: Option<&str>,
        uids: &BTreeSet<&str>,
        judged: impl Fn(&ChildObject) -> (Box<str>, T),
    ) -> Result<Vec<(Box<str>, T)>, String> {
        let mut pages = if has_only_metadata(api) {
            stream_live_head_pages::<ParentObject>(&self.client, api, scope).boxed()
        } else {
            stream_live_pages::<ParentObject>(&self.client, api, scope).boxed()
        };
        let (mut all, mut bytes) = (Vec::new(), 0);
        while let Some(page) = self.answer_in_time("list", pages.try_next()).await? {
            let LivePage::Objects(objects) = page else {
                (all, bytes) = (Vec::new(), 0);
                continue;
            };
            bytes += objects.iter().map(|object| object.text.get().len()).sum::<usize>();
            let found = objects.iter().filter(|object| uids.contains(&*object.child.meta.uid));
            all.extend(found.map(|object| judged(&object.child)));
            if all.len() == uids.len() {
                break;
            }
            if bytes > self.limits.bytes_per_kind {
                return Err(format!("the list is larger than {} MiB", self.limits.bytes_per_kind >> 20));
            }
        }
        Ok(all)
    }

    async fn answer_in_time<T>(
        &self,
        verb: &str,
        read: impl Future<Output = Result<T, LiveReadError>>,
    ) -> Result<T, String> {
        answer_in_time(self.requester, verb, self.limits.page_timeout, read).await
    }
}

/// Returns `true` for a kind of whose objects the metadata alone is read: nothing else tells of readiness, and it may be large, and
/// not for everybody.
pub fn has_only_metadata(api: &ApiKind) -> bool {
    api.group.is_empty() && api.kind == "ConfigMap"
}

/// Awaits a read of one kind, and returns why it failed, with the right that it lacks.
pub async fn answer_in_time<T>(
    requester: &str,
    verb: &str,
    limit: Duration,
    read: impl Future<Output = Result<T, LiveReadError>>,
) -> Result<T, String> {
    match timeout(limit, read).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(error)) if error.cause == ApiFailureCause::Forbidden => {
            Err(format!("{requester} may not {verb} them"))
        }
        Ok(Err(error)) => Err(error.detail),
        Err(_) => Err(format!("no answer within {} s", limit.as_secs())),
    }
}

/// What the full reads of the objects that were found yielded.
#[derive(Debug)]
pub struct OwnedContents<T> {
    /// By uid; without what was gone by then.
    pub by_uid: BTreeMap<Box<str>, T>,
    /// Why objects could not be read, by the index of the kind and the namespace.
    pub unread: BTreeMap<(usize, String), String>,
}

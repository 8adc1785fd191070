//! Live reads: the state known from a watch is checked against the server itself.
//!
//! Every read is consistent: none names a resourceVersion, so none may be answered from a stale cache.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::absence::proves_absence;
use crate::api_client::follow::is_stall;
use crate::api_client::guard::{BoxError, FetchedResponse, fetch_response, utf8};
use crate::api_client::percent::percent_encode;
use crate::error_text::error_text;
use crate::event::{ApiFailureCause, WireObject};
use crate::kind::ApiKind;
use crate::wire::{ChildObject, WireMeta};

const ACCEPT_JSON: &str = "application/json";
const ACCEPT_METADATA_OR_JSON: &str =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// `Accept` header for metadata alone; a server that cannot provide it refuses instead of sending whole objects.
const ACCEPT_METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const ACCEPT_METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// Objects per page, as in kubectl.
const LIST_PAGE_SIZE: u32 = 500;

/// A live read that failed.
#[derive(Debug, thiserror::Error)]
#[error("failed to {what}: {detail}")]
pub struct LiveReadError {
    /// Target of the read, such as `get StatefulSet.apps shop/db`.
    pub what: String,
    /// Cause, for metrics; [`ApiFailureCause::NotInstalled`] if the server does not know the target.
    pub cause: ApiFailureCause,
    /// Detail, for people.
    pub detail: String,
    /// Delay from `Retry-After`, if the server sent one.
    pub retry_after: Option<Duration>,
    #[source]
    source: Option<BoxError>,
}

impl LiveReadError {
    pub(crate) fn from_source(what: &str, cause: ApiFailureCause, source: BoxError) -> Self {
        LiveReadError {
            what: what.into(),
            cause,
            detail: error_text(&source),
            retry_after: None,
            source: Some(source),
        }
    }

    fn from_refusal(what: &str, fetched: &FetchedResponse) -> Self {
        let said: ApiStatusMessage = serde_json::from_slice(&fetched.body).unwrap_or_default();
        let detail =
            said.message.filter(|message| !message.is_empty()).unwrap_or_else(|| fetched.status.to_string());
        let cause = ApiFailureCause::from_http_status(fetched.status.as_u16());
        let detail = error_text(detail);
        LiveReadError { what: what.into(), cause, detail, retry_after: fetched.retry_after, source: None }
    }
}

/// The part of a `Status` that is useful to people.
#[derive(Default, Deserialize)]
struct ApiStatusMessage {
    message: Option<String>,
}

/// One object, as it is now; `None` where the server says that there is none of that name. Where it does not serve the kind,
/// that is an error ([`ApiFailureCause::NotInstalled`]): nothing is known of the object.
pub async fn get_live<K: WireObject>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<K>, LiveReadError> {
    get_with_accept(client, kind, namespace, name, ACCEPT_JSON).await
}

/// Reads the metadata of one object live. The server sends nothing else, for kinds whose contents must not be read.
pub async fn get_live_head<K: WireObject>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<K>, LiveReadError> {
    get_with_accept(client, kind, namespace, name, ACCEPT_METADATA).await
}

async fn get_with_accept<K: WireObject>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
    name: &str,
    accept: &str,
) -> Result<Option<K>, LiveReadError> {
    if !is_name(name) || !namespace.is_none_or(is_name) {
        // No object can have this name: the server would refuse it or, worse, resolve it to another path.
        return Ok(None);
    }
    let what = format!("get {kind} {}/{name}", namespace.unwrap_or_default());
    let target = format!("{}/{name}", kind.list_path(namespace));
    let fetched = answer(client, &what, &target, accept).await?;
    match fetched.status.as_u16() {
        200..300 => {
            let object: K = decode_body(&what, &fetched.body)?;
            refuse_other(&what, object.meta(), namespace, name)?;
            Ok(Some(object))
        }
        404 if proves_absence(&fetched.body, kind, name) => Ok(None),
        _ => Err(LiveReadError::from_refusal(&what, &fetched)),
    }
}

/// Refuses an answer that is about another object than the one that was asked for: it says nothing of that one.
fn refuse_other(
    what: &str,
    meta: &WireMeta,
    namespace: Option<&str>,
    name: &str,
) -> Result<(), LiveReadError> {
    if *meta.name == *name && namespace.is_none_or(|namespace| *meta.namespace == *namespace) {
        return Ok(());
    }
    let error = format!("the server answered with {}/{}", meta.namespace, meta.name);
    Err(LiveReadError::from_source(what, ApiFailureCause::Undecodable, error.into()))
}

/// Lists all objects that match a label selector, live.
pub async fn list_live<K: WireObject>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
    labels: Option<&str>,
) -> Result<Vec<K>, LiveReadError> {
    LiveListing::new(kind, namespace, labels, ACCEPT_JSON).read_all(client).await
}

/// Lists the metadata of all objects live. The server sends nothing else, for kinds whose contents must not be read.
pub async fn list_live_heads<K: WireObject>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
) -> Result<Vec<K>, LiveReadError> {
    LiveListing::new(kind, namespace, None, ACCEPT_METADATA_LIST).read_all(client).await
}

/// Lists at most this many of the objects, the first in the server's order.
pub async fn list_live_at_most<K: WireObject>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
    labels: Option<&str>,
    most: u32,
) -> Result<Vec<K>, LiveReadError> {
    let listing = LiveListing::new(kind, namespace, labels, ACCEPT_JSON);
    let body = get_body(client, &listing.what, &listing.page_target(Some(most), None), ACCEPT_JSON).await?;
    Ok(listing.decode_page(&body)?.items.unwrap_or_default())
}

/// Lists live as a stream of pages, for callers that need not hold all objects at once.
pub fn stream_live_pages<K: WireObject>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
) -> impl Stream<Item = Result<LivePage<K>, LiveReadError>> + Send + 'static {
    stream_pages(client, LiveListing::new(kind, namespace, None, ACCEPT_JSON))
}

/// The same with metadata alone: the server sends nothing else.
pub fn stream_live_head_pages<K: WireObject>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
) -> impl Stream<Item = Result<LivePage<K>, LiveReadError>> + Send + 'static {
    stream_pages(client, LiveListing::new(kind, namespace, None, ACCEPT_METADATA_LIST))
}

fn stream_pages<K: WireObject>(
    client: &kube::Client,
    listing: LiveListing,
) -> impl Stream<Item = Result<LivePage<K>, LiveReadError>> + Send + 'static {
    let walk = LiveListWalk::new(client, listing, LIST_PAGE_SIZE);
    stream::try_unfold(Some(walk), |walk| async move {
        let Some(mut walk) = walk else { return Ok(None) };
        let (page, goes_on) = walk.next_page().await?;
        Ok(Some((page, goes_on.then_some(walk))))
    })
}

/// A part of a live list.
#[derive(Debug)]
pub enum LivePage<K> {
    /// The next objects.
    Objects(Vec<K>),
    /// The list outlived the server's history (410): all earlier pages are void.
    Restart,
}

/// A live list in progress.
pub(super) struct LiveListWalk {
    client: kube::Client,
    listing: LiveListing,
    next: Option<String>,
    limit: Option<u32>,
    version: Option<u64>,
}

impl LiveListWalk {
    fn new(client: &kube::Client, listing: LiveListing, first_page: u32) -> LiveListWalk {
        let (client, limit) = (client.clone(), Some(first_page));
        LiveListWalk { client, listing, next: None, limit, version: None }
    }

    /// A list of metadata; from a server that cannot provide it, of whole objects.
    pub(super) fn of_metadata(
        client: &kube::Client,
        kind: &ApiKind,
        namespace: Option<&str>,
        first_page: u32,
    ) -> LiveListWalk {
        let listing = LiveListing::new(kind, namespace, None, ACCEPT_METADATA_OR_JSON);
        LiveListWalk::new(client, listing, first_page)
    }

    /// The resourceVersion of the list; 0 is none.
    pub(super) fn version(&self) -> Option<u64> {
        self.version.filter(|version| *version > 0)
    }

    /// Returns the next page, and whether more follow.
    pub(super) async fn next_page<K: WireObject>(&mut self) -> Result<(LivePage<K>, bool), LiveReadError> {
        let target = self.listing.page_target(self.limit, self.next.as_deref());
        let body = match get_body(&self.client, &self.listing.what, &target, self.listing.accept).await {
            // An incomplete list is useless: restart it without pages.
            Err(error) if error.cause == ApiFailureCause::Gone && self.next.is_some() => {
                (self.next, self.limit, self.version) = (None, None, None);
                return Ok((LivePage::Restart, true));
            }
            other => other?,
        };
        let page = self.listing.decode_page(&body)?;
        self.next = page.metadata.next.filter(|next| !next.is_empty());
        self.version = page.metadata.version.parse().ok();
        self.limit = self.limit.map(|_| LIST_PAGE_SIZE);
        Ok((LivePage::Objects(page.items.unwrap_or_default()), self.next.is_some()))
    }
}

/// Lists live with metadata alone, at a fraction of the cost for the server and the network.
pub async fn list_live_metadata(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
    labels: Option<&str>,
) -> Result<Vec<WireMeta>, LiveReadError> {
    let objects: Vec<ChildObject> =
        LiveListing::new(kind, namespace, labels, ACCEPT_METADATA_OR_JSON).read_all(client).await?;
    Ok(objects.into_iter().map(|object| object.meta).collect())
}

/// Reads how far the server's history of a kind has come: the version of a list of it, which in etcd is that of everything; `None`
/// where the server has no such versions. It costs the server one object.
pub async fn read_list_version(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
) -> Result<Option<u64>, LiveReadError> {
    let listing = LiveListing::new(kind, namespace, None, ACCEPT_METADATA_LIST);
    let target = listing.page_target(Some(1), None);
    let body = get_body(client, &listing.what, &target, listing.accept).await?;
    let page: LiveListPart<Box<RawValue>> = decode_body(&listing.what, &body)?;
    Ok(page.metadata.version.parse().ok())
}

/// Returns `true` if an object could have this name: it is a single path segment.
fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:@".contains(&b))
}

/// A list in pages.
struct LiveListing {
    what: String,
    path: String,
    labels: Option<String>,
    accept: &'static str,
}

#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct LiveListPart<T> {
    #[serde(default)]
    metadata: LiveListMeta,
    /// An older server writes null where it has none. Without the field it is no list, and its emptiness no evidence.
    #[serde(deserialize_with = "Option::deserialize")]
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
struct LiveListMeta {
    #[serde(rename = "continue")]
    next: Option<String>,
    #[serde(rename = "resourceVersion", default)]
    version: String,
}

impl LiveListing {
    fn new(kind: &ApiKind, namespace: Option<&str>, labels: Option<&str>, accept: &'static str) -> Self {
        let place = namespace.map(|namespace| format!(" in {namespace}")).unwrap_or_default();
        LiveListing {
            what: format!("list {kind}{place}"),
            path: kind.list_path(namespace),
            labels: labels.map(percent_encode),
            accept,
        }
    }

    async fn read_all<K: WireObject>(self, client: &kube::Client) -> Result<Vec<K>, LiveReadError> {
        let mut walk = LiveListWalk::new(client, self, LIST_PAGE_SIZE);
        let mut all = Vec::new();
        loop {
            let (page, goes_on) = walk.next_page().await?;
            match page {
                LivePage::Objects(objects) => all.extend(objects),
                LivePage::Restart => all.clear(),
            }
            if !goes_on {
                return Ok(all);
            }
        }
    }

    fn decode_page<K: WireObject>(&self, body: &Bytes) -> Result<LiveListPart<K>, LiveReadError> {
        decode_body(&self.what, body).or_else(|_| self.decode_page_by_item(body))
    }

    /// Decodes item by item and names the object that cannot be decoded. It is not left out: an object missing here
    /// counts as deleted.
    fn decode_page_by_item<K: WireObject>(&self, body: &Bytes) -> Result<LiveListPart<K>, LiveReadError> {
        let page: LiveListPart<Box<RawValue>> = decode_body(&self.what, body)?;
        let items = page.items.unwrap_or_default();
        let items = items.iter().map(|item| decode_body(&self.what, item.get().as_bytes()));
        Ok(LiveListPart { metadata: page.metadata, items: Some(items.collect::<Result<_, _>>()?) })
    }

    fn page_target(&self, limit: Option<u32>, next: Option<&str>) -> String {
        let limit = limit.map(|limit| format!("limit={limit}"));
        let labels = self.labels.as_ref().map(|labels| format!("labelSelector={labels}"));
        let next = next.map(|next| format!("continue={}", percent_encode(next)));
        let query: Vec<_> = [limit, labels, next].into_iter().flatten().collect();
        format!("{}?{}", self.path, query.join("&"))
    }
}

/// Returns the body of a successful response.
pub(crate) async fn get_body(
    client: &kube::Client,
    what: &str,
    target: &str,
    accept: &str,
) -> Result<Bytes, LiveReadError> {
    let fetched = answer(client, what, target, accept).await?;
    if fetched.status.is_success() {
        Ok(fetched.body)
    } else {
        Err(LiveReadError::from_refusal(what, &fetched))
    }
}

/// An answer, whatever its status.
async fn answer(
    client: &kube::Client,
    what: &str,
    target: &str,
    accept: &str,
) -> Result<FetchedResponse, LiveReadError> {
    fetch_response(client, target, accept).await.map_err(|error| {
        let cause =
            if is_stall(error.as_ref()) { ApiFailureCause::Stalled } else { ApiFailureCause::Connection };
        LiveReadError::from_source(what, cause, error)
    })
}

/// Decodes JSON; bytes that are not UTF-8 cost a second attempt, not the response.
pub(crate) fn decode_body<T: DeserializeOwned>(what: &str, body: &[u8]) -> Result<T, LiveReadError> {
    serde_json::from_slice(body).or_else(|error| match std::str::from_utf8(body) {
        Ok(_) => Err(LiveReadError::from_source(what, ApiFailureCause::Undecodable, error.into())),
        Err(_) => serde_json::from_slice(&utf8::to_lossy_text(body))
            .map_err(|error| LiveReadError::from_source(what, ApiFailureCause::Undecodable, error.into())),
    })
}

#[cfg(test)]
mod tests;

//! `look` again, live: what a watch says is checked against the server itself.
//!
//! Every read is consistent: none names a resourceVersion, so none may be answered from a stale cache.

use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, Stream};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::event::{Cause, Wire};
use crate::follow::is_stall;
use crate::guard::{BoxError, Fetch, fetch, utf8};
use crate::kind::ApiKind;
use crate::wire::{Child, Meta};

const JSON: &str = "application/json";
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
/// A server that cannot leave the rest out says so, instead of sending it.
const HEADS: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const HEAD: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// Objects per page, as kubectl does it.
const PAGE: u32 = 500;

/// A read that gave no answer.
#[derive(Debug, thiserror::Error)]
#[error("failed to {what}: {detail}")]
pub struct LookError {
    /// What was to be read, as in `get StatefulSet.apps shop/db`.
    pub what: String,
    /// Why, for metrics; [`Cause::NotInstalled`] where the server does not know what was asked for.
    pub cause: Cause,
    /// Why, for people.
    pub detail: String,
    /// When the server asks to be asked again.
    pub come_back: Option<Duration>,
    #[source]
    source: Option<BoxError>,
}

impl LookError {
    fn broken(what: &str, cause: Cause, source: BoxError) -> Self {
        LookError {
            what: what.into(),
            cause,
            detail: source.to_string(),
            come_back: None,
            source: Some(source),
        }
    }

    fn refused(what: &str, fetched: &Fetch) -> Self {
        let said: Said = serde_json::from_slice(&fetched.body).unwrap_or_default();
        let detail =
            said.message.filter(|message| !message.is_empty()).unwrap_or_else(|| fetched.status.to_string());
        let cause = Cause::of_status(fetched.status.as_u16());
        LookError { what: what.into(), cause, detail, come_back: fetched.come_back, source: None }
    }
}

/// The part of a `Status` that a person wants to read.
#[derive(Default, Deserialize)]
struct Said {
    message: Option<String>,
}

/// One object, as it is now; `None` where there is none.
pub async fn look<K: Wire>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<K>, LookError> {
    one(client, kind, namespace, name, JSON).await
}

/// The same of an object whose contents are nobody's business: the server sends its metadata alone.
pub async fn look_head<K: Wire>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
    name: &str,
) -> Result<Option<K>, LookError> {
    one(client, kind, namespace, name, HEAD).await
}

async fn one<K: Wire>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
    name: &str,
    accept: &str,
) -> Result<Option<K>, LookError> {
    if !is_name(name) || !namespace.is_none_or(is_name) {
        // The server would refuse it, or worse, read it as another path: no object can have this name.
        return Ok(None);
    }
    let what = format!("get {kind} {}/{name}", namespace.unwrap_or_default());
    let target = format!("{}/{name}", kind.path(namespace));
    match get(client, &what, &target, accept).await {
        Ok(body) => decode(&what, &body).map(Some),
        Err(error) if error.cause == Cause::NotInstalled => Ok(None),
        Err(error) => Err(error),
    }
}

/// All objects with these labels (a label selector), as they are now.
pub async fn look_all<K: Wire>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
    labels: Option<&str>,
) -> Result<Vec<K>, LookError> {
    Listing::new(kind, namespace, labels, JSON).all(client).await
}

/// All objects whose contents are nobody's business: the server sends their metadata alone.
pub async fn look_heads<K: Wire>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
) -> Result<Vec<K>, LookError> {
    Listing::new(kind, namespace, None, HEADS).all(client).await
}

/// Of these objects at most so many, whichever the server names first.
pub async fn look_some<K: Wire>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
    labels: Option<&str>,
    most: u32,
) -> Result<Vec<K>, LookError> {
    let listing = Listing::new(kind, namespace, labels, JSON);
    let body = get(client, &listing.what, &listing.target(Some(most), None), JSON).await?;
    Ok(listing.page(&body)?.0)
}

/// The same as a stream, for those who need not hold all of them at once.
pub fn look_pages<K: Wire>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
) -> impl Stream<Item = Result<Page<K>, LookError>> + Send + 'static {
    let walk = Walk {
        client: client.clone(),
        listing: Listing::new(kind, namespace, None, JSON),
        next: None,
        limit: Some(PAGE),
    };
    stream::try_unfold(Some(walk), |walk| async move {
        let Some(mut walk) = walk else { return Ok(None) };
        let (page, goes_on) = walk.step().await?;
        Ok(Some((page, goes_on.then_some(walk))))
    })
}

/// A part of a list.
#[derive(Debug)]
pub enum Page<K> {
    /// The next objects.
    Objects(Vec<K>),
    /// The list outlived the server's history: what came before is void.
    Again,
}

/// A list that is being read.
struct Walk {
    client: kube::Client,
    listing: Listing,
    next: Option<String>,
    limit: Option<u32>,
}

impl Walk {
    /// The next page, and whether there are more.
    async fn step<K: Wire>(&mut self) -> Result<(Page<K>, bool), LookError> {
        let target = self.listing.target(self.limit, self.next.as_deref());
        let body = match get(&self.client, &self.listing.what, &target, self.listing.accept).await {
            // Half of it is worth nothing: all anew, in one piece.
            Err(error) if error.cause == Cause::Gone && self.next.is_some() => {
                (self.next, self.limit) = (None, None);
                return Ok((Page::Again, true));
            }
            other => other?,
        };
        let (objects, next) = self.listing.page(&body)?;
        self.next = next;
        Ok((Page::Objects(objects), self.next.is_some()))
    }
}

/// The same with nothing but metadata, which costs the server and the network a fraction.
pub async fn look_metadata(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
    labels: Option<&str>,
) -> Result<Vec<Meta>, LookError> {
    let objects: Vec<Child> = Listing::new(kind, namespace, labels, METADATA).all(client).await?;
    Ok(objects.into_iter().map(|object| object.meta).collect())
}

/// Whether an object could have this name: it is one segment of a path.
fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:@".contains(&b))
}

/// A list in pages.
struct Listing {
    what: String,
    path: String,
    labels: Option<String>,
    accept: &'static str,
}

#[derive(Deserialize)]
#[serde(bound = "T: Deserialize<'de>")]
struct Part<T> {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(default = "Option::default")]
    items: Option<Vec<T>>,
}

#[derive(Default, Deserialize)]
struct PageMeta {
    #[serde(rename = "continue")]
    next: Option<String>,
}

impl Listing {
    fn new(kind: &ApiKind, namespace: Option<&str>, labels: Option<&str>, accept: &'static str) -> Self {
        let place = namespace.map(|namespace| format!(" in {namespace}")).unwrap_or_default();
        Listing {
            what: format!("list {kind}{place}"),
            path: kind.path(namespace),
            labels: labels.map(encoded),
            accept,
        }
    }

    async fn all<K: Wire>(self, client: &kube::Client) -> Result<Vec<K>, LookError> {
        let mut walk = Walk { client: client.clone(), listing: self, next: None, limit: Some(PAGE) };
        let mut all = Vec::new();
        loop {
            let (page, goes_on) = walk.step().await?;
            match page {
                Page::Objects(objects) => all.extend(objects),
                Page::Again => all.clear(),
            }
            if !goes_on {
                return Ok(all);
            }
        }
    }

    fn page<K: Wire>(&self, body: &Bytes) -> Result<(Vec<K>, Option<String>), LookError> {
        let page: Part<K> = match decode(&self.what, body) {
            Ok(page) => page,
            Err(_) => self.carefully(body)?,
        };
        Ok((page.items.unwrap_or_default(), page.metadata.next.filter(|next| !next.is_empty())))
    }

    /// Names the object that cannot be read. It is not left out: what is missing here counts as gone.
    fn carefully<K: Wire>(&self, body: &Bytes) -> Result<Part<K>, LookError> {
        let page: Part<Box<RawValue>> = decode(&self.what, body)?;
        let items = page.items.unwrap_or_default();
        let items = items.iter().map(|item| decode(&self.what, item.get().as_bytes()));
        Ok(Part { metadata: page.metadata, items: Some(items.collect::<Result<_, _>>()?) })
    }

    fn target(&self, limit: Option<u32>, next: Option<&str>) -> String {
        let limit = limit.map(|limit| format!("limit={limit}"));
        let labels = self.labels.as_ref().map(|labels| format!("labelSelector={labels}"));
        let next = next.map(|next| format!("continue={}", encoded(next)));
        let query: Vec<_> = [limit, labels, next].into_iter().flatten().collect();
        format!("{}?{}", self.path, query.join("&"))
    }
}

/// A value in a query, percent-encoded.
fn encoded(value: &str) -> String {
    use std::fmt::Write;
    value.bytes().fold(String::with_capacity(value.len()), |mut out, byte| {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte.into()),
            _ => write!(out, "%{byte:02X}").unwrap_or_default(),
        }
        out
    })
}

/// The body of a successful answer.
pub(crate) async fn get(
    client: &kube::Client,
    what: &str,
    target: &str,
    accept: &str,
) -> Result<Bytes, LookError> {
    let fetched = fetch(client, target, accept).await.map_err(|error| {
        let cause = if is_stall(error.as_ref()) { Cause::Stalled } else { Cause::Connection };
        LookError::broken(what, cause, error)
    })?;
    if fetched.status.is_success() { Ok(fetched.body) } else { Err(LookError::refused(what, &fetched)) }
}

/// Reads JSON; bytes that are no text cost a second try, not the answer.
pub(crate) fn decode<T: DeserializeOwned>(what: &str, body: &[u8]) -> Result<T, LookError> {
    serde_json::from_slice(body).or_else(|error| match std::str::from_utf8(body) {
        Ok(_) => Err(LookError::broken(what, Cause::Undecodable, error.into())),
        Err(_) => serde_json::from_slice(&utf8::lossy(body))
            .map_err(|error| LookError::broken(what, Cause::Undecodable, error.into())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_segment_of_a_path_is_a_name() {
        for good in ["db-0", "system:node", "a.b.c", "x_y"] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", ".", "..", "../secrets/x", "a/b", "a?b", "a%2fb", "a b", "ä"] {
            assert!(!is_name(bad), "{bad}");
        }
    }

    #[test]
    fn selectors_are_encoded() {
        assert_eq!(encoded("app in (a, b),!c"), "app%20in%20%28a%2C%20b%29%2C%21c");
    }
}

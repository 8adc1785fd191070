//! One request, one whole answer, within a deadline.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, HeaderMap, RETRY_AFTER};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::time::timeout;

use super::{BoxError, Stalled};

/// How long an answer, or the next part of it, may take.
const READ: Duration = Duration::from_secs(30);

/// What came back.
pub(crate) struct Fetch {
    pub(crate) status: StatusCode,
    pub(crate) come_back: Option<Duration>,
    pub(crate) body: Bytes,
}

/// Gets `target`, whatever its status, and reads it whole.
pub(crate) async fn fetch(client: &kube::Client, target: &str, accept: &str) -> Result<Fetch, BoxError> {
    let request = Request::get(target).header(ACCEPT, accept).body(Body::empty())?;
    let response = timely(client.send(request)).await??;
    let (status, come_back) = (response.status(), come_back(response.headers()));
    let mut body = response.into_body();
    let mut whole = BytesMut::new();
    while let Some(frame) = timely(body.frame()).await? {
        if let Ok(data) = frame?.into_data() {
            whole.extend_from_slice(&data);
        }
    }
    Ok(Fetch { status, come_back, body: whole.freeze() })
}

async fn timely<T>(what: impl Future<Output = T>) -> Result<T, Stalled> {
    timeout(READ, what).await.map_err(|_| Stalled(READ))
}

/// When the server would like to be asked again. Kubernetes says so in seconds, never as a date.
pub(crate) fn come_back(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

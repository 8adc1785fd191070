//! One request and its complete response, within a deadline.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::ACCEPT;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::time::timeout;

use super::super::retry_after::parse_retry_after;
use super::errors::{BoxError, ResponseStalled};

/// Longest time for a response, or for its next part.
const FETCH_READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A complete response.
pub(crate) struct FetchedResponse {
    pub(crate) status: StatusCode,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Bytes,
}

/// Requests `target` and reads the complete response, whatever its status.
pub(crate) async fn fetch_response(
    client: &kube::Client,
    target: &str,
    accept: &str,
) -> Result<FetchedResponse, BoxError> {
    let request = Request::get(target).header(ACCEPT, accept).body(Body::empty())?;
    let response = with_read_timeout(client.send(request)).await??;
    let (status, come_back) = (response.status(), parse_retry_after(response.headers()));
    let mut body = response.into_body();
    let mut whole = BytesMut::new();
    while let Some(frame) = with_read_timeout(body.frame()).await? {
        if let Ok(data) = frame?.into_data() {
            whole.extend_from_slice(&data);
        }
    }
    Ok(FetchedResponse { status, retry_after: come_back, body: whole.freeze() })
}

async fn with_read_timeout<T>(what: impl Future<Output = T>) -> Result<T, ResponseStalled> {
    timeout(FETCH_READ_TIMEOUT, what).await.map_err(|_| ResponseStalled(FETCH_READ_TIMEOUT))
}

//! Responses: whole, empty, or in chunks.

use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body as _, Frame};
use tokio::sync::mpsc;

/// Body of a response: whole, or a stream.
pub(super) type ResponseBody = http_body_util::combinators::UnsyncBoxBody<Bytes, io::Error>;

pub(super) fn whole_response(
    status: u16,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> hyper::Response<ResponseBody> {
    let body = Full::new(body.into()).map_err(|never: Infallible| match never {}).boxed_unsync();
    let mut response = hyper::Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body).unwrap_or_else(|_| empty_response())
}

/// An empty response, used if a header value is invalid.
fn empty_response() -> hyper::Response<ResponseBody> {
    hyper::Response::new(Empty::new().map_err(|never: Infallible| match never {}).boxed_unsync())
}

/// Body fed by a task: the task's chunks are the body, an error tears the connection down.
struct ChunkedBody(mpsc::Receiver<io::Result<Bytes>>);

impl hyper::body::Body for ChunkedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(context).map(|chunk| chunk.map(|chunk| chunk.map(Frame::data)))
    }
}

/// Returns a chunked 200 response and the sender of its chunks.
pub(super) fn chunked_response() -> (mpsc::Sender<io::Result<Bytes>>, hyper::Response<ResponseBody>) {
    let (sender, receiver) = mpsc::channel(16);
    let body = ChunkedBody(receiver);
    debug_assert!(!body.is_end_stream());
    let response =
        hyper::Response::builder().header("content-type", "application/json").body(body.boxed_unsync());
    (sender, response.unwrap_or_else(|_| empty_response()))
}

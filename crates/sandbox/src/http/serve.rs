//! One request: decoded, logged, hit by a fault or answered by the store.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, USER_AGENT};
use serde_json::Value;

use super::address::{Address, Verb};
use super::faults::{self, Act};
use super::log::Logged;
use super::stream::{self, Lines};
use super::{Shared, replay};
use crate::store::{Request, Response};

/// The body of an answer: whole, or a stream.
pub(super) type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, io::Error>;

/// More than any object the store takes, so that it can say itself that a body is too large.
const MOST_READ: usize = 8 * 1024 * 1024;

/// Answers; an error closes the connection without an answer.
pub(super) async fn answer(
    shared: Arc<Shared>,
    request: hyper::Request<Incoming>,
) -> io::Result<hyper::Response<Body>> {
    let Some(mut request) = read(request).await? else {
        return Ok(whole(413, &[], faults::status(413, None).to_string().into_bytes()));
    };
    let address = Address::of(&request);
    let act = shared.faults.on_request(&address);
    let log = |status: u16| shared.log.add(logged(&request, address.verb, status));
    match act {
        Some(Act::Answer(status, retry_after)) => {
            log(status);
            let retry_after = retry_after.map(|seconds| ("retry-after", seconds.to_string()));
            return Ok(json(
                status,
                retry_after.as_slice(),
                &faults::status(status, retry_after.as_ref().and_then(|(_, text)| text.parse().ok())),
            ));
        }
        Some(Act::Forbid) => {
            log(403);
            return Ok(json(403, &[], &faults::forbidden(&address)));
        }
        Some(Act::AnswerRaw(bytes)) => {
            log(200);
            return Ok(whole(200, &[JSON], bytes));
        }
        Some(Act::Stall) => {
            log(0);
            return std::future::pending().await;
        }
        Some(Act::Drop) => {
            log(0);
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        _ => {}
    }
    request.as_of = shared.faults.lag(&address);
    if address.verb == Verb::Watch {
        return Ok(watch(&shared, &request, address));
    }
    let response = shared.lock().handle((shared.clock)(), &request);
    let (status, response) = match act {
        Some(Act::CommitThenAnswer(status)) => (status, Ok(json(status, &[], &faults::status(status, None)))),
        Some(Act::CommitThenDrop) => (0, Err(io::ErrorKind::ConnectionReset.into())),
        Some(Act::RawItem(item)) => (response.status, Ok(with_item(response, &item))),
        _ => (response.status, Ok(plain(response))),
    };
    shared.log.add(logged(&request, address.verb, status));
    response
}

fn watch(shared: &Arc<Shared>, request: &Request, address: Address) -> hyper::Response<Body> {
    let now = (shared.clock)();
    let opened = shared.lock().open_watch(now, request);
    let status = opened.as_ref().map_or_else(crate::store::Refusal::code, |_| 200);
    shared.log.add(logged(request, address.verb, status));
    match opened {
        Ok(cursor) => {
            let act = shared.faults.on_opening(&address);
            stream::response(Lines { shared: shared.clone(), cursor, address, act })
        }
        Err(refusal) => plain(refusal.into()),
    }
}

/// Reads the request; `None` where its body is larger than anything legal.
async fn read(request: hyper::Request<Incoming>) -> io::Result<Option<Request>> {
    let (parts, body) = request.into_parts();
    let body = match Limited::new(body, MOST_READ).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Ok(None),
        Err(error) => return Err(io::Error::other(error)),
    };
    let header =
        |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let query = parts.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let query = query.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    Ok(Some(Request {
        method: parts.method.to_string(),
        path: decoded(parts.uri.path(), false),
        query: query.map(|(key, value)| (decoded(key, true), decoded(value, true))).collect(),
        content_type: header(CONTENT_TYPE),
        accept: header(ACCEPT),
        user_agent: header(USER_AGENT),
        body: body.to_vec(),
        as_of: None,
    }))
}

/// Percent-decoded; in a query `+` is a space.
fn decoded(text: &str, query: bool) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'%' => match after
                .get(..2)
                .and_then(|hex| std::str::from_utf8(hex).ok())
                .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            {
                Some(byte) => {
                    bytes.push(byte);
                    rest = &after[2..];
                }
                None => bytes.push(b'%'),
            },
            b'+' if query => bytes.push(b' '),
            _ => bytes.push(byte),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn logged(request: &Request, verb: Verb, status: u16) -> Logged {
    Logged {
        method: request.method.clone(),
        path: request.path.clone(),
        query: request.query.clone(),
        verb,
        status,
        user_agent: request.user_agent.clone().unwrap_or_default(),
    }
}

const JSON: (&str, &str) = ("content-type", "application/json");

/// A list with bytes of somebody's choice as its first item.
fn with_item(mut response: Response, item: &[u8]) -> hyper::Response<Body> {
    let mark = b"\"items\":[";
    if let Some(at) = response.body.windows(mark.len()).position(|window| window == mark) {
        let at = at + mark.len();
        let empty = response.body.get(at) == Some(&b']');
        let mut item = item.to_vec();
        if !empty {
            item.push(b',');
        }
        response.body.splice(at..at, item);
    }
    plain(response)
}

fn json(status: u16, headers: &[(&str, String)], body: &Value) -> hyper::Response<Body> {
    let mut all = vec![JSON];
    all.extend(headers.iter().map(|(name, value)| (*name, value.as_str())));
    whole(status, &all, body.to_string().into_bytes())
}

fn plain(response: Response) -> hyper::Response<Body> {
    let headers: Vec<(&str, &str)> =
        response.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    whole(response.status, &headers, response.body)
}

pub(super) fn whole(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> hyper::Response<Body> {
    let body = Full::new(body.into()).map_err(|never: Infallible| match never {}).boxed_unsync();
    let mut response = hyper::Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body).unwrap_or_else(|_| replay::empty())
}

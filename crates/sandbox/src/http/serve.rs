//! Handling of one request: it is decoded, logged, and answered by a fault or by the store.

use std::borrow::Cow;
use std::io;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, CONTENT_TYPE, DATE, HeaderName, HeaderValue, USER_AGENT};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::faults::{self, FaultAction};
use super::request_info::{RequestInfo, RequestVerb};
use super::request_log::LoggedRequest;
use super::response::{ResponseBody, whole_response};
use super::server_state::ServerState;
use super::stream::{self, WatchStream};
use crate::store::{StoreRequest, StoreResponse};

/// Longest request body that is read. More than any object the store accepts, so that the store itself can refuse a
/// body as too large.
const MAX_REQUEST_BODY_BYTES: usize = 8 * 1024 * 1024;

/// Answers a request, dated by the server's clock; an error closes the connection without a response.
pub(super) async fn answer_request(
    shared: Arc<ServerState>,
    request: hyper::Request<Incoming>,
) -> io::Result<hyper::Response<ResponseBody>> {
    let clock = shared.clock.clone();
    let mut response = find_answer(shared, request).await?;
    let date = UNIX_EPOCH + Duration::from_millis(u64::try_from(clock()).unwrap_or(0));
    if let Ok(date) = HeaderValue::try_from(httpdate::fmt_http_date(date)) {
        response.headers_mut().insert(DATE, date);
    }
    Ok(response)
}

async fn find_answer(
    shared: Arc<ServerState>,
    request: hyper::Request<Incoming>,
) -> io::Result<hyper::Response<ResponseBody>> {
    let Some(mut request) = read_request(request).await? else {
        return Ok(whole_response(413, &[], faults::injected_status(413, None).to_string().into_bytes()));
    };
    let address = RequestInfo::from_request(&request);
    let act = shared.faults.on_request(&address);
    let log = |status: u16| shared.log.add(&address, log_entry(&request, address.verb, status));
    match act {
        Some(FaultAction::Answer(status, retry_after)) => {
            log(status);
            let retry_after = retry_after.map(|seconds| ("retry-after", seconds.to_string()));
            return Ok(json_response(
                status,
                retry_after.as_slice(),
                &faults::injected_status(
                    status,
                    retry_after.as_ref().and_then(|(_, text)| text.parse().ok()),
                ),
            ));
        }
        Some(FaultAction::Forbid) => {
            log(403);
            return Ok(json_response(403, &[], &faults::forbidden_status(&address)));
        }
        Some(FaultAction::AnswerRaw(bytes)) => {
            log(200);
            return Ok(whole_response(200, &[JSON_CONTENT_TYPE], bytes));
        }
        Some(FaultAction::Stall) => {
            log(0);
            return std::future::pending().await;
        }
        Some(FaultAction::Drop) => {
            log(0);
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        _ => {}
    }
    request.as_of = shared.faults.lag_revision(&address);
    if address.verb == RequestVerb::Watch {
        return Ok(open_watch_stream(&shared, &request, address));
    }
    // The log is written under the store's lock: a reader that has seen what a request wrote finds the request in the log.
    let mut store = shared.lock_store();
    let response = store.handle_request((shared.clock)(), &request);
    let status = match act {
        Some(FaultAction::CommitThenAnswer(status)) => status,
        Some(FaultAction::CommitThenDrop) => 0,
        _ => response.status,
    };
    shared.log.add(&address, log_entry(&request, address.verb, status));
    drop(store);
    match act {
        Some(FaultAction::CommitThenAnswer(status)) => {
            Ok(json_response(status, &[], &faults::injected_status(status, None)))
        }
        Some(FaultAction::CommitThenDrop) => Err(io::ErrorKind::ConnectionReset.into()),
        Some(FaultAction::RawItem(item)) => Ok(with_first_item(response, &item)),
        _ => Ok(to_http_response(response)),
    }
}

fn open_watch_stream(
    shared: &Arc<ServerState>,
    request: &StoreRequest,
    address: RequestInfo,
) -> hyper::Response<ResponseBody> {
    let now = (shared.clock)();
    let opened = shared.lock_store().open_watch(now, request);
    let status = opened.as_ref().map_or_else(crate::store::StoreRefusal::code, |_| 200);
    shared.log.add(&address, log_entry(request, address.verb, status));
    match opened {
        Ok(cursor) => {
            let act = shared.faults.on_opening(&address);
            stream::watch_response(WatchStream { shared: shared.clone(), cursor, address, action: act })
        }
        Err(refusal) => to_http_response(refusal.into()),
    }
}

/// Reads the request; `None` if its body is longer than any legal one.
async fn read_request(request: hyper::Request<Incoming>) -> io::Result<Option<StoreRequest>> {
    let (parts, body) = request.into_parts();
    let body = match Limited::new(body, MAX_REQUEST_BODY_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return Ok(None),
        Err(error) => return Err(io::Error::other(error)),
    };
    let header =
        |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let query = parts.uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let query = query.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    Ok(Some(StoreRequest {
        method: parts.method.to_string(),
        path: percent_decode(parts.uri.path(), false),
        query: query.map(|(key, value)| (percent_decode(key, true), percent_decode(value, true))).collect(),
        content_type: header(CONTENT_TYPE),
        accept: header(ACCEPT),
        user_agent: header(USER_AGENT),
        body: body.to_vec(),
        as_of: None,
    }))
}

/// Percent-decodes a text; in a query `+` is a space.
fn percent_decode(text: &str, query: bool) -> String {
    let text = if query { Cow::from(text.replace('+', " ")) } else { Cow::from(text) };
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

fn log_entry(request: &StoreRequest, verb: RequestVerb, status: u16) -> LoggedRequest {
    LoggedRequest {
        method: request.method.clone(),
        path: request.path.clone(),
        query: request.query.clone(),
        verb,
        status,
        user_agent: request.user_agent.clone().unwrap_or_default(),
        accept: request.accept.clone().unwrap_or_default(),
    }
}

const JSON_CONTENT_TYPE: (&str, &str) = ("content-type", "application/json");

/// Inserts the given bytes into a list as its first item.
fn with_first_item(mut response: StoreResponse, item: &[u8]) -> hyper::Response<ResponseBody> {
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
    to_http_response(response)
}

fn json_response(status: u16, headers: &[(&str, String)], body: &Value) -> hyper::Response<ResponseBody> {
    let mut all = vec![JSON_CONTENT_TYPE];
    all.extend(headers.iter().map(|(name, value)| (*name, value.as_str())));
    whole_response(status, &all, body.to_string().into_bytes())
}

fn to_http_response(response: StoreResponse) -> hyper::Response<ResponseBody> {
    let headers: Vec<(&str, &str)> =
        response.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    whole_response(response.status, &headers, response.body)
}

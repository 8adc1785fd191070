//! A log of the requests, for assertions such as "nothing was written", and their number.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use super::request_info::{RequestInfo, RequestVerb};

/// Largest number of requests kept; the oldest are dropped first.
const MAX_LOGGED_REQUESTS: usize = 20_000;

/// One logged request, answered or not.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedRequest {
    /// `GET`, `POST`, …
    pub method: String,
    /// The path without its query.
    pub path: String,
    /// The query, percent-decoded.
    pub query: Vec<(String, String)>,
    /// The verb, as RBAC names it.
    pub verb: RequestVerb,
    /// The HTTP status of the response; 0 if a fault withheld it.
    pub status: u16,
    /// The `User-Agent` of the client.
    pub user_agent: String,
    /// The `Accept` header: whole objects, or their metadata alone.
    pub accept: String,
}

/// What a request addresses, for counting.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestTally {
    /// The verb, as RBAC names it.
    pub verb: RequestVerb,
    /// Plural name of the kind; empty for discovery, health and version.
    pub plural: String,
    /// The subresource, for example `status`; empty for the object itself.
    pub subresource: String,
}

#[derive(Default)]
struct LogState {
    newest: VecDeque<LoggedRequest>,
    counts: BTreeMap<RequestTally, u64>,
}

#[derive(Default)]
pub(super) struct RequestLog(Mutex<LogState>);

impl RequestLog {
    pub(super) fn add(&self, info: &RequestInfo, logged: LoggedRequest) {
        let tally = RequestTally {
            verb: info.verb,
            plural: info.plural.clone(),
            subresource: info.subresource.clone(),
        };
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *log.counts.entry(tally).or_default() += 1;
        if log.newest.len() == MAX_LOGGED_REQUESTS {
            log.newest.pop_front();
        }
        log.newest.push_back(logged);
    }

    pub(super) fn all(&self) -> Vec<LoggedRequest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).newest.iter().cloned().collect()
    }

    pub(super) fn counts(&self) -> BTreeMap<RequestTally, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).counts.clone()
    }

    pub(super) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = LogState::default();
    }
}

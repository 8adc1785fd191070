//! A log of the requests, for assertions such as "nothing was written".

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::request_info::RequestVerb;

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
}

#[derive(Default)]
pub(super) struct RequestLog(Mutex<VecDeque<LoggedRequest>>);

impl RequestLog {
    pub(super) fn add(&self, logged: LoggedRequest) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == MAX_LOGGED_REQUESTS {
            log.pop_front();
        }
        log.push_back(logged);
    }

    pub(super) fn all(&self) -> Vec<LoggedRequest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

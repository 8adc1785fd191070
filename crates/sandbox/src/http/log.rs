//! The requests so far, for assertions such as "nothing was written".

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::address::Verb;

/// How many requests are remembered.
const KEEP: usize = 20_000;

/// One request that was answered, or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Logged {
    /// `GET`, `POST`, …
    pub method: String,
    /// Without the query.
    pub path: String,
    /// Decoded.
    pub query: Vec<(String, String)>,
    /// What it did, in the words of RBAC.
    pub verb: Verb,
    /// What was answered; 0 where a fault kept the answer back.
    pub status: u16,
    /// The client, as it calls itself.
    pub user_agent: String,
}

#[derive(Default)]
pub(super) struct Log(Mutex<VecDeque<Logged>>);

impl Log {
    pub(super) fn add(&self, logged: Logged) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == KEEP {
            log.pop_front();
        }
        log.push_back(logged);
    }

    pub(super) fn all(&self) -> Vec<Logged> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

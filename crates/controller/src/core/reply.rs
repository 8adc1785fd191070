//! What the server's answer to a write means, and what the reflector learns by it before the loop hears of it.

use std::time::Duration;

use aggregator::Outcome;
use timer::{Backoff, Seed};
use watcher::Parent;
use watcher::plan::Interest;
use watcher::reflector::Reflector;
use watcher::status::ParentStatus;

use super::Write;

/// What an HTTP status says about a guarded write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The server took it: [`accepted`] says how much of it.
    Accepted,
    /// There is no such parent: read it live, and [`reread`].
    Gone,
    /// A guard failed: read it live, and [`reread`].
    Conflict,
    /// We may not.
    NotPermitted,
    /// It failed, or nobody knows whether it did: [`retry`].
    Failed,
}

impl Reply {
    /// Reads a status.
    pub const fn of(status: u16) -> Reply {
        match status {
            200..300 => Reply::Accepted,
            404 => Reply::Gone,
            409 | 422 => Reply::Conflict,
            403 => Reply::NotPermitted,
            _ => Reply::Failed,
        }
    }

    /// How the write ended. Where the server took it, [`accepted`] knows better.
    pub fn outcome(self, write: &Write, seed: Seed, retry_after: Duration) -> Outcome {
        match self {
            Reply::Accepted => Outcome::Written,
            Reply::Gone => Outcome::Gone,
            Reply::Conflict => Outcome::Conflict,
            Reply::NotPermitted => Outcome::Retry(Duration::from_secs(30)),
            Reply::Failed => retry(write, seed, retry_after),
        }
    }
}

/// Try again after a while, and not before `at_least` has passed.
pub fn retry(write: &Write, seed: Seed, at_least: Duration) -> Outcome {
    let backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(2) };
    Outcome::Retry(at_least.max(backoff.after(1, seed, u64::from(write.parent))))
}

/// The server took it: what it answers is what the parent says now, which may be less than what was sent.
pub fn accepted(reflector: &Reflector, interest: &Interest, write: &Write, answer: &Parent) -> Outcome {
    let types: Vec<&str> = write.wanted.entries.iter().map(|e| e.r#type.as_str()).collect();
    let status = ParentStatus::read(&answer.text, &types);
    reflector.accepted(&answer.child.meta.uid, &write.wanted.entries, &status);
    reflector.apply(interest, &answer.child, Some(&answer.text));
    let kept = types.iter().all(|kind| status.ours(kind).is_some());
    if kept { Outcome::Written } else { Outcome::Pruned }
}

/// After a failed guard the parent was read live: what is decided next rests on what it says now.
pub fn reread(reflector: &Reflector, interest: &Interest, write: &Write, live: Option<&Parent>) {
    if live.is_none_or(|live| *live.child.meta.uid != *write.uid) {
        reflector.delete(&write.uid, 0);
    }
    if let Some(live) = live {
        reflector.apply(interest, &live.child, Some(&live.text));
    }
}

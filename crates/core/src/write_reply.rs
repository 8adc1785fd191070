//! Meaning of the server's response to a write, and its effect on the reflector before the loop learns the outcome.

use std::time::Duration;

use aggregator::DeliveryOutcome;
use watcher::reflector::{ApplyOutcome, ReadStart, Reflector};
use watcher::status::{OwnTypes, OwnedCondition, ParentStatus};
use watcher::{ApiKind, ParentObject, proves_absence};

use super::live_reads::{self, KnownObject, WatchLag};
use super::parent_write::ParentWrite;
use super::refusal;

/// Longest `Retry-After` that is obeyed. 10 min.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(10);

/// Meaning of the HTTP status of a guarded write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteReply {
    /// The server accepted the patch: pass the response to [`read_accepted`], and what that reads to [`apply_accepted`].
    Accepted,
    /// The server says that there is no such parent: read it live, and [`apply_reread`].
    Gone,
    /// A precondition failed: read the parent live, and call [`apply_reread`].
    Conflict,
    /// The parent would be invalid with what was written: pass the response to [`super::refusal::outcome_of`].
    Invalid,
    /// The write is not permitted.
    NotPermitted,
    /// The write failed, or its outcome is unknown ([`is_unknown`]).
    Failed,
}

impl WriteReply {
    /// Reads an answer. A 404 that does not name the parent is one of its kind, which is not served for now: nothing is known
    /// of the parent, and the write failed.
    pub fn from_status(status: u16, body: &[u8], kind: &ApiKind, name: &str) -> WriteReply {
        match status {
            200..300 => WriteReply::Accepted,
            404 if proves_absence(body, kind, name) => WriteReply::Gone,
            400 | 401 | 403 | 413 | 422 if refusal::is_about_object(body) => WriteReply::Invalid,
            409 | 422 => WriteReply::Conflict,
            403 => WriteReply::NotPermitted,
            _ => WriteReply::Failed,
        }
    }

    /// Outcome of the write. For an accepted one [`apply_accepted`] knows more.
    pub fn write_outcome(self, write: &ParentWrite, retry_after: Duration) -> DeliveryOutcome {
        match self {
            WriteReply::Accepted => DeliveryOutcome::Written,
            WriteReply::Gone => DeliveryOutcome::Gone,
            WriteReply::Conflict if write.is_bound_to_version => DeliveryOutcome::Contended,
            WriteReply::Conflict => DeliveryOutcome::Conflict,
            WriteReply::Invalid => DeliveryOutcome::Invalid,
            WriteReply::NotPermitted => DeliveryOutcome::Denied,
            WriteReply::Failed => DeliveryOutcome::Retry(retry_after.min(MAX_RETRY_AFTER)),
        }
    }
}

/// Returns `true` if the outcome of a write with this status is unknown: read the parent live, and [`apply_reread`].
pub const fn is_unknown(status: u16) -> bool {
    status >= 500
}

/// Reads the response of an accepted write: the parent. `None` where it is anything else, half of it, or another object: then
/// the outcome of the write is unknown, so read the parent live, and [`apply_reread`].
pub fn read_accepted(body: &[u8], write: &ParentWrite) -> Option<ParentObject> {
    let answer: ParentObject = serde_json::from_str(std::str::from_utf8(body).ok()?).ok()?;
    (*answer.child.meta.uid == *write.uid).then_some(answer)
}

/// Applies the response of an accepted write. It is the parent's current state, which may hold less than what was sent.
pub fn apply_accepted(reflector: &Reflector, write: &ParentWrite, answer: &ParentObject) -> DeliveryOutcome {
    let types: Vec<&str> = write.wanted.entries.iter().map(|e| e.r#type.as_str()).collect();
    let own = OwnTypes::of(types.iter().copied()).taking(types.iter().copied());
    let status = ParentStatus::read(&answer.text, &own);
    reflector.on_write_accepted(&answer.child.meta.uid, &write.wanted.entries, &status);
    let applied = reflector.apply_answer(write.kind, &answer.child, Some(&answer.text));
    // One with a reason of ours stands as it was sent, or in other words, and is ours for as long as it does. One with
    // another reason is there, in the words of an admission webhook: it is to be set right, as where somebody overwrites it.
    let stands = |held: &OwnedCondition| held.parent_reason().is_some() || held.is_rewritten();
    let is_kept = types.iter().all(|kind| status.our_entry(kind).is_some_and(stands));
    match applied {
        _ if !is_kept => DeliveryOutcome::Pruned,
        // The kind is being listed by another plan, or does not hold it: what a list shows is observed, not this.
        ApplyOutcome::Refused | ApplyOutcome::Unwanted => DeliveryOutcome::Unobserved,
        ApplyOutcome::Stale | ApplyOutcome::Same | ApplyOutcome::Moved(_) => DeliveryOutcome::Written,
    }
}

/// Applies a live read of the parent, made after a failed precondition or a write whose outcome is unknown, so that the next
/// decision rests on its current state. `known` is the parent as it was held before the read was sent: a change that is
/// observed later is newer than the read. What it shows that the watch has not, the watch may have lost, as with any live read.
#[must_use = "what the watch has not shown it may have lost, and more"]
pub fn apply_reread(
    reflector: &Reflector,
    write: &ParentWrite,
    start: ReadStart,
    known: Option<KnownObject>,
    live: Option<&ParentObject>,
) -> Vec<WatchLag> {
    live_reads::apply_live_read(reflector, write.kind, start, known, live)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_parent_is_gone_where_the_server_names_it_and_a_kind_that_is_not_served_fails_the_write() {
        let kind = ApiKind {
            group: "example.com".into(),
            version: "v1".into(),
            kind: "Database".into(),
            plural: "databases".into(),
            namespaced: true,
            has_status: true,
        };
        let status = |name: &str| {
            json!({ "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404,
                "details": { "name": name, "group": "example.com", "kind": "databases" } })
            .to_string()
        };
        let read = |code: u16, body: &str| WriteReply::from_status(code, body.as_bytes(), &kind, "db");
        assert_eq!(read(404, &status("db")), WriteReply::Gone);
        assert_eq!(read(404, &status("other")), WriteReply::Failed);
        assert_eq!(read(404, "404 page not found\n"), WriteReply::Failed);
        assert_eq!([read(409, ""), read(422, "")], [WriteReply::Conflict; 2]);
        let invalid = json!({ "details": { "causes": [{ "field": "status.phase" }] } }).to_string();
        // An admission policy may give other codes.
        assert_eq!([read(422, &invalid), read(403, &invalid), read(413, &invalid)], [WriteReply::Invalid; 3]);
        assert_eq!([read(409, &invalid), read(500, &invalid)], [WriteReply::Conflict, WriteReply::Failed]);
        assert_eq!([read(403, ""), read(413, "")], [WriteReply::NotPermitted, WriteReply::Failed]);
        assert_eq!(read(200, ""), WriteReply::Accepted);
    }
}

//! Faults on purpose: which requests or events they hit, and what happens then.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::address::{Address, Verb};
use crate::store::WatchLine;

/// What happens instead of, or around, the right answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// Answers this HTTP status with a `Status` object and, where given, `Retry-After` in seconds. A reader of this
    /// for 429 "initializing", 410, 500, 503.
    Answer(u16, Option<u32>),
    /// Answers 403 as RBAC does: the permission is revoked for as long as the fault stands.
    Forbid,
    /// Answers 200 with these bytes.
    AnswerRaw(Vec<u8>),
    /// Accepts the request and never answers.
    Stall,
    /// Closes the connection without an answer.
    Drop,
    /// Does what was asked, then answers this status.
    CommitThenAnswer(u16),
    /// Does what was asked, then closes the connection.
    CommitThenDrop,
    /// The watch cache of this server stays at this revision while the fault stands: watches, and reads that name a
    /// resourceVersion. Reads that name none are consistent and see everything, as Kubernetes promises.
    LagAt(u64),
    /// Puts these bytes among the items of a list, as its first.
    RawItem(Vec<u8>),
    /// The watch opens and ends at once.
    EndWatch,
    /// The watch opens, tells an ERROR event with this code, and ends.
    ErrorEvent(u16),
    /// After this many lines the next is cut in its middle and the connection closed.
    CutAfter(u32),
    /// After this many lines the socket stays open and says nothing more.
    StallAfter(u32),
    /// This line comes first, newline included or not, as it pleases.
    RawLine(Vec<u8>),
    /// The event is never told.
    DropEvent,
    /// The event, and what follows it, comes this much later.
    DelayEvent(Duration),
    /// The event is told twice.
    DuplicateEvent,
    /// The event is told after the one that follows it.
    SwapEvent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    Request,
    /// Once per watch, when it opens.
    Opening,
    /// Once per line of a watch.
    Line,
}

impl Act {
    fn stage(&self) -> Stage {
        match self {
            Act::EndWatch | Act::ErrorEvent(_) | Act::CutAfter(_) | Act::StallAfter(_) | Act::RawLine(_) => {
                Stage::Opening
            }
            Act::DropEvent | Act::DelayEvent(_) | Act::DuplicateEvent | Act::SwapEvent => Stage::Line,
            _ => Stage::Request,
        }
    }
}

/// Which requests (or events of watches) are hit, and how.
#[derive(Clone, Debug)]
pub struct Fault {
    act: Act,
    verb: Option<Verb>,
    kind: Option<(String, String)>,
    name: Option<String>,
    subresource: Option<String>,
    skip: u32,
    times: Option<u32>,
}

impl Fault {
    /// Hits everything, every time, until narrowed down.
    pub fn new(act: Act) -> Fault {
        Fault { act, verb: None, kind: None, name: None, subresource: None, skip: 0, times: None }
    }

    /// Only this verb. What happens within watches needs none.
    pub fn on(mut self, verb: Verb) -> Fault {
        self.verb = Some(verb);
        self
    }

    /// Only this kind, by group (empty for the core) and plural.
    pub fn kind(mut self, group: &str, plural: &str) -> Fault {
        self.kind = Some((group.into(), plural.into()));
        self
    }

    /// Only the object of this name: in the path of the request, or of the event.
    pub fn name(mut self, name: &str) -> Fault {
        self.name = Some(name.into());
        self
    }

    /// Only this subresource; empty for the main resource.
    pub fn subresource(mut self, subresource: &str) -> Fault {
        self.subresource = Some(subresource.into());
        self
    }

    /// Lets the first `n` matches pass.
    pub fn skip(mut self, n: u32) -> Fault {
        self.skip = n;
        self
    }

    /// At most `n` times.
    pub fn times(mut self, n: u32) -> Fault {
        self.times = Some(n);
        self
    }

    /// Just the next match.
    pub fn once(self) -> Fault {
        self.times(1)
    }

    fn matches(&self, address: &Address, name: &str) -> bool {
        self.verb.is_none_or(|verb| verb == address.verb)
            && self
                .kind
                .as_ref()
                .is_none_or(|(group, plural)| *group == address.group && *plural == address.plural)
            && self.name.as_ref().is_none_or(|wanted| wanted == name)
            && self.subresource.as_ref().is_none_or(|wanted| *wanted == address.subresource)
    }
}

#[derive(Debug)]
struct Armed {
    fault: Fault,
    seen: AtomicU32,
    fired: Arc<AtomicU32>,
}

/// The faults that stand now.
#[derive(Clone, Debug, Default)]
pub struct Faults(Arc<Mutex<Vec<Armed>>>);

/// A fault that was scripted: counts how often it fired, and takes it back.
#[derive(Clone, Debug)]
pub struct FaultHandle {
    faults: Faults,
    fired: Arc<AtomicU32>,
}

impl FaultHandle {
    /// How often it fired.
    pub fn fired(&self) -> u32 {
        self.fired.load(Ordering::SeqCst)
    }

    /// Takes the fault back.
    pub fn lift(&self) {
        self.faults.with(|armed| armed.retain(|armed| !Arc::ptr_eq(&armed.fired, &self.fired)));
    }
}

impl Faults {
    /// Scripts a fault. Of several that match, the one scripted first fires.
    pub fn add(&self, fault: Fault) -> FaultHandle {
        let fired = Arc::new(AtomicU32::new(0));
        self.with(|armed| armed.push(Armed { fault, seen: AtomicU32::new(0), fired: fired.clone() }));
        FaultHandle { faults: self.clone(), fired }
    }

    /// Takes all faults back.
    pub fn clear(&self) {
        self.with(Vec::clear);
    }

    fn with<T>(&self, edit: impl FnOnce(&mut Vec<Armed>) -> T) -> T {
        edit(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The act that hits this request now.
    pub(super) fn on_request(&self, address: &Address) -> Option<Act> {
        self.take(Stage::Request, address, &address.name)
    }

    /// The act that hits this watch as it opens.
    pub(super) fn on_opening(&self, address: &Address) -> Option<Act> {
        self.take(Stage::Opening, address, &address.name)
    }

    /// The act that hits this line of a watch.
    pub(super) fn on_line(&self, address: &Address, line: &WatchLine) -> Option<Act> {
        self.take(Stage::Line, address, line.object["metadata"]["name"].as_str().unwrap_or_default())
    }

    /// The revision beyond which a watch of this kind does not see, while a lag stands.
    pub(super) fn lag(&self, address: &Address) -> Option<u64> {
        self.with(|armed| {
            let lags = armed.iter().filter(|armed| armed.fault.matches(address, &address.name));
            lags.filter_map(
                |armed| if let Act::LagAt(revision) = armed.fault.act { Some(revision) } else { None },
            )
            .min()
        })
    }

    fn take(&self, stage: Stage, address: &Address, name: &str) -> Option<Act> {
        self.with(|armed| {
            let armed = armed.iter().find(|armed| {
                let Armed { fault, seen, fired } = armed;
                fault.act.stage() == stage
                    && fault.matches(address, name)
                    && fault.times.is_none_or(|times| fired.load(Ordering::SeqCst) < times)
                    && seen.fetch_add(1, Ordering::SeqCst) >= fault.skip
            })?;
            armed.fired.fetch_add(1, Ordering::SeqCst);
            Some(armed.fault.act.clone())
        })
    }
}

/// The `Status` that goes with an injected code.
pub(super) fn status(code: u16, retry_after: Option<u32>) -> Value {
    let (reason, message) = match code {
        410 => ("Expired", "too old resource version: 1 (2)"),
        429 => ("TooManyRequests", "storage is (re)initializing"),
        403 => ("Forbidden", "forbidden by a fault"),
        404 => ("NotFound", "the server could not find the requested resource"),
        409 => (
            "Conflict",
            "Operation cannot be fulfilled: the object has been modified; please apply your changes to the latest version and try again",
        ),
        422 => ("Invalid", "the server rejected our request due to an error in our request"),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => ("Timeout", "request did not complete within the allotted time"),
        _ => ("InternalError", "an error on the server prevented the request from succeeding"),
    };
    let mut status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": reason, "code": code});
    if let Some(seconds) = retry_after {
        status["details"] = json!({"retryAfterSeconds": seconds});
    }
    status
}

/// What RBAC says to somebody who may not.
pub(super) fn forbidden(address: &Address) -> Value {
    let Address { verb, group, plural, namespace, name, .. } = address;
    let resource = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
    let subject = if name.is_empty() { resource } else { format!("{resource} {name:?}") };
    let scope = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace {namespace:?}")
    };
    let message = format!(
        "{subject} is forbidden: User \"sandbox\" cannot {} resource {plural:?} in API group {group:?} {scope}",
        verb.as_str()
    );
    let details = json!({"group": group, "kind": plural, "name": name});
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": "Forbidden", "details": details, "code": 403})
}

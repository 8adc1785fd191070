//! Fault injection: the requests and events that a fault hits, and its effect.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::request_info::{RequestInfo, RequestVerb};
use crate::store::WatchLine;

/// Effect of a fault, instead of or around the regular response.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultAction {
    /// Answers this HTTP status with a `Status` object and, if given, `Retry-After` in seconds. Used for 429
    /// "initializing", 410, 500 and 503.
    Answer(u16, Option<u32>),
    /// Answers 403 as RBAC does: the permission is revoked while the fault is armed.
    Forbid,
    /// Answers 200 with these bytes.
    AnswerRaw(Vec<u8>),
    /// Accepts the request and never answers.
    Stall,
    /// Closes the connection without an answer.
    Drop,
    /// Performs the request, then answers this status.
    CommitThenAnswer(u16),
    /// Performs the request, then closes the connection.
    CommitThenDrop,
    /// Freezes the watch cache of this server at this revision while the fault is armed: it affects watches, and reads
    /// that name a resourceVersion. Reads without a resourceVersion are consistent and see everything, as Kubernetes
    /// promises.
    LagAt(u64),
    /// Inserts these bytes as the first item of a list.
    RawItem(Vec<u8>),
    /// Opens the watch and ends it at once.
    EndWatch,
    /// Opens the watch, sends an ERROR event with this code, and ends it.
    ErrorEvent(u16),
    /// Sends this many lines, then half of the next, then closes the connection.
    CutAfter(u32),
    /// Sends this many lines, then nothing more; the socket stays open.
    StallAfter(u32),
    /// Sends these bytes as the first line; the newline is part of them, if there is to be one.
    RawLine(Vec<u8>),
    /// Drops the event.
    DropEvent,
    /// Delays the event, and all that follow it, by this much.
    DelayEvent(Duration),
    /// Sends the event twice.
    DuplicateEvent,
    /// Sends the event after the one that follows it.
    SwapEvent,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FaultStage {
    Request,
    /// Checked once per watch, as it opens.
    Opening,
    /// Checked once per line of a watch.
    Line,
}

impl FaultAction {
    fn stage(&self) -> FaultStage {
        match self {
            FaultAction::EndWatch
            | FaultAction::ErrorEvent(_)
            | FaultAction::CutAfter(_)
            | FaultAction::StallAfter(_)
            | FaultAction::RawLine(_) => FaultStage::Opening,
            FaultAction::DropEvent
            | FaultAction::DelayEvent(_)
            | FaultAction::DuplicateEvent
            | FaultAction::SwapEvent => FaultStage::Line,
            _ => FaultStage::Request,
        }
    }
}

/// A scripted fault: the requests (or watch events) that it hits, and its effect.
#[derive(Clone, Debug)]
pub struct InjectedFault {
    action: FaultAction,
    verb: Option<RequestVerb>,
    kind: Option<(String, String)>,
    name: Option<String>,
    subresource: Option<String>,
    across_namespaces: bool,
    skip: u32,
    times: Option<u32>,
}

impl InjectedFault {
    /// Returns a fault that hits every request, every time, until it is narrowed down.
    pub fn new(act: FaultAction) -> InjectedFault {
        InjectedFault {
            action: act,
            verb: None,
            kind: None,
            name: None,
            subresource: None,
            across_namespaces: false,
            skip: 0,
            times: None,
        }
    }

    /// Hits only this verb. Effects on the lines of a watch need none.
    pub fn on_verb(mut self, verb: RequestVerb) -> InjectedFault {
        self.verb = Some(verb);
        self
    }

    /// Hits only this kind, by group (empty for the core group) and plural.
    pub fn on_kind(mut self, group: &str, plural: &str) -> InjectedFault {
        self.kind = Some((group.into(), plural.into()));
        self
    }

    /// Hits only the object of this name: in the path of the request, or in the event.
    pub fn on_name(mut self, name: &str) -> InjectedFault {
        self.name = Some(name.into());
        self
    }

    /// Hits only this subresource; empty for the main resource.
    pub fn on_subresource(mut self, subresource: &str) -> InjectedFault {
        self.subresource = Some(subresource.into());
        self
    }

    /// Hits only requests that name no namespace, as for a user with rights in some namespaces.
    pub fn across_namespaces(mut self) -> InjectedFault {
        self.across_namespaces = true;
        self
    }

    /// Skips the first `n` matches.
    pub fn skip_first(mut self, n: u32) -> InjectedFault {
        self.skip = n;
        self
    }

    /// Fires at most `n` times.
    pub fn at_most(mut self, n: u32) -> InjectedFault {
        self.times = Some(n);
        self
    }

    /// Fires only for the next match.
    pub fn once(self) -> InjectedFault {
        self.at_most(1)
    }

    fn matches(&self, address: &RequestInfo, name: &str) -> bool {
        self.verb.is_none_or(|verb| verb == address.verb)
            && self
                .kind
                .as_ref()
                .is_none_or(|(group, plural)| *group == address.group && *plural == address.plural)
            && self.name.as_ref().is_none_or(|wanted| wanted == name)
            && (!self.across_namespaces || address.namespace.is_empty())
            && self.subresource.as_ref().is_none_or(|wanted| *wanted == address.subresource)
    }
}

#[derive(Debug)]
struct ArmedFault {
    fault: InjectedFault,
    seen: AtomicU32,
    fired: Arc<AtomicU32>,
}

/// The armed faults of a server.
#[derive(Clone, Debug, Default)]
pub struct FaultInjector(Arc<Mutex<Vec<ArmedFault>>>);

/// Handle of a scripted fault: counts how often it fired, and removes it.
#[derive(Clone, Debug)]
pub struct FaultHandle {
    faults: FaultInjector,
    fired: Arc<AtomicU32>,
}

impl FaultHandle {
    /// Number of times the fault fired.
    pub fn fired_count(&self) -> u32 {
        self.fired.load(Ordering::SeqCst)
    }

    /// Removes the fault.
    pub fn lift(&self) {
        self.faults.with_armed(|armed| armed.retain(|armed| !Arc::ptr_eq(&armed.fired, &self.fired)));
    }
}

impl FaultInjector {
    /// Arms a fault. Of several that match, the one armed first fires.
    pub fn add(&self, fault: InjectedFault) -> FaultHandle {
        let fired = Arc::new(AtomicU32::new(0));
        self.with_armed(|armed| {
            armed.push(ArmedFault { fault, seen: AtomicU32::new(0), fired: fired.clone() });
        });
        FaultHandle { faults: self.clone(), fired }
    }

    /// Removes all faults.
    pub fn clear(&self) {
        self.with_armed(Vec::clear);
    }

    fn with_armed<T>(&self, edit: impl FnOnce(&mut Vec<ArmedFault>) -> T) -> T {
        edit(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the effect that hits this request, if any.
    pub(super) fn on_request(&self, address: &RequestInfo) -> Option<FaultAction> {
        self.take_action(FaultStage::Request, address, &address.name)
    }

    /// Returns the effect that hits this watch as it opens, if any.
    pub(super) fn on_opening(&self, address: &RequestInfo) -> Option<FaultAction> {
        self.take_action(FaultStage::Opening, address, &address.name)
    }

    /// Returns the effect that hits this line of a watch, if any.
    pub(super) fn on_line(&self, address: &RequestInfo, line: &WatchLine) -> Option<FaultAction> {
        self.take_action(
            FaultStage::Line,
            address,
            line.object["metadata"]["name"].as_str().unwrap_or_default(),
        )
    }

    /// Returns the newest revision that a watch of this kind sees while a lag is armed.
    pub(super) fn lag_revision(&self, address: &RequestInfo) -> Option<u64> {
        self.with_armed(|armed| {
            let lags = armed.iter().filter(|armed| armed.fault.matches(address, &address.name));
            lags.filter_map(|armed| {
                if let FaultAction::LagAt(revision) = armed.fault.action { Some(revision) } else { None }
            })
            .min()
        })
    }

    fn take_action(&self, stage: FaultStage, address: &RequestInfo, name: &str) -> Option<FaultAction> {
        self.with_armed(|armed| {
            let armed = armed.iter().find(|armed| {
                let ArmedFault { fault, seen, fired } = armed;
                fault.action.stage() == stage
                    && fault.matches(address, name)
                    && fault.times.is_none_or(|times| fired.load(Ordering::SeqCst) < times)
                    && seen.fetch_add(1, Ordering::SeqCst) >= fault.skip
            })?;
            armed.fired.fetch_add(1, Ordering::SeqCst);
            Some(armed.fault.action.clone())
        })
    }
}

/// The `Status` object of an injected code.
pub(super) fn injected_status(code: u16, retry_after: Option<u32>) -> Value {
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

/// The `Status` with which RBAC refuses a request.
pub(super) fn forbidden_status(address: &RequestInfo) -> Value {
    let RequestInfo { verb, group, plural, namespace, name, .. } = address;
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

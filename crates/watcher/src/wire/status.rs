//! `status`: the fields that rules know by name, and those that by their name tell how things are.

use std::borrow::Cow;

use readiness::{Condition, Count, Name, Place, Status, Word};

use super::cursor::Cursor;
use super::{conditions, containers};

/// So many texts, and so many numbers, are kept.
const KEPT: usize = 64;
/// So many bytes of a text are kept.
const WORD: usize = 160;
/// So many elements of a list are looked into.
const ELEMENTS: usize = 16;

/// Fields that are kept only to be compared.
#[derive(Default)]
pub(super) struct Pairs<'a> {
    current_revision: Option<Cow<'a, str>>,
    update_revision: Option<Cow<'a, str>>,
    current_healthy: Option<i64>,
    desired_healthy: Option<i64>,
}

impl Pairs<'_> {
    pub(super) fn compare(self, status: &mut Status) {
        let revisions = self.current_revision.zip(self.update_revision);
        status.revisions_match = revisions.map(|(current, update)| current == update);
        status.healthy = self.current_healthy.zip(self.desired_healthy);
    }
}

/// A status that is one word.
pub(super) fn text(status: &mut Status, text: &str) {
    let word = &text[..text.floor_char_boundary(WORD)];
    status.words.push(Word { path: Cow::Borrowed(""), word: word.into() });
}

pub(super) fn field<'a>(key: &str, value: &mut Cursor<'a>, status: &mut Status, pairs: &mut Pairs<'a>) {
    match key {
        "phase" => word(status, Cow::Borrowed("phase"), value),
        "conditions" => conditions::read(value, None, status),
        "observedGeneration" => status.observed = value.integer(),
        "containerStatuses" => containers::read(value, false, &mut status.containers),
        "initContainerStatuses" => containers::read(value, true, &mut status.containers),
        "currentRevision" => pairs.current_revision = value.string(),
        "updateRevision" => pairs.update_revision = value.string(),
        "currentHealthy" => pairs.current_healthy = value.integer(),
        "desiredHealthy" => pairs.desired_healthy = value.integer(),
        "loadBalancer" => status.addresses = addresses(value),
        "reason" => status.reason = value.beginning(WORD).map(Into::into),
        "message" => status.message = value.beginning(WORD * 2).map(Into::into),
        // Written of a pod only, and never a sign of anything.
        "hostIP" | "hostIPs" | "podIP" | "podIPs" | "qosClass" | "ephemeralContainerStatuses" => {}
        _ => {
            if !number(key, value, status) && !moment(key, value, status) {
                other(key, value, status);
            }
        }
    }
}

/// Numbers with a field of their own. `active` is a list where it is not a number.
fn number(key: &str, value: &mut Cursor<'_>, status: &mut Status) -> bool {
    let field = match key {
        "replicas" | "currentNumberScheduled" => &mut status.replicas,
        "readyReplicas" | "numberReady" => &mut status.ready,
        "updatedReplicas" | "updatedNumberScheduled" => &mut status.updated,
        "availableReplicas" | "numberAvailable" => &mut status.available,
        "fullyLabeledReplicas" => &mut status.labeled,
        "desiredNumberScheduled" => &mut status.desired,
        "succeeded" if value.peek() != b't' && value.peek() != b'f' => &mut status.succeeded,
        "active" if value.peek() == b'[' => {
            let mut listed = 0;
            value.elements(|_| listed += 1);
            status.active = Some(listed);
            return true;
        }
        "active" if value.peek().is_ascii_digit() => &mut status.active,
        _ => return false,
    };
    *field = value.integer().or(*field);
    true
}

fn moment(key: &str, value: &mut Cursor<'_>, status: &mut Status) -> bool {
    let field = match key {
        "startTime" | "startedAt" | "startTimestamp" => &mut status.started,
        "completionTime"
        | "completedAt"
        | "completionTimestamp"
        | "finishTime"
        | "finishedAt"
        | "endTime" => &mut status.finished,
        "lastScheduleTime" => &mut status.last_schedule,
        "lastSuccessfulTime" => &mut status.last_success,
        _ => return false,
    };
    *field = value.time().or(*field);
    true
}

/// A field that no rule knows by name.
fn other(key: &str, value: &mut Cursor<'_>, status: &mut Status) {
    match value.peek() {
        b'"' if readiness::tells(key) => word(status, Cow::Owned(key.to_owned()), value),
        b't' | b'f' => boolean(status, key, None, value),
        b'-' | b'0'..=b'9' if status.counts.len() < KEPT && readiness::counts(key) => {
            if let Some(number) = value.integer() {
                status.counts.push(Count { name: key.into(), value: number });
            }
        }
        b'{' if readiness::now(key) => below(status, key, value),
        b'[' if readiness::now(key) => {
            let mut at = 0;
            value.elements(|element| {
                if at < ELEMENTS && element.peek() == b'{' {
                    listed(status, &format!("{key}[{at}]"), element);
                }
                at += 1;
            });
        }
        _ => value.skip(),
    }
}

/// An object one level down.
fn below(status: &mut Status, path: &str, object: &mut Cursor<'_>) {
    object.members(|key, value| match value.peek() {
        b'[' | b'{' if key == "conditions" => conditions::read(value, Some(path), status),
        b'"' if readiness::tells_within(path, key) => {
            word(status, Cow::Owned(format!("{path}.{key}")), value);
        }
        b't' | b'f' => boolean(status, key, Some(path), value),
        _ => value.skip(),
    });
}

/// An element of a list: only conditions, for a list is mostly a history or an inventory.
fn listed(status: &mut Status, path: &str, object: &mut Cursor<'_>) {
    object.members(|key, value| {
        if key == "conditions" {
            conditions::read(value, Some(path), status);
        }
    });
}

fn word(status: &mut Status, path: Name, value: &mut Cursor<'_>) {
    if status.words.len() < KEPT
        && let Some(word) = value.beginning(WORD)
        && !word.trim().is_empty()
    {
        status.words.push(Word { path, word: word.trim().into() });
    }
}

fn boolean(status: &mut Status, key: &str, below: Option<&str>, value: &mut Cursor<'_>) {
    let condition =
        Condition { name: conditions::name(key.into()), status: value.truth(), ..Condition::default() };
    if status.conditions.len() < KEPT {
        status.conditions.push(Condition { place: Place::Field(below.map(Into::into)), ..condition });
    }
}

/// How many entries `loadBalancer.ingress` has.
fn addresses(object: &mut Cursor<'_>) -> Option<u32> {
    let mut addresses = None;
    object.members(|key, value| {
        if key == "ingress" {
            let mut count = 0;
            let is_list = value.elements(|_| count += 1);
            addresses = is_list.then_some(count);
        }
    });
    addresses
}

//! Which fields say how an object is, by the way they are named.

use super::lexicon::{Sense, sense};
use super::tokens::{first, last, tokens};

/// Does a text in a field of this name tell how the object is?
pub fn tells(field: &str) -> bool {
    let family = matches!(
        last(field).as_str(),
        "condition"
            | "conclusion"
            | "health"
            | "lifecycle"
            | "outcome"
            | "phase"
            | "result"
            | "robustness"
            | "stage"
            | "state"
            | "status"
            | "verdict"
    );
    (family && now(field))
        || is_error(field)
        // Its last word is the head: `currentVersion` is a version.
        || matches!(sense(last(field).as_str()), Some(Sense::Good | Sense::Bad | Sense::Paused))
}

/// Does a text in a field of this name, inside an object of that name, tell how the object is?
pub fn tells_within(path: &str, field: &str) -> bool {
    tells(field) || (is_error(path) && matches!(field, "message" | "reason" | "details" | "description"))
}

/// Is this about now, and about this object: not about what was, is wanted, or is observed elsewhere?
pub fn now(field: &str) -> bool {
    let head = first(field);
    let operation = tokens(field).any(|t| t.as_str() == "operation");
    match head.as_str() {
        "last" | "previous" => operation,
        "archived" | "desired" | "expected" | "history" | "initial" | "next" | "old" | "prior"
        | "requested" | "target" | "template" | "wanted" | "spec" => false,
        _ => last(field).as_str() != "history",
    }
}

/// Does a number in a field of this name count things that can be ready?
pub fn counts(field: &str) -> bool {
    tokens(field).any(|token| {
        matches!(
            token.as_str(),
            "available"
                | "brokers"
                | "desired"
                | "expected"
                | "healthy"
                | "instances"
                | "members"
                | "nodes"
                | "pods"
                | "ready"
                | "replicas"
                | "running"
                | "servers"
                | "shards"
                | "size"
                | "total"
                | "unavailable"
                | "unready"
                | "updated"
                | "workers"
        )
    })
}

/// How much a condition of this type says, so that the best are kept of too many.
pub fn weight(condition: &str) -> u8 {
    match Role::of(condition) {
        Some(Role::Verdict) => 3,
        Some(Role::Core) => 2,
        Some(_) => 1,
        None => 0,
    }
}

/// Does a text in this field say, by being there, that something is wrong?
pub(super) fn is_error(field: &str) -> bool {
    let mut words = tokens(field);
    let head = words.next().unwrap_or_default();
    let tail = words.next().map(|t| t.as_str().to_owned());
    matches!(
        (head.as_str(), tail.as_deref()),
        ("err" | "error" | "errors" | "failure", None)
            | ("err" | "error" | "failure", Some("message" | "msg" | "reason" | "messages" | "details"))
            | ("last", Some("error"))
    ) && words.next().is_none_or(|third| head.as_str() == "last" && third.as_str() == "message")
}

/// Is it one of the first steps of a way: `Scheduled`, `ControlPlaneInitialized`?
fn begins(condition: &str) -> bool {
    let negated = tokens(condition).any(|t| matches!(t.as_str(), "not" | "no" | "non"));
    let step = matches!(
        last(condition).as_str(),
        "initialized"
            | "initialised"
            | "validated"
            | "scheduled"
            | "started"
            | "submitted"
            | "admitted"
            | "launched"
    );
    step && !negated
}

/// Does it speak of the whole: one verb, with or without its particle (`Updating`, `ScalingUp`), or its reconciliation?
pub(super) fn whole(condition: &str) -> bool {
    let mut words = tokens(condition);
    let head = words.next().unwrap_or_default();
    let particle = |word: &str| matches!(word, "up" | "down" | "in" | "out" | "back" | "over");
    words.all(|word| particle(word.as_str())) || head.as_str().starts_with("reconcil")
}

/// What a condition's type means when it is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It sums the object up.
    Verdict,
    /// One of the main stations on the way.
    Core,
    /// A part of it is well.
    Part,
    /// The first steps: by themselves no sign that the rest is done.
    FirstStep,
    /// Something is wrong.
    Wrong,
    /// It is at work.
    Working,
    /// It is at rest on purpose.
    Resting,
    /// It is being taken down.
    Leaving,
}

impl Role {
    pub(super) fn of(condition: &str) -> Option<Role> {
        let single = tokens(condition).nth(1).is_none();
        let head = first(condition);
        match head.as_str() {
            "ready" | "available" | "healthy" | "succeeded" | "success" | "successful" | "complete"
            | "completed" | "finished" | "done" | "passed"
                if single =>
            {
                Some(Role::Verdict)
            }
            "accepted" | "active" | "applied" | "bound" | "configured" | "converged" | "deployed"
            | "established" | "installed" | "online" | "operational" | "programmed" | "provisioned"
            | "reconciled" | "released" | "running" | "stable" | "synced" | "synchronized"
            | "synchronised" | "valid" | "updated"
                if single =>
            {
                Some(Role::Core)
            }
            "ready" if condition.eq_ignore_ascii_case("readytouse") => Some(Role::Verdict),
            "resolved" | "fully" | "all" | "up" | "in" | "reconcile" | "reconciliation"
                if sense(condition) == Some(Sense::Good) =>
            {
                Some(Role::Core)
            }
            "created" if single => Some(Role::FirstStep),
            _ if begins(condition) => Some(Role::FirstStep),
            _ => match sense(condition)? {
                Sense::Good => Some(Role::Part),
                Sense::Bad => Some(Role::Wrong),
                Sense::Busy => Some(Role::Working),
                Sense::Paused => Some(Role::Resting),
                Sense::Leaving if single => Some(Role::Leaving),
                _ => None,
            },
        }
    }

    /// Is true the good answer?
    pub(super) fn positive(self) -> bool {
        matches!(self, Role::Verdict | Role::Core | Role::Part | Role::FirstStep)
    }
}

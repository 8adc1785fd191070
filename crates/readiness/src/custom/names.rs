//! Which fields say how an object is, by the way they are named.

use super::lexicon::{Sense, sense, sense_of};
use super::tokens::{first, last, words};

/// Does a text in a field of this name tell how the object is?
pub fn tells(field: &str) -> bool {
    words(field, tells_by)
}

fn tells_by(field: &[&str]) -> bool {
    let family = matches!(
        last(field),
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
    (family && is_now(field))
        || is_error(field)
        // Its last word is the head: `currentVersion` is a version.
        || matches!(sense(last(field)), Some(Sense::Good | Sense::Bad | Sense::Paused))
}

/// Does a text in a field of this name, inside an object of that name, tell how the object is?
pub fn tells_within(path: &str, field: &str) -> bool {
    tells(field)
        || (words(path, is_error) && matches!(field, "message" | "reason" | "details" | "description"))
}

/// Is this about now, and about this object: not about what was, is wanted, or is observed elsewhere?
pub fn now(field: &str) -> bool {
    words(field, is_now)
}

fn is_now(field: &[&str]) -> bool {
    match first(field) {
        "last" | "previous" => field.contains(&"operation"),
        "archived" | "desired" | "expected" | "history" | "initial" | "next" | "old" | "prior"
        | "requested" | "target" | "template" | "wanted" | "spec" => false,
        _ => last(field) != "history",
    }
}

/// Does a number in a field of this name count things that can be ready?
pub fn counts(field: &str) -> bool {
    words(field, |field| field.iter().any(|word| is_countable(word)))
}

fn is_countable(word: &str) -> bool {
    matches!(
        word,
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
pub(super) fn is_error(field: &[&str]) -> bool {
    matches!(
        field,
        ["err" | "error" | "errors" | "failure"]
            | ["err" | "error" | "failure", "message" | "msg" | "reason" | "messages" | "details"]
            | ["last", "error"]
            | ["last", "error", "message"]
    )
}

/// Is it one of the first steps of a way: `Scheduled`, `ControlPlaneInitialized`?
fn begins(condition: &[&str]) -> bool {
    let step = matches!(
        last(condition),
        "initialized"
            | "initialised"
            | "validated"
            | "scheduled"
            | "started"
            | "submitted"
            | "admitted"
            | "launched"
    );
    step && !condition.iter().any(|word| matches!(*word, "not" | "no" | "non"))
}

/// Does it speak of the whole: one verb, with or without its particle (`Updating`, `ScalingUp`), or its reconciliation?
pub(super) fn whole(condition: &[&str]) -> bool {
    let particle = |word: &&str| matches!(*word, "up" | "down" | "in" | "out" | "back" | "over");
    condition.iter().skip(1).all(particle) || first(condition).starts_with("reconcil")
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
        words(condition, |words| Role::by(condition, words))
    }

    /// The same where its words are known.
    pub(super) fn by(condition: &str, words: &[&str]) -> Option<Role> {
        let single = words.len() < 2;
        match first(words) {
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
                if sense_of(condition, words) == Some(Sense::Good) =>
            {
                Some(Role::Core)
            }
            "created" if single => Some(Role::FirstStep),
            _ if begins(words) => Some(Role::FirstStep),
            _ => match sense_of(condition, words)? {
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

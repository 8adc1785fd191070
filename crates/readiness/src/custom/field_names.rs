//! Classification of fields by name: which of them describe the object's state.

use super::condition_role::{ConditionRole, names_change};
use super::lexicon::{WordSense, sense_of_text};
use super::tokens::{first_word, last_word, with_words};

/// Returns `true` if a text in a field of this name describes the object's state.
pub fn is_state_field(field: &str) -> bool {
    with_words(field, has_state_words)
}

fn has_state_words(field: &[&str]) -> bool {
    let field = without_form(field);
    (is_state_noun(last_word(field)) && has_current_words(field))
        || is_error_field(field)
        || names_trouble(field)
        // The last word is the head: `currentVersion` is a version.
        || matches!(sense_of_text(last_word(field)), Some(WordSense::Good | WordSense::Bad | WordSense::Paused))
}

/// Returns `true` for the nouns that name a state.
pub(super) fn is_state_noun(word: &str) -> bool {
    matches!(
        word,
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
            | "validation"
            | "verdict"
    )
}

/// Returns the noun of a name without what only says in which form the state is told: `currentStateSummary`.
fn without_form<'w, 'a>(field: &'w [&'a str]) -> &'w [&'a str] {
    match field {
        [rest @ .., "summary" | "code"] if is_state_noun(last_word(rest)) => rest,
        _ => field,
    }
}

/// Returns `true` if a text in a field of this name, inside an object of that name, describes the object's state.
pub fn is_state_field_within(path: &str, field: &str) -> bool {
    is_state_field(field)
        || (with_words(path, is_error_field)
            && matches!(field, "message" | "reason" | "details" | "description"))
        || field == "code" && with_words(path, |path| is_state_noun(last_word(path)))
}

/// Returns `true` if the elements of a list or a map of this name are parts of the object, not its history.
pub fn is_part_field(field: &str) -> bool {
    is_current_field(field) && !with_words(field, |words| is_record_name(last_word(words)))
}

/// Names of what an object keeps of its past, or lists without being made of it.
fn is_record_name(word: &str) -> bool {
    matches!(
        word,
        "attempts"
            | "backups"
            | "events"
            | "executions"
            | "history"
            | "jobs"
            | "log"
            | "logs"
            | "operations"
            | "releases"
            | "revisions"
            | "runs"
            | "snapshots"
            | "steps"
            | "times"
            | "timestamps"
            | "transitions"
            | "versions"
    )
}

/// Returns `true` if a text in a field of this name describes the state of a part of the object.
pub fn is_part_state_field(path: &str, field: &str) -> bool {
    let record = path.split(['.', '[']).any(|name| !name.ends_with(']') && !is_part_field(name));
    !record
        && with_words(field, |words| {
            matches!(last_word(words), "phase" | "state" | "status" | "health" | "result" | "outcome")
                && has_current_words(words)
        })
}

/// Returns what a boolean field of this name says of a part of the object: `true` if the part is well; `None` if the
/// name does not say.
pub fn part_flag_says(path: &str, field: &str, value: bool) -> Option<bool> {
    let record = path.split(['.', '[']).any(|name| !name.ends_with(']') && !is_part_field(name));
    if record {
        return None;
    }
    match ConditionRole::from_condition_type(field)? {
        ConditionRole::Verdict | ConditionRole::Core => Some(value),
        ConditionRole::Wrong if value => Some(false),
        _ => None,
    }
}

/// Returns `true` if the elements of a list or a map of this name are there only where something is wrong: `failedMembers`,
/// `errors`.
pub fn is_trouble_list(field: &str) -> bool {
    is_part_field(field)
        && with_words(field, |words| {
            first_word(words) != "last"
                && words.iter().any(|word| {
                    matches!(
                        *word,
                        "failed"
                            | "failures"
                            | "errors"
                            | "missing"
                            | "problems"
                            | "rejected"
                            | "unavailable"
                            | "unhealthy"
                            | "unready"
                    )
                })
        })
}

/// Returns `true` for the words for bringing about what the spec asks for; not for a backup or a run.
pub(super) fn names_attempt(word: &str) -> bool {
    matches!(
        word,
        "apply"
            | "deploy"
            | "deployment"
            | "operation"
            | "conversion"
            | "reconcile"
            | "reconciliation"
            | "reload"
            | "rollout"
            | "sync"
            | "update"
            | "upgrade"
    )
}

/// Returns `true` if a list of this name holds conditions, of the object or of one respect of it: `outputConditions`. Those of its
/// backups tell of these.
pub fn is_condition_list(field: &str) -> bool {
    field.ends_with("Conditions")
        && is_current_field(field)
        && with_words(field, |words| !words.iter().any(|word| names_copy(word)))
}

/// Returns `true` for the words for copies of what an object holds: that one could not be made says nothing of the object itself.
fn names_copy(word: &str) -> bool {
    matches!(word, "backup" | "backups" | "snapshot" | "snapshots")
}

/// Returns `true` if a condition of this name says how the making of a copy of the object ended: `BackupFailed`, but not
/// `BackupStorageReady`.
pub(super) fn tells_of_copies(condition: &[&str]) -> bool {
    let has_ended = matches!(
        last_word(condition),
        "aborted"
            | "complete"
            | "completed"
            | "done"
            | "error"
            | "errored"
            | "failed"
            | "failing"
            | "failure"
            | "finished"
            | "succeeded"
            | "success"
            | "successful"
    );
    has_ended && condition.iter().any(|word| names_copy(word))
}

/// Returns `true` if the field is about the present state of this object, not about the past, the desired state or
/// another object.
pub fn is_current_field(field: &str) -> bool {
    with_words(field, has_current_words)
}

fn has_current_words(field: &[&str]) -> bool {
    match first_word(field) {
        // What was observed last is what is known now.
        "last" if matches!(field.get(1), Some(&("observed" | "known" | "reported" | "seen"))) => true,
        // So is how the last attempt to bring it about ended.
        "last" if field.get(1).is_some_and(|word| names_attempt(word)) => true,
        "last" | "previous" => field.contains(&"operation"),
        "archived" | "desired" | "expected" | "history" | "initial" | "next" | "old" | "prior"
        | "requested" | "target" | "template" | "wanted" | "spec" => false,
        _ => last_word(field) != "history",
    }
}

/// Returns `true` if a number in a field of this name counts things that can be ready.
pub fn is_count_field(field: &str) -> bool {
    with_words(field, |field| field.iter().any(|word| is_countable(word)))
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
            | "unhealthy"
            | "unready"
            | "tasks"
            | "updated"
            | "workers"
    )
}

/// Priority of a condition by its type, used to keep the most informative ones if there are too many.
pub fn condition_priority(condition: &str) -> u8 {
    match ConditionRole::from_condition_type(condition) {
        Some(ConditionRole::Verdict) => 3,
        Some(ConditionRole::Core) => 2,
        Some(_) => 1,
        None => 0,
    }
}

/// Returns `true` if the presence of a text in this field means that something is wrong.
pub(super) fn is_error_field(field: &[&str]) -> bool {
    matches!(
        field,
        ["err" | "error" | "errors" | "failure"]
            | [
                "err" | "error" | "failure",
                "message" | "msg" | "reason" | "messages" | "details" | "description"
            ]
            | ["last", "error"]
            | ["last", "error", "message"]
    )
}

/// Returns `true` if the name is that of some error, or of a text about it: `reconcileError`, `syncFailureMessage`.
pub(super) fn names_trouble(field: &[&str]) -> bool {
    matches!(
        field,
        [.., "error" | "errors" | "exception" | "failure" | "failures"]
            | [
                ..,
                "error" | "failure",
                "message" | "msg" | "reason" | "messages" | "details" | "description"
            ]
    )
}

/// Returns `true` if the condition is about the whole object: one verb, with or without its particle (`Updating`,
/// `ScalingUp`), or its reconciliation.
pub(super) fn is_about_whole(condition: &[&str]) -> bool {
    let particle = |word: &&str| {
        matches!(
            *word,
            "up" | "down"
                | "in"
                | "out"
                | "back"
                | "over"
                | "config"
                | "configuration"
                | "image"
                | "release"
                | "version"
        )
    };
    // A change that was asked for and is not in effect: `RestartRequired`, `FileSystemResizePending`.
    let owed =
        matches!(condition, [.., what, "needed" | "pending" | "required" | "ongoing"] if names_change(what));
    // Or one that goes on: `UpgradeInProgress`, `RollingUpdate`.
    let goes_on = matches!(condition, [what, "in", "progress"] if names_change(what))
        || matches!(condition, ["rolling", what] | [what] if names_change(what));
    owed || goes_on || condition.iter().skip(1).all(particle) || first_word(condition).starts_with("reconcil")
}

/// Returns `true` if this is the name of a state field, and not of a field that is true or false.
pub(super) fn is_state_name(field: &[&str]) -> bool {
    without_form(field).iter().all(|word| {
        matches!(
            *word,
            "phase"
                | "state"
                | "status"
                | "health"
                | "stage"
                | "condition"
                | "result"
                | "outcome"
                | "lifecycle"
                | "conclusion"
                // Qualifiers of the state: the object's own, and current.
                | "aggregate"
                | "cluster"
                | "current"
                | "operational"
                | "overall"
                | "power"
                | "printable"
                | "provisioning"
                | "resource"
        )
    })
}

/// Returns `true` if the field summarises the object.
pub(super) fn is_summary_path(path: &str) -> bool {
    path.split('.').all(|part| matches!(part, "summary" | "code") || with_words(part, is_state_name))
}

/// Returns `true` if this is the path of an element of a list or of a map of objects.
pub(super) fn is_part_path(path: &str) -> bool {
    path.contains(['[', '.'])
}

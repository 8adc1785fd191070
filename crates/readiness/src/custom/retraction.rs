//! What an operator says beside a condition that holds, where it takes it back.
//!
//! A condition means what its name says, unless its reason or its message says otherwise: `Available=True, Degraded`,
//! `Synced=True, Updating`, `Ready=True: waiting for the database`.

use super::lexicon::{WordSense, sense_of_words};
use super::tokens::with_words;

/// Returns what the reason of a condition that holds says instead; `None` if it does not contradict the condition.
pub(super) fn reason_retracts(reason: &str) -> Option<WordSense> {
    with_words(reason, |words| {
        // Nearly every reason that is read here is a good one: a few words are looked for before the whole lexicon is.
        match sense_of_words(reason, words)? {
            WordSense::Good | WordSense::Unknown => None,
            WordSense::Bad => Some(WordSense::Bad),
            // Other words in -ing may be what a healthy object does all the time.
            sense => words.iter().any(|word| names_rest(word) || names_work(word)).then_some(sense),
        }
    })
}

/// Returns `true` for the words for what was put to rest, or waits for the word of a person.
pub(super) fn names_rest(word: &str) -> bool {
    matches!(word, "approval" | "confirmation" | "hibernated" | "paused" | "suspended")
}

/// Returns `true` for the words for work on the object itself that is not done. Other words in -ing may be what a healthy
/// object does all the time.
pub(super) fn names_work(word: &str) -> bool {
    matches!(
        word,
        "creating"
            | "deleting"
            | "deploying"
            | "incomplete"
            | "initializing"
            | "installing"
            | "migrating"
            | "not"
            | "partial"
            | "partially"
            | "pending"
            | "progressing"
            | "provisioning"
            | "recovering"
            | "restarting"
            | "rolling"
            | "scaling"
            | "starting"
            | "stopping"
            | "terminating"
            | "updating"
            | "upgrading"
            | "waiting"
    )
}

/// Like [`reason_retracts`], for a message. It is prose for people: only the plainest phrases count, and none behind a
/// negation.
pub(super) fn message_retracts(message: &str) -> Option<WordSense> {
    if begins_with_error(message) {
        return Some(WordSense::Bad);
    }
    let mut before = "";
    let mut words = message.split(' ');
    while let Some(word) = words.next() {
        match (before, word) {
            ("no" | "not" | "never" | "without" | "0", _) if word != "ready" => return None,
            ("failed" | "Failed" | "unable" | "Unable", "to") => return Some(WordSense::Bad),
            ("waiting" | "Waiting", "for") if words.next().is_some_and(is_work_to_come) => return None,
            ("waiting" | "Waiting", "for" | "to" | "on") | ("not", "ready") => return Some(WordSense::Busy),
            _ => before = word,
        }
    }
    None
}

/// Returns `true` if what is waited for is work, which a healthy object does all the time: "waiting for connections".
fn is_work_to_come(word: &str) -> bool {
    matches!(
        word.trim_end_matches('.'),
        "changes"
            | "commits"
            | "connections"
            | "events"
            | "jobs"
            | "messages"
            | "new"
            | "requests"
            | "tasks"
            | "work"
    )
}

/// Returns `true` if a message begins by calling itself an error: "Error: checksum mismatch".
pub(super) fn begins_with_error(message: &str) -> bool {
    let (first, rest) = message.split_at_checked("error:".len()).unwrap_or(("", ""));
    first.eq_ignore_ascii_case("error:") && !rest.trim().is_empty()
}

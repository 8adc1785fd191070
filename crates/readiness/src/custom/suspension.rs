//! The many spellings of suspension in what a person asks for: words, switches and annotations.

use super::lexicon::{WordSense, sense_of_text};
use super::tokens::with_words;

/// Returns `true` if this word for a wanted state means that the object is to be at rest: `Halted`, `Suspended`, `Off`.
pub fn says_at_rest(word: &str) -> bool {
    word.eq_ignore_ascii_case("off") || sense_of_text(word) == Some(WordSense::Paused)
}

/// Returns `true` if a switch of this name in `spec` puts the object to rest: `reconciliationPaused`, `suspendDispatching`;
/// not `pauseOnFailure`, which says what is to happen when.
pub fn is_rest_switch(field: &str) -> bool {
    let rested = |word: &str| matches!(word, "cordoned" | "paused" | "suspended" | "hibernated" | "stopped");
    let rests = |word: &str| rested(word) || matches!(word, "suspend" | "pause" | "hibernate");
    let when = |word: &str| {
        matches!(word, "on" | "after" | "at" | "before" | "between" | "for" | "if" | "until" | "when")
    };
    with_words(field, |words| match words {
        [.., last] if rested(last) => true,
        [first, second] => rests(first) && !when(second),
        _ => false,
    })
}

/// Returns `true` if an annotation of this name can pause the controller of an object: `example.com/paused`.
pub fn is_pausing_annotation(key: &str) -> bool {
    key.rsplit_once('/').is_some_and(|(_, name)| pausing_words(name).is_some())
}

/// Returns `true` if this value of such an annotation pauses.
pub fn says_paused(key: &str, value: &str) -> bool {
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    let pauses = |word: &&str| *word == ANY_VALUE || value.eq_ignore_ascii_case(word);
    pausing_words(name).is_some_and(|values| values.iter().any(pauses))
}

/// Stands for every value of an annotation.
const ANY_VALUE: &str = "*";

/// The values of an annotation of this name that pause: `paused: "true"`, `hibernation: "on"`,
/// `reconciliationLoop: disabled`.
fn pausing_words(name: &str) -> Option<&'static [&'static str]> {
    match name {
        // Of Cluster API its presence is enough.
        "paused" => Some(&["", "true", "on", "yes", "1"]),
        "pause"
        | "pause-reconciliation"
        | "reconciliation-paused"
        | "suspend"
        | "suspended"
        | "hibernation" => Some(&["true", "on", "yes", "enabled", "1"]),
        // The number at which KEDA holds what it scales.
        "paused-replicas" => Some(&[ANY_VALUE]),
        "skip-reconcile" => Some(&["true"]),
        "reconcile-policy" => Some(&["skip"]),
        // Not `reconcile: disabled`, which tells the applier of an object to leave it alone.
        "reconciliation" | "reconciliationLoop" => Some(&["false", "off", "no", "disabled"]),
        _ => None,
    }
}

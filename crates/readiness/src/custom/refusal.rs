//! Why something that should be true is not.

use super::lexicon::{WordSense, is_wrong_if_false, message_sense, only_negates, sense_of_text};
use super::retraction::begins_with_error;
use super::signal::SignalBasis;
use super::tokens::{first_word, with_words};
use crate::facts::Facts;

/// Returns why a condition that should be true is not: by its reason, else by its message, else by its name.
pub(super) fn refusal_sense(
    name: &str,
    words: &[&str],
    reason: &str,
    message: &str,
) -> (WordSense, SignalBasis) {
    match sense_of_text(reason).filter(|_| !echoes_name(name, reason)) {
        // It names the step that did not succeed, or only repeats that something is not ready.
        Some(WordSense::Busy)
            if begins_with_error(message)
                || with_words(reason, only_negates) && message_sense(message) == Some(WordSense::Bad) =>
        {
            (WordSense::Bad, SignalBasis::Message)
        }
        Some(sense) if sense != WordSense::Good && sense != WordSense::Unknown => {
            (sense, SignalBasis::Stated)
        }
        // Another object holds it: `DomainAlreadyClaimed`, `AlreadyInUse`.
        _ if with_words(reason, |reason| reason.contains(&"already")) => {
            (WordSense::Bad, SignalBasis::Stated)
        }
        _ => match message_sense(message) {
            Some(sense) => (sense, SignalBasis::Message),
            // `HasSucceeded` asks a question, and that the answer is no is no error.
            None if is_wrong_if_false(words) && !asks(words) => (WordSense::Bad, SignalBasis::Name),
            None => (WordSense::Busy, SignalBasis::Name),
        },
    }
}

/// Returns `true` if the reason only negates the name: `Available=False, Unavailable`.
fn echoes_name(name: &str, reason: &str) -> bool {
    let rest = ["Not", "Un", "not", "un"].iter().find_map(|prefix| reason.strip_prefix(prefix));
    let answers = |verb: &str| {
        let asked = name.strip_prefix(verb)?;
        let said = reason.strip_prefix(verb)?.strip_prefix("Not")?;
        Some(said.eq_ignore_ascii_case(asked))
    };
    rest.is_some_and(|rest| rest.eq_ignore_ascii_case(name))
        || answers("Has").or_else(|| answers("Is")).unwrap_or(false)
}

/// Returns `true` if a condition's name is a question: `HasSucceeded`, `IsRunning`.
fn asks(name: &[&str]) -> bool {
    name.len() > 1 && matches!(first_word(name), "has" | "is")
}

/// Like [`refusal_sense`], for a field, which has no reason except that of the whole status.
pub(super) fn field_refusal_sense(
    name: &str,
    words: &[&str],
    below: bool,
    facts: &Facts,
) -> (WordSense, SignalBasis) {
    let whole =
        |text: &'_ Option<Box<str>>| -> Box<str> { text.clone().filter(|_| !below).unwrap_or_default() };
    refusal_sense(name, words, &whole(&facts.status.reason), &whole(&facts.status.message))
}

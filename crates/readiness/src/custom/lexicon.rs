//! Lexicon of the words that objects use for their state.
//!
//! The words are those of conditions, phases and reasons that are documented: in the API conventions of Kubernetes, of pods
//! and containers (`CrashLoopBackOff`), the Gateway API (`Programmed`), Cluster API, Crossplane, Ceph (`HEALTH_WARN`),
//! Elasticsearch (`yellow`), AWS (`CREATE_COMPLETE`, `in-use`), Azure (`deallocated`), OpenStack (`SHUTOFF`), Antrea
//! (`Realized`), the status codes of gRPC (`Unauthenticated`, `Unimplemented`), and of the kinds in `tests/cases/tables`.

use std::sync::LazyLock;

use super::phrase_counts::counts_too_few;
use super::tokens::{WordToken, last_word, split_tokens, with_words};
use super::words::{
    BAD_WORDS, BUSY_WORDS, END_WORDS, GOOD_WORDS, LEAVING_WORDS, NOT_STATE_WORDS, PAUSED_WORDS,
    UNKNOWN_WORDS, WRONG_IF_FALSE_WORDS,
};

/// Meaning of a word for the object that uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordSense {
    /// The object is healthy.
    Good,
    /// The object is progressing.
    Busy,
    /// Something is wrong.
    Bad,
    /// The object is paused on purpose.
    Paused,
    /// The object is being removed, or is gone.
    Leaving,
    /// The object does not know its state.
    Unknown,
}

use WordSense::{Bad, Busy, Good, Leaving, Paused, Unknown};

/// One entry of the lexicon.
#[derive(Clone, Copy, Debug)]
struct LexiconEntry {
    word: &'static str,
    sense: WordSense,
    /// The word is one of [`WRONG_IF_FALSE_WORDS`].
    wrong_if_false: bool,
    /// The word is one of [`END_WORDS`].
    ends: bool,
}

/// Longest text that is read as the cause at the end of a message, in bytes.
const MAX_CAUSE_BYTES: usize = 48;
const LETTER_COUNT: usize = 26;
/// Length of the longest word in the lexicon, in bytes.
const MAX_LEXICON_WORD_BYTES: usize = 20;

/// All words, indexed by first letter and length; the few words of one bucket are compared one by one.
struct WordLexicon {
    sorted: Vec<LexiconEntry>,
    begin: Vec<u16>,
}

impl WordLexicon {
    fn slot_of(word: &str) -> Option<usize> {
        let letter = usize::from(word.as_bytes().first()?.checked_sub(b'a')?);
        (letter < LETTER_COUNT && word.len() <= MAX_LEXICON_WORD_BYTES)
            .then_some(letter * MAX_LEXICON_WORD_BYTES + word.len() - 1)
    }

    fn find_word(&self, word: &str) -> Option<&LexiconEntry> {
        let place = WordLexicon::slot_of(word)?;
        let (from, to) = (usize::from(self.begin[place]), usize::from(self.begin[place + 1]));
        self.sorted[from..to].iter().find(|known| known.word == word)
    }
}

static LEXICON: LazyLock<WordLexicon> = LazyLock::new(|| {
    let groups = [
        (GOOD_WORDS, Good),
        (BUSY_WORDS, Busy),
        (BAD_WORDS, Bad),
        (PAUSED_WORDS, Paused),
        (LEAVING_WORDS, Leaving),
        (UNKNOWN_WORDS, Unknown),
    ];
    let known = |word, sense| LexiconEntry {
        word,
        sense,
        wrong_if_false: is_listed(WRONG_IF_FALSE_WORDS, word),
        ends: is_listed(END_WORDS, word),
    };
    let mut sorted: Vec<_> = groups
        .iter()
        .flat_map(|(words, sense)| words.split_whitespace().map(move |word| known(word, *sense)))
        .collect();
    sorted.sort_unstable_by_key(|known| (WordLexicon::slot_of(known.word), known.word));
    let before = |place: usize| {
        let count = sorted.partition_point(|known| WordLexicon::slot_of(known.word) < Some(place));
        u16::try_from(count).expect("invariant: the lexicon has fewer than 2^16 words")
    };
    let begin = (0..=LETTER_COUNT * MAX_LEXICON_WORD_BYTES).map(before).collect();
    WordLexicon { sorted, begin }
});

fn is_listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

/// Returns the sense of one word.
fn word_sense(word: &str) -> Option<WordSense> {
    if let Some(known) = LEXICON.find_word(word) {
        return Some(known.sense);
    }
    let base = ["not", "non", "un", "dis"].iter().find_map(|prefix| word.strip_prefix(prefix));
    match base.and_then(|base| LEXICON.find_word(base)) {
        Some(base) if base.sense == Good => negated_sense(Good, base.word),
        None if word.len() > 5 && word.ends_with("ing") && !is_listed(NOT_STATE_WORDS, word) => Some(Busy),
        Some(_) | None => None,
    }
}

/// Returns the sense of words that have a meaning only in combination.
fn compound_sense(before: [&str; 2], word: &str) -> Option<WordSense> {
    match (before[0], before[1], word) {
        (_, "in", "sync" | "service" | "use") | ("up", "to", "date") | (_, "at", "latest") | (_, "powered", "on") | (_, "well", "formed") => {
            Some(Good)
        }
        (_, "in", "progress")
        | ("out", "of", "sync" | "date")
        | (_, "under", "replicated" | "provisioned")
        // The next step is still to come.
        | (
            "ready",
            "to" | "for",
            "apply" | "boot" | "deploy" | "install" | "launch" | "migrate" | "provision" | "start" | "upgrade",
        ) => Some(Busy),
        // What is done to it now is not done: "is being restarted".
        (_, "being", word)
            if word.ends_with("ed") && matches!(word_sense(word), None | Some(Good | Busy)) =>
        {
            Some(Busy)
        }
        (_, "back", "off")
        | (_, "split", "brain")
        | (_, "already", "claimed" | "exists" | "taken" | "used")
        | ("out", "of", "service")
        | (_, "limit", "reached")
        | (_, "timed" | "time", "out")
        | (_, "rolled" | "roll", "back") => Some(Bad),
        (_, "scaled" | "shut", "down")
        | (_, "on", "hold")
        | (_, "to", "zero")
        | (_, "powered" | "switched" | "turned", "off")
        // It goes on when a person says so.
        | (
            _,
            "awaiting" | "manual" | "needs" | "pending" | "require" | "requires" | "requiring",
            "approval" | "confirmation",
        )
        | ("wait" | "waiting", "for", "approval" | "confirmation") => Some(Paused),
        _ => None,
    }
}

fn negated_sense(sense: WordSense, word: &str) -> Option<WordSense> {
    match sense {
        Good if LEXICON.find_word(word).is_some_and(|known| known.wrong_if_false) => Some(Bad),
        Good => Some(Busy),
        Bad => Some(Good),
        _ => None,
    }
}

/// Returns the sense of a name or a short phrase.
///
/// An error outweighs everything else. Otherwise the last word is the head (`ProvisioningSucceeded`), unless the phrase
/// waits for something or is about a part only.
pub(super) fn sense_of_text(text: &str) -> Option<WordSense> {
    if text.is_empty() {
        return None;
    }
    with_words(text, |words| sense_of_words(text, words))
}

/// Like [`sense_of_text`], for text that is already split into words.
pub(super) fn sense_of_words(text: &str, words: &[&str]) -> Option<WordSense> {
    // Next to other words these are only directions.
    if ["up", "on", "open"].iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Some(Good);
    } else if text.eq_ignore_ascii_case("down") {
        return Some(Bad);
    }
    let sentence = text.contains(' ');
    let mut negating = false;
    let (mut waits, mut held, mut late, mut seen) = (false, false, false, 0);
    let mut before = [""; 2];
    let mut head = None;
    for word in words.iter().copied() {
        if matches!(word, "not" | "no" | "non" | "nothing" | "never" | "without" | "isnt" | "arent" | "wasnt")
        {
            negating = true;
            continue;
        }
        if negating && matches!(word, "enough" | "found" | "matched" | "matching" | "such") {
            return Some(Bad);
        }
        seen += 1;
        let compound = compound_sense(before, word);
        before = [before[1], word];
        let Some(plain) = compound.or_else(|| word_sense(word)) else { continue };
        // On its own the word is an error; `MinimumReplicasUnavailable` means only not yet.
        late |= word == "unavailable";
        let meant = if negating { negated_sense(plain, word) } else { Some(plain) };
        negating = false;
        if meant == Some(Bad) && word != "unavailable" {
            return Some(Bad);
        }
        // "Waiting for x to become active", "Setting up the primary".
        waits |= sentence && seen == 1 && meant == Some(Busy);
        waits |= matches!(
            word,
            "waiting" | "wait" | "awaiting" | "pending" | "partial" | "partially" | "incomplete"
        );
        head = meant.or(head);
        held |= compound == Some(Paused);
    }
    match head {
        Some(Paused) if held => Some(Paused),
        _ if late => Some(if seen == 1 { Bad } else { Busy }),
        _ if waits => Some(Busy),
        Some(Good) if seen > 1 && counts_too_few(text, words, |word| word_sense(word) == Some(Good)) => {
            Some(Busy)
        }
        head => head,
    }
}

/// Returns `true` if the text says that something else is running, as in `RunningMigrations`.
pub(super) fn runs_something(text: &str) -> bool {
    // Only the first two words are read: a message may be long.
    let mut words = split_tokens(text);
    let runs = words.next().is_some_and(|word| word.as_str() == "running");
    let object = |word: &WordToken| !word.as_str().bytes().all(|b| b.is_ascii_digit());
    runs && words.next().is_some_and(|word| object(&word) && word_sense(word.as_str()).is_none())
}

/// Returns `true` if the words are about a first step, of the object or of a part of it: `Initialized`,
/// `ResourcesCreated`.
pub(super) fn says_begun(words: &[&str]) -> bool {
    matches!(last_word(words), "created" | "initialized" | "initialised")
}

/// Returns the first sense found in a message for people: an error, or something that is being waited for. What stands
/// behind "because" is the cause, and comes first: `x is not ready because "ReconciliationError"`.
pub(super) fn message_sense(message: &str) -> Option<WordSense> {
    if let Some((_, cause)) = message.split_once(" because ")
        && message_sense(cause) == Some(Bad)
    {
        return Some(Bad);
    }
    // Errors are wrapped with their cause last: "while creating x: permission denied".
    if let Some((_, cause)) = message.rsplit_once(": ")
        && cause.len() <= MAX_CAUSE_BYTES
        && sense_of_text(cause) == Some(Bad)
    {
        return Some(Bad);
    }
    let mut negating = false;
    for token in split_tokens(message) {
        let word = token.as_str();
        match word {
            "not" | "no" | "without" | "doesnt" | "didnt" | "isnt" => {
                negating = true;
                continue;
            }
            "found" | "exist" | "exists" | "allowed" | "permitted" | "supported" if negating => {
                return Some(Bad);
            }
            _ => {}
        }
        match word_sense(word) {
            Some(Bad) if !negating => return Some(Bad),
            Some(Busy) => return Some(Busy),
            Some(Good) if negating => return negated_sense(Good, word),
            _ => {}
        }
        negating = false;
    }
    None
}

/// Returns `true` if the words only say that something good does not hold yet: `NotReady`, `ReplicasNotReady`.
pub(super) fn only_negates(words: &[&str]) -> bool {
    words.len() > 1
        && words[words.len() - 2] == "not"
        && LEXICON.find_word(last_word(words)).is_some_and(|known| known.sense == Good)
}

/// Returns `true` if a false condition of this name is an error and not merely a delay.
pub(super) fn is_wrong_if_false(words: &[&str]) -> bool {
    words.iter().any(|word| LEXICON.find_word(word).is_some_and(|known| known.wrong_if_false))
}

/// Returns `true` if the words say that something completed.
pub(super) fn says_ended(words: &[&str]) -> bool {
    words.iter().any(|word| LEXICON.find_word(word).is_some_and(|known| known.ends))
}

/// Returns `true` if the text says that the object failed, not merely that something is wrong.
pub(super) fn says_failed(text: &str) -> bool {
    with_words(text, |words| {
        words.iter().any(|word| matches!(*word, "failed" | "failure" | "aborted" | "cancelled" | "canceled"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_has_two_senses() {
        for pair in LEXICON.sorted.windows(2) {
            assert_ne!(pair[0].word, pair[1].word);
        }
    }

    #[test]
    fn every_word_is_found_with_what_is_noted_of_it() {
        for known in &LEXICON.sorted {
            assert_eq!(LEXICON.find_word(known.word).map(|found| found.word), Some(known.word));
        }
        let noted = |list: &'static str, note: fn(&LexiconEntry) -> bool| {
            for word in list.split_whitespace() {
                assert!(LEXICON.find_word(word).is_some_and(note), "{word}");
            }
        };
        noted(WRONG_IF_FALSE_WORDS, |known| known.wrong_if_false);
        noted(END_WORDS, |known| known.ends);
    }

    #[test]
    fn phrases_mean_what_a_reader_takes_them_to_mean() {
        let cases: [(Option<WordSense>, &str); 6] = [
            (
                Some(Good),
                "Ready|RUNNING|ok|ProvisioningSucceeded|CREATE_COMPLETE|up-to-date state: current|NoErrors|not failed|Cluster in healthy state|NewReplicaSetAvailable|MonitoringReady|IN_SERVICE|in-use|AtLatestKnown|open",
            ),
            (
                Some(Busy),
                "NotReady|Pending|IN_PROGRESS|CREATE_IN_PROGRESS|WaitingForReady|PartiallyAvailable|Creating|Rebalancing|Setting up primary|unready|NotAvailable|Reticulating|Switchover|OutOfSync|PendingUpgrade",
            ),
            (
                Some(Bad),
                "CreateFailed|FAILED|ImagePullBackOff|Unhealthy|NotHealthy|PartiallyFailed|InvalidSpec|SecretNotFound|CompletedWithErrors|TimedOut error|Unavailable|NotSupported|OutOfService|split-brain|NotAllowed|NonCompliant|NoMatchingNode",
            ),
            (
                Some(Paused),
                "Paused|SUSPENDED|Stopped|Hibernated|RequiresApproval|waiting-for-approval|PoweredOff",
            ),
            (Some(Leaving), "Deleting|Terminated|Uninstalling"),
            (None, "Blue|Primary|v1.2.3|Monitoring|eu-central-1|NotPaused"),
        ];
        for (expected, phrases) in cases {
            for phrase in phrases.split('|') {
                assert_eq!(sense_of_text(phrase), expected, "{phrase}");
            }
        }
    }

    #[test]
    fn a_message_tells_late_from_wrong() {
        for wrong in [
            "failed to create: x",
            "secret \"a\" not found",
            "Cannot reach db",
            "quota exceeded",
            "does not exist: it is not found",
        ] {
            assert_eq!(message_sense(wrong), Some(Bad), "{wrong}");
        }
        for late in
            ["waiting for database", "2 of 3 nodes are not ready", "Creating bucket", "pending approval"]
        {
            assert_eq!(message_sense(late), Some(Busy), "{late}");
        }
        assert_eq!(message_sense("no errors"), None);
    }
}

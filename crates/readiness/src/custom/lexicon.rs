//! What the words mean that objects use for how they are.

use std::sync::LazyLock;

use super::tokens::{Token, last, tokens, words};

/// What a word says of the object that uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sense {
    /// All is well.
    Good,
    /// On its way.
    Busy,
    /// Something is wrong.
    Bad,
    /// Put to rest on purpose.
    Paused,
    /// Being taken down, or gone.
    Leaving,
    /// It does not know.
    Unknown,
}

use Sense::{Bad, Busy, Good, Leaving, Paused, Unknown};

const GOOD: &str = "accepted active activated admitted adopted alive allocated allowed applied approved assigned associated \
    attached authenticated authorized available bound built certified claimed compatible complete completed configured conformant \
    compliant connected contactable converged created current delivered deployed done effective elected enabled enforced ensured established executed exported \
    fine finished found fulfilled functional functioning good granted green healthy idle imported initialised initialized installed insync issued joined \
    launched leased linked listening live loaded merged met mirrored mounted normal ok okay online operational optimal pass passed passing \
    peered permitted processed programmed promoted propagated protected provisioned published reachable ready reconciled registered \
    replicated reserved resolved responding restored running satisfied saved secured serving settled signed stable started steady succeeded \
    success successful successfully supported synced synchronised synchronized unlocked unsealed updated upgraded uploaded \
    uptodate valid validated verified working";

const BUSY: &str = "acquiring activating adding allocating applying assigning attaching awaited awaiting backingoff binding \
    bootstrap bootstrapping building canary claiming cloning configuring connecting converging cooldown copying creating deploying desynced detaching \
    downloading draining drifted election enabling executing expanding exporting failover importing incomplete init initialising \
    initialization initializing inprogress installing issuing joining launching loading merging \
    migrating mounting moving needs new notready outdated outofdate outofsync partial partially patching pausing pending \
    planned prepared preparing processing progress progressing promoting propagating provisioning pulling pushing queued queueing \
    queuing rebalancing rebooting rebuilding reconciling recovering recreating registering released reloading \
    replacing replicating requested required requires resizing resolving restarting restoring resuming retry retrying rolling rollout \
    scaling scheduled scheduling setting shifting shrinking staging stale starting stopping submitted submitting \
    suspending switching switchover syncing synchronising synchronizing transferring transitioning unready updating upgrading \
    uploading validating verifying wait waiting warming yellow";

const BAD: &str = "abort aborted alert backoff bad blocked broken cancelled canceled cannot cant conflict conflicted \
    conflicting conflicts corrupt corrupted crash crashed crashing crashloop crashloopbackoff critical dead deadlocked \
    degraded denied disconnected err error errored errors evicted exceeded exception exceptions exhausted expired fail failed failing \
    fails failure failures fatal fault faulted faulty forbidden impaired inaccessible incompatible inconsistent infeasible \
    insufficient interrupted invalid irreconcilable killed lost malformed mismatch mismatched misconfigured missing notfound offline \
    oomkilled orphaned overloaded panic panicked pressure red refused rejected revoked rollback rolledback sick splitbrain stalled stuck tainted \
    terminal timedout timeout unable unauthorized unavailable unhealthy unreachable unresolved unresponsive unsatisfiable unschedulable unstable unsupported \
    violated violation violations wrong";

const PAUSED: &str = "asleep cordoned deactivated disabled dormant frozen halted hibernated hibernating idled inactive \
    maintenance onhold parked paused scaleddown scaledtozero shelved shutdown sleeping standby stopped suspended";

const LEAVING: &str = "decommissioned decommissioning deleted deleting deprovisioned deprovisioning destroyed destroying \
    finalizing gone removed removing retired retiring tearing terminated terminating undeploying uninstalled uninstalling";

const UNKNOWN: &str = "indeterminate undefined undetermined unknown";

/// Words ending in -ing that say nothing about a state.
const NOT_A_STATE: &str = "autoscaling billing during engineering everything existing king logging monitoring \
    networking nothing ping remaining ring routing something spring string thing tracing warning";

/// What is wrong, and not only late, where it is not so.
const WRONG_IF_NOT: &str = "accepted allowed authenticated authorized compatible compliant connected contactable found healthy ok passed \
    permitted reachable resolved succeeded success successful supported valid verified";

/// Words that say that something came to its end, and well.
const ENDS: &str = "available complete completed done exported finished imported ok pass passed ready restored succeeded \
    success successful successfully uploaded";

/// A word that is known.
#[derive(Clone, Copy, Debug)]
struct Known {
    word: &'static str,
    sense: Sense,
    /// It is one of [`WRONG_IF_NOT`].
    wrong_if_not: bool,
    /// It is one of [`ENDS`].
    ends: bool,
}

const LETTERS: usize = 26;
/// No word is longer.
const LONGEST: usize = 20;

/// All words by first letter and length, and where those of each begin: the few that are left are compared.
struct Words {
    sorted: Vec<Known>,
    begin: Vec<u16>,
}

impl Words {
    fn place(word: &str) -> Option<usize> {
        let letter = usize::from(word.as_bytes().first()?.checked_sub(b'a')?);
        (letter < LETTERS && word.len() <= LONGEST).then_some(letter * LONGEST + word.len() - 1)
    }

    fn find(&self, word: &str) -> Option<&Known> {
        let place = Words::place(word)?;
        let (from, to) = (usize::from(self.begin[place]), usize::from(self.begin[place + 1]));
        self.sorted[from..to].iter().find(|known| known.word == word)
    }
}

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let groups =
        [(GOOD, Good), (BUSY, Busy), (BAD, Bad), (PAUSED, Paused), (LEAVING, Leaving), (UNKNOWN, Unknown)];
    let known = |word, sense| Known {
        word,
        sense,
        wrong_if_not: listed(WRONG_IF_NOT, word),
        ends: listed(ENDS, word),
    };
    let mut sorted: Vec<_> = groups
        .iter()
        .flat_map(|(words, sense)| words.split_whitespace().map(move |word| known(word, *sense)))
        .collect();
    sorted.sort_unstable_by_key(|known| (Words::place(known.word), known.word));
    let before = |place: usize| sorted.partition_point(|known| Words::place(known.word) < Some(place));
    let begin = (0..=LETTERS * LONGEST).map(|place| before(place) as u16).collect();
    Words { sorted, begin }
});

fn listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

/// The sense of one word.
fn word_sense(word: &str) -> Option<Sense> {
    if let Some(known) = WORDS.find(word) {
        return Some(known.sense);
    }
    let base = ["not", "non", "un", "dis"].iter().find_map(|prefix| word.strip_prefix(prefix));
    match base.and_then(|base| WORDS.find(base)) {
        Some(base) if base.sense == Good => negated(Good, base.word),
        None if word.len() > 5 && word.ends_with("ing") && !listed(NOT_A_STATE, word) => Some(Busy),
        Some(_) | None => None,
    }
}

/// Words that mean something only together.
fn compound(before: [&str; 2], word: &str) -> Option<Sense> {
    match (before[0], before[1], word) {
        (_, "in", "sync" | "service" | "use") | ("up", "to", "date") | (_, "at", "latest") => Some(Good),
        (_, "in", "progress") | ("out", "of", "sync" | "date") => Some(Busy),
        (_, "back", "off")
        | (_, "split", "brain")
        | ("out", "of", "service")
        | (_, "timed" | "time", "out")
        | (_, "rolled" | "roll", "back") => Some(Bad),
        (_, "scaled" | "shut", "down") | (_, "on", "hold") | (_, "to", "zero") => Some(Paused),
        _ => None,
    }
}

fn negated(sense: Sense, word: &str) -> Option<Sense> {
    match sense {
        Good if WORDS.find(word).is_some_and(|known| known.wrong_if_not) => Some(Bad),
        Good => Some(Busy),
        Bad => Some(Good),
        _ => None,
    }
}

/// The sense of a name or a short phrase.
///
/// What is wrong outweighs everything. Otherwise the last word is the head (`ProvisioningSucceeded`), unless something
/// is waited for, or only a part is meant.
pub(super) fn sense(text: &str) -> Option<Sense> {
    if text.is_empty() {
        return None;
    }
    words(text, |words| sense_of(text, words))
}

/// The same where its words are known.
pub(super) fn sense_of(text: &str, words: &[&str]) -> Option<Sense> {
    // Beside other words these are only directions.
    if text.eq_ignore_ascii_case("up") || text.eq_ignore_ascii_case("open") {
        return Some(Good);
    } else if text.eq_ignore_ascii_case("down") {
        return Some(Bad);
    }
    let sentence = text.contains(' ');
    let mut negating = false;
    let (mut waits, mut late, mut seen) = (false, false, 0);
    let mut before = [""; 2];
    let mut head = None;
    for word in words.iter().copied() {
        if matches!(word, "not" | "no" | "non" | "never" | "without" | "isnt" | "arent" | "wasnt") {
            negating = true;
            continue;
        }
        if negating && word == "found" {
            return Some(Bad);
        }
        seen += 1;
        let compound = compound(before, word);
        before = [before[1], word];
        let Some(plain) = compound.or_else(|| word_sense(word)) else { continue };
        // Alone it is a complaint; `MinimumReplicasUnavailable` is only not yet.
        late |= word == "unavailable";
        let meant = if negating { negated(plain, word) } else { Some(plain) };
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
    }
    match head {
        _ if late => Some(if seen == 1 { Bad } else { Busy }),
        _ if waits => Some(Busy),
        head => head,
    }
}

/// Does this say that it is something else that runs: `RunningMigrations`?
pub(super) fn runs_something(text: &str) -> bool {
    // Only the first two words are asked for: a message may be long.
    let mut words = tokens(text);
    let runs = words.next().is_some_and(|word| word.as_str() == "running");
    let object = |word: &Token| !word.as_str().bytes().all(|b| b.is_ascii_digit());
    runs && words.next().is_some_and(|word| object(&word) && word_sense(word.as_str()).is_none())
}

/// Does this tell of a first step, of the object or of a part of it: `Initialized`, `ResourcesCreated`?
pub(super) fn begun(words: &[&str]) -> bool {
    matches!(last(words), "created" | "initialized" | "initialised")
}

/// What a message for people says first: that something is wrong, or that something is awaited.
pub(super) fn message_sense(message: &str) -> Option<Sense> {
    let mut negating = false;
    for token in tokens(message) {
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
            Some(Good) if negating => return negated(Good, word),
            _ => {}
        }
        negating = false;
    }
    None
}

/// Is it wrong, and not only late, if this is not so?
pub(super) fn wrong_if_not(words: &[&str]) -> bool {
    words.iter().any(|word| WORDS.find(word).is_some_and(|known| known.wrong_if_not))
}

/// Does this say that something came to its end?
pub(super) fn ends(words: &[&str]) -> bool {
    words.iter().any(|word| WORDS.find(word).is_some_and(|known| known.ends))
}

/// Does this say that it failed, not only that something is wrong?
pub(super) fn failed(text: &str) -> bool {
    words(text, |words| {
        words.iter().any(|word| matches!(*word, "failed" | "failure" | "aborted" | "cancelled" | "canceled"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_has_two_senses() {
        for pair in WORDS.sorted.windows(2) {
            assert_ne!(pair[0].word, pair[1].word);
        }
    }

    #[test]
    fn every_word_is_found_with_what_is_noted_of_it() {
        for known in &WORDS.sorted {
            assert_eq!(WORDS.find(known.word).map(|found| found.word), Some(known.word));
        }
        let noted = |list: &'static str, note: fn(&Known) -> bool| {
            for word in list.split_whitespace() {
                assert!(WORDS.find(word).is_some_and(note), "{word}");
            }
        };
        noted(WRONG_IF_NOT, |known| known.wrong_if_not);
        noted(ENDS, |known| known.ends);
    }

    #[test]
    fn phrases_mean_what_a_reader_takes_them_to_mean() {
        let cases: [(Option<Sense>, &str); 6] = [
            (
                Some(Good),
                "Ready|RUNNING|ok|ProvisioningSucceeded|CREATE_COMPLETE|up-to-date state: current|NoErrors|not failed|Cluster in healthy state|NewReplicaSetAvailable|MonitoringReady|IN_SERVICE|in-use|AtLatestKnown|open",
            ),
            (
                Some(Busy),
                "NotReady|Pending|IN_PROGRESS|CREATE_IN_PROGRESS|WaitingForReady|PartiallyAvailable|Creating|Rebalancing|Setting up primary|unready|NotAvailable|Reticulating|Switchover|OutOfSync|RequiresApproval",
            ),
            (
                Some(Bad),
                "CreateFailed|FAILED|ImagePullBackOff|Unhealthy|NotHealthy|PartiallyFailed|InvalidSpec|SecretNotFound|CompletedWithErrors|TimedOut error|Unavailable|NotSupported|OutOfService|split-brain|NotAllowed|NonCompliant",
            ),
            (Some(Paused), "Paused|SUSPENDED|Stopped|Hibernated"),
            (Some(Leaving), "Deleting|Terminated|Uninstalling"),
            (None, "Blue|Primary|v1.2.3|Monitoring|eu-central-1|NotPaused"),
        ];
        for (expected, phrases) in cases {
            for phrase in phrases.split('|') {
                assert_eq!(sense(phrase), expected, "{phrase}");
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

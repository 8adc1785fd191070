//! What recorded answers would have been with other damping: the transitions of a history, played against `debounce`, `hold`,
//! `grace` and `quorum` of other policies.
//!
//! A history holds what was told, damped as the policy was then. So longer damping is played exactly, and shorter damping not at all:
//! what was damped away was not recorded. A debounce is played by answers alone: changes that moved none are in no history.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::debounced_answers::{AnswerDebounce, DebouncedAnswer, debounce_answers, longer_debounce};
use aggregator::{GroupRole, Quorum};
use controller::history::read::HistoryEntry;
use policy::CompiledPolicy;
use readiness::{Time, saturating_millis};
use serde::Serialize;

/// What of a policy damps its answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AnswerDamping {
    debounce: AnswerDebounce,
    hold: Duration,
    grace: Duration,
    /// Of its only group of critical children; `None` if it has several.
    quorum: Option<Quorum>,
}

impl AnswerDamping {
    pub(super) fn of_policy(policy: &CompiledPolicy) -> AnswerDamping {
        let mut critical = policy.groups.iter().filter(|group| group.role == GroupRole::Critical);
        let quorum = critical.next().map(|group| group.quorum);
        let quorum = quorum.filter(|_| critical.next().is_none());
        let debounce = AnswerDebounce { quiet: policy.debounce.quiet, cap: policy.debounce.cap };
        AnswerDamping { debounce, hold: policy.hold, grace: policy.grace, quorum }
    }

    /// How much more than `then` it damps.
    fn beyond(self, then: AnswerDamping) -> AnswerDamping {
        AnswerDamping {
            debounce: longer_debounce(self.debounce, then.debounce),
            hold: self.hold.saturating_sub(then.hold),
            grace: self.grace.saturating_sub(then.grace),
            quorum: self.quorum.filter(|quorum| then.quorum != Some(*quorum)),
        }
    }

    /// Words for what it damps less than `then`.
    fn shorter_than(self, then: AnswerDamping) -> Vec<&'static str> {
        let mut shorter = Vec::new();
        if self.debounce.quiet < then.debounce.quiet || self.debounce.cap < then.debounce.cap {
            shorter.push("debounce");
        }
        if self.hold < then.hold {
            shorter.push("hold");
        }
        if self.grace < then.grace {
            shorter.push("grace");
        }
        shorter
    }
}

/// What a policy told in a history, and what it would have told.
#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReplayedPolicy {
    policy: String,
    /// Number of parents with recorded answers.
    parents: usize,
    /// How often a parent fell from True with no change of its spec.
    flaps: u32,
    /// How often it would have.
    would_flap: u32,
    /// How often a parent would have been told True later than it was.
    later: u32,
    /// By how many seconds at most.
    later_seconds: f64,
    /// What damps less than then, of which a history does not tell.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_replayed: Vec<&'static str>,
}

impl ReplayedPolicy {
    /// The result on one line.
    pub(super) fn to_line(&self) -> String {
        let ReplayedPolicy { policy, parents, flaps, would_flap, later, .. } = self;
        let plural = if *parents == 1 { "" } else { "s" };
        let mut line = format!(
            "policy {policy}: of {parents} parent{plural}, {flaps} flaps would have been {would_flap}"
        );
        if *later > 0 {
            let most = Duration::try_from_secs_f64(self.later_seconds).unwrap_or_default();
            let most = humantime::format_duration(most);
            _ = write!(line, "; {later} times True would have come later, by {most} at most");
        }
        if !self.not_replayed.is_empty() {
            let shorter = self.not_replayed.join(", ");
            _ = write!(line, "; shorter than then, which a history does not tell: {shorter}");
        }
        line
    }
}

/// Meaning of a recorded answer to the damping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AnswerSort {
    Ready,
    /// Not ready, and `grace` may hide it.
    Waiting,
    /// Told at once: what failed, what is not known, and what is about another spec.
    Sudden,
}

/// Plays the answers of all parents of a policy, `now` being the end of the history.
pub(super) fn replay_policy(
    name: &str,
    entries: &[HistoryEntry],
    then: AnswerDamping,
    would: AnswerDamping,
    now: Time,
) -> ReplayedPolicy {
    let mut parents: BTreeMap<&str, Vec<&HistoryEntry>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.policy == name) {
        parents.entry(&entry.uid).or_default().push(entry);
    }
    let more = would.beyond(then);
    let mut replayed = ReplayedPolicy {
        policy: name.to_owned(),
        parents: parents.len(),
        not_replayed: would.shorter_than(then),
        ..ReplayedPolicy::default()
    };
    for of_parent in parents.values() {
        replayed.flaps += ParentReplay::run(of_parent, AnswerDamping::default(), now).flaps;
        let would = ParentReplay::run(of_parent, more, now);
        replayed.would_flap += would.flaps;
        replayed.later += would.later;
        replayed.later_seconds = replayed.later_seconds.max(would.most_late.as_secs_f64());
    }
    replayed
}

/// One parent, told what was recorded, damped.
#[derive(Default)]
struct ParentReplay {
    says_true: bool,
    /// When it will be told True, if nothing comes between, and since when it could have been.
    rises: Option<(Time, Time)>,
    /// When it will be told that it is not ready, if nothing comes between.
    falls: Option<Time>,
    flaps: u32,
    later: u32,
    most_late: Duration,
}

impl ParentReplay {
    fn run(entries: &[&HistoryEntry], damping: AnswerDamping, now: Time) -> ParentReplay {
        let first = entries.first();
        let says_true =
            first.and_then(|entry| entry.from.as_ref()).is_some_and(|before| before.status == "True");
        let mut replay = ParentReplay { says_true, ..ParentReplay::default() };
        let mut generation = first.and_then(|entry| entry.generation);
        for DebouncedAnswer { told_at: at, decided_at, entry } in debounce_answers(entries, damping.debounce)
        {
            replay.pass_time(at);
            let is_new_spec = entry.generation != generation;
            generation = entry.generation;
            match sort_answer(entry, damping.quorum) {
                AnswerSort::Ready => replay.show_ready(decided_at, at, damping),
                AnswerSort::Waiting if !is_new_spec => replay.show_waiting(at, damping),
                AnswerSort::Waiting | AnswerSort::Sudden => replay.show_sudden(is_new_spec),
            }
        }
        replay.pass_time(now);
        replay
    }

    /// What was to happen before `at` happens.
    fn pass_time(&mut self, at: Time) {
        if let Some((due, decided_at)) = self.rises.filter(|(due, _)| *due <= at) {
            self.rises = None;
            self.says_true = true;
            let late = due - decided_at;
            self.later += u32::from(!late.is_zero());
            self.most_late = self.most_late.max(late);
        }
        if self.falls.is_some_and(|due| due <= at) {
            self.falls = None;
            self.says_true = false;
            self.flaps += 1;
        }
    }

    fn show_ready(&mut self, decided_at: Time, at: Time, damping: AnswerDamping) {
        self.falls = None;
        if !self.says_true {
            self.rises.get_or_insert((Time(at.0 + saturating_millis(damping.hold)), decided_at));
            self.pass_time(at);
        }
    }

    fn show_waiting(&mut self, at: Time, damping: AnswerDamping) {
        self.rises = None;
        if self.says_true {
            self.falls.get_or_insert(Time(at.0 + saturating_millis(damping.grace)));
            self.pass_time(at);
        }
    }

    fn show_sudden(&mut self, is_new_spec: bool) {
        (self.rises, self.falls) = (None, None);
        self.flaps += u32::from(self.says_true && !is_new_spec);
        self.says_true = false;
    }
}

fn sort_answer(entry: &HistoryEntry, quorum: Option<Quorum>) -> AnswerSort {
    let forgives = || {
        let (ready, total) = ready_of(&entry.message)?;
        Some(ready >= quorum?.needed_of(total))
    };
    match (&*entry.to.status, &*entry.to.reason) {
        ("True", _) => AnswerSort::Ready,
        ("False", "OperatorFailed" | "DeadlineExceeded" | "DeletionStuck" | "Terminating") => {
            AnswerSort::Sudden
        }
        ("False", _) if forgives() == Some(true) => AnswerSort::Ready,
        ("False", "ChildrenFailed" | "ChildrenStuck") => AnswerSort::Sudden,
        ("False", _) => AnswerSort::Waiting,
        _ => AnswerSort::Sudden,
    }
}

/// How many are ready, and of how many, as a message begins: `1 of 3 not ready: …`.
fn ready_of(message: &str) -> Option<(u32, u32)> {
    let (unready, rest) = message.split_once(" of ")?;
    let (total, _) = rest.split_once(" not ready")?;
    let (unready, total): (u32, u32) = (unready.parse().ok()?, total.parse().ok()?);
    Some((total.checked_sub(unready)?, total))
}

#[cfg(test)]
mod tests {
    use controller::history::read::HistoryAnswer;

    use super::*;

    const START: i64 = 1_767_225_600_000;

    /// The answer `reason` at this second, of one parent.
    fn told(second: i64, reason: &str, message: &str) -> HistoryEntry {
        let status = match reason {
            "AllChildrenReady" => "True",
            "ChildrenPending" => "Unknown",
            _ => "False",
        };
        HistoryEntry {
            at: Time(START + second * 1_000).to_rfc3339_millis(),
            policy: "databases".to_owned(),
            uid: "u".to_owned(),
            generation: Some(1),
            to: HistoryAnswer {
                status: status.to_owned(),
                reason: reason.to_owned(),
                ..HistoryAnswer::default()
            },
            message: message.to_owned(),
            ..HistoryEntry::default()
        }
    }

    fn damping(hold: u64, grace: u64) -> AnswerDamping {
        AnswerDamping {
            debounce: AnswerDebounce::default(),
            hold: Duration::from_secs(hold),
            grace: Duration::from_secs(grace),
            quorum: Some(Quorum::All),
        }
    }

    /// Flaps as they were and as they would have been, and how often True would have come later.
    fn replay(entries: &[HistoryEntry], then: AnswerDamping, would: AnswerDamping) -> (u32, u32, u32) {
        let replayed = replay_policy("databases", entries, then, would, Time(START + 3_600_000));
        (replayed.flaps, replayed.would_flap, replayed.later)
    }

    /// Ready after ten seconds, and then three times not, for ten seconds each.
    fn nervous() -> Vec<HistoryEntry> {
        let mut entries = vec![told(0, "ChildrenPending", ""), told(10, "AllChildrenReady", "")];
        for begin in [100, 200, 300] {
            entries.push(told(begin, "ChildrenProgressing", "1 of 3 not ready: Pod p progressing"));
            entries.push(told(begin + 10, "AllChildrenReady", ""));
        }
        entries
    }

    #[test]
    fn grace_hides_what_does_not_last_and_hold_what_comes_too_soon() {
        let entries = nervous();
        assert_eq!(replay(&entries, damping(0, 0), damping(0, 0)), (3, 3, 0));
        assert_eq!(replay(&entries, damping(0, 0), damping(0, 9)), (3, 3, 0));
        assert_eq!(replay(&entries, damping(0, 0), damping(0, 11)), (3, 0, 0));
        // With a minute of hold each fall is told, and each True a minute later.
        assert_eq!(replay(&entries, damping(0, 0), damping(60, 0)), (3, 3, 4));
        // With more than what lies between them it is not told True before the last is over.
        assert_eq!(replay(&entries, damping(0, 0), damping(95, 0)), (3, 0, 1));
        // What was damped then is played with the rest only.
        assert_eq!(replay(&entries, damping(0, 5), damping(0, 15)), (3, 3, 0));
        assert_eq!(replay(&entries, damping(0, 5), damping(0, 16)), (3, 0, 0));
    }

    #[test]
    fn a_longer_debounce_tells_the_last_of_what_follows_closely() {
        let debounced = |quiet, cap| AnswerDamping {
            debounce: AnswerDebounce { quiet: Duration::from_secs(quiet), cap: Duration::from_secs(cap) },
            ..damping(0, 0)
        };
        let entries = nervous();
        assert_eq!(
            replay(&entries, debounced(1, 1), debounced(5, 60)),
            (3, 3, 4),
            "each True comes 5 s later"
        );
        assert_eq!(
            replay(&entries, debounced(1, 1), debounced(11, 60)),
            (3, 0, 1),
            "falls of 10 s are not told"
        );
        assert_eq!(replay(&entries, debounced(20, 20), debounced(11, 60)), (3, 0, 1), "the cap is longer");
        assert_eq!(
            replay(&entries, debounced(20, 60), debounced(11, 60)),
            (3, 3, 0),
            "shorter ones are not played"
        );
    }

    #[test]
    fn failures_and_new_specs_are_told_at_once_and_a_new_spec_is_no_flap() {
        let mut entries = vec![
            told(0, "AllChildrenReady", ""),
            told(10, "ChildrenFailed", "1 of 3 not ready: Job j failed"),
        ];
        assert_eq!(replay(&entries, damping(0, 0), damping(0, 600)), (1, 1, 0));
        entries[1] = told(10, "ChildrenPending", "");
        assert_eq!(replay(&entries, damping(0, 0), damping(0, 600)), (1, 1, 0), "nobody knows");
        entries[1].generation = Some(2);
        assert_eq!(replay(&entries, damping(0, 0), damping(0, 600)), (0, 0, 0));
    }

    #[test]
    fn a_quorum_forgives_by_the_numbers_that_were_told() {
        let entries = nervous();
        let quorum = |percent| AnswerDamping { quorum: Some(Quorum::Percent(percent)), ..damping(0, 0) };
        assert_eq!(replay(&entries, damping(0, 0), quorum(66)), (3, 0, 0));
        assert_eq!(replay(&entries, damping(0, 0), quorum(67)), (3, 3, 0), "two of three are 66 %");
        assert_eq!(replay(&entries, damping(0, 0), AnswerDamping { quorum: None, ..quorum(50) }), (3, 3, 0));
        assert_eq!(ready_of("1 of 3 not ready: x"), Some((2, 3)));
        assert_eq!((ready_of("waiting for the operator"), ready_of("4 of 3 not ready")), (None, None));
    }

    #[test]
    fn what_a_history_cannot_tell_is_said() {
        let replayed =
            replay_policy("databases", &nervous(), damping(30, 10), damping(5, 20), Time(START + 3_600_000));
        assert_eq!(replayed.not_replayed, ["hold"]);
        assert_eq!(
            replayed.to_line(),
            "policy databases: of 1 parent, 3 flaps would have been 3; shorter than then, which a history does not tell: hold"
        );
    }
}

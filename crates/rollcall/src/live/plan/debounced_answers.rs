//! Recorded answers as a longer debounce would have told them.

use std::time::Duration;

use controller::history::read::HistoryEntry;
use readiness::{Time, saturating_millis};

/// Debounce of a policy. By default each answer is told when it is decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AnswerDebounce {
    /// An answer is told once none has followed for this long.
    pub(super) quiet: Duration,
    /// Longest time that it waits for that.
    pub(super) cap: Duration,
}

/// A recorded answer, and when it would have been told.
#[derive(Clone, Copy, Debug)]
pub(super) struct DebouncedAnswer<'e> {
    pub(super) told_at: Time,
    pub(super) decided_at: Time,
    pub(super) entry: &'e HistoryEntry,
}

/// What of `would` is played where the policy had `then`. Where nothing is longer, all is told as it was.
pub(super) fn longer_debounce(would: AnswerDebounce, then: AnswerDebounce) -> AnswerDebounce {
    if would.quiet > then.quiet || would.cap > then.cap {
        return would;
    }
    AnswerDebounce::default()
}

/// Answers to be told once it has been quiet, or the time is up: an answer that follows sooner takes the place of the one before. What is
/// about another spec is told at once.
pub(super) fn debounce_answers<'e>(
    entries: &[&'e HistoryEntry],
    debounce: AnswerDebounce,
) -> Vec<DebouncedAnswer<'e>> {
    let (mut told, mut waiting) = (Vec::new(), None::<WaitingAnswer<'e>>);
    for entry in entries {
        let Some(at) = Time::from_rfc3339(&entry.at) else { continue };
        let before = waiting.take();
        let same_spec = before.filter(|before| before.last.generation == entry.generation);
        let first_at = match same_spec.map(|before| (before.first_at, before.told(debounce))) {
            Some((first_at, answer)) if answer.told_at > at => first_at,
            Some((_, answer)) => {
                told.push(answer);
                at
            }
            None => at,
        };
        let is_new_spec = before.is_some_and(|before| before.last.generation != entry.generation);
        if is_new_spec {
            told.push(DebouncedAnswer { told_at: at, decided_at: at, entry });
        } else {
            waiting = Some(WaitingAnswer { first_at, last_at: at, last: entry });
        }
    }
    told.extend(waiting.map(|waiting| waiting.told(debounce)));
    told
}

/// An answer that waits for quiet.
#[derive(Clone, Copy)]
struct WaitingAnswer<'e> {
    first_at: Time,
    last_at: Time,
    last: &'e HistoryEntry,
}

impl<'e> WaitingAnswer<'e> {
    fn told(self, debounce: AnswerDebounce) -> DebouncedAnswer<'e> {
        let quiet = self.last_at.0.saturating_add(saturating_millis(debounce.quiet));
        let cap = self.first_at.0.saturating_add(saturating_millis(debounce.cap));
        let told_at = Time(quiet.min(cap).max(self.last_at.0));
        DebouncedAnswer { told_at, decided_at: self.last_at, entry: self.last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64, generation: i64) -> HistoryEntry {
        let at = Time(1_767_225_600_000 + second * 1_000).to_rfc3339_millis();
        HistoryEntry { at, generation: Some(generation), ..HistoryEntry::default() }
    }

    /// When, and of which second, answers would have been told.
    fn told(answers: &[(i64, i64)], quiet: u64, cap: u64) -> Vec<(i64, i64)> {
        let entries: Vec<_> = answers.iter().map(|(second, generation)| at(*second, *generation)).collect();
        let debounce = AnswerDebounce { quiet: Duration::from_secs(quiet), cap: Duration::from_secs(cap) };
        let second = |time: Time| (time.0 - 1_767_225_600_000) / 1_000;
        let told = debounce_answers(&entries.iter().collect::<Vec<_>>(), debounce);
        told.iter().map(|answer| (second(answer.told_at), second(answer.decided_at))).collect()
    }

    #[test]
    fn an_answer_waits_for_quiet_and_one_that_follows_sooner_takes_its_place() {
        let answers = [(0, 1), (3, 1), (20, 1)];
        assert_eq!(told(&answers, 0, 0), [(0, 0), (3, 3), (20, 20)], "no debounce");
        assert_eq!(told(&answers, 2, 60), [(2, 0), (5, 3), (22, 20)]);
        assert_eq!(told(&answers, 5, 60), [(8, 3), (25, 20)]);
        assert_eq!(told(&answers, 30, 60), [(50, 20)]);
        assert_eq!(told(&answers, 30, 10), [(10, 3), (30, 20)], "the cap ends it");
    }

    #[test]
    fn what_is_about_another_spec_is_told_at_once_and_what_waited_is_not_told_any_more() {
        assert_eq!(told(&[(0, 1), (2, 2), (4, 2)], 5, 60), [(2, 2), (9, 4)]);
    }

    #[test]
    fn only_a_longer_debounce_is_played() {
        let config =
            |quiet, cap| AnswerDebounce { quiet: Duration::from_secs(quiet), cap: Duration::from_secs(cap) };
        assert_eq!(longer_debounce(config(5, 10), config(1, 10)), config(5, 10));
        assert_eq!(longer_debounce(config(1, 20), config(1, 10)), config(1, 20));
        assert_eq!(longer_debounce(config(1, 10), config(1, 10)), config(0, 0));
        assert_eq!(longer_debounce(config(1, 5), config(2, 10)), config(0, 0));
    }
}

//! The end of an outage in which no write was answered, as the writes show it.
//!
//! After two minutes in which nothing could be read, parents are to be told that nobody knows. While the server fails that
//! cannot be written; and once it answers, the lists that end the blindness are a moment away. So these words wait
//! until the lists have had their time, and a healed outage turns no parent that nothing happened to.

use std::time::Duration;

use aggregator::DeliveryOutcome;
use readiness::Time;

/// Number of consecutive writes that failed from which on it is an outage.
const OUTAGE_AFTER: u32 = 3;
/// Time after the end of an outage in which kinds are listed before parents are told of the blindness. 20 s.
const LISTS_TAKE: Duration = Duration::from_secs(20);
/// Time after such a wait in which no other begins. 160 s: where one kind's writes always fail and others' land between
/// them, a blindness is told of all the same, and kinds are not listed over and over.
const WAITS_APART: Duration = Duration::from_secs(160);

/// Whether an outage goes on, or has just ended.
#[derive(Debug, Default)]
pub(super) struct OutageEnd {
    consecutive_failures: u32,
    waits_until: Option<Time>,
    /// It has ended, and kinds that are not seen are to be listed at once.
    is_news: bool,
}

impl OutageEnd {
    /// Records how a write ended.
    pub(super) fn observe_outcome(&mut self, outcome: DeliveryOutcome, now: Time) {
        match outcome {
            DeliveryOutcome::Retry(_) => {
                self.consecutive_failures = self.consecutive_failures.saturating_add(1);
            }
            DeliveryOutcome::Unsent => {}
            _ => {
                let is_apart = self.waits_until.is_none_or(|before| before + WAITS_APART <= now);
                if self.consecutive_failures >= OUTAGE_AFTER && is_apart {
                    self.waits_until = Some(now + LISTS_TAKE);
                    self.is_news = true;
                }
                self.consecutive_failures = 0;
            }
        }
    }

    /// Time until which nothing is said of a blindness, if it is not over.
    pub(super) fn waits_until(&self, now: Time) -> Option<Time> {
        self.waits_until.filter(|until| now < *until)
    }

    /// Returns `true` once after each outage.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.is_news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAILED: DeliveryOutcome = DeliveryOutcome::Retry(Duration::ZERO);
    const NOW: Time = Time(1_800_000_000_000);

    fn end_after(outcomes: &[DeliveryOutcome]) -> OutageEnd {
        let mut end = OutageEnd::default();
        for outcome in outcomes {
            end.observe_outcome(*outcome, NOW);
        }
        end
    }

    #[test]
    fn three_failures_in_a_row_are_an_outage_that_any_answer_ends() {
        let until = Some(NOW + LISTS_TAKE);
        for answer in [DeliveryOutcome::Written, DeliveryOutcome::Conflict, DeliveryOutcome::Denied] {
            let mut end = end_after(&[FAILED, FAILED, DeliveryOutcome::Unsent, FAILED, answer]);
            assert_eq!(end.waits_until(NOW), until, "{answer:?}");
            assert_eq!([end.take_news(), end.take_news()], [true, false]);
            assert_eq!(end.waits_until(NOW + LISTS_TAKE), None);
        }
        for outcomes in [&[FAILED, FAILED, answer(), FAILED, answer()][..], &[FAILED; 9], &[answer(); 9]] {
            let mut end = end_after(outcomes);
            assert_eq!((end.waits_until(NOW), end.take_news()), (None, false), "{outcomes:?}");
        }
    }

    #[test]
    fn a_kind_that_always_fails_puts_off_no_word_twice_while_others_are_answered() {
        let mut end = OutageEnd::default();
        let mut ends = Vec::new();
        for second in 0..600 {
            let now = NOW + Duration::from_secs(second);
            for outcome in [FAILED, FAILED, FAILED, answer()] {
                end.observe_outcome(outcome, now);
            }
            ends.extend(end.take_news().then_some(second));
        }
        assert_eq!(ends, [0, 180, 360, 540]);
        assert_eq!(end.waits_until(NOW + Duration::from_secs(559)), Some(NOW + Duration::from_secs(560)));
        assert_eq!(end.waits_until(NOW + Duration::from_secs(560)), None);
    }

    fn answer() -> DeliveryOutcome {
        DeliveryOutcome::Written
    }
}

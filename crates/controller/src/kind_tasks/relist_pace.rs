//! How often a kind is listed again because its watch has lost events: a server that lags is not to be listed in a storm.

use std::time::Duration;

use tokio::time::Instant;

/// Shortest time between the first two such lists; it doubles with each. 2 min.
const FIRST_INTERVAL: Duration = Duration::from_mins(2);
/// Longest time between two. 10 min, the default period of the audit.
const LONGEST_INTERVAL: Duration = Duration::from_mins(10);
/// Time without such a list after which the next comes at once, as the first did. 1 h.
const CALM: Duration = Duration::from_hours(1);

/// When a kind was last listed again, and how often it was.
#[derive(Debug, Default)]
pub(super) struct RelistPace {
    last: Option<Instant>,
    in_a_row: u32,
}

impl RelistPace {
    /// When the kind may be listed again.
    pub(super) fn next_relist(&self, now: Instant) -> Instant {
        let doublings = self.in_a_row.saturating_sub(1).min(8);
        let interval = (FIRST_INTERVAL * (1 << doublings)).min(LONGEST_INTERVAL);
        self.last.map_or(now, |last| now.max(last + interval))
    }

    /// It is listed again now.
    pub(super) fn on_relist(&mut self, now: Instant) {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) > CALM) {
            self.in_a_row = 0;
        }
        (self.last, self.in_a_row) = (Some(now), self.in_a_row.saturating_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_an_hour_without_trouble_a_kind_is_listed_at_once_and_soon_again() {
        let (mut pace, mut now) = (RelistPace::default(), Instant::now());
        for _ in 0..10 {
            now = pace.next_relist(now);
            pace.on_relist(now);
        }
        assert_eq!(pace.next_relist(now) - now, LONGEST_INTERVAL);
        now += CALM + Duration::from_secs(1);
        assert_eq!(pace.next_relist(now), now);
        pace.on_relist(now);
        assert_eq!(pace.next_relist(now) - now, FIRST_INTERVAL);
    }
}

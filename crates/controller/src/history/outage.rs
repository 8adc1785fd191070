//! Reporting of a store that does not accept transitions: logged at its start and then at intervals, and shown in
//! `/readyz` while it lasts. A store that fails every other time is reported no more often than one that is gone.

use std::time::Duration;

use readiness::Time;
use tokio::sync::watch;
use watcher::status::time;

/// Minimum interval between two equal log messages. 20 min.
const OUTAGE_LOG_INTERVAL: Duration = Duration::from_mins(20);

/// Outage of the store; see the module.
pub(super) struct StoreOutage {
    /// Start of the current outage.
    since: Option<Time>,
    /// Time of the last logged outage.
    last_logged: Option<Time>,
    /// The current outage was logged.
    was_logged: bool,
    /// Time of the last logged drop.
    drop_last_logged: Option<Time>,
    readyz_text: watch::Sender<Option<String>>,
}

impl StoreOutage {
    pub(super) fn new(shown: watch::Sender<Option<String>>) -> StoreOutage {
        StoreOutage {
            since: None,
            last_logged: None,
            was_logged: false,
            drop_last_logged: None,
            readyz_text: shown,
        }
    }

    /// Records a failed attempt. Returns true if it is to be logged.
    pub(super) fn record_failure(&mut self, outcome: &str, now: Time) -> bool {
        let since = *self.since.get_or_insert(now);
        // The store's own message is left out: `/readyz` is open to everyone.
        let text = format!(
            "history: {outcome} since {}; transitions are waiting, see the log for details; can `rollcall history \
             KIND/NAME --from URL` read that store?",
            time::format_seconds(since)
        );
        self.readyz_text.send_replace(Some(text));
        let says = is_log_due(&mut self.last_logged, now);
        self.was_logged |= says;
        says
    }

    /// Records a successful upload. Returns true if the recovery is to be logged.
    pub(super) fn record_success(&mut self) -> bool {
        if self.since.take().is_some() {
            self.readyz_text.send_replace(None);
        }
        std::mem::take(&mut self.was_logged)
    }

    /// Records dropped transitions. Returns true if they are to be logged.
    pub(super) fn record_drop(&mut self, now: Time) -> bool {
        is_log_due(&mut self.drop_last_logged, now)
    }
}

fn is_log_due(last: &mut Option<Time>, now: Time) -> bool {
    let says = last.is_none_or(|last| last + OUTAGE_LOG_INTERVAL <= now);
    if says {
        *last = Some(now);
    }
    says
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_once_however_many_attempts_fail_and_its_end_once() {
        let (shown, shows) = watch::channel(None);
        let mut outage = StoreOutage::new(shown);
        let said = (0..1_000).filter(|second| outage.record_failure("failed", Time(second * 1_000))).count();
        assert_eq!(said, 1);
        assert!(outage.record_failure("failed", Time(1_200_000)), "it still lasts");
        let page = shows.borrow().clone().unwrap();
        assert!(page.starts_with("history: failed since 1970-01-01T00:00:00Z"), "{page}");
        assert!(outage.record_success() && !outage.record_success());
        assert_eq!(*shows.borrow(), None);
    }

    #[test]
    fn a_store_that_fails_every_other_time_does_not_fill_the_log() {
        let (shown, shows) = watch::channel(None);
        let mut outage = StoreOutage::new(shown);
        let mut said = 0;
        for minute in 0..60 {
            said += u32::from(outage.record_failure("failed", Time(minute * 60_000)));
            assert!(shows.borrow().is_some());
            said += u32::from(outage.record_success());
            assert!(shows.borrow().is_none());
        }
        assert_eq!(said, 2 * 3, "in an hour");
        assert!(outage.record_drop(Time(0)) && !outage.record_drop(Time(1_000)));
    }
}

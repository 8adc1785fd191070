//! What is told of a store that does not take transitions: in the log when it begins and then once in a while, in
//! `/readyz` as long as it lasts. A store that fails every other time is told of no more often than one that is gone.

use std::time::Duration;

use readiness::Time;
use tokio::sync::watch;
use watcher::status::time;

/// The same is not said again for so long.
const QUIET: Duration = Duration::from_mins(20);

/// See the module.
pub(super) struct Outage {
    /// Since when, while there is one.
    since: Option<Time>,
    /// When one was last told of.
    told: Option<Time>,
    /// This one was.
    known: bool,
    /// When drops were last told of.
    dropping: Option<Time>,
    shown: watch::Sender<Option<String>>,
}

impl Outage {
    pub(super) fn new(shown: watch::Sender<Option<String>>) -> Outage {
        Outage { since: None, told: None, known: false, dropping: None, shown }
    }

    /// An attempt failed; `true` where that is to be said.
    pub(super) fn goes_on(&mut self, outcome: &str, now: Time) -> bool {
        let since = *self.since.get_or_insert(now);
        // No word of the store's own: the page is open to everybody.
        let text =
            format!("history: {outcome} since {}; transitions wait, the log says more", time::format(since));
        self.shown.send_replace(Some(text));
        let says = once_in_a_while(&mut self.told, now);
        self.known |= says;
        says
    }

    /// A batch arrived; `true` where that is news to whoever reads the log.
    pub(super) fn ends(&mut self) -> bool {
        if self.since.take().is_some() {
            self.shown.send_replace(None);
        }
        std::mem::take(&mut self.known)
    }

    /// Something was dropped; `true` where that is to be said.
    pub(super) fn drops(&mut self, now: Time) -> bool {
        once_in_a_while(&mut self.dropping, now)
    }
}

fn once_in_a_while(last: &mut Option<Time>, now: Time) -> bool {
    let says = last.is_none_or(|last| last + QUIET <= now);
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
        let mut outage = Outage::new(shown);
        let said = (0..1_000).filter(|second| outage.goes_on("failed", Time(second * 1_000))).count();
        assert_eq!(said, 1);
        assert!(outage.goes_on("failed", Time(1_200_000)), "it still lasts");
        let page = shows.borrow().clone().unwrap();
        assert!(page.starts_with("history: failed since 1970-01-01T00:00:00Z"), "{page}");
        assert!(outage.ends() && !outage.ends());
        assert_eq!(*shows.borrow(), None);
    }

    #[test]
    fn a_store_that_fails_every_other_time_does_not_fill_the_log() {
        let (shown, shows) = watch::channel(None);
        let mut outage = Outage::new(shown);
        let mut said = 0;
        for minute in 0..60 {
            said += u32::from(outage.goes_on("failed", Time(minute * 60_000)));
            assert!(shows.borrow().is_some());
            said += u32::from(outage.ends());
            assert!(shows.borrow().is_none());
        }
        assert_eq!(said, 2 * 3, "in an hour");
        assert!(outage.drops(Time(0)) && !outage.drops(Time(1_000)));
    }
}

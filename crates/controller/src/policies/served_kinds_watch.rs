//! Which kinds the API server serves, for groups that select by categories of kinds, or name kinds that may be cluster-scoped.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::{Instant, sleep_until};
use tracing::warn;
use watcher::{LiveReadError, ServedKinds, read_served_kinds};

use crate::failure_reporter::FailureReporter;

/// Interval at which discovery is read while groups depend on it. 30 s: it costs two requests.
const READ_INTERVAL: Duration = Duration::from_secs(30);
/// Time without a kind in discovery after which it is gone: before that it may only not be served for a moment, and its objects are
/// all still there. 2 min, as for a kind that is followed.
const GONE_AFTER: Duration = Duration::from_mins(2);

/// Reads which kinds are served, while that matters.
#[derive(Default)]
pub(super) struct ServedKindsWatch {
    /// `None`: nobody is asked.
    client: Option<kube::Client>,
    failures: FailureReporter,
    known: ServedKinds,
    /// Since when kinds that were known are not served.
    lacking: BTreeMap<(String, String), Instant>,
    pace: ReadPace,
    reading: Option<BoxFuture<'static, Result<ServedKinds, LiveReadError>>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReadPace {
    /// Nothing depends on it.
    #[default]
    Idle,
    /// What is known is old.
    Awaited,
    /// It is read again at this time.
    Followed(Instant),
}

impl ServedKindsWatch {
    /// Nothing was read yet.
    pub(super) fn new(client: &kube::Client, failures: &FailureReporter) -> ServedKindsWatch {
        ServedKindsWatch {
            client: Some(client.clone()),
            failures: failures.clone(),
            ..ServedKindsWatch::default()
        }
    }

    /// What is known.
    pub(super) fn known(&self) -> &ServedKinds {
        &self.known
    }

    /// Begins to read, or goes on; `false` while what is known is too old to decide by.
    pub(super) fn follow(&mut self) -> bool {
        if self.pace == ReadPace::Idle && self.client.is_some() {
            self.pace = ReadPace::Awaited;
        }
        self.pace != ReadPace::Awaited
    }

    /// Nothing depends on it any more.
    pub(super) fn rest(&mut self) {
        self.pace = ReadPace::Idle;
        self.reading = None;
    }

    /// Waits until other kinds are known to be served, or for the first answer since it was idle, whatever it is.
    pub(super) async fn next_change(&mut self) {
        loop {
            let due = match self.pace {
                ReadPace::Idle => return std::future::pending().await,
                ReadPace::Awaited => None,
                ReadPace::Followed(due) => Some(due),
            };
            let Some(client) = self.client.clone() else { return std::future::pending().await };
            if let Some(due) = due.filter(|_| self.reading.is_none()) {
                sleep_until(due).await;
            }
            let reading =
                self.reading.get_or_insert_with(|| async move { read_served_kinds(&client).await }.boxed());
            let result = reading.await;
            self.reading = None;
            if self.note(result, Instant::now()) {
                return;
            }
        }
    }

    /// Notes an answer; `true` where something may be decided by it that was not before.
    fn note(&mut self, result: Result<ServedKinds, LiveReadError>, now: Instant) -> bool {
        let was_awaited = self.pace == ReadPace::Awaited;
        self.pace = ReadPace::Followed(now + READ_INTERVAL);
        let known = match result {
            Ok(served) => self.keep_lacking(served, now),
            Err(error) => {
                self.report(&error);
                if self.known.is_known() || self.known.unknown_because().is_some() {
                    return was_awaited;
                }
                ServedKinds::unknown_for(&watcher::error_text(&error))
            }
        };
        let has_changed = known != self.known;
        self.known = known;
        has_changed || was_awaited
    }

    /// What is served, with the kinds that are not for a moment. An API group that does not answer is waited for by those who do not
    /// know what it had, and not where it is new: nobody has objects of it yet.
    fn keep_lacking(&mut self, mut served: ServedKinds, now: Instant) -> ServedKinds {
        let before = std::mem::take(&mut self.lacking);
        for key in self.known.lost_in(&served) {
            let is_unread = served.unread.contains(&*key.0);
            let since = before.get(key).copied().filter(|_| !is_unread).unwrap_or(now);
            if since + GONE_AFTER > now {
                self.lacking.insert(key.clone(), since);
            }
        }
        for key in self.lacking.keys() {
            if let Some(kind) = self.known.find(&key.0, &key.1) {
                served.keep((key.clone(), kind.clone()));
            }
        }
        if self.known.is_known() {
            served.unread.retain(|group| self.known.unread.contains(group));
        }
        served
    }

    fn report(&self, error: &LiveReadError) {
        let (cause, detail) = (error.cause.metric_label(), watcher::error_text(error));
        self.failures.report("discover all kinds", cause, move |failures| {
            warn!(
                cause,
                detail,
                failures,
                "failed to read which kinds the API server serves; groups by category wait for it"
            );
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "what fails here is a failed test")]

    use super::*;
    use std::collections::BTreeSet;
    use watcher::ServedKind;

    fn served(kinds: &[&str], unread: &[&str]) -> ServedKinds {
        let kind = |kind: &&str| {
            let of = ServedKind { namespaced: true, is_followable: true, categories: vec!["all".into()] };
            (("example.com".to_owned(), (*kind).to_owned()), of)
        };
        ServedKinds::of(kinds.iter().map(kind), unread.iter().map(|group| (*group).into()).collect())
    }

    fn known(watch: &ServedKindsWatch) -> BTreeSet<String> {
        watch.known().of_category("all").map(|(_, kind)| kind.clone()).collect()
    }

    #[test]
    fn a_kind_that_comes_is_known_at_once_and_one_that_goes_after_two_minutes() {
        let (mut watch, start) = (ServedKindsWatch::default(), Instant::now());
        assert!(watch.note(Ok(served(&["Shop", "Till"], &[])), start));
        assert!(!watch.note(Ok(served(&["Shop", "Till"], &[])), start), "nothing new");
        assert!(watch.note(Ok(served(&["Shop", "Till", "Safe"], &[])), start));
        let at = |seconds| start + Duration::from_secs(seconds);
        for seconds in [30, 60, 90, 120] {
            assert!(!watch.note(Ok(served(&["Shop", "Safe"], &[])), at(seconds)), "{seconds}");
            assert_eq!(known(&watch).len(), 3);
        }
        assert!(watch.note(Ok(served(&["Shop", "Safe"], &[])), at(150)));
        assert_eq!(known(&watch).len(), 2);
        watch.note(Ok(served(&["Safe"], &[])), at(180));
        watch.note(Ok(served(&["Shop", "Safe"], &[])), at(210));
        watch.note(Ok(served(&["Safe"], &[])), at(310));
        assert_eq!(known(&watch).len(), 2, "the two minutes begin anew");
    }

    #[test]
    fn what_does_not_answer_keeps_its_kinds_and_is_awaited_only_by_those_who_never_heard_it() {
        let (mut watch, start) = (ServedKindsWatch::default(), Instant::now());
        watch.note(Ok(served(&["Shop"], &["metrics.k8s.io"])), start);
        assert_eq!(watch.known().unread.len(), 1);
        watch.note(Ok(served(&["Shop"], &[])), start);
        for minutes in 1..10 {
            watch.note(Ok(served(&[], &["example.com"])), start + Duration::from_mins(minutes));
            assert_eq!((known(&watch).len(), watch.known().unread.len()), (1, 0), "{minutes}");
        }
    }
}

//! A look at how far the server's history has come, now and then and after each failure of a watch. A server that was restored
//! from a backup accepts a watch of a version that it will have much later, and keeps silent until then: where everything is
//! ready, nothing else is read.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::debug;
use watcher::ApiFailureCause::{Forbidden, NotInstalled};
use watcher::{LiveReadError, RetryTurns, read_list_version};

use super::history_breaks::HistoryBreaks;
use super::kind_context::{ResolvedKind, ResolvedKinds};

/// Time between two looks where nothing fails. 60 s: a restart of the server breaks every watch, and is looked after at once.
const LOOK_INTERVAL: Duration = Duration::from_mins(1);
/// Time between two looks while none is answered. 2 s.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);
/// Time for which nothing is looked at again for each kind that was: one request a second, in the mean. 1 s.
const REST_PER_KIND: Duration = Duration::from_secs(1);
/// The least of that. 5 s.
const MIN_REST: Duration = Duration::from_secs(5);
/// Longest time that a look may take. 5 s.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of kinds that are tried in one look: one may not be served, or come from a server without versions. 3.
const KINDS_TRIED: usize = 3;

/// Looks at the version of the list of one kind, which in etcd is that of everything; after a failure, of every kind: what was
/// seen of each since is known too.
pub(crate) struct HistoryWatch {
    pub(crate) client: kube::Client,
    pub(crate) resolved: ResolvedKinds,
    /// Namespaces that may be read; empty for all.
    pub(crate) namespaces: Vec<String>,
    pub(crate) breaks: HistoryBreaks,
    /// Turns of reads that follow a failure.
    pub(crate) turns: Arc<RetryTurns>,
}

/// What a look has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// The history goes on, as far as was looked.
    GoesOn,
    /// It is older than it was.
    WentBack,
    /// Nobody has told.
    Unanswered,
}

impl HistoryWatch {
    /// Looks until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) {
        stop.run_until_cancelled(self.keep_looking()).await;
    }

    async fn keep_looking(&self) {
        let (mut next, mut all_due) = (Instant::now(), Instant::now());
        let mut has_failed = false;
        loop {
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.breaks.watch_failed() => {
                    has_failed = true;
                    // Whoever has failed may have done so because the server is restarted, and is not there yet.
                    next = next.min(all_due.max(Instant::now() + RETRY_INTERVAL));
                    continue;
                }
            }
            let answered = self.look(has_failed).await != Look::Unanswered;
            if has_failed && answered {
                all_due = Instant::now() + self.rest_after_all();
                has_failed = false;
            }
            next = Instant::now() + if answered { LOOK_INTERVAL } else { RETRY_INTERVAL };
        }
    }

    /// Time until every kind is looked at again where watches go on failing.
    fn rest_after_all(&self) -> Duration {
        let kinds = u32::try_from(self.resolved.len()).unwrap_or(u32::MAX);
        REST_PER_KIND.saturating_mul(kinds).clamp(MIN_REST, LOOK_INTERVAL)
    }

    /// Looks at the first kind that tells something, or at every one.
    async fn look(&self, at_all: bool) -> Look {
        let mut kinds: Vec<Arc<ResolvedKind>> = self.resolved.iter().map(|kind| kind.clone()).collect();
        kinds.sort_unstable_by_key(|kind| kind.id);
        let tried = if at_all { kinds.len() } else { KINDS_TRIED };
        let mut found = Look::Unanswered;
        for kind in kinds.iter().take(tried) {
            // At rest nothing has failed, and the next failure is a first one.
            if at_all {
                self.turns.wait_turn().await;
            }
            // What is shown while the answer is on its way may be newer than that.
            let before = kind.newest_version();
            let namespace = self.namespaces.first().filter(|_| kind.api.namespaced).map(String::as_str);
            let read = timeout(LOOK_TIMEOUT, read_list_version(&self.client, &kind.api, namespace));
            let version = match read.await {
                Ok(Ok(version)) => version,
                // Of such a kind its own task speaks.
                Ok(Err(LiveReadError { cause: Forbidden | NotInstalled, .. })) => None,
                Ok(Err(error)) => {
                    debug!(%error, "failed to look at the server's history");
                    return Look::Unanswered;
                }
                Err(_) => return Look::Unanswered,
            };
            match version {
                Some(version) if version < before => {
                    for kind in &kinds {
                        kind.forget_versions();
                    }
                    self.breaks.tell();
                    return Look::WentBack;
                }
                Some(version) => {
                    kind.note_version(version);
                    found = Look::GoesOn;
                }
                None => continue,
            }
            if !at_all {
                break;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use aggregator::KindId;
    use serde_json::{Value, json};
    use tokio::time::sleep;
    use watcher::ApiKind;

    use super::*;
    use crate::reviews::review_server::ReviewServer;

    fn at_version(version: &str) -> Value {
        json!({ "code": 200, "metadata": { "resourceVersion": version }, "items": [] })
    }

    fn watch_of(server: &ReviewServer, plurals: &[&str]) -> HistoryWatch {
        let resolved = ResolvedKinds::default();
        for (id, plural) in (0..).zip(plurals) {
            let api = ApiKind {
                group: "example.com".to_owned(),
                version: "v1".to_owned(),
                kind: plural.to_uppercase(),
                plural: (*plural).to_owned(),
                namespaced: true,
                has_status: true,
            };
            resolved.insert(KindId(id), Arc::new(ResolvedKind::new(KindId(id), api)));
        }
        let breaks = HistoryBreaks::default();
        HistoryWatch {
            client: server.client(),
            resolved,
            namespaces: Vec::new(),
            breaks,
            turns: Arc::default(),
        }
    }

    #[tokio::test]
    async fn a_version_that_is_older_than_one_that_was_seen_is_a_break_and_one_without_is_nothing() {
        let server = ReviewServer::new(|_, _| at_version("90"));
        let watch = watch_of(&server, &["widgets", "gadgets"]);
        assert_eq!(watch.look(false).await, Look::GoesOn);
        assert_eq!(watch.look(false).await, Look::GoesOn, "nothing has happened");
        server.set_answer(|_, _| at_version("700"));
        assert_eq!(watch.look(false).await, Look::GoesOn);
        server.set_answer(|_, _| at_version("699"));
        assert_eq!(watch.look(false).await, Look::WentBack);
        assert_eq!(watch.look(false).await, Look::GoesOn, "it was told");
        server.set_answer(|_, _| json!({ "code": 503, "message": "etcd is away" }));
        assert_eq!(watch.look(true).await, Look::Unanswered);
        server.set_answer(|_, _| at_version("100"));
        assert_eq!(watch.look(false).await, Look::WentBack, "whatever failed in between");
        // An event of another kind was seen since.
        watch.resolved.get(&KindId(1)).unwrap().note_version(120);
        assert_eq!(watch.look(false).await, Look::GoesOn);
        assert_eq!(watch.look(true).await, Look::WentBack, "after a failure every kind is looked at");
    }

    #[tokio::test]
    async fn what_is_shown_while_an_answer_is_on_its_way_makes_no_older_one_of_it() {
        static BUSY: OnceLock<ResolvedKinds> = OnceLock::new();
        let server = ReviewServer::new(|_, _| {
            let kinds = BUSY.get().unwrap();
            kinds.iter().for_each(|kind| kind.note_version(kind.newest_version() + 10));
            at_version("105")
        });
        let watch = watch_of(&server, &["widgets"]);
        watch.resolved.get(&KindId(0)).unwrap().note_version(100);
        BUSY.set(watch.resolved.clone()).unwrap();
        assert_eq!(watch.look(false).await, Look::GoesOn);
        assert_eq!(watch.look(false).await, Look::WentBack, "that was shown before it was asked");
    }

    #[tokio::test]
    async fn each_break_that_is_found_is_told_however_soon_after_another() {
        let server = ReviewServer::new(|_, _| at_version("900"));
        let watch = watch_of(&server, &["widgets"]);
        let mut told = watch.breaks.subscribe();
        watch.look(false).await;
        for version in ["500", "100"] {
            server.set_answer(if version == "500" {
                |_, _| at_version("500")
            } else {
                |_, _| at_version("100")
            });
            assert_eq!(watch.look(false).await, Look::WentBack);
            watch.resolved.get(&KindId(0)).unwrap().note_version(version.parse().unwrap());
            assert!(told.has_changed().unwrap(), "{version}");
            told.mark_unchanged();
        }
    }

    #[tokio::test]
    async fn a_kind_without_versions_tells_nothing_and_the_next_is_asked() {
        let server =
            ReviewServer::new(
                |path, _| {
                    if path.contains("metrics") { at_version("") } else { at_version("5") }
                },
            );
        let watch = watch_of(&server, &["metrics", "widgets"]);
        assert_eq!(watch.look(false).await, Look::GoesOn);
        assert_eq!(server.asked(), 2);
        server.set_answer(|_, _| at_version(""));
        assert_eq!(watch.look(false).await, Look::Unanswered);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_fails_is_looked_after_in_seconds_and_otherwise_once_a_minute() {
        let server = ReviewServer::new(|_, _| at_version("5"));
        let watch = watch_of(&server, &["widgets"]);
        let (breaks, stop) = (watch.breaks.clone(), CancellationToken::new());
        let running = tokio::spawn(watch.run(stop.clone()));
        sleep(Duration::from_secs(50)).await;
        assert_eq!(server.asked(), 1);
        (0..100).for_each(|_| breaks.on_watch_failed());
        sleep(Duration::from_secs(8)).await;
        assert!((2..=3).contains(&server.asked()), "{} for all of them", server.asked());
        for _ in 0..3_000 {
            breaks.on_watch_failed();
            sleep(Duration::from_millis(100)).await;
        }
        assert!(server.asked() < 70, "{}: one that always fails is no storm", server.asked());
        let before = server.asked();
        server.set_answer(|_, _| json!({ "code": 503 }));
        sleep(Duration::from_mins(2)).await;
        let tried = server.asked() - before;
        assert!(tried > 20, "{tried}: again and again until it is answered");
        stop.cancel();
        running.await.unwrap();
    }
}

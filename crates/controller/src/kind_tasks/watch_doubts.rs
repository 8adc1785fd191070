//! Doubts about the watch of a kind that no event of its own settles: whether the kind is still served as it was found, because
//! its definition may have gained or lost the status subresource; and whether the watch delivers what happens.

use std::time::Duration;

use futures::FutureExt;
use tokio::sync::{Mutex, Notify};
use tokio::time::{Instant, sleep_until, timeout};
use watcher::{ApiKind, Discovered, discover};

use super::relist_pace::RelistPace;

/// Shortest time between two looks at how a kind is served. 10 s.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// Longest time that a look may take. 5 s.
const LOOK_TIMEOUT: Duration = Duration::from_secs(5);

/// What the writer of a kind's parents finds out about its endpoint, and live reads about its watch.
#[derive(Debug, Default)]
pub(crate) struct WatchDoubts {
    moved: Notify,
    lost_event: Notify,
    last_look: Mutex<Option<EndpointLook>>,
}

#[derive(Clone, Copy, Debug)]
struct EndpointLook {
    at: Instant,
    is_moved: bool,
}

impl WatchDoubts {
    /// Returns `true` if the server serves the kind otherwise than so, as far as it was looked: after a write that went where
    /// nothing is served, or was accepted and changed nothing. The kind's task is told.
    pub(crate) async fn find_moved(&self, client: &kube::Client, api: &ApiKind) -> bool {
        let mut last_look = self.last_look.lock().await;
        // What moved stays so until the kind is followed anew, also for the other writes that were under way.
        if let Some(last) = last_look.filter(|last| last.is_moved || last.at.elapsed() < LOOK_INTERVAL) {
            return last.is_moved;
        }
        let look = discover(client, &api.group, Some(&api.version), &api.kind);
        let is_moved = match timeout(LOOK_TIMEOUT, look).await {
            Ok(Ok(Discovered::Served(served))) => served != *api,
            _ => false,
        };
        *last_look = Some(EndpointLook { at: Instant::now(), is_moved });
        if is_moved {
            self.moved.notify_one();
        }
        is_moved
    }

    /// Waits until the kind is found to be served otherwise.
    pub(super) async fn served_otherwise(&self) {
        self.moved.notified().await;
    }

    /// A live read has found what the watch has not delivered in time. The kind's task is told.
    pub(crate) fn on_lost_event(&self) {
        self.lost_event.notify_one();
    }
}

/// Decides when a kind is followed anew, or listed again, because of these doubts.
pub(super) struct DoubtfulWatch<'a> {
    doubts: &'a WatchDoubts,
    pace: RelistPace,
    /// When the kind is listed again, because its watch has lost something.
    relist_at: Option<Instant>,
    /// A list is under way: it tells what the watch before has lost, and no watch is there to lose anything.
    is_listing: bool,
}

impl<'a> DoubtfulWatch<'a> {
    pub(super) fn new(doubts: &'a WatchDoubts) -> DoubtfulWatch<'a> {
        DoubtfulWatch { doubts, pace: RelistPace::default(), relist_at: None, is_listing: false }
    }

    /// A list is under way, or none is.
    pub(super) fn set_listing(&mut self, is_listing: bool) {
        if self.is_listing || is_listing {
            self.relist_at = None;
            _ = self.doubts.lost_event.notified().now_or_never();
        }
        self.is_listing = is_listing;
    }

    /// Waits until the kind has to be listed again. A watch that has lost one event may have lost others, of objects that nobody
    /// reads because they are ready.
    pub(super) async fn lost_events(&mut self) {
        loop {
            if let Some(at) = self.relist_at {
                sleep_until(at).await;
                self.relist_at = None;
                return self.pace.on_relist(Instant::now());
            }
            self.doubts.lost_event.notified().await;
            self.relist_at = (!self.is_listing).then(|| self.pace.next_relist(Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_kind_whose_watch_has_lost_events_is_listed_at_once_and_then_less_and_less_often() {
        let doubts = WatchDoubts::default();
        let (mut watch, mut waits) = (DoubtfulWatch::new(&doubts), Vec::new());
        for _ in 0..6 {
            (0..100).for_each(|_| doubts.on_lost_event());
            let since = Instant::now();
            watch.lost_events().await;
            waits.push(since.elapsed().as_secs());
        }
        assert_eq!(waits, [0, 120, 240, 480, 600, 600]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_came_by_itself_makes_another_needless() {
        let doubts = WatchDoubts::default();
        let mut watch = DoubtfulWatch::new(&doubts);
        doubts.on_lost_event();
        watch.lost_events().await;
        doubts.on_lost_event();
        assert!(timeout(Duration::from_secs(60), watch.lost_events()).await.is_err());
        watch.set_listing(true);
        doubts.on_lost_event();
        assert!(
            timeout(Duration::from_mins(60), watch.lost_events()).await.is_err(),
            "no list is broken off"
        );
        watch.set_listing(false);
        assert!(timeout(Duration::from_mins(60), watch.lost_events()).await.is_err());
    }
}

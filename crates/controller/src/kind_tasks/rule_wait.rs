//! Waits for the custom rules of one kind.

use std::time::Duration;

use aggregator::KindId;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};
use watcher::FollowEvent;
use watcher::reflector::{Reflector, RuleWork};

/// Longest time that a watch waits for room among the objects that await rules.
const ROOM_TIMEOUT: Duration = Duration::from_secs(5);

/// Wait of a task whose kind has rules that are evaluated beside the ingest.
#[derive(Clone, Copy, Debug)]
pub(super) struct RuleWait<'w> {
    pub(super) kind: KindId,
    /// Signals each evaluation.
    pub(super) judged: &'w Notify,
}

impl RuleWait<'_> {
    /// Waits before an event is taken in: for room for its object, or, at the end of a list, until everything in it is judged: an
    /// answer turns once.
    pub(super) async fn wait_before<K>(self, event: &FollowEvent<K>, reflector: &Reflector) {
        match event {
            FollowEvent::InitDone => self.wait_until_judged(reflector).await,
            FollowEvent::InitApply(_) | FollowEvent::Apply(_) => self.wait_for_room(reflector).await,
            FollowEvent::Init | FollowEvent::Delete(_) | FollowEvent::Alive | FollowEvent::Failure(_) => {}
        }
    }

    /// Waits until another object finds room, for as long as there is use in that.
    async fn wait_for_room(self, reflector: &Reflector) {
        self.wait_until(ROOM_TIMEOUT, || reflector.rule_work().has_room(self.kind)).await;
    }

    /// Waits until all objects that were brought before are judged, or are Unknown because they were not in time.
    async fn wait_until_judged(self, reflector: &Reflector) {
        let mark = reflector.rule_work().mark();
        let is_done = || reflector.rule_work().is_done_before(self.kind, mark);
        self.wait_until(RuleWork::INTERIM_LIMIT, is_done).await;
    }

    async fn wait_until(self, limit: Duration, is_so: impl Fn() -> bool) {
        let end = Instant::now() + limit;
        loop {
            // It hears of what is evaluated from here on, before it is asked whether that is needed.
            let judged = self.judged.notified();
            if is_so() || timeout_at(end, judged).await.is_err() {
                return;
            }
        }
    }
}

//! Follows objects by list and watch, so that `--watch` and `wait` need no repeated lists.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use tokio::time::{Instant, timeout, timeout_at};
use watcher::wire::ChildObject;
use watcher::{
    ApiFailureCause, ApiKind, FollowEvent, FollowFailure, FollowOptions, ParentObject, Seed, follow,
};

use super::policy_cluster::{KindToRead, PolicyCluster};

/// Quiet period that coalesces changes.
const COALESCE_QUIET_PERIOD: Duration = Duration::from_millis(150);
/// Longest time changes are coalesced.
const COALESCE_LIMIT: Duration = Duration::from_secs(1);
/// Interval of re-evaluation: some verdicts change by the clock alone.
const REEVALUATION_INTERVAL: Duration = Duration::from_secs(5);

/// Outages up to this long are not reported: connections break and are reopened.
const OUTAGE_GRACE_PERIOD: Duration = Duration::from_secs(3);

/// Follows all kinds of a cluster's policies.
pub(super) struct ClusterFollower {
    events: SelectAll<BoxStream<'static, (usize, FollowEvent<ParentObject>)>>,
    kinds: Vec<FollowedObjects>,
}

/// The objects of one kind, by UID.
struct FollowedObjects {
    api: ApiKind,
    objects: BTreeMap<Box<str>, ParentObject>,
    /// A relist in progress.
    pending_list: Option<BTreeMap<Box<str>, ParentObject>>,
    /// The first list is complete or cannot be completed.
    listed: bool,
    /// The current list or watch error, with the time of its start.
    trouble: Option<(Instant, FollowFailure)>,
}

impl ClusterFollower {
    pub(super) async fn new(cluster: &mut PolicyCluster) -> ClusterFollower {
        // Several processes may run side by side; the seed keeps their retries from synchronising.
        let seed = Seed(u64::from(std::process::id()));
        let (mut events, mut kinds) = (SelectAll::new(), Vec::new());
        for (at, KindToRead { api, namespace, whole }) in
            cluster.kinds_to_read().await.into_iter().enumerate()
        {
            let options = FollowOptions::new(seed);
            let (client, namespace) = (&cluster.client, namespace.as_deref());
            events.push(if whole {
                follow::<ParentObject>(client, &api, namespace, options).map(move |event| (at, event)).boxed()
            } else {
                follow::<ChildObject>(client, &api, namespace, options)
                    .map(move |event| (at, without_text(event)))
                    .boxed()
            });
            kinds.push(FollowedObjects {
                api,
                objects: BTreeMap::new(),
                pending_list: None,
                listed: false,
                trouble: None,
            });
        }
        ClusterFollower { events, kinds }
    }

    /// Waits until every kind was listed once and something changed, or until the re-evaluation interval has passed. Returns
    /// true if something changed.
    pub(super) async fn wait_for_change(&mut self, cluster: &mut PolicyCluster) -> bool {
        let tick = Instant::now() + REEVALUATION_INTERVAL;
        let mut moved = false;
        loop {
            let through = self.kinds.iter().all(|kind| kind.listed);
            if moved && through {
                break;
            }
            // Before every kind was listed, an answer would be a guess.
            let next = self.events.next();
            let next = if through { timeout_at(tick, next).await } else { Ok(next.await) };
            match next {
                Ok(Some((at, event))) => moved |= self.on_event(cluster, at, event),
                Ok(None) => {
                    tokio::time::sleep_until(tick).await;
                    return false;
                }
                Err(_) => return false,
            }
        }
        let cap = Instant::now() + COALESCE_LIMIT;
        while Instant::now() < cap
            && let Ok(Some((at, event))) = timeout(COALESCE_QUIET_PERIOD, self.events.next()).await
        {
            self.on_event(cluster, at, event);
        }
        true
    }

    /// Returns all known objects.
    pub(super) fn known_objects(&self) -> Vec<&ParentObject> {
        self.kinds.iter().flat_map(|kind| kind.objects.values()).collect()
    }

    /// Returns the reason why the known state may be stale, if that lasts longer than a reconnect.
    pub(super) fn trouble_text(&self) -> Option<String> {
        let mut lasting = self.kinds.iter().filter_map(|kind| kind.trouble.as_ref());
        let (_, trouble) = lasting.find(|(since, _)| since.elapsed() >= OUTAGE_GRACE_PERIOD)?;
        Some(match trouble.cause {
            ApiFailureCause::Unauthorized => {
                "the cluster no longer accepts these credentials (401); the shown state may be stale"
                    .to_owned()
            }
            _ => format!("the cluster does not respond ({}); the shown state may be stale", trouble.detail),
        })
    }

    fn on_event(&mut self, cluster: &mut PolicyCluster, at: usize, event: FollowEvent<ParentObject>) -> bool {
        let Some(held) = self.kinds.get_mut(at) else { return false };
        match &event {
            FollowEvent::Failure(trouble) if is_worth_reporting(trouble.cause) => {
                let since = held.trouble.take().map_or_else(Instant::now, |(since, _)| since);
                held.trouble = Some((since, trouble.clone()));
            }
            // A list that begins has not succeeded yet.
            FollowEvent::Failure(_) | FollowEvent::Init => {}
            _ => held.trouble = None,
        }
        let typed = |object: ParentObject| object.with_type_meta(&held.api.api_version(), &held.api.kind);
        match event {
            FollowEvent::Init => held.pending_list = Some(BTreeMap::new()),
            FollowEvent::InitApply(object) => {
                let object = typed(object);
                if let Some(coming) = &mut held.pending_list {
                    coming.insert(object.child.meta.uid.clone(), object);
                }
            }
            FollowEvent::InitDone => {
                held.objects = held.pending_list.take().unwrap_or_default();
                held.listed = true;
                cluster.show_kind(&held.api);
                return true;
            }
            FollowEvent::Apply(object) => {
                let object = typed(object);
                held.objects.insert(object.child.meta.uid.clone(), object);
                return true;
            }
            FollowEvent::Delete(object) => {
                held.objects.remove(&object.child.meta.uid);
                return true;
            }
            FollowEvent::Failure(trouble)
                if matches!(trouble.cause, ApiFailureCause::Forbidden) && !held.listed =>
            {
                cluster.hide_kind(&held.api, "you may not list and watch it".to_owned());
                held.listed = true;
                return true;
            }
            FollowEvent::Failure(trouble) if matches!(trouble.cause, ApiFailureCause::NotInstalled) => {
                held.listed = true;
            }
            FollowEvent::Failure(_) | FollowEvent::Alive => {}
        }
        false
    }
}

/// Returns `true` for an error that a waiting person wants to know of.
fn is_worth_reporting(cause: ApiFailureCause) -> bool {
    matches!(
        cause,
        ApiFailureCause::Unauthorized
            | ApiFailureCause::Connection
            | ApiFailureCause::Stalled
            | ApiFailureCause::ServerError
            | ApiFailureCause::Throttled
    )
}

/// Converts an event and drops the object's text.
fn without_text(event: FollowEvent<ChildObject>) -> FollowEvent<ParentObject> {
    match event {
        FollowEvent::Init => FollowEvent::Init,
        FollowEvent::InitApply(child) => FollowEvent::InitApply(ParentObject::without_text(child)),
        FollowEvent::InitDone => FollowEvent::InitDone,
        FollowEvent::Apply(child) => FollowEvent::Apply(ParentObject::without_text(child)),
        FollowEvent::Delete(child) => FollowEvent::Delete(ParentObject::without_text(child)),
        FollowEvent::Alive => FollowEvent::Alive,
        FollowEvent::Failure(trouble) => FollowEvent::Failure(trouble),
    }
}

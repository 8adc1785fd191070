//! Follows objects by list and watch, so that `--watch` and `wait` need no repeated lists.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{AbortHandle, BoxStream, SelectAll, abortable};
use policy::GROUP_KIND;
use tokio::time::{Instant, timeout, timeout_at};
use watcher::wire::ChildObject;
use watcher::{
    ApiFailureCause, ApiKind, FollowEvent, FollowFailure, FollowOptions, ParentObject, Seed, follow,
};

use super::kinds_to_read::KindToRead;
use super::policy_cluster::PolicyCluster;

/// Quiet period that coalesces changes.
const COALESCE_QUIET_PERIOD: Duration = Duration::from_millis(150);
/// Longest time changes are coalesced.
const COALESCE_LIMIT: Duration = Duration::from_secs(1);
/// Interval of re-evaluation: some verdicts change by the clock alone.
const REEVALUATION_INTERVAL: Duration = Duration::from_secs(5);

/// Outages up to this long are not reported: connections break and are reopened.
const OUTAGE_GRACE_PERIOD: Duration = Duration::from_secs(3);

/// Interval at which kinds are looked for that the cluster did not serve.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(5);

/// Follows all kinds of a cluster's policies.
pub(super) struct ClusterFollower {
    events: SelectAll<BoxStream<'static, (usize, FollowEvent<ParentObject>)>>,
    /// By the number of their stream.
    kinds: BTreeMap<usize, FollowedObjects>,
    /// Number of the next stream.
    next_stream: usize,
    next_discovery: Instant,
    /// Other policies judge than when it was last found out what to follow.
    lacks_places: bool,
}

/// The objects of one kind, by UID.
struct FollowedObjects {
    place: KindToRead,
    /// Ends the stream.
    stream: AbortHandle,
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
        cluster.begin_following_groups();
        let mut follower = ClusterFollower {
            events: SelectAll::new(),
            kinds: BTreeMap::new(),
            next_stream: 0,
            next_discovery: Instant::now() + DISCOVERY_INTERVAL,
            lacks_places: false,
        };
        for place in cluster.kinds_to_read().await {
            follower.follow_place(&cluster.client, place);
        }
        follower
    }

    fn follow_place(&mut self, client: &kube::Client, place: KindToRead) {
        let at = self.next_stream;
        self.next_stream += 1;
        // Several processes may run side by side; the seed keeps their retries from synchronising.
        let options = FollowOptions::new(Seed(u64::from(std::process::id())));
        let (api, namespace) = (&place.api, place.namespace.as_deref());
        let events = if place.whole {
            follow::<ParentObject>(client, api, namespace, options).boxed()
        } else {
            follow::<ChildObject>(client, api, namespace, options).map(without_text).boxed()
        };
        let (events, stream) = abortable(events.map(move |event| (at, event)));
        self.events.push(events.boxed());
        let followed = FollowedObjects {
            place,
            stream,
            objects: BTreeMap::new(),
            pending_list: None,
            listed: false,
            trouble: None,
        };
        self.kinds.insert(at, followed);
    }

    /// Follows the kind at another place than before.
    fn follow_elsewhere(&mut self, client: &kube::Client, place: KindToRead) {
        let is_same = |api: &ApiKind| (&api.group, &api.kind) == (&place.api.group, &place.api.kind);
        self.kinds.retain(|_, followed| {
            let stays = !is_same(&followed.place.api);
            if !stays {
                followed.stream.abort();
            }
            stays
        });
        self.follow_place(client, place);
    }

    /// Looks for the kinds that the cluster did not serve, if it is time to. What is found may be above others, which are read
    /// elsewhere then.
    async fn look_for_kinds(&mut self, cluster: &mut PolicyCluster) {
        if Instant::now() < self.next_discovery || !cluster.lacks_kinds() {
            return;
        }
        self.follow_asked_kinds(cluster).await;
    }

    async fn follow_asked_kinds(&mut self, cluster: &mut PolicyCluster) {
        let places = cluster.kinds_to_read().await;
        self.next_discovery = Instant::now() + DISCOVERY_INTERVAL;
        self.lacks_places = false;
        for place in places {
            let is_followed = |followed: &FollowedObjects| {
                let known = &followed.place;
                known.api == place.api && known.namespace == place.namespace && known.whole >= place.whole
            };
            if !self.kinds.values().any(is_followed) {
                self.follow_elsewhere(&cluster.client, place);
            }
        }
    }

    /// More is asked for than when it was last found out what to follow: it is followed with the next change.
    pub(super) fn note_more_asked(&mut self) {
        self.lacks_places = true;
    }

    /// Lets the policies that stand for groups be those of the groups as they are now, and follows what these ask for. Returns
    /// `true` if they are others than before.
    async fn apply_groups(&mut self, cluster: &mut PolicyCluster) -> bool {
        let is_seen = |followed: &&FollowedObjects| {
            let api = &followed.place.api;
            let is_group = (&*api.group, &*api.kind) == GROUP_KIND;
            is_group
                && followed.listed
                && !cluster.hidden_kinds().contains(&(api.group.clone(), api.kind.clone()))
        };
        if let Some(groups) = self.kinds.values().find(is_seen) {
            let namespace = groups.place.namespace.as_deref();
            self.lacks_places |= cluster.replace_groups(namespace, groups.objects.values());
        }
        let has_changed = self.lacks_places;
        if has_changed {
            self.follow_asked_kinds(cluster).await;
        }
        has_changed
    }

    /// Waits until every kind was listed once and something changed, or until the re-evaluation interval has passed. Returns
    /// true if something changed.
    pub(super) async fn wait_for_change(&mut self, cluster: &mut PolicyCluster) -> bool {
        self.look_for_kinds(cluster).await;
        let tick = Instant::now() + REEVALUATION_INTERVAL;
        let mut moved = self.lacks_places;
        loop {
            if !self.wait_for_event(cluster, tick, moved).await {
                return false;
            }
            self.coalesce_events(cluster).await;
            // What other policies ask for is listed before anything is said by them.
            if !self.apply_groups(cluster).await {
                return true;
            }
            moved = true;
        }
    }

    /// Returns `true` if every kind was listed once.
    pub(super) fn is_listed(&self) -> bool {
        !self.lacks_places && self.kinds.values().all(|kind| kind.listed)
    }

    /// Waits until every kind was listed once and something changed, or had `moved` before. Returns false if nothing did until
    /// the tick.
    async fn wait_for_event(&mut self, cluster: &mut PolicyCluster, tick: Instant, mut moved: bool) -> bool {
        loop {
            let through = self.kinds.values().all(|kind| kind.listed);
            if moved && through {
                return true;
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
    }

    /// Takes what follows close upon a change.
    async fn coalesce_events(&mut self, cluster: &mut PolicyCluster) {
        let cap = Instant::now() + COALESCE_LIMIT;
        while Instant::now() < cap
            && let Ok(Some((at, event))) = timeout(COALESCE_QUIET_PERIOD, self.events.next()).await
        {
            self.on_event(cluster, at, event);
        }
    }

    /// Returns all known objects.
    pub(super) fn known_objects(&self) -> Vec<&ParentObject> {
        self.kinds.values().flat_map(|kind| kind.objects.values()).collect()
    }

    /// Returns the reason why the known state may be stale, if that lasts longer than a reconnect.
    pub(super) fn trouble_text(&self) -> Option<String> {
        let mut lasting = self.kinds.values().filter_map(|kind| kind.trouble.as_ref());
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
        let Some(held) = self.kinds.get_mut(&at) else { return false };
        match &event {
            FollowEvent::Failure(trouble) if is_worth_reporting(trouble.cause) => {
                let since = held.trouble.take().map_or_else(Instant::now, |(since, _)| since);
                held.trouble = Some((since, trouble.clone()));
            }
            // A list that begins has not succeeded yet.
            FollowEvent::Failure(_) | FollowEvent::Init => {}
            _ => held.trouble = None,
        }
        let typed =
            |object: ParentObject| object.with_type_meta(&held.place.api.api_version(), &held.place.api.kind);
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
                cluster.show_kind(&held.place.api, !held.objects.is_empty());
                return true;
            }
            FollowEvent::Apply(object) => {
                let object = typed(object);
                held.objects.insert(object.child.meta.uid.clone(), object);
                cluster.show_kind(&held.place.api, true);
                return true;
            }
            FollowEvent::Delete(object) => {
                held.objects.remove(&object.child.meta.uid);
                return true;
            }
            FollowEvent::Failure(trouble)
                if matches!(trouble.cause, ApiFailureCause::Forbidden) && !held.listed =>
            {
                let why = "you may not list and watch it".to_owned();
                if let Some(narrower) = cluster.hide_kind(&held.place, trouble.cause, why) {
                    self.follow_elsewhere(&cluster.client, narrower);
                    return false;
                }
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

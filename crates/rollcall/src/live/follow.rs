//! The same objects, followed: what changes is told as it changes, so that nobody has to list again and again.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::{BoxStream, SelectAll};
use tokio::time::{Instant, timeout, timeout_at};
use watcher::wire::Child;
use watcher::{ApiKind, Cause, Event, FollowOptions, Parent, Seed, Trouble, follow};

use super::gather::{Cluster, Place};

/// Changes that come together are looked at together.
const QUIET: Duration = Duration::from_millis(150);
/// But no later than this.
const CAP: Duration = Duration::from_secs(1);
/// Some verdicts change by the clock alone.
const TICK: Duration = Duration::from_secs(5);

/// Connections break and are made anew; only what lasts longer is worth a word.
const BRIEF: Duration = Duration::from_secs(3);

/// Everything that a cluster's policies are about, kept up to date.
pub(super) struct Following {
    events: SelectAll<BoxStream<'static, (usize, Event<Parent>)>>,
    kinds: Vec<Held>,
}

/// The objects of one kind, by UID.
struct Held {
    api: ApiKind,
    objects: BTreeMap<Box<str>, Parent>,
    /// A list that is under way.
    coming: Option<BTreeMap<Box<str>, Parent>>,
    /// The first list is through, or there will be none.
    through: bool,
    /// Why nothing new is known of it, and since when.
    trouble: Option<(Instant, Trouble)>,
}

impl Following {
    pub(super) async fn new(cluster: &mut Cluster) -> Following {
        // Many of these may run beside each other; they need not move in step.
        let seed = Seed(u64::from(std::process::id()));
        let (mut events, mut kinds) = (SelectAll::new(), Vec::new());
        for (at, Place { api, namespace, whole }) in cluster.places().await.into_iter().enumerate() {
            let options = FollowOptions::new(seed);
            let (client, namespace) = (&cluster.client, namespace.as_deref());
            events.push(if whole {
                follow::<Parent>(client, &api, namespace, options).map(move |event| (at, event)).boxed()
            } else {
                follow::<Child>(client, &api, namespace, options).map(move |event| (at, lean(event))).boxed()
            });
            kinds.push(Held { api, objects: BTreeMap::new(), coming: None, through: false, trouble: None });
        }
        Following { events, kinds }
    }

    /// Waits until something moved and everything was listed once; or for a while.
    pub(super) async fn moved(&mut self, cluster: &mut Cluster) {
        let tick = Instant::now() + TICK;
        let mut moved = false;
        loop {
            let through = self.kinds.iter().all(|kind| kind.through);
            if moved && through {
                break;
            }
            // While not everything was listed, an answer would be a guess.
            let next = self.events.next();
            let next = if through { timeout_at(tick, next).await } else { Ok(next.await) };
            match next {
                Ok(Some((at, event))) => moved |= self.take(cluster, at, event),
                Ok(None) => return tokio::time::sleep_until(tick).await,
                Err(_) => return,
            }
        }
        let cap = Instant::now() + CAP;
        while Instant::now() < cap
            && let Ok(Some((at, event))) = timeout(QUIET, self.events.next()).await
        {
            self.take(cluster, at, event);
        }
    }

    /// Everything that is known.
    pub(super) fn objects(&self) -> Vec<&Parent> {
        self.kinds.iter().flat_map(|kind| kind.objects.values()).collect()
    }

    /// Why what is known may be old, where that is so for longer than it takes to connect again.
    pub(super) fn trouble(&self) -> Option<String> {
        let mut lasting = self.kinds.iter().filter_map(|kind| kind.trouble.as_ref());
        let (_, trouble) = lasting.find(|(since, _)| since.elapsed() >= BRIEF)?;
        Some(match trouble.cause {
            Cause::Unauthorized => {
                "the cluster does not accept these credentials any more (401); what is shown may be old"
                    .to_owned()
            }
            _ => format!("the cluster does not answer ({}); what is shown may be old", trouble.detail),
        })
    }

    fn take(&mut self, cluster: &mut Cluster, at: usize, event: Event<Parent>) -> bool {
        let Some(held) = self.kinds.get_mut(at) else { return false };
        match &event {
            Event::Trouble(trouble) if speaks(trouble.cause) => {
                let since = held.trouble.take().map_or_else(Instant::now, |(since, _)| since);
                held.trouble = Some((since, trouble.clone()));
            }
            // A list that begins has not been answered yet.
            Event::Trouble(_) | Event::Init => {}
            _ => held.trouble = None,
        }
        let typed = |object: Parent| object.typed(&held.api.api_version(), &held.api.kind);
        match event {
            Event::Init => held.coming = Some(BTreeMap::new()),
            Event::InitApply(object) => {
                let object = typed(object);
                if let Some(coming) = &mut held.coming {
                    coming.insert(object.child.meta.uid.clone(), object);
                }
            }
            Event::InitDone => {
                held.objects = held.coming.take().unwrap_or_default();
                held.through = true;
                cluster.show(&held.api);
                return true;
            }
            Event::Apply(object) => {
                let object = typed(object);
                held.objects.insert(object.child.meta.uid.clone(), object);
                return true;
            }
            Event::Delete(object) => {
                held.objects.remove(&object.child.meta.uid);
                return true;
            }
            Event::Trouble(trouble) if matches!(trouble.cause, Cause::Forbidden) && !held.through => {
                cluster.hide(&held.api, "you may not list and watch it".to_owned());
                held.through = true;
                return true;
            }
            Event::Trouble(trouble) if matches!(trouble.cause, Cause::NotInstalled) => held.through = true,
            Event::Trouble(_) | Event::Alive => {}
        }
        false
    }
}

/// Something that a person would want to know of while waiting.
fn speaks(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::Unauthorized | Cause::Connection | Cause::Stalled | Cause::ServerError | Cause::Throttled
    )
}

/// The same without the text of the object.
fn lean(event: Event<Child>) -> Event<Parent> {
    match event {
        Event::Init => Event::Init,
        Event::InitApply(child) => Event::InitApply(Parent::lean(child)),
        Event::InitDone => Event::InitDone,
        Event::Apply(child) => Event::Apply(Parent::lean(child)),
        Event::Delete(child) => Event::Delete(Parent::lean(child)),
        Event::Alive => Event::Alive,
        Event::Trouble(trouble) => Event::Trouble(trouble),
    }
}

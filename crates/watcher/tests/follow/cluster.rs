//! A sandbox server and one kind of it that is followed, seen as a consumer sees it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use sandbox::{Act, Fault, FaultHandle, Options, Server, Verb};
use serde_json::{Value, json};
use tokio::time::timeout;
use watcher::{ApiKind, Cause, Event, FollowOptions, Trouble, Wire, follow, resolve};

/// Longer than anything here takes, shorter than patience.
const PATIENCE: Duration = Duration::from_secs(20);

/// What suits a test: watches of one to two seconds, everything else in milliseconds.
pub(crate) fn hasty() -> FollowOptions {
    let millis = Duration::from_millis;
    FollowOptions {
        watch: millis(1_000)..millis(2_500),
        grace: millis(300),
        read: millis(500),
        brief: millis(200),
        backoff: timer::Backoff { base: millis(20), cap: millis(300) },
        ..FollowOptions::new(timer::Seed(1))
    }
}

/// A server, and a client without hidden retries.
pub(crate) struct Cluster {
    pub(crate) server: Server,
    pub(crate) client: kube::Client,
}

impl Cluster {
    pub(crate) async fn new() -> Self {
        Cluster::of(Server::start(Options::default()).await.unwrap())
    }

    pub(crate) fn of(server: Server) -> Self {
        let client = watcher::client(kube::Config::new(server.url().parse().unwrap())).unwrap();
        Cluster { server, client }
    }

    pub(crate) fn create(&self, object: Value) {
        let now = self.server.now();
        self.server.store().create_with_status(now, object).unwrap();
    }

    /// Deployments of these names.
    pub(crate) fn with(self, names: &[&str]) -> Self {
        for name in names {
            self.create(deployment(name));
        }
        self
    }

    pub(crate) fn delete(&self, name: &str) {
        let now = self.server.now();
        assert!(self.server.store().delete(now, "apps/v1", "Deployment", "default", name).unwrap());
    }

    pub(crate) fn on_lists(&self, act: Act) -> FaultHandle {
        self.server.faults().add(Fault::new(act).on(Verb::List).once())
    }

    pub(crate) fn on_watches(&self, act: Act) -> FaultHandle {
        self.server.faults().add(Fault::new(act).on(Verb::Watch).once())
    }

    pub(crate) async fn kind(&self, group: &str, kind: &str) -> ApiKind {
        resolve(&self.client, group, None, kind).await.unwrap().unwrap()
    }

    pub(crate) async fn follow(&self) -> Mirror<watcher::Parent> {
        self.follow_with(hasty()).await
    }

    pub(crate) async fn follow_with<K: Wire>(&self, options: FollowOptions) -> Mirror<K> {
        let kind = self.kind("apps", "Deployment").await;
        Mirror::new(follow(&self.client, &kind, None, options))
    }

    /// How often this was asked of Deployments.
    pub(crate) fn asked(&self, verb: Verb) -> usize {
        self.server.requests().iter().filter(|r| r.verb == verb && r.path.ends_with("deployments")).count()
    }
}

pub(crate) fn deployment(name: &str) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "main"}]},
            },
        },
    })
}

/// What a consumer knows: marked while a list runs, swept when it is done.
pub(crate) struct Mirror<K> {
    events: Pin<Box<dyn Stream<Item = Event<K>> + Send>>,
    rows: BTreeMap<String, (u64, K)>,
    epoch: u64,
    pub(crate) lists: u64,
    /// Whether the server answered since the last list: it did so to a watch.
    watching: bool,
    pub(crate) troubles: Vec<Trouble>,
}

impl<K: Wire> Mirror<K> {
    pub(crate) fn new(events: impl Stream<Item = Event<K>> + Send + 'static) -> Self {
        let (rows, troubles) = (BTreeMap::new(), Vec::new());
        Mirror { events: Box::pin(events), rows, epoch: 0, lists: 0, watching: false, troubles }
    }

    /// Hears events until what is known meets `wish`.
    pub(crate) async fn until(&mut self, what: &str, wish: impl Fn(&Self) -> bool) {
        let heard = async {
            while !wish(self) {
                let event = self.events.next().await.unwrap();
                self.hear(event);
            }
        };
        let heard = timeout(PATIENCE, heard).await;
        assert!(heard.is_ok(), "never {what}; known: {:?}, troubles: {:?}", self.names(), self.troubles);
    }

    /// Hears events until exactly these are known, at the end of a list or after it.
    pub(crate) async fn knows(&mut self, names: &[&str]) {
        let what = format!("knew {names:?}");
        self.until(&what, |mirror| mirror.lists > 0 && mirror.names() == names).await;
    }

    /// Hears events until a list is done and a watch stands.
    pub(crate) async fn watches(&mut self) {
        self.until("watched", |mirror| mirror.watching).await;
    }

    /// Hears events until this trouble was reported.
    pub(crate) async fn hears_of(&mut self, cause: Cause) {
        let what = format!("heard of {cause:?}");
        self.until(&what, |mirror| mirror.troubles.iter().any(|trouble| trouble.cause == cause)).await;
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.rows.values().map(|(_, object)| &*object.meta().name).collect()
    }

    fn hear(&mut self, event: Event<K>) {
        match event {
            Event::Init => {
                self.epoch += 1;
                self.watching = false;
            }
            Event::InitApply(object) | Event::Apply(object) => {
                let meta = object.meta();
                self.rows.insert(format!("{}/{}", meta.name, meta.uid), (self.epoch, object));
            }
            Event::InitDone => {
                self.rows.retain(|_, (epoch, _)| *epoch == self.epoch);
                self.lists += 1;
            }
            Event::Delete(object) => {
                let meta = object.meta();
                self.rows.remove(&format!("{}/{}", meta.name, meta.uid));
            }
            Event::Alive => self.watching = self.lists > 0 && self.lists == self.epoch,
            Event::Trouble(trouble) => self.troubles.push(trouble),
        }
    }
}

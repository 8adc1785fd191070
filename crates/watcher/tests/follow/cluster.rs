//! A sandbox server with one followed kind, seen as a consumer sees it.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use futures::{Stream, StreamExt};
use sandbox::{FaultAction, FaultHandle, InjectedFault, RequestVerb, SandboxOptions, SandboxServer};
use serde_json::{Value, json};
use tokio::time::timeout;
use watcher::{
    ApiFailureCause, ApiKind, FollowEvent, FollowFailure, FollowOptions, WireObject, follow, resolve_kind,
};

/// Longer than anything in these tests takes, and shorter than the test timeout.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Options for tests: watches of one to two seconds, everything else in milliseconds.
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
pub(crate) struct FollowedCluster {
    pub(crate) server: SandboxServer,
    pub(crate) client: kube::Client,
}

impl FollowedCluster {
    pub(crate) async fn new() -> Self {
        FollowedCluster::of(SandboxServer::start(SandboxOptions::default()).await.unwrap())
    }

    pub(crate) fn of(server: SandboxServer) -> Self {
        let client =
            watcher::client_without_retries(kube::Config::new(server.url().parse().unwrap())).unwrap();
        FollowedCluster { server, client }
    }

    pub(crate) fn create(&self, object: Value) {
        let now = self.server.now();
        self.server.lock_store().create_with_status(now, object).unwrap();
    }

    /// Adds Deployments of these names.
    pub(crate) fn with(self, names: &[&str]) -> Self {
        for name in names {
            self.create(deployment(name));
        }
        self
    }

    pub(crate) fn delete(&self, name: &str) {
        let now = self.server.now();
        assert!(
            self.server.lock_store().delete_object(now, "apps/v1", "Deployment", "default", name).unwrap()
        );
    }

    pub(crate) fn on_lists(&self, act: FaultAction) -> FaultHandle {
        self.server.faults().add(InjectedFault::new(act).on_verb(RequestVerb::List).once())
    }

    pub(crate) fn on_watches(&self, act: FaultAction) -> FaultHandle {
        self.server.faults().add(InjectedFault::new(act).on_verb(RequestVerb::Watch).once())
    }

    pub(crate) async fn kind(&self, group: &str, kind: &str) -> ApiKind {
        resolve_kind(&self.client, group, None, kind).await.unwrap().unwrap()
    }

    pub(crate) async fn follow(&self) -> ConsumerMirror<watcher::ParentObject> {
        self.follow_with(hasty()).await
    }

    pub(crate) async fn follow_with<K: WireObject>(&self, options: FollowOptions) -> ConsumerMirror<K> {
        let kind = self.kind("apps", "Deployment").await;
        ConsumerMirror::new(follow(&self.client, &kind, None, options))
    }

    /// Number of requests for Deployments with this verb.
    pub(crate) fn asked(&self, verb: RequestVerb) -> usize {
        self.server
            .logged_requests()
            .iter()
            .filter(|r| r.verb == verb && r.path.ends_with("deployments"))
            .count()
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

/// State of a consumer: marked during a list, swept when it is complete.
pub(crate) struct ConsumerMirror<K> {
    events: Pin<Box<dyn Stream<Item = FollowEvent<K>> + Send>>,
    rows: BTreeMap<String, (u64, K)>,
    epoch: u64,
    pub(crate) lists: u64,
    /// The server has answered a watch since the last list.
    watching: bool,
    pub(crate) troubles: Vec<FollowFailure>,
}

impl<K: WireObject> ConsumerMirror<K> {
    pub(crate) fn new(events: impl Stream<Item = FollowEvent<K>> + Send + 'static) -> Self {
        let (rows, troubles) = (BTreeMap::new(), Vec::new());
        ConsumerMirror { events: Box::pin(events), rows, epoch: 0, lists: 0, watching: false, troubles }
    }

    /// Processes events until the state satisfies `wish`.
    pub(crate) async fn until(&mut self, what: &str, wish: impl Fn(&Self) -> bool) {
        let heard = async {
            while !wish(self) {
                let event = self.events.next().await.unwrap();
                self.hear(event);
            }
        };
        let heard = timeout(TEST_TIMEOUT, heard).await;
        assert!(heard.is_ok(), "never {what}; known: {:?}, troubles: {:?}", self.names(), self.troubles);
    }

    /// Processes events until exactly these objects are known, at the end of a list or later.
    pub(crate) async fn knows(&mut self, names: &[&str]) {
        let what = format!("knew {names:?}");
        self.until(&what, |mirror| mirror.lists > 0 && mirror.names() == names).await;
    }

    /// Processes events until a list is complete and a watch stands.
    pub(crate) async fn watches(&mut self) {
        self.until("watched", |mirror| mirror.watching).await;
    }

    /// Processes events until this failure was reported.
    pub(crate) async fn hears_of(&mut self, cause: ApiFailureCause) {
        let what = format!("heard of {cause:?}");
        self.until(&what, |mirror| mirror.troubles.iter().any(|trouble| trouble.cause == cause)).await;
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.rows.values().map(|(_, object)| &*object.meta().name).collect()
    }

    fn hear(&mut self, event: FollowEvent<K>) {
        match event {
            FollowEvent::Init => {
                self.epoch += 1;
                self.watching = false;
            }
            FollowEvent::InitApply(object) | FollowEvent::Apply(object) => {
                let meta = object.meta();
                self.rows.insert(format!("{}/{}", meta.name, meta.uid), (self.epoch, object));
            }
            FollowEvent::InitDone => {
                self.rows.retain(|_, (epoch, _)| *epoch == self.epoch);
                self.lists += 1;
            }
            FollowEvent::Delete(object) => {
                let meta = object.meta();
                self.rows.remove(&format!("{}/{}", meta.name, meta.uid));
            }
            FollowEvent::Alive => self.watching = self.lists > 0 && self.lists == self.epoch,
            FollowEvent::Failure(trouble) => self.troubles.push(trouble),
        }
    }
}

//! `follow` one kind: everything there is, then everything that changes, for as long as somebody listens.
//!
//! kube-runtime's `watcher` lists and watches; the [guard](crate::guard) below it paces it, and what remains is decided
//! here: when its place in the history is given up for a new list, and what is said about trouble.

mod cause;
mod row;

use std::collections::VecDeque;
use std::hash::Hasher;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt, stream};
use kube::Api;
use kube::api::ApiResource;
use kube::runtime::watcher;
use timer::{Backoff, Seed};
use tokio::sync::mpsc;

use crate::event::{Cause, Event, Trouble, Wire};
use crate::guard::{Guard, Limits, Pace, Shared, Signal};
use crate::kind::ApiKind;
pub(crate) use cause::is_stall;
use row::{Read, Row};

/// How a kind is followed.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// Where lengths of watches and waits come from; the kind is mixed in, so that kinds do not move in step.
    pub seed: Seed,
    /// Only objects with these labels (a label selector).
    pub labels: Option<String>,
    /// Only objects with these fields (a field selector, as far as the kind has any).
    pub fields: Option<String>,
    /// Objects per page of a list.
    pub page: u32,
    /// How long a watch stands before it is opened anew. This is the heartbeat: servers promise no other.
    pub watch: Range<Duration>,
    /// How long after that the server may take to end it, before the connection is given up.
    pub grace: Duration,
    /// How long a response, or the next part of a list, may take.
    pub read: Duration,
    /// A watch shorter than this has failed, whatever came over it.
    pub brief: Duration,
    /// How long to wait after failures.
    pub backoff: Backoff,
}

impl FollowOptions {
    /// What suits a real cluster: watches of 60 to 90 s, pages of 500, waits from 200 ms to 30 s.
    pub fn new(seed: Seed) -> Self {
        FollowOptions {
            seed,
            labels: None,
            fields: None,
            page: 500,
            watch: Duration::from_secs(60)..Duration::from_secs(90),
            grace: Duration::from_secs(10),
            read: Duration::from_secs(30),
            brief: Duration::from_secs(5),
            backoff: Backoff { base: Duration::from_millis(200), cap: Duration::from_secs(30) },
        }
    }
}

/// Follows one kind, in one namespace or all. The stream never ends and never needs to be polled again by a timer; it must
/// be polled within a tokio runtime.
pub fn follow<K: Wire>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
    options: FollowOptions,
) -> impl Stream<Item = Event<K>> + Send + use<K> {
    let (client, kind, namespace) = (client.clone(), kind.clone(), namespace.map(str::to_owned));
    let following = async move { Box::new(Following::new(&client, &kind, namespace, options)) };
    following
        .map(|following| {
            stream::unfold(following, |mut following| async { Some((following.next().await, following)) })
        })
        .flatten_stream()
}

struct Following<K: Wire> {
    source: Source,
    shared: Arc<Shared>,
    signals: mpsc::Receiver<Signal>,
    watcher: BoxStream<'static, watcher::Result<watcher::Event<Read<K>>>>,
    /// Said before anything new is asked for.
    pending: VecDeque<Event<K>>,
    /// How often in a row the server has refused to go on from our place in the history.
    refusals: u32,
    /// How many watches had stood when the last refusal came.
    stood: u64,
    careful: bool,
    /// How long to rest after failures, and whether to do so now.
    rest: Duration,
    tired: bool,
}

impl<K: Wire> Following<K> {
    fn new(client: &kube::Client, kind: &ApiKind, namespace: Option<String>, options: FollowOptions) -> Self {
        let seed = options.seed.derive(key(&kind.path(namespace.as_deref())));
        let pace = Pace::new(options.backoff, seed, options.brief);
        let rest = options.backoff.base;
        let FollowOptions { labels, fields, page, watch, grace, read, brief, .. } = options;
        let config = watcher::Config {
            label_selector: labels,
            field_selector: fields,
            page_size: Some(page),
            // The guard asks for less and its deadline comes first; kube's own, 5 s behind this, is the second line.
            timeout: Some((watch.end + grace).as_secs() as u32),
            ..watcher::Config::default()
        };
        let limits = Limits { watch, grace, read, brief, seed };
        let (client, shared, signals) = Guard::client(client, limits, pace);
        let namespace = namespace.filter(|_| kind.namespaced);
        let source = Source { client, resource: resource(kind), namespace, config };
        let watcher = source.watcher(false);
        let pending = VecDeque::new();
        let (refusals, stood, careful, tired) = (0, 0, false, false);
        Following { source, shared, signals, watcher, pending, refusals, stood, careful, rest, tired }
    }

    async fn next(&mut self) -> Event<K> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return event;
            }
            if std::mem::take(&mut self.tired) {
                // To a runtime that shuts down a task that never yields is one that never ends.
                tokio::task::yield_now().await;
                tokio::time::sleep(self.rest).await;
            }
            tokio::select! { biased;
                Some(signal) = self.signals.recv() => return match signal {
                    Signal::Alive => Event::Alive,
                    Signal::Trouble(trouble) => Event::Trouble(trouble),
                },
                said = self.watcher.next() => match said {
                    Some(Ok(event)) => self.hear(event),
                    Some(Err(error)) => self.stumble(&error),
                    None => self.start_over(),
                },
            }
        }
    }

    fn hear(&mut self, event: watcher::Event<Read<K>>) {
        match event {
            watcher::Event::Init => self.pending.push_back(Event::Init),
            watcher::Event::InitDone => self.pending.push_back(Event::InitDone),
            watcher::Event::InitApply(object) => self.hear_object(object, Event::InitApply),
            watcher::Event::Apply(object) => {
                self.refusals = 0;
                self.hear_object(object, Event::Apply);
            }
            watcher::Event::Delete(object) => {
                self.refusals = 0;
                self.hear_object(object, Event::Delete);
            }
        }
    }

    fn hear_object(&mut self, object: Read<K>, event: impl FnOnce(K) -> Event<K>) {
        match object {
            Ok(object) => self.pending.push_back(event(object)),
            Err(why) => {
                let trouble = Trouble { cause: Cause::Undecodable, detail: why.into() };
                self.pending.push_back(Event::Trouble(trouble));
            }
        }
    }

    /// Says what went wrong, and starts over with a list where going on would lose something or get nowhere.
    fn stumble(&mut self, error: &watcher::Error) {
        self.pending.push_back(Event::Trouble(cause::trouble(error)));
        // What fails before it reaches the guard, as where the client's own task has ended, is paced by nobody else.
        self.tired = cause::is_of_service(error);
        match error {
            watcher::Error::InitialListFailed(error) if cause::is_undecodable(error) => {
                self.shared.failed();
                self.careful();
            }
            watcher::Error::WatchFailed(error) if cause::is_undecodable(error) => {
                self.shared.doubt();
                self.careful();
            }
            watcher::Error::NoResourceVersion => self.shared.failed(),
            // kube lists anew by itself.
            watcher::Error::WatchError(status) if status.code == 410 => {}
            watcher::Error::WatchError(status)
            | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            | watcher::Error::WatchFailed(kube::Error::Api(status)) => self.refused(status.code),
            watcher::Error::InitialListFailed(_)
            | watcher::Error::WatchStartFailed(_)
            | watcher::Error::WatchFailed(_) => {}
        }
    }

    /// A watch was refused, by its status or in its stream. kube would ask for the same place in the history for ever.
    fn refused(&mut self, code: u16) {
        let stood = self.shared.stood();
        // Only a row of refusals counts, and a watch that stood in between has ended the row.
        self.refusals = if stood == self.stood { self.refusals + 1 } else { 1 };
        self.stood = stood;
        let hopeless = matches!(code, 400 | 404 | 410);
        // The server is still warming up: it will know later whether our place is gone.
        let patience = code == 429;
        if hopeless || (self.refusals >= 3 && !patience) {
            self.start_over();
        }
    }

    fn careful(&mut self) {
        self.careful = true;
        self.start_over();
    }

    fn start_over(&mut self) {
        self.refusals = 0;
        self.watcher = self.source.watcher(self.careful);
    }
}

/// What the watcher is made of, each time anew.
struct Source {
    client: kube::Client,
    resource: ApiResource,
    namespace: Option<String>,
    config: watcher::Config,
}

impl Source {
    fn watcher<K: Wire>(
        &self,
        careful: bool,
    ) -> BoxStream<'static, watcher::Result<watcher::Event<Read<K>>>> {
        if careful { self.rows::<K, true>() } else { self.rows::<K, false>() }
    }

    fn rows<K: Wire, const CAREFUL: bool>(
        &self,
    ) -> BoxStream<'static, watcher::Result<watcher::Event<Read<K>>>> {
        let client = self.client.clone();
        let api: Api<Row<K, CAREFUL>> = match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &self.resource),
            None => Api::all_with(client, &self.resource),
        };
        watcher(api, self.config.clone()).map(|said| said.map(objects)).boxed()
    }
}

fn objects<K, const CAREFUL: bool>(event: watcher::Event<Row<K, CAREFUL>>) -> watcher::Event<Read<K>> {
    match event {
        watcher::Event::Init => watcher::Event::Init,
        watcher::Event::InitApply(row) => watcher::Event::InitApply(row.object),
        watcher::Event::InitDone => watcher::Event::InitDone,
        watcher::Event::Apply(row) => watcher::Event::Apply(row.object),
        watcher::Event::Delete(row) => watcher::Event::Delete(row.object),
    }
}

fn resource(kind: &ApiKind) -> ApiResource {
    ApiResource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    }
}

/// A number for a kind, so that the seed treats each differently.
fn key(path: &str) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(path.as_bytes());
    hasher.finish()
}

//! `follow`: lists one kind and then watches it, until the stream is dropped.
//!
//! kube-runtime's `watcher` lists and watches; the [guard](crate::api_client::guard) below it paces its requests. This module
//! decides when the resume position is discarded for a relist, and which failures are reported.

mod failure;
mod watched_row;

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

use crate::api_client::guard::{
    GuardLimits, GuardSignal, GuardState, RequestGuard, RequestPacer, RetryTurns,
};
use crate::event::{ApiFailureCause, FollowEvent, FollowFailure, WireObject};
use crate::kind::ApiKind;
pub(crate) use failure::is_stall;
use watched_row::{DecodeResult, WatchedRow};

/// Options for following a kind.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// Seed of watch lengths and delays; the kind is mixed in, so that kinds do not act in lockstep.
    pub seed: Seed,
    /// Label selector that restricts the objects.
    pub labels: Option<String>,
    /// Field selector that restricts the objects, as far as the kind supports it.
    pub fields: Option<String>,
    /// Objects per page of a list.
    pub page: u32,
    /// Range of watch lengths: a watch is reopened after this time. This is the heartbeat, as servers promise no other.
    pub watch: Range<Duration>,
    /// Grace period for the server to end a watch before the connection is closed.
    pub grace: Duration,
    /// Longest time for a response, or for the next part of a list.
    pub read: Duration,
    /// A watch shorter than this has failed, whatever came over it; one that stands for this time is a sign of life.
    pub brief: Duration,
    /// Time without a sign of life after which no watch is resumed, and the kind is listed again: a watch that goes on from
    /// its old place does not say when it has brought all that happened meanwhile.
    pub blind: Duration,
    /// Backoff after failures.
    pub backoff: Backoff,
    /// Turns of requests that follow a failure: share them among the follows of one server.
    pub turns: Arc<RetryTurns>,
}

impl FollowOptions {
    /// What suits a real cluster: watches of 60 to 90 s, pages of 500, waits from 200 ms to 30 s, a list after 80 s of
    /// blindness. Bookmarks come every 60 s; and with the longest wait it is still within the two minutes after which a
    /// kind is stale, so that one whose watches all break is seen by its lists.
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
            blind: Duration::from_secs(80),
            backoff: Backoff { base: Duration::from_millis(200), cap: Duration::from_secs(30) },
            turns: Arc::default(),
        }
    }
}

/// Follows one kind, in one namespace or in all. The stream never ends and needs no timer to be polled again; it must
/// be polled within a tokio runtime.
pub fn follow<K: WireObject>(
    client: &kube::Client,
    kind: &ApiKind,
    namespace: Option<&str>,
    options: FollowOptions,
) -> impl Stream<Item = FollowEvent<K>> + Send + use<K> {
    let (client, kind, namespace) = (client.clone(), kind.clone(), namespace.map(str::to_owned));
    let following = async move { Box::new(FollowState::new(&client, &kind, namespace, options)) };
    following
        .map(|following| {
            stream::unfold(following, |mut following| async { Some((following.next().await, following)) })
        })
        .flatten_stream()
}

struct FollowState<K: WireObject> {
    source: WatcherSource,
    shared: Arc<GuardState>,
    signals: mpsc::Receiver<GuardSignal>,
    watcher: BoxStream<'static, watcher::Result<watcher::Event<DecodeResult<K>>>>,
    /// Events to deliver before the next request.
    pending: VecDeque<FollowEvent<K>>,
    /// Number of consecutive times that the server refused to resume the watch.
    refusals: u32,
    /// Number of stable watches at the time of the last refusal.
    stable_watches_seen: u64,
    lenient: bool,
    /// Delay after failures, and whether it is due now.
    failure_rest: Duration,
    rest_due: bool,
}

impl<K: WireObject> FollowState<K> {
    fn new(client: &kube::Client, kind: &ApiKind, namespace: Option<String>, options: FollowOptions) -> Self {
        let seed = options.seed.derive(hash_path(&kind.list_path(namespace.as_deref())));
        let pace = RequestPacer::new(options.backoff, seed, options.brief);
        let rest = options.backoff.base;
        let FollowOptions { labels, fields, page, watch, grace, read, brief, blind, turns, .. } = options;
        let config = watcher::Config {
            label_selector: labels,
            field_selector: fields,
            page_size: Some(page),
            // The guard asks for less and its deadline comes first; kube's own deadline, 5 s later, is the second line.
            timeout: Some(u32::try_from((watch.end + grace).as_secs()).unwrap_or(u32::MAX)),
            ..watcher::Config::default()
        };
        let limits = GuardLimits { watch, grace, read, brief, blind, seed };
        let (client, shared, signals) = RequestGuard::wrap_client(client, limits, pace, turns);
        let namespace = namespace.filter(|_| kind.namespaced);
        let source = WatcherSource { client, resource: to_api_resource(kind), namespace, config };
        let watcher = source.open_watcher(false);
        let pending = VecDeque::new();
        let (refusals, stood, careful, tired) = (0, 0, false, false);
        FollowState {
            source,
            shared,
            signals,
            watcher,
            pending,
            refusals,
            stable_watches_seen: stood,
            lenient: careful,
            failure_rest: rest,
            rest_due: tired,
        }
    }

    async fn next(&mut self) -> FollowEvent<K> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return event;
            }
            if std::mem::take(&mut self.rest_due) {
                // A runtime cannot shut down a task that never yields.
                tokio::task::yield_now().await;
                tokio::time::sleep(self.failure_rest).await;
            }
            tokio::select! { biased;
                Some(signal) = self.signals.recv() => return match signal {
                    GuardSignal::Alive => FollowEvent::Alive,
                    GuardSignal::Failure(trouble) => FollowEvent::Failure(trouble),
                },
                said = self.watcher.next() => match said {
                    Some(Ok(event)) => self.on_event(event),
                    Some(Err(error)) => self.on_error(&error),
                    None => self.start_relist(),
                },
            }
        }
    }

    fn on_event(&mut self, event: watcher::Event<DecodeResult<K>>) {
        match event {
            watcher::Event::Init => self.pending.push_back(FollowEvent::Init),
            watcher::Event::InitDone => {
                self.shared.on_listed();
                self.pending.push_back(FollowEvent::InitDone);
            }
            watcher::Event::InitApply(object) => self.on_object(object, FollowEvent::InitApply),
            watcher::Event::Apply(object) => {
                self.refusals = 0;
                self.on_object(object, FollowEvent::Apply);
            }
            watcher::Event::Delete(object) => {
                self.refusals = 0;
                self.on_object(object, FollowEvent::Delete);
            }
        }
    }

    fn on_object(&mut self, object: DecodeResult<K>, event: impl FnOnce(K) -> FollowEvent<K>) {
        match object {
            Ok(object) => self.pending.push_back(event(object)),
            Err(why) => {
                let trouble = FollowFailure { cause: ApiFailureCause::Undecodable, detail: why.into() };
                self.pending.push_back(FollowEvent::Failure(trouble));
            }
        }
    }

    /// Reports the failure, and starts a relist if resuming would lose events or never succeed.
    fn on_error(&mut self, error: &watcher::Error) {
        if failure::is_blind(error) {
            return self.start_relist();
        }
        self.pending.push_back(FollowEvent::Failure(failure::describe_failure(error)));
        // A failure before the guard, as after the end of the client's own task, is not paced anywhere else.
        self.rest_due = failure::is_service_error(error);
        match error {
            watcher::Error::InitialListFailed(error) if failure::is_undecodable(error) => {
                self.shared.note_failure();
                self.relist_leniently();
            }
            watcher::Error::WatchFailed(error) if failure::is_undecodable(error) => {
                self.shared.note_unreadable_watch();
                self.relist_leniently();
            }
            watcher::Error::NoResourceVersion => self.shared.note_failure(),
            // kube relists by itself.
            watcher::Error::WatchError(status) if status.code == 410 => {}
            watcher::Error::WatchError(status)
            | watcher::Error::WatchStartFailed(kube::Error::Api(status))
            | watcher::Error::WatchFailed(kube::Error::Api(status)) => self.on_refusal(status.code),
            watcher::Error::InitialListFailed(_)
            | watcher::Error::WatchStartFailed(_)
            | watcher::Error::WatchFailed(_) => {}
        }
    }

    /// Handles a watch that was refused by its status or in its stream. kube would retry the same resourceVersion
    /// forever.
    fn on_refusal(&mut self, code: u16) {
        let stood = self.shared.count_stable_watches();
        // Only consecutive refusals count, and a stable watch in between resets the count.
        self.refusals = if stood == self.stable_watches_seen { self.refusals + 1 } else { 1 };
        self.stable_watches_seen = stood;
        let hopeless = matches!(code, 400 | 404 | 410);
        // The server is still starting: it will know later whether the resourceVersion has expired.
        let server_is_starting = code == 429;
        if hopeless || (self.refusals >= 3 && !server_is_starting) {
            self.start_relist();
        }
    }

    fn relist_leniently(&mut self) {
        self.lenient = true;
        self.start_relist();
    }

    fn start_relist(&mut self) {
        self.refusals = 0;
        self.watcher = self.source.open_watcher(self.lenient);
    }
}

/// Parameters from which a watcher is created, again for each relist.
struct WatcherSource {
    client: kube::Client,
    resource: ApiResource,
    namespace: Option<String>,
    config: watcher::Config,
}

impl WatcherSource {
    fn open_watcher<K: WireObject>(
        &self,
        careful: bool,
    ) -> BoxStream<'static, watcher::Result<watcher::Event<DecodeResult<K>>>> {
        if careful { self.open_row_watcher::<K, true>() } else { self.open_row_watcher::<K, false>() }
    }

    fn open_row_watcher<K: WireObject, const CAREFUL: bool>(
        &self,
    ) -> BoxStream<'static, watcher::Result<watcher::Event<DecodeResult<K>>>> {
        let client = self.client.clone();
        let api: Api<WatchedRow<K, CAREFUL>> = match &self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &self.resource),
            None => Api::all_with(client, &self.resource),
        };
        watcher(api, self.config.clone()).map(|said| said.map(unwrap_rows)).boxed()
    }
}

fn unwrap_rows<K, const CAREFUL: bool>(
    event: watcher::Event<WatchedRow<K, CAREFUL>>,
) -> watcher::Event<DecodeResult<K>> {
    match event {
        watcher::Event::Init => watcher::Event::Init,
        watcher::Event::InitApply(row) => watcher::Event::InitApply(row.object),
        watcher::Event::InitDone => watcher::Event::InitDone,
        watcher::Event::Apply(row) => watcher::Event::Apply(row.object),
        watcher::Event::Delete(row) => watcher::Event::Delete(row.object),
    }
}

fn to_api_resource(kind: &ApiKind) -> ApiResource {
    ApiResource {
        group: kind.group.clone(),
        version: kind.version.clone(),
        api_version: kind.api_version(),
        kind: kind.kind.clone(),
        plural: kind.plural.clone(),
    }
}

/// Returns a number for a kind, so that the seed treats each kind differently.
fn hash_path(path: &str) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    hasher.write(path.as_bytes());
    hasher.finish()
}

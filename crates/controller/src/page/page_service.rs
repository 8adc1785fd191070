//! What the handlers of the page share, and the task that keeps its subscribers up to date.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use watcher::reflector::Reflector;

use super::authz::PageAuthorizer;
use super::below_search::BelowSearch;
use super::loop_query::LoopQuery;
use super::past_rollouts::PastRollouts;
use super::rollout_reader::LiveRolloutReader;
use super::ttl_cache::TtlCache;
use super::view_cache::ViewCache;
use crate::clock::ServerClock;
use crate::kind_tasks::ResolvedKinds;
use crate::metrics::Metrics;
use crate::snapshot::StatsSnapshot;
use crate::transitions::TransitionHub;

/// Maximum number of open streams.
pub(super) const MAX_STREAMS: usize = 1_000;
/// Maximum number of concurrent live reads.
const MAX_CONCURRENT_INSPECTIONS: usize = 4;
/// Time for which the context of an object is cached, for all viewers. 5 s.
const AROUND_CACHE_TTL: Duration = Duration::from_secs(5);
/// Maximum number of cached contexts.
const AROUND_CACHE_SIZE: usize = 64;
/// Interval at which what was read for viewers is freed, where it is too old to be used. 30 s.
const CACHE_SWEEP_INTERVAL: Duration = Duration::from_secs(30);

/// Uid of an object, and the resources of its context that the viewer may not read.
type AroundKey = (Box<str>, BTreeSet<&'static str>);

/// The page and its API.
#[derive(Clone)]
pub(crate) struct PageService(pub(super) Arc<PageParts>);

/// What the handlers of the page share.
pub(super) struct PageParts {
    pub(super) views: Arc<ViewCache>,
    pub(super) authz: PageAuthorizer,
    pub(super) client: kube::Client,
    pub(super) resolved: ResolvedKinds,
    pub(super) metrics: Arc<Metrics>,
    pub(super) streams: Arc<Semaphore>,
    /// Limits concurrent live reads for viewers who inspect an object.
    pub(super) inspections: Arc<Semaphore>,
    pub(super) around: TtlCache<AroundKey, Value>,
    pub(super) below: BelowSearch,
    pub(super) rollouts: LiveRolloutReader,
    pub(super) past_rollouts: Arc<PastRollouts>,
    pub(super) stop: CancellationToken,
}

/// Configuration and dependencies of the page.
pub(crate) struct PageConfig {
    /// Reviews the viewers.
    pub(crate) authz: PageAuthorizer,
    /// Kubernetes client.
    pub(crate) client: kube::Client,
    /// Reflector that holds the cached objects.
    pub(crate) reflector: Arc<Reflector>,
    /// Resolved API endpoints of kinds.
    pub(crate) resolved: ResolvedKinds,
    /// Counter of streams.
    pub(crate) metrics: Arc<Metrics>,
    /// The API server's clock.
    pub(crate) clock: ServerClock,
    /// Queries to the event loop.
    pub(crate) queries: mpsc::Sender<LoopQuery>,
    /// Changes if any object changed.
    pub(crate) snapshot: watch::Receiver<Arc<StatsSnapshot>>,
    /// Recent transitions of each parent.
    pub(crate) transitions: Weak<TransitionHub>,
    /// Ends the streams.
    pub(crate) stop: CancellationToken,
}

impl PageService {
    /// Creates the page.
    pub(crate) fn new(setting: PageConfig) -> PageService {
        let PageConfig {
            authz,
            client,
            reflector,
            resolved: known,
            metrics,
            clock,
            queries: asks,
            snapshot,
            transitions,
            stop,
        } = setting;
        let inspections = Arc::new(Semaphore::new(MAX_CONCURRENT_INSPECTIONS));
        let below = BelowSearch::new(client.clone(), reflector.clone(), clock.clone(), inspections.clone());
        let rollouts = LiveRolloutReader::new(client.clone());
        PageService(Arc::new(PageParts {
            views: Arc::new(ViewCache::new(reflector, clock.clone(), asks, snapshot, transitions)),
            authz,
            client,
            resolved: known,
            metrics,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            inspections,
            around: TtlCache::new(AROUND_CACHE_TTL, AROUND_CACHE_SIZE),
            below,
            rollouts,
            past_rollouts: Arc::default(),
            stop,
        }))
    }

    /// Where rollouts that ended are kept for viewers.
    pub(crate) fn past_rollouts(&self) -> Arc<PastRollouts> {
        self.0.past_rollouts.clone()
    }

    /// Updates subscribers until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let views = self.0.views.clone().run(stop);
        let sweeps = async {
            loop {
                tokio::time::sleep(CACHE_SWEEP_INTERVAL).await;
                self.0.around.remove_expired(self.0.views.clock.now());
                self.0.below.remove_expired();
                self.0.rollouts.remove_expired(self.0.views.clock.now());
            }
        };
        tokio::select! {
            ended = views => ended,
            () = sweeps => Ok(()),
        }
    }
}

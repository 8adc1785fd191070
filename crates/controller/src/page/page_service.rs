//! What the handlers of the page share, and the task that keeps its subscribers up to date.

use std::sync::{Arc, Weak};

use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;
use watcher::reflector::Reflector;

use super::around_cache::AroundCache;
use super::authz::PageAuthorizer;
use super::view_cache::{LoopQuery, ViewCache};
use crate::clock::ServerClock;
use crate::kind_tasks::ResolvedKinds;
use crate::metrics::Metrics;
use crate::snapshot::StatsSnapshot;
use crate::transitions::TransitionHub;

/// Maximum number of open streams.
pub(super) const MAX_STREAMS: usize = 1_000;
/// Maximum number of concurrent live reads.
const MAX_CONCURRENT_INSPECTIONS: usize = 4;

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
    pub(super) inspections: Semaphore,
    pub(super) around: AroundCache,
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
        PageService(Arc::new(PageParts {
            views: Arc::new(ViewCache::new(reflector, clock.clone(), asks, snapshot, transitions)),
            authz,
            client,
            resolved: known,
            metrics,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
            inspections: Semaphore::new(MAX_CONCURRENT_INSPECTIONS),
            around: AroundCache::default(),
            stop,
        }))
    }

    /// Updates subscribers until `stop`.
    pub(crate) async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        self.0.views.clone().run(stop).await
    }
}

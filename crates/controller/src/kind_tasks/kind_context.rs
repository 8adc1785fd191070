//! What the tasks of all kinds share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use aggregator::KindId;
use dashmap::DashMap;
use policy::PolicyReason;
use timer::Seed;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, Semaphore, watch};
use watcher::reflector::Reflector;
use watcher::{ApiKind, FollowOptions, RetryTurns};

use super::history_breaks::HistoryBreaks;
use super::watch_doubts::WatchDoubts;
use crate::failure_reporter::FailureReporter;
use crate::lease::Leadership;
use crate::metrics::Metrics;
use crate::own_watches::OwnWatches;
use rollcall_core::KindEvent;

/// A kind as the server serves it. By what its objects are judged, the reflector knows.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedKind {
    /// The kind.
    pub(crate) id: KindId,
    /// API endpoint of the kind.
    pub(crate) api: ApiKind,
    /// Doubts whether it still is that, and whether its watch delivers what happens.
    pub(crate) doubts: Arc<WatchDoubts>,
    /// Number of objects that the server had when it was listed last, whether they count or not; 0 before.
    pub(crate) listed: Arc<AtomicUsize>,
    /// Newest version that the server has shown of it; 0 before any.
    newest: Arc<AtomicU64>,
}

impl ResolvedKind {
    /// A kind that was found so, and was not listed yet.
    pub(crate) fn new(id: KindId, api: ApiKind) -> ResolvedKind {
        ResolvedKind { id, api, doubts: Arc::default(), listed: Arc::default(), newest: Arc::default() }
    }

    /// The server has shown this version, of an object or of the list.
    pub(super) fn note_version(&self, version: u64) {
        self.newest.fetch_max(version, Ordering::Relaxed);
    }

    /// Newest version that the server has shown.
    pub(super) fn newest_version(&self) -> u64 {
        self.newest.load(Ordering::Relaxed)
    }

    /// What the server had shown is gone.
    pub(super) fn forget_versions(&self) {
        self.newest.store(0, Ordering::Relaxed);
    }
}

/// Resolved kinds by id, for the writer and for live reads.
pub(crate) type ResolvedKinds = Arc<DashMap<KindId, Arc<ResolvedKind>>>;

/// Shared context of the kinds' tasks.
#[derive(Clone)]
pub(crate) struct KindContext {
    /// Kubernetes client with timeouts.
    pub(crate) client: kube::Client,
    /// Reflector that ingests the objects.
    pub(crate) reflector: Arc<Reflector>,
    /// Kinds resolved so far.
    pub(crate) resolved: ResolvedKinds,
    /// Events for the event loop.
    pub(crate) kind_events: UnboundedSender<(KindId, KindEvent)>,
    /// Namespaces to follow; empty for all.
    pub(crate) namespaces: Vec<String>,
    /// ClusterRole into which the roles of policies are aggregated, in commands that grant what lacks.
    pub(crate) aggregate_to: String,
    /// Seed that spreads watch durations and waits.
    pub(crate) seed: Seed,
    /// Turns of reads that follow a failure.
    pub(crate) turns: Arc<RetryTurns>,
    /// Histogram of children's run durations.
    pub(crate) metrics: Arc<Metrics>,
    /// Context of Rollcall's own records.
    pub(crate) records: RecordsContext,
    /// Reports what keeps failing.
    pub(crate) failures: FailureReporter,
    /// Signals that the API server refused something for want of a right.
    pub(crate) refusals: Arc<Notify>,
    /// Signals each evaluation of a custom rule.
    pub(crate) judged: Arc<Notify>,
    /// Tells that the server's history has gone back.
    pub(crate) breaks: HistoryBreaks,
    /// Notes the health of the watches that the service itself rests on.
    pub(crate) own_watches: OwnWatches,
}

impl KindContext {
    /// How a kind is followed: with what all follows of the process share.
    pub(crate) fn follow_options(&self) -> FollowOptions {
        FollowOptions { turns: self.turns.clone(), ..FollowOptions::new(self.seed) }
    }
}

/// Maximum number of searches of Events for outcomes of Jobs that are under way at once.
pub(crate) const MAX_EVENT_SEARCHES: usize = 4;

/// Context of Rollcall's own records.
#[derive(Clone)]
pub(crate) struct RecordsContext {
    /// Namespace of the records.
    pub(crate) namespace: String,
    /// Signals that records have to be updated.
    pub(crate) moved: Arc<Notify>,
    /// Leadership: only the leader writes records.
    pub(crate) leadership: Leadership,
    /// Turns of the searches of Events.
    pub(crate) searches: Arc<Semaphore>,
    /// Why outcomes cannot be saved, while they cannot.
    pub(crate) trouble: watch::Sender<Option<RecordsTrouble>>,
}

/// Why outcomes of Jobs cannot be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordsTrouble {
    /// Reason of a policy's condition.
    pub(crate) reason: PolicyReason,
    /// What is wrong, and the command that mends it.
    pub(crate) message: String,
}

//! The channels between the tasks of the service.

use std::sync::Arc;

use aggregator::KindId;
use policy::WatchPlan;
use rollcall_core::{KindEvent, ParentWrite};
use tokio::sync::mpsc::{self, Receiver, Sender, UnboundedReceiver, UnboundedSender};
use tokio::sync::watch;

use crate::event_recorder::{EventNotice, NoticeSender};
use crate::history::RolloutLine;
use crate::kind_tasks::{KindRequest, RecordsTrouble};
use crate::live_reader::{Drift, ReadOrder};
use crate::metrics::Metrics;
use crate::own_watches::OwnWatchStates;
use crate::page::{LOOP_QUERY_QUEUE_SIZE, LoopQuery};
use crate::parent_writer::SettledWrite;
use crate::snapshot::StatsSnapshot;

/// Maximum number of rollouts that wait for the history writer, which takes them as they come.
const STORED_ROLLOUT_QUEUE_SIZE: usize = 16;

/// Both ends of a queue that never refuses.
pub(super) type Queue<T> = (UnboundedSender<T>, UnboundedReceiver<T>);
/// Both ends of a value of which the latest counts.
pub(super) type Latest<T> = (watch::Sender<T>, watch::Receiver<T>);

/// Both ends of every channel, by what goes through it.
pub(super) struct ServiceChannels {
    /// From the tasks that follow kinds to the event loop.
    pub(super) kind_events: Queue<(KindId, KindEvent)>,
    /// From the policy watch to the event loop.
    pub(super) plans: Queue<Arc<WatchPlan>>,
    /// From the event loop to the policy watch.
    pub(super) kind_requests: Queue<KindRequest>,
    /// From the event loop to the parent writer.
    pub(super) writes: Queue<ParentWrite>,
    /// From the parent writer to the event loop.
    pub(super) settled: Queue<SettledWrite>,
    /// From the event loop to the resync.
    pub(super) live_reads: Queue<ReadOrder>,
    /// From the parent writer to the resync.
    pub(super) write_drifts: Queue<Vec<Drift>>,
    /// From the page to the event loop.
    pub(super) queries: (Sender<LoopQuery>, Receiver<LoopQuery>),
    /// From the event loop to the event recorder.
    pub(super) notices: (NoticeSender, Receiver<EventNotice>),
    /// From the event loop to the metrics and the policies' status.
    pub(super) snapshot: Latest<Arc<StatsSnapshot>>,
    /// From the policy watch to `/readyz`.
    pub(super) policies_read: Latest<bool>,
    /// From the record task to `/readyz` and the status of policies.
    pub(super) records_trouble: Latest<Option<RecordsTrouble>>,
    /// From the history writer to `/readyz`.
    pub(super) history_trouble: Latest<Option<String>>,
    /// From the reader of rollouts to the history writer.
    pub(super) stored_rollouts: (Sender<RolloutLine>, Receiver<RolloutLine>),
    /// From the policy watch to `/readyz`.
    pub(super) inventory_trouble: Latest<Option<String>>,
    /// From the policy watch to `/readyz`.
    pub(super) own_watches: Latest<OwnWatchStates>,
}

impl ServiceChannels {
    /// Opens all of them; policies of a file are read already.
    pub(super) fn open(metrics: &Metrics, policies_read: bool) -> Self {
        ServiceChannels {
            kind_events: mpsc::unbounded_channel(),
            plans: mpsc::unbounded_channel(),
            kind_requests: mpsc::unbounded_channel(),
            writes: mpsc::unbounded_channel(),
            settled: mpsc::unbounded_channel(),
            live_reads: mpsc::unbounded_channel(),
            write_drifts: mpsc::unbounded_channel(),
            queries: mpsc::channel(LOOP_QUERY_QUEUE_SIZE),
            notices: NoticeSender::new(metrics.events.clone()),
            snapshot: watch::channel(Arc::new(StatsSnapshot::default())),
            policies_read: watch::channel(policies_read),
            records_trouble: watch::channel(None),
            history_trouble: watch::channel(None),
            stored_rollouts: mpsc::channel(STORED_ROLLOUT_QUEUE_SIZE),
            inventory_trouble: watch::channel(None),
            own_watches: watch::channel(OwnWatchStates::default()),
        }
    }
}

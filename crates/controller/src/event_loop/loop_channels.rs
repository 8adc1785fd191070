//! Channel ends that the event loop holds, and what comes in by them.

use std::sync::Arc;

use aggregator::{KindId, ObjectId};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender};
use tokio::sync::{Notify, watch};

use crate::event_recorder::NoticeSender;
use crate::kind_tasks::KindRequest;
use crate::lease::GatedLeadership;
use crate::live_reader::ReadOrder;
use crate::page::LoopQuery;
use crate::parent_writer::SettledWrite;
use crate::rollouts::RolloutSender;
use crate::snapshot::StatsSnapshot;
use crate::transitions::TransitionHub;
use policy::WatchPlan;
use rollcall_core::{KindEvent, ParentWrite, TreeNode};

/// Sender of the trees of all parents, for consumers that draw them.
pub type TreeSender = watch::Sender<Arc<Vec<TreeNode>>>;

/// Input of the event loop.
pub(super) enum LoopInput {
    Stop,
    Deadline,
    Settled(SettledWrite),
    Leadership(bool),
    Kind(KindId, KindEvent),
    Plan(Arc<WatchPlan>),
    Dirty(Vec<ObjectId>),
    Query(LoopQuery),
}

/// Channel ends that the event loop holds.
pub(crate) struct LoopChannels {
    /// Signals that objects changed.
    pub(crate) dirty: Arc<Notify>,
    /// State changes reported by the tasks that follow kinds.
    pub(crate) kind_events: UnboundedReceiver<(KindId, KindEvent)>,
    /// New plans.
    pub(crate) plans: UnboundedReceiver<Arc<WatchPlan>>,
    /// Writes for the parent writer.
    pub(crate) writes: UnboundedSender<ParentWrite>,
    /// Leadership of this replica over parents.
    pub(crate) leadership: GatedLeadership,
    /// Results from the parent writer.
    pub(crate) settled: UnboundedReceiver<SettledWrite>,
    /// Requests to the owner of the kinds' tasks.
    pub(crate) kind_requests: UnboundedSender<KindRequest>,
    /// Live reads ordered by a resync.
    pub(crate) live_reads: UnboundedSender<ReadOrder>,
    /// Numbers for policy status, metrics and `/readyz`.
    pub(crate) snapshot: watch::Sender<Arc<StatsSnapshot>>,
    /// Trees, if anything draws them.
    pub(crate) trees: Option<TreeSender>,
    /// Notices for Events that are not transitions.
    pub(crate) notices: Option<NoticeSender>,
    /// Rollouts that have ended, if anything reads what they waited for.
    pub(crate) rollouts: Option<RolloutSender>,
    /// Transitions for Events, history and the live page.
    pub(crate) transitions: Arc<TransitionHub>,
    /// Queries of the page: infrequent, and bounded in size.
    pub(crate) queries: Receiver<LoopQuery>,
}

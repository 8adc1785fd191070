//! The tasks of the service: each is given its ends of the channels, then all are spawned.

use std::net::SocketAddr;
use std::sync::Arc;

use rollcall_core::ParentWrite;
use timer::Seed;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use watcher::{ConnectionMonitor, RetryTurns};

use super::service_channels::ServiceChannels;
use super::shared_parts::SharedParts;
use super::task_wiring::{
    AdminTroubles, PolicyResults, wire_admin, wire_authorizer, wire_event_loop, wire_event_recorder,
    wire_history, wire_history_watch, wire_kind_context, wire_live_reader, wire_page, wire_policies,
    wire_rollouts, wire_writer,
};
use crate::admin::{self, AdminState};
use crate::args::RunArgs;
use crate::event_loop::{EventLoop, LoopChannels, TreeSender};
use crate::event_recorder::EventRecorder;
use crate::failure_reporter::FailureReporter;
use crate::history::HistoryWriter;
use crate::kind_tasks::{HistoryWatch, KindRequest};

use crate::lease::{GatedLeadership, LeaseCandidate};
use crate::live_reader::{Drift, LiveReader, ReadOrder};
use crate::metrics::Metrics;
use crate::page::PageService;
use crate::parent_writer::{ParentWriter, SettledWrite};
use crate::policies::{PolicySource, PolicyTask};
use crate::rollouts::RolloutTask;
use crate::rule_threads::RuleThreads;
use crate::supervised_tasks::SupervisedTasks;
use crate::transitions::TransitionHub;

/// What the tasks are given from outside.
pub(super) struct TaskInputs {
    pub(super) source: PolicySource,
    pub(super) trees: Option<TreeSender>,
    /// Address that the page is served on.
    pub(super) address: SocketAddr,
    pub(super) args: RunArgs,
    /// Cancelled when the service is to stop.
    pub(super) stop: CancellationToken,
}

/// Tasks that are wired and not yet running.
pub(super) struct ServiceTasks {
    event_loop: EventLoop,
    rules: RuleThreads,
    policies: PolicyTask,
    kind_requests: UnboundedReceiver<KindRequest>,
    writer: ParentWriter,
    writes: UnboundedReceiver<ParentWrite>,
    settled: UnboundedSender<SettledWrite>,
    write_drifts: UnboundedReceiver<Vec<Drift>>,
    live_reader: LiveReader,
    live_reads: UnboundedReceiver<ReadOrder>,
    server_history: HistoryWatch,
    history: Option<HistoryWriter>,
    events: Option<EventRecorder>,
    page: PageService,
    rollouts: Option<RolloutTask<PageService>>,
    admin: AdminState,
    metrics: Arc<Metrics>,
    turns: Arc<RetryTurns>,
    failures: FailureReporter,
    seed: Seed,
    args: RunArgs,
    stop: CancellationToken,
}

/// Where the service listens, and what keeps its connection and its lease.
pub(super) struct ServiceEndpoints {
    pub(super) listener: TcpListener,
    pub(super) probes: Option<TcpListener>,
    pub(super) front: Option<Handle>,
    pub(super) monitor: Option<ConnectionMonitor>,
    pub(super) candidate: Option<LeaseCandidate>,
}

impl ServiceTasks {
    /// Gives each task its ends of the channels.
    #[expect(clippy::too_many_lines, reason = "a list, one entry per task and channel")]
    pub(super) fn wire(
        shared: SharedParts,
        channels: ServiceChannels,
        inputs: TaskInputs,
    ) -> anyhow::Result<ServiceTasks> {
        let TaskInputs { source, trees, address, args, stop } = inputs;
        let transitions =
            Arc::new(TransitionHub::new(shared.resolved.clone(), shared.metrics.dropped.clone()));
        let (notices, noticed) = channels.notices;
        let snapshot = channels.snapshot.1;
        let (rollouts_to_store, stored_rollouts) = channels.stored_rollouts;
        let history =
            wire_history(&shared, &args, (&transitions, stored_rollouts), channels.history_trouble.0)?;
        let events = args.events.then(|| wire_event_recorder(&shared, &transitions, noticed));
        let authorizer = wire_authorizer(&shared, &args, address);
        let page =
            wire_page(&shared, authorizer.clone(), &transitions, channels.queries.0, snapshot.clone(), &stop);
        let (ended_rollouts, rollouts) = wire_rollouts(&shared, &args, &page, rollouts_to_store)?;
        let troubles = AdminTroubles {
            history: channels.history_trouble.1,
            records: channels.records_trouble.1,
            inventory: channels.inventory_trouble.1,
            own_watches: channels.own_watches.1,
        };
        let readers = args.listener.metrics_auth.then_some(authorizer);
        let admin = wire_admin(&shared, readers, snapshot.clone(), channels.policies_read.1, troubles);
        let (kind_events, records) = (channels.kind_events.0, channels.records_trouble.0);
        let context = wire_kind_context(&shared, &args, kind_events, records, channels.own_watches.0);
        let (leadership, leadership_gate) = GatedLeadership::new(shared.leadership.clone());
        let results = PolicyResults {
            plans: channels.plans.0,
            policies_read: channels.policies_read.0,
            inventory_trouble: channels.inventory_trouble.0,
            leadership_gate,
        };
        let notices = args.events.then_some(notices);
        let policies = wire_policies(&shared, &args, source, context, results, snapshot, notices.clone());
        let loop_channels = LoopChannels {
            dirty: shared.dirty.clone(),
            kind_events: channels.kind_events.1,
            plans: channels.plans.1,
            writes: channels.writes.0,
            leadership,
            settled: channels.settled.1,
            kind_requests: channels.kind_requests.0,
            live_reads: channels.live_reads.0,
            snapshot: channels.snapshot.0,
            trees,
            notices,
            rollouts: ended_rollouts,
            transitions,
            queries: channels.queries.1,
        };
        Ok(ServiceTasks {
            event_loop: wire_event_loop(&shared, &args, loop_channels),
            rules: RuleThreads::new(shared.reflector.clone(), shared.judged.clone()),
            policies,
            kind_requests: channels.kind_requests.1,
            writer: wire_writer(&shared, channels.write_drifts.0),
            write_drifts: channels.write_drifts.1,
            writes: channels.writes.1,
            settled: channels.settled.0,
            live_reader: wire_live_reader(&shared, &args),
            live_reads: channels.live_reads.1,
            server_history: wire_history_watch(&shared, &args),
            history,
            events,
            page,
            rollouts,
            admin,
            metrics: shared.metrics,
            turns: shared.turns,
            failures: shared.failures,
            seed: shared.seed,
            args,
            stop,
        })
    }

    /// Spawns all of them, each under its name.
    pub(super) fn spawn(self, endpoints: ServiceEndpoints) -> SupervisedTasks {
        let ServiceEndpoints { listener, probes, front, monitor, candidate } = endpoints;
        let stop = || self.stop.child_token();
        let mut tasks = SupervisedTasks::default();
        if let Some(monitor) = monitor {
            tasks.spawn(
                "connection monitor",
                watch_over_connections(monitor, (self.metrics.clone(), self.turns.clone()), stop()),
            );
        }
        // The history ends when the loop has published its last transition, the lease when the last write is done.
        let (published, written) = (CancellationToken::new(), CancellationToken::new());
        tasks.spawn("event loop", then_cancel(self.event_loop.run_loop(stop()), published.clone()));
        if let Some(history) = self.history {
            tasks.spawn("history writer", without_error(history.run(published)));
        }
        let (failures, until) = (self.failures, stop());
        tasks.spawn("failure log", async move {
            until.run_until_cancelled(failures.keep_flushing()).await;
            Ok(())
        });
        tasks.spawn("rules", self.rules.run(stop()));
        tasks.spawn("policy watch", self.policies.run(self.kind_requests, stop()));
        let writing = without_error(self.writer.run(self.writes, self.settled));
        tasks.spawn("parent writer", then_cancel(writing, written.clone()));
        if let Some(candidate) = candidate {
            tasks.spawn("leader election", without_error(candidate.run(stop(), written)));
        }
        let auditor = self.live_reader.clone();
        let reading = self.live_reader.run(self.live_reads, self.write_drifts);
        tasks.spawn("periodic resync", without_error(reading));
        let (every, namespaces, seed) = (self.args.audit, self.args.namespaces, self.seed.derive(4));
        let auditing = crate::audit::run_audit(auditor, every, namespaces, seed, stop());
        tasks.spawn("audit", without_error(auditing));
        tasks.spawn("server history", without_error(self.server_history.run(stop())));
        if let Some(events) = self.events {
            tasks.spawn("event recorder", without_error(events.run(stop())));
        }
        if let Some(rollouts) = self.rollouts {
            tasks.spawn("rollouts", without_error(rollouts.run(stop())));
        }
        tasks.spawn("page", self.page.clone().run(stop()));
        let front = front.unwrap_or_else(Handle::current);
        if let Some(probes) = probes {
            let probing = admin::serve_probes(probes, self.admin.clone(), stop());
            tasks.spawn_on(&front, "probe listener", probing);
        }
        let serving = admin::serve_http(listener, self.args.listener, self.admin, self.page, stop());
        tasks.spawn_on(&front, "HTTP listener", serving);
        tasks
    }
}

async fn without_error(task: impl Future<Output = ()>) -> anyhow::Result<()> {
    task.await;
    Ok(())
}

async fn then_cancel(
    task: impl Future<Output = anyhow::Result<()>>,
    token: CancellationToken,
) -> anyhow::Result<()> {
    let ended = task.await;
    token.cancel();
    ended
}

/// Looks after the client's connections until `stop`.
async fn watch_over_connections(
    monitor: ConnectionMonitor,
    (metrics, turns): (Arc<Metrics>, Arc<RetryTurns>),
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let on_replaced = || {
        metrics.connections_replaced.inc();
        warn!(
            "connections to the API server did not answer and a new one did; dropped all of them and reconnected"
        );
    };
    let watching = monitor.run(on_replaced, || turns.note_restored());
    stop.run_until_cancelled(watching).await;
    Ok(())
}

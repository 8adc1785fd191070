//! The service: all tasks under supervision. A task that exits stops the process, and the error names the task.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::Context;
use prometheus::IntCounter;
use timer::Seed;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use watcher::ConnectionMonitor;
use watcher::reflector::Reflector;

use crate::admin::{self, AdminState};
use crate::args::{ClusterArgs, RunArgs};
use crate::clock::ServerClock;
use crate::event_loop::{EventLoop, LoopChannels, TreeSender};
use crate::event_recorder::{EventRecorder, NoticeSender};
use crate::history::HistoryWriter;
use crate::kind_tasks::{KindContext, RecordsContext};
use crate::lease::{self, LeaseName};
use crate::live_reader::LiveReader;
use crate::metrics::Metrics;
use crate::page::{self, PageAuthorizer, PageService};
use crate::parent_writer::ParentWriter;
use crate::policies::{PolicySource, PolicyTask};
use crate::reviews::{AccessAuthorizer, TokenAuthenticator};
use crate::snapshot::StatsSnapshot;
use crate::supervised_tasks::{DRAIN_TIMEOUT, SupervisedTasks};
use crate::transitions::TransitionHub;
use policy::{PolicySettings, read_file};
use rollcall_core::Core;

/// Default namespace of ReadinessRecords outside a pod: the one that `deploy/` installs Rollcall in.
const DEFAULT_RECORDS_NAMESPACE: &str = "rollcall-system";

/// Parts of the service.
pub struct ControllerService {
    /// The client.
    pub client: kube::Client,
    /// Looks after the client's connections; `None` if they need nobody.
    pub monitor: Option<ConnectionMonitor>,
    /// Source of the policies.
    pub source: PolicySource,
    /// Clock of the API server that the client talks to.
    pub clock: ServerClock,
    /// Listener for HTTP.
    pub listener: TcpListener,
    /// Another one for the probes alone, if any.
    pub probes: Option<TcpListener>,
    /// Lease to hold before anything is written; `None` without leader election.
    pub lease: Option<LeaseName>,
    /// Receives the trees of all parents, if anything draws them.
    pub trees: Option<TreeSender>,
    /// All other arguments.
    pub args: RunArgs,
}

/// Runs the service until SIGTERM or Ctrl-C; a second signal aborts.
pub async fn run_service(cluster: &ClusterArgs, args: RunArgs) -> anyhow::Result<()> {
    let source = match &args.policies {
        Some(path) => PolicySource::File(read_file(path)?),
        None => PolicySource::Cluster(policy::parse_selector(args.policy_selector.as_deref().unwrap_or(""))?),
    };
    let (config, in_pod) = cluster.client_config_with_origin().await?;
    info!(version = env!("CARGO_PKG_VERSION"), server = %config.cluster_url, "starting rollcall");
    let clock = ServerClock::from_responses();
    let lease = args.lease.lease_to_hold(in_pod, &config.default_namespace, clock.local_clock().now());
    let mut args = args;
    args.records_namespace = args.records_namespace.or(in_pod.then(|| config.default_namespace.clone()));
    let (client, monitor) = watcher::timed_client(config, Arc::new(clock.clone()))
        .context("failed to create a Kubernetes client")?;
    let listener = bind_listener(args.listen, "--listen").await?;
    let probes = match args.listener.probe_address(in_pod) {
        Some(address) => Some(bind_listener(address, "--probe-listen").await?),
        None => None,
    };
    let stop = CancellationToken::new();
    let service = ControllerService {
        client,
        monitor: Some(monitor),
        clock,
        source,
        listener,
        probes,
        lease,
        trees: None,
        args,
    };
    let signals = tokio::spawn(watch_signals(stop.clone()));
    let done = service.run(stop).await;
    signals.abort();
    done
}

async fn bind_listener(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    let bound = TcpListener::bind(address).await;
    bound.with_context(|| format!("failed to listen on {address}; choose another address with {flag}"))
}

impl ControllerService {
    /// Runs until `stop`, then drains.
    #[expect(clippy::too_many_lines, reason = "wiring: one line per wire")]
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let ControllerService { client, monitor, clock, source, listener, probes, lease, trees, args } = self;
        let own = clock.local_clock();
        let seed = Seed(args.seed.unwrap_or_else(|| clock.now().0.cast_unsigned()));
        let probed = probes.as_ref().map(TcpListener::local_addr).transpose()?.map(tracing::field::display);
        info!(seed = seed.0, listen = %listener.local_addr()?, probe_listen = probed, "service started");
        let dirty = Arc::new(Notify::new());
        let wake = dirty.clone();
        let reflector = Arc::new(Reflector::new(move || wake.notify_one()));
        let remembered = Arc::new(Notify::new());
        let moved = remembered.clone();
        reflector.set_memory_waker(move || moved.notify_one());
        // Set before the first list, because rules of users may ask for the time.
        reflector.set_now(clock.now());
        let metrics = Arc::new(Metrics::new(args.metrics_parents)?);
        let (news_in, news) = mpsc::unbounded_channel();
        let (plans_in, plans) = mpsc::unbounded_channel();
        let (writes, writes_out) = mpsc::unbounded_channel();
        let (outcomes_in, outcomes) = mpsc::unbounded_channel();
        let (looks, looks_out) = mpsc::unbounded_channel();
        let (relists_in, relists) = mpsc::unbounded_channel();
        let (asks_in, asks) = mpsc::channel(page::LOOP_QUERY_QUEUE_SIZE);
        let (snapshot, snapshots) = watch::channel(Arc::new(StatsSnapshot::default()));
        let (read, was_read) = watch::channel(matches!(source, PolicySource::File(_)));
        let known = crate::kind_tasks::ResolvedKinds::default();
        let refusals = Arc::new(Notify::new());
        let (unsaved, records_unsaved) = watch::channel(None);

        let (mandate, candidate) = lease::stand_for_election(lease, &client, own, seed.derive(5));
        crate::event_recorder::init_series(&metrics.events);
        let core = Core::new(reflector.clone(), args.resync, args.audit, seed.derive(1));
        let transitions = Arc::new(TransitionHub::new(known.clone(), metrics.dropped.clone()));
        let (notices, noticed) = NoticeSender::new(metrics.events.clone());
        let (ails, ailing) = watch::channel(None);
        let history = match &args.history {
            Some(url) => Some(HistoryWriter {
                store: crate::history::HistoryStore::open(url)?,
                transitions: transitions.subscribe("history"),
                clock: own,
                leadership: mandate.clone(),
                meters: metrics.history.clone(),
                trouble: ails,
                flush_interval: args.history_flush,
                final_flush_timeout: DRAIN_TIMEOUT.saturating_sub(Duration::from_secs(2)),
                instance: crate::event_recorder::instance_name(clock.now()),
                seed: seed.derive(6),
            }),
            None => None,
        };
        let events = args.events.then(|| EventRecorder {
            client: client.clone(),
            transitions: transitions.subscribe("events"),
            notices: noticed,
            clock: clock.clone(),
            leadership: mandate.clone(),
            outcomes: metrics.events.clone(),
            instance: crate::event_recorder::host_name(),
        });
        // Weak, so that subscribers see the end of the stream as soon as the loop has ended: only the loop keeps it
        // alive.
        let told = Arc::downgrade(&transitions);
        let wires = LoopChannels {
            dirty,
            kind_events: news,
            plans,
            writes,
            leadership: mandate.clone(),
            settled: outcomes,
            relists: relists_in,
            live_reads: looks,
            snapshot,
            trees,
            notices: args.events.then_some(notices),
            transitions,
            queries: asks,
        };
        let drive = EventLoop::new(core, clock.clone(), wires, metrics.clone(), seed.derive(8));
        let wanted = KindContext {
            client: client.clone(),
            reflector: reflector.clone(),
            resolved: known.clone(),
            kind_events: news_in,
            namespaces: args.namespaces.clone(),
            seed: seed.derive(2),
            metrics: metrics.clone(),
            records: RecordsContext {
                namespace: args
                    .records_namespace
                    .clone()
                    .unwrap_or_else(|| DEFAULT_RECORDS_NAMESPACE.to_owned()),
                moved: remembered,
                leadership: mandate.clone(),
                trouble: unsaved,
            },
            refusals: refusals.clone(),
        };
        let settings =
            PolicySettings { stuck_after: args.stuck_after, protected: args.protected_kinds.clone() };
        let policies = PolicyTask {
            source,
            context: wanted,
            settings,
            plans: plans_in,
            snapshot: snapshots.clone(),
            policies_read: read,
            clock: clock.clone(),
            leadership: mandate.clone(),
        };
        let writer = ParentWriter {
            client: client.clone(),
            reflector: reflector.clone(),
            resolved: known.clone(),
            leadership: mandate,
            refusals,
        };
        let authz = PageAuthorizer::new(
            listener.local_addr()?.ip().is_loopback(),
            TokenAuthenticator::new(
                client.clone(),
                own,
                args.listener.token_audience.clone(),
                metrics.token_reviews(),
            ),
            AccessAuthorizer::new(client.clone(), own),
        );
        let page = PageService::new(page::PageConfig {
            authz: authz.clone(),
            client: client.clone(),
            reflector: reflector.clone(),
            resolved: known.clone(),
            metrics: metrics.clone(),
            clock: clock.clone(),
            queries: asks_in,
            snapshot: snapshots.clone(),
            transitions: told,
            stop: stop.child_token(),
        });
        let replaced = metrics.connections_replaced.clone();
        let (rate, meters) = (args.resync_rate, metrics.clone());
        let looker = LiveReader {
            client,
            reflector,
            resolved: known,
            metrics: meters,
            rate,
            clock,
            drift_log: Arc::default(),
            seed: seed.derive(7),
        };
        let auditor = looker.clone();
        let pages = AdminState {
            metrics,
            snapshot: snapshots,
            policies_read: was_read,
            history: ailing,
            metrics_readers: args.listener.metrics_auth.then_some(authz),
            records: records_unsaved,
            was_ready: Arc::new(AtomicBool::new(false)),
        };

        let written = CancellationToken::new();
        let all_written = written.clone();
        let mut tasks = SupervisedTasks::default();
        if let Some(monitor) = monitor {
            tasks.spawn("connection monitor", watch_over_connections(monitor, replaced, stop.child_token()));
        }
        let told = CancellationToken::new();
        let all_told = told.clone();
        let driving = drive.run_loop(stop.child_token());
        tasks.spawn("event loop", async move {
            let ended = driving.await;
            all_told.cancel();
            ended
        });
        if let Some(history) = history {
            tasks.spawn("history writer", async move {
                history.run(told).await;
                Ok(())
            });
        }
        tasks.spawn("policy watch", policies.run(relists, stop.child_token()));
        tasks.spawn("parent writer", async move {
            writer.run(writes_out, outcomes_in).await;
            all_written.cancel();
            Ok(())
        });
        if let Some(candidate) = candidate {
            let standing = candidate.run(stop.child_token(), written);
            tasks.spawn("leader election", async move {
                standing.await;
                Ok(())
            });
        }
        tasks.spawn("periodic resync", async move {
            looker.run(looks_out).await;
            Ok(())
        });
        let auditing = crate::audit::run_audit(
            auditor,
            args.audit,
            args.namespaces.clone(),
            seed.derive(4),
            stop.child_token(),
        );
        tasks.spawn("audit", async move {
            auditing.await;
            Ok(())
        });
        if let Some(events) = events {
            let stop = stop.child_token();
            tasks.spawn("event recorder", async move {
                events.run(stop).await;
                Ok(())
            });
        }
        tasks.spawn("page", page.clone().run(stop.child_token()));
        if let Some(probes) = probes {
            let serving = admin::serve_probes(probes, pages.clone(), stop.child_token());
            tasks.spawn("probe listener", serving);
        }
        let serving = admin::serve_http(listener, args.listener, pages, page, stop.child_token());
        tasks.spawn("HTTP listener", serving);
        tasks.supervise(&stop).await
    }
}

/// Looks after the client's connections until `stop`.
async fn watch_over_connections(
    monitor: ConnectionMonitor,
    replaced: IntCounter,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let watching = monitor.run(|| {
        replaced.inc();
        warn!("connections to the API server did not answer and a new one did; dropped all of them and reconnected");
    });
    stop.run_until_cancelled(watching).await;
    Ok(())
}

/// The first signal drains, the second one aborts.
async fn watch_signals(stop: CancellationToken) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut next = async || {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    };
    next().await;
    stop.cancel();
    next().await;
    std::process::exit(130)
}

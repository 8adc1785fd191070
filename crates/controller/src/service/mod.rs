//! The service: all tasks under supervision. A task that exits stops the process, and the error names the task.

mod front_runtime;
mod service_channels;
mod service_tasks;
mod shared_parts;
mod task_wiring;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tracing::info;
use watcher::ConnectionMonitor;

use crate::args::{ClusterArgs, RunArgs, SelectedCluster, proxy_address};
use crate::build_info;
use crate::clock::ServerClock;
use crate::event_loop::TreeSender;
use crate::lease::LeaseName;
use crate::needed_kinds::fill_in_served_kinds;
use crate::policies::PolicySource;
use front_runtime::FrontRuntime;
use policy::read_file;
use service_channels::ServiceChannels;
use service_tasks::{ServiceEndpoints, ServiceTasks, TaskInputs};
use shared_parts::SharedParts;

/// Parts of the service.
pub struct ControllerService {
    /// The client.
    pub client: kube::Client,
    /// Monitor of the client's connections; `None` if they need none.
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
    /// Runtime that answers HTTP; `None` for the one that runs all else.
    pub front: Option<Handle>,
    /// All other arguments.
    pub args: RunArgs,
}

/// Runs the service until SIGTERM or Ctrl-C; a second signal aborts.
pub async fn run_service(cluster: &ClusterArgs, args: RunArgs) -> anyhow::Result<()> {
    let source = match &args.policies {
        Some(path) => PolicySource::File(read_file(path)?),
        None => PolicySource::Cluster(policy::parse_selector(args.policy_selector.as_deref().unwrap_or(""))?),
    };
    let SelectedCluster { config, in_pod, authorities } = cluster.select_cluster().await?;
    info!(version = build_info::VERSION, commit = build_info::COMMIT, server = %config.cluster_url, "starting rollcall");
    if let Some(proxy) = &config.proxy_url {
        info!(proxy = proxy_address(proxy), "the API server is reached through a proxy");
    }
    let clock = ServerClock::from_responses();
    let lease = args.lease.lease_to_hold(in_pod, &config.default_namespace, clock.local_clock().now());
    let mut args = args;
    args.grant_roles = policy::rbac::unique_grant_roles(&args.grant_roles).map_err(anyhow::Error::msg)?;
    args.records_namespace = args.records_namespace.or(in_pod.then(|| config.default_namespace.clone()));
    let (client, monitor) = watcher::timed_client(config, authorities, Arc::new(clock.clone()))
        .context("failed to create a Kubernetes client")?;
    let source = match source {
        PolicySource::File(found) => PolicySource::File(fill_in_served_kinds(&client, found).await),
        PolicySource::Cluster(selector) => PolicySource::Cluster(selector),
    };
    let listener = bind_listener(args.listen, "--listen").await?;
    let probes = match args.listener.probe_address(in_pod) {
        Some(address) => Some(bind_listener(address, "--probe-listen").await?),
        None => None,
    };
    let (stop, front) = (CancellationToken::new(), FrontRuntime::start()?);
    let service = ControllerService {
        client,
        monitor: Some(monitor),
        clock,
        source,
        listener,
        probes,
        lease,
        trees: None,
        front: front.handle(),
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
    /// Runs until `stop`, then drains: builds what is shared, wires the tasks to each other, and spawns them.
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let ControllerService { client, monitor, clock, source, listener, probes, lease, trees, front, args } =
            self;
        let address = listener.local_addr()?;
        let (shared, candidate) = SharedParts::build(client, clock, lease, &args)?;
        let probed = probes.as_ref().map(TcpListener::local_addr).transpose()?.map(tracing::field::display);
        info!(seed = shared.seed.0, listen = %address, probe_listen = probed, "service started");

        let channels = ServiceChannels::open(&shared.metrics, matches!(source, PolicySource::File(_)));
        let inputs = TaskInputs { source, trees, address, args, stop: stop.clone() };
        let tasks = ServiceTasks::wire(shared, channels, inputs)?;

        let endpoints = ServiceEndpoints { listener, probes, front, monitor, candidate };
        tasks.spawn(endpoints).supervise(&stop).await
    }
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

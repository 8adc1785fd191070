//! Wiring of single tasks: what each is given of the shared parts, the arguments and the channels.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use aggregator::KindId;
use policy::rbac::inventory_name;
use policy::{PolicySettings, ReleaseIdentity, WatchPlan};
use rollcall_core::{Core, KindEvent};
use tokio::sync::mpsc::{Receiver, Sender, UnboundedSender};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use watcher::plan::{ForeignNamespaces, NamespaceScope};

use super::shared_parts::SharedParts;
use crate::admin::AdminState;
use crate::args::RunArgs;
use crate::event_loop::{EventLoop, LoopChannels};
use crate::event_recorder::{EventNotice, EventRecorder, NoticeSender};
use crate::history::{HistoryStore, HistoryWriter, RolloutLine};
use crate::kind_tasks::{HistoryWatch, KindContext, MAX_EVENT_SEARCHES, RecordsContext, RecordsTrouble};
use crate::lease::LeadershipGate;
use crate::live_reader::{Drift, LiveReader};
use crate::own_watches::{OwnWatchStates, OwnWatches};
use crate::page::{LoopQuery, PageAuthorizer, PageConfig, PageService};
use crate::parent_writer::ParentWriter;
use crate::policies::{GrantSettings, InventorySettings, PolicySource, PolicyTask};
use crate::reviews::{AccessAuthorizer, TokenAuthenticator};
use crate::rollouts::{RolloutSender, RolloutTask, TraceExporter};
use crate::snapshot::StatsSnapshot;
use crate::supervised_tasks::DRAIN_TIMEOUT;
use crate::transitions::TransitionHub;

/// Default namespace of ReadinessRecords outside a pod: the one that `deploy/` installs Rollcall in.
const DEFAULT_RECORDS_NAMESPACE: &str = "rollcall-system";

pub(super) fn wire_event_loop(shared: &SharedParts, args: &RunArgs, channels: LoopChannels) -> EventLoop {
    let core = Core::new(shared.reflector.clone(), args.resync, args.audit, shared.seed.derive(1));
    EventLoop::new(core, shared.clock.clone(), channels, shared.metrics.clone(), shared.seed.derive(8))
}

pub(super) fn wire_kind_context(
    shared: &SharedParts,
    args: &RunArgs,
    kind_events: UnboundedSender<(KindId, KindEvent)>,
    trouble: watch::Sender<Option<RecordsTrouble>>,
    own_watches: watch::Sender<OwnWatchStates>,
) -> KindContext {
    let namespace = args.records_namespace.clone().unwrap_or_else(|| DEFAULT_RECORDS_NAMESPACE.to_owned());
    KindContext {
        client: shared.client.clone(),
        reflector: shared.reflector.clone(),
        resolved: shared.resolved.clone(),
        kind_events,
        namespaces: args.namespaces.clone(),
        aggregate_to: args.aggregate_to.clone(),
        seed: shared.seed.derive(2),
        turns: shared.turns.clone(),
        metrics: shared.metrics.clone(),
        records: RecordsContext {
            namespace,
            moved: shared.outcomes_moved.clone(),
            leadership: shared.leadership.clone(),
            searches: Arc::new(Semaphore::new(MAX_EVENT_SEARCHES)),
            trouble,
        },
        failures: shared.failures.clone(),
        refusals: shared.refusals.clone(),
        judged: shared.judged.clone(),
        breaks: shared.breaks.clone(),
        own_watches: OwnWatches::new(own_watches, shared.metrics.clone()),
    }
}

/// What the task of policies tells others.
pub(super) struct PolicyResults {
    pub(super) plans: UnboundedSender<Arc<WatchPlan>>,
    pub(super) policies_read: watch::Sender<bool>,
    pub(super) inventory_trouble: watch::Sender<Option<String>>,
    pub(super) leadership_gate: LeadershipGate,
}

pub(super) fn wire_policies(
    shared: &SharedParts,
    args: &RunArgs,
    source: PolicySource,
    context: KindContext,
    results: PolicyResults,
    snapshot: watch::Receiver<Arc<StatsSnapshot>>,
    notices: Option<NoticeSender>,
) -> PolicyTask {
    let PolicyResults { plans, policies_read, inventory_trouble, leadership_gate } = results;
    let name = inventory_name(&args.lease.lease_name);
    // What no two releases may share: the ConfigMap of what their policies wrote is named by it, too.
    let release = ReleaseIdentity {
        name: format!("{}/{}", context.records.namespace, args.lease.lease_name),
        namespaces: args.namespaces.clone(),
    };
    PolicyTask {
        source,
        context,
        settings: policy_settings(args),
        plans,
        snapshot,
        policies_read,
        clock: shared.clock.clone(),
        leadership: shared.leadership.clone(),
        leadership_gate,
        grants: GrantSettings { roles: args.grant_roles.clone(), notices },
        inventory: InventorySettings { name, trouble: inventory_trouble },
        release,
    }
}

/// What the administrator sets for all policies.
fn policy_settings(args: &RunArgs) -> PolicySettings {
    let watched = match args.namespaces.as_slice() {
        [] => NamespaceScope::default(),
        named => NamespaceScope::only(named.iter().map(String::as_str)),
    };
    PolicySettings {
        stuck_after: args.stuck_after,
        protected: args.protected_kinds.clone(),
        group_namespaces: ForeignNamespaces { grants: args.group_namespaces.clone(), watched },
        group_rules: args.group_rules,
    }
}

pub(super) fn wire_writer(shared: &SharedParts, drifts: UnboundedSender<Vec<Drift>>) -> ParentWriter {
    ParentWriter {
        rereads: Arc::default(),
        drifts,
        client: shared.client.clone(),
        reflector: shared.reflector.clone(),
        resolved: shared.resolved.clone(),
        leadership: shared.leadership.clone(),
        failures: shared.failures.clone(),
        refusals: shared.refusals.clone(),
        log: Arc::default(),
        failing: shared.failing.clone(),
        failure_traffic: shared.failure_traffic.clone(),
    }
}

/// The watch over the server's history.
pub(super) fn wire_history_watch(shared: &SharedParts, args: &RunArgs) -> HistoryWatch {
    HistoryWatch {
        client: shared.client.clone(),
        resolved: shared.resolved.clone(),
        namespaces: args.namespaces.clone(),
        breaks: shared.breaks.clone(),
        turns: shared.turns.clone(),
    }
}

pub(super) fn wire_live_reader(shared: &SharedParts, args: &RunArgs) -> LiveReader {
    LiveReader {
        client: shared.client.clone(),
        reflector: shared.reflector.clone(),
        resolved: shared.resolved.clone(),
        metrics: shared.metrics.clone(),
        rate: args.resync_rate,
        period: args.resync,
        namespaces: args.namespaces.clone(),
        failure_traffic: shared.failure_traffic.clone(),
        clock: shared.clock.clone(),
        comparisons: Arc::default(),
        explanations: Arc::default(),
        drift_log: Arc::default(),
        failures: shared.failures.clone(),
        seed: shared.seed.derive(7),
        breaks: shared.breaks.clone(),
    }
}

pub(super) fn wire_history(
    shared: &SharedParts,
    args: &RunArgs,
    (transitions, rollouts): (&TransitionHub, Receiver<RolloutLine>),
    trouble: watch::Sender<Option<String>>,
) -> anyhow::Result<Option<HistoryWriter>> {
    let Some(url) = &args.history else { return Ok(None) };
    Ok(Some(HistoryWriter {
        store: HistoryStore::open(url)?,
        transitions: transitions.subscribe("history"),
        rollouts,
        clock: shared.clock.local_clock(),
        leadership: shared.leadership.clone(),
        meters: shared.metrics.history.clone(),
        trouble,
        flush_interval: args.history_flush,
        final_flush_timeout: DRAIN_TIMEOUT.saturating_sub(Duration::from_secs(2)),
        instance: crate::event_recorder::instance_name(shared.clock.now()),
        seed: shared.seed.derive(6),
    }))
}

/// Where the event loop names rollouts that have ended, and the task that reads them; neither where nothing asks for it.
pub(super) fn wire_rollouts(
    shared: &SharedParts,
    args: &RunArgs,
    page: &PageService,
    history: Sender<RolloutLine>,
) -> anyhow::Result<(Option<RolloutSender>, Option<RolloutTask<PageService>>)> {
    let (args, history) = (&args.rollouts, args.history.as_ref().map(|_| history));
    if !args.reads_rollouts() {
        return Ok((None, None));
    }
    let meters = &shared.metrics.rollouts;
    let (named, ended) = RolloutSender::new(meters.rollouts.with_label_values(&["skipped"]));
    let exporter = args.otlp_endpoint.as_deref().map(|endpoint| {
        TraceExporter::new(endpoint, &args.otlp_headers, meters.traces.clone(), shared.failures.clone())
    });
    let (reader, metrics, past) = (page.clone(), shared.metrics.clone(), page.past_rollouts());
    let exporter = exporter.transpose()?;
    Ok((Some(named), Some(RolloutTask { reader, ended, metrics, exporter, past, history })))
}

pub(super) fn wire_event_recorder(
    shared: &SharedParts,
    transitions: &TransitionHub,
    notices: Receiver<EventNotice>,
) -> EventRecorder {
    EventRecorder {
        client: shared.client.clone(),
        transitions: transitions.subscribe("events"),
        notices,
        clock: shared.clock.clone(),
        leadership: shared.leadership.clone(),
        outcomes: shared.metrics.events.clone(),
        failures: shared.failures.clone(),
        failing: shared.failing.clone(),
        seed: shared.seed.derive(9),
        instance: crate::event_recorder::host_name(),
    }
}

pub(super) fn wire_authorizer(shared: &SharedParts, args: &RunArgs, address: SocketAddr) -> PageAuthorizer {
    let own = shared.clock.local_clock();
    let tokens = TokenAuthenticator::new(
        shared.client.clone(),
        own,
        args.listener.token_audience.clone(),
        shared.metrics.token_reviews(),
    )
    .report_failures_to(&shared.failures);
    let rights = AccessAuthorizer::new(shared.client.clone(), own).report_failures_to(&shared.failures);
    PageAuthorizer::new(address.ip().is_loopback(), tokens, rights)
}

pub(super) fn wire_page(
    shared: &SharedParts,
    authz: PageAuthorizer,
    transitions: &Arc<TransitionHub>,
    queries: Sender<LoopQuery>,
    snapshot: watch::Receiver<Arc<StatsSnapshot>>,
    stop: &CancellationToken,
) -> PageService {
    PageService::new(PageConfig {
        authz,
        client: shared.client.clone(),
        reflector: shared.reflector.clone(),
        resolved: shared.resolved.clone(),
        metrics: shared.metrics.clone(),
        clock: shared.clock.clone(),
        queries,
        snapshot,
        // Weak, so that subscribers see the end of the stream as soon as the loop has ended: only the loop keeps it
        // alive.
        transitions: Arc::downgrade(transitions),
        stop: stop.child_token(),
    })
}

/// What `/readyz` tells beside the state of kinds.
pub(super) struct AdminTroubles {
    pub(super) history: watch::Receiver<Option<String>>,
    pub(super) records: watch::Receiver<Option<RecordsTrouble>>,
    pub(super) inventory: watch::Receiver<Option<String>>,
    pub(super) own_watches: watch::Receiver<OwnWatchStates>,
}

pub(super) fn wire_admin(
    shared: &SharedParts,
    metrics_readers: Option<PageAuthorizer>,
    snapshot: watch::Receiver<Arc<StatsSnapshot>>,
    policies_read: watch::Receiver<bool>,
    troubles: AdminTroubles,
) -> AdminState {
    let AdminTroubles { history, records, inventory, own_watches } = troubles;
    AdminState {
        metrics: shared.metrics.clone(),
        snapshot,
        policies_read,
        history,
        metrics_readers,
        clock: shared.clock.clone(),
        records,
        inventory,
        own_watches,
        was_ready: Arc::new(AtomicBool::new(false)),
    }
}

//! The service: every task, supervised. A task that ends takes the process with it and is named.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, bail};
use timer::Seed;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;
use watcher::reflector::Reflector;

use crate::admin::{self, Pages};
use crate::args::{ClusterArgs, RunArgs};
use crate::clock::ServerClock;
use crate::core::Core;
use crate::drive::{Drive, Trees, Wires};
use crate::events::{Events, Notices};
#[cfg(feature = "history")]
use crate::history::Keep;
use crate::kinds::{RecordsSetting, Setting};
use crate::lease::{self, LeaseName};
use crate::look::Looker;
use crate::metrics::Metrics;
use crate::page::{self, Page};
use crate::policies::{Policies, Source, read_file};
use crate::snapshot::Snapshot;
use crate::transitions::Transitions;
use crate::writer::Writer;

/// How long a stopping service may take to finish what it began.
const DRAIN: Duration = Duration::from_secs(10);

/// Where records are kept by who does not run in a pod: where `deploy/` installs Rollcall.
const RECORDS_NAMESPACE: &str = "rollcall-system";

/// What a service is made of.
pub struct Service {
    /// The client.
    pub client: kube::Client,
    /// Where policies come from.
    pub source: Source,
    /// What time it is at the server that the client asks.
    pub clock: ServerClock,
    /// Where it listens.
    pub listener: TcpListener,
    /// The lease to hold before anything is written; none where nobody else writes.
    pub lease: Option<LeaseName>,
    /// Where trees are drawn from, if anywhere.
    pub trees: Option<Trees>,
    /// Everything else.
    pub args: RunArgs,
}

/// `rollcall run`: until SIGTERM or Ctrl-C; a second one aborts.
pub async fn run(cluster: &ClusterArgs, args: RunArgs) -> anyhow::Result<()> {
    let source = match &args.policies {
        Some(path) => Source::File(read_file(path)?),
        None => {
            Source::Cluster(crate::policies::parse_selector(args.policy_selector.as_deref().unwrap_or(""))?)
        }
    };
    let (config, in_pod) = cluster.config_and_place().await?;
    info!(version = env!("CARGO_PKG_VERSION"), server = %config.cluster_url, "rollcall");
    let clock = ServerClock::told();
    let lease = args.lease.stands_for(in_pod, &config.default_namespace, clock.own().now());
    let mut args = args;
    args.records_namespace = args.records_namespace.or(in_pod.then(|| config.default_namespace.clone()));
    let client = watcher::timed_client(config, Arc::new(clock.clone())).context("failed to make a client")?;
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("failed to listen on {}; --listen names another address", args.listen))?;
    let stop = CancellationToken::new();
    let service = Service { client, clock, source, listener, lease, trees: None, args };
    let signals = tokio::spawn(signals(stop.clone()));
    let done = service.run(stop).await;
    signals.abort();
    done
}

impl Service {
    /// Runs until `stop`, then drains.
    #[expect(clippy::too_many_lines, reason = "wiring: one line per wire")]
    pub async fn run(self, stop: CancellationToken) -> anyhow::Result<()> {
        let Service { client, clock, source, listener, lease, trees, args } = self;
        let own = clock.own();
        let seed = Seed(args.seed.unwrap_or_else(|| clock.now().0 as u64));
        info!(seed = seed.0, listen = %listener.local_addr()?, "started");
        let dirty = Arc::new(Notify::new());
        let wake = dirty.clone();
        let reflector = Arc::new(Reflector::new(move || wake.notify_one()));
        let remembered = Arc::new(Notify::new());
        let moved = remembered.clone();
        reflector.on_memory(move || moved.notify_one());
        // Before the first list: rules of users may ask.
        reflector.tell_time(clock.now());
        let metrics = Arc::new(Metrics::new(args.metrics_parents)?);
        let (news_in, news) = mpsc::unbounded_channel();
        let (plans_in, plans) = mpsc::unbounded_channel();
        let (writes, writes_out) = mpsc::unbounded_channel();
        let (outcomes_in, outcomes) = mpsc::unbounded_channel();
        let (looks, looks_out) = mpsc::unbounded_channel();
        let (asks_in, asks) = mpsc::channel(page::ASKS);
        let (snapshot, snapshots) = watch::channel(Arc::new(Snapshot::default()));
        let (read, was_read) = watch::channel(matches!(source, Source::File(_)));
        let known = crate::kinds::Known::default();

        let (mandate, candidate) = lease::stand(lease, &client, own, seed.derive(5));
        crate::events::show(&metrics.events);
        let core = Core::new(reflector.clone(), args.resync, args.audit, seed.derive(1));
        let transitions = Arc::new(Transitions::new(known.clone(), metrics.dropped.clone()));
        let (notices, noticed) = Notices::new(metrics.events.clone());
        let (ails, ailing) = watch::channel(None);
        #[cfg(not(feature = "history"))]
        drop(ails);
        #[cfg(feature = "history")]
        let history = match &args.history {
            Some(url) => Some(Keep {
                store: crate::history::Store::open(url)?,
                transitions: transitions.subscribe("history"),
                clock: own,
                mandate: mandate.clone(),
                meters: metrics.history.clone(),
                trouble: ails,
                every: args.history_flush,
                last: DRAIN.saturating_sub(Duration::from_secs(2)),
                instance: crate::events::instance(clock.now()),
                seed: seed.derive(6),
            }),
            None => None,
        };
        let events = args.events.then(|| Events {
            client: client.clone(),
            transitions: transitions.subscribe("events"),
            notices: noticed,
            clock: clock.clone(),
            mandate: mandate.clone(),
            outcomes: metrics.events.clone(),
            instance: crate::events::host_name(),
        });
        // Whoever listens hears the end when the loop has ended: nobody else keeps it alive.
        let told = Arc::downgrade(&transitions);
        let wires = Wires {
            dirty,
            news,
            plans,
            writes,
            mandate: mandate.clone(),
            settled: outcomes,
            looks,
            snapshot,
            trees,
            notices: args.events.then_some(notices),
            transitions,
            asks,
        };
        let drive = Drive::new(core, clock.clone(), wires, metrics.clone());
        let wanted = Setting {
            client: client.clone(),
            reflector: reflector.clone(),
            known: known.clone(),
            news: news_in,
            namespaces: args.namespaces.clone(),
            seed: seed.derive(2),
            metrics: metrics.clone(),
            records: RecordsSetting {
                namespace: args.records_namespace.clone().unwrap_or_else(|| RECORDS_NAMESPACE.to_owned()),
                moved: remembered,
                mandate: mandate.clone(),
            },
        };
        let stuck_after = args.stuck_after;
        let policies = Policies {
            source,
            setting: wanted,
            stuck_after,
            plans: plans_in,
            snapshot: snapshots.clone(),
            read,
            clock: clock.clone(),
            mandate: mandate.clone(),
        };
        let writer = Writer {
            client: client.clone(),
            reflector: reflector.clone(),
            known: known.clone(),
            mandate,
            seed: seed.derive(3),
        };
        let page = Page::new(page::Setting {
            listen: listener.local_addr()?,
            client: client.clone(),
            reflector: reflector.clone(),
            known: known.clone(),
            metrics: metrics.clone(),
            clock: clock.clone(),
            asks: asks_in,
            snapshot: snapshots.clone(),
            transitions: told,
            stop: stop.child_token(),
        });
        let (rate, meters) = (args.resync_rate, metrics.clone());
        let looker = Looker { client, reflector, known, metrics: meters, rate, clock };
        let auditor = looker.clone();
        let pages = Pages {
            metrics,
            snapshot: snapshots,
            read: was_read,
            history: ailing,
            was_ready: Arc::new(AtomicBool::new(false)),
        };

        let written = CancellationToken::new();
        let all_written = written.clone();
        let mut tasks = Tasks::default();
        let told = CancellationToken::new();
        let all_told = told.clone();
        let driving = drive.run(stop.child_token());
        tasks.spawn("the loop", async move {
            let ended = driving.await;
            all_told.cancel();
            ended
        });
        #[cfg(feature = "history")]
        if let Some(history) = history {
            tasks.spawn("the history", async move {
                history.run(told).await;
                Ok(())
            });
        }
        tasks.spawn("the policies' watch", policies.run(stop.child_token()));
        tasks.spawn("the writer", async move {
            writer.run(writes_out, outcomes_in).await;
            all_written.cancel();
            Ok(())
        });
        if let Some(candidate) = candidate {
            let standing = candidate.run(stop.child_token(), written);
            tasks.spawn("the lease", async move {
                standing.await;
                Ok(())
            });
        }
        tasks.spawn("the periodic pass", async move {
            looker.run(looks_out).await;
            Ok(())
        });
        let auditing = crate::audit::run(
            auditor,
            args.audit,
            args.namespaces.clone(),
            seed.derive(4),
            stop.child_token(),
        );
        tasks.spawn("the audit", async move {
            auditing.await;
            Ok(())
        });
        if let Some(events) = events {
            let stop = stop.child_token();
            tasks.spawn("the Events", async move {
                events.run(stop).await;
                Ok(())
            });
        }
        tasks.spawn("the page", page.clone().run(stop.child_token()));
        tasks.spawn("the listener", admin::serve(listener, pages, page, stop.child_token()));
        tasks.supervise(&stop).await
    }
}

/// Tasks by name.
#[derive(Default)]
struct Tasks {
    set: JoinSet<(&'static str, anyhow::Result<()>)>,
}

impl Tasks {
    fn spawn(&mut self, name: &'static str, task: impl Future<Output = anyhow::Result<()>> + Send + 'static) {
        // A task of its own below, so that a panic is known by the name too.
        let task = tokio::spawn(task);
        self.set.spawn(async move {
            let ended = task.await.map_err(anyhow::Error::new).and_then(|done| done);
            (name, ended)
        });
    }

    async fn supervise(mut self, stop: &CancellationToken) -> anyhow::Result<()> {
        while !stop.is_cancelled() {
            tokio::select! {
                () = stop.cancelled() => {}
                Some(Ok((name, ended))) = self.set.join_next() => {
                    if !stop.is_cancelled() {
                        stop.cancel();
                        return Err(ended.err().unwrap_or_else(|| anyhow::anyhow!("it returned"))).context(format!("{name} ended"));
                    }
                }
            }
        }
        info!("stopping");
        let drained = tokio::time::timeout(DRAIN, async {
            while let Some(Ok((name, ended))) = self.set.join_next().await {
                if let Err(error) = ended {
                    info!(task = name, error = format!("{error:#}"), "ended");
                }
            }
        });
        if drained.await.is_err() {
            bail!("not everything was finished within {DRAIN:?}");
        }
        info!("stopped");
        Ok(())
    }
}

/// The first signal drains, the second aborts.
async fn signals(stop: CancellationToken) -> std::io::Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;

    async fn supervised(
        task: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) -> Result<(), String> {
        let stop = CancellationToken::new();
        let mut tasks = Tasks::default();
        let others = stop.child_token();
        tasks.spawn("the other", async move {
            others.cancelled().await;
            Ok(())
        });
        tasks.spawn("the one", task);
        let ended = tasks.supervise(&stop).await.map_err(|error| format!("{error:#}"));
        assert!(stop.is_cancelled(), "the others are told to stop");
        ended
    }

    #[tokio::test]
    async fn every_task_is_supervised() {
        assert_eq!(supervised(async { Ok(()) }).await.unwrap_err(), "the one ended: it returned");
        let failed = supervised(async { Err(anyhow::anyhow!("a reason")) }).await.unwrap_err();
        assert_eq!(failed, "the one ended: a reason");
        let panicked = supervised(async { panic!("a panic") }).await.unwrap_err();
        assert!(panicked.starts_with("the one ended: ") && panicked.contains("a panic"), "{panicked}");
    }

    #[tokio::test]
    async fn who_is_told_to_stop_finishes_what_it_began() {
        let (stop, mut tasks) = (CancellationToken::new(), Tasks::default());
        let (told, (finished_in, finished)) = (stop.child_token(), tokio::sync::oneshot::channel());
        tasks.spawn("the writer", async move {
            told.cancelled().await;
            tokio::task::yield_now().await;
            _ = finished_in.send(());
            Ok(())
        });
        stop.cancel();
        tasks.supervise(&stop).await.unwrap();
        finished.await.unwrap();
    }
}

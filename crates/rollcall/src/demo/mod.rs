//! `rollcall demo`: an in-memory cluster, the real service over HTTP, and an operator that plays a story.

mod answer_log;
mod cluster;
mod crowd;
mod crowd_fate;
mod crowd_manifests;
mod crowd_member;
mod fixtures;
mod listen;
mod pace;
mod peers;
mod screen;
mod stage;
mod story;
mod story_caption;
mod story_output;
mod transcript;
mod tree;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use controller::args::{LeaseArgs, ListenerArgs, RolloutArgs, RunArgs};
use controller::policies::PolicySource;
use controller::{ControllerService, ServerClock, TreeSender};
use policy::parse_selector;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use watcher::plan::NamespaceGrants;

use crate::terminal::TerminalCapabilities;
use answer_log::DemoAnswer;
use cluster::{DemoCluster, MetricsReader};
use crowd::{DemoKubeconfig, LivingCrowd};
use fixtures::DEMO_NAMESPACE;
use pace::StoryPace;
use stage::{StoryStage, UnmetExpectation};
use story_caption::StoryCaption;
use story_output::StoryOutput;

/// Resync period in the demo; the service's default is 30 s.
const DEMO_RESYNC_PERIOD: Duration = Duration::from_secs(3);
/// Longest time the service may take to shut down. Nothing of this cluster is needed afterwards.
const SERVICE_DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Speed of `--once`, as a multiple of real time.
const ONCE_SPEED: f64 = 4.0;

/// `rollcall demo`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoArgs {
    /// Play the story once without pauses for readers, print what happened, and exit 0 only if every expectation of the
    /// story held.
    #[arg(long)]
    once: bool,
    /// Speed of the story: 2 is twice as fast, 0.5 half as fast, 0 leaves out every pause [default: 1; with --once 4].
    #[arg(long, value_name = "N", value_parser = pace::speed)]
    speed: Option<f64>,
    /// Stop at each step of the story until Enter is pressed or a line arrives on standard input; after end of input it
    /// continues by itself.
    #[arg(long, conflicts_with = "once")]
    step: bool,
    /// Instead of the story, keep a cluster of fifty parents of five kinds alive until Ctrl-C: most are ready, some fail, hang or
    /// roll out. For a look at the page, the metrics, the dashboards and `rollcall tree`; prints where they are.
    #[arg(long, conflicts_with_all = ["once", "step"])]
    crowd: bool,
    /// Address of the page, its API, /metrics, /livez, /readyz; a free port if it is in use [default: 127.0.0.1:8080;
    /// with --once a free port].
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
}

/// Outcome of the demo.
enum DemoEnding {
    /// The story is over and every expectation held.
    Held,
    /// An expectation was not met.
    Unmet(UnmetExpectation),
    /// The user interrupted it, or the terminal is gone.
    Interrupted,
    /// An error stopped it.
    Broken(anyhow::Error),
}

/// Plays the demo to its end.
pub(crate) async fn play_demo(args: DemoArgs) -> anyhow::Result<ExitCode> {
    if args.crowd {
        return play_crowd(args).await;
    }
    let look = TerminalCapabilities::detect_stdout(args.once);
    let pace = StoryPace::new(args.speed.unwrap_or(if args.once { ONCE_SPEED } else { 1.0 }), !args.once);
    let (listener, listening) = listen::bind_listener(args.listen, args.once).await?;
    let meter = MetricsReader::at_address(listener.local_addr()?)?;
    let cluster = Arc::new(DemoCluster::start_server(fixtures::story_setup()?).await?);
    let (trees_in, trees) = watch::channel(Arc::default());
    let stop = CancellationToken::new();
    let mut service = start_service(&cluster, listener, trees_in, stop.clone())?;
    let answers = DemoAnswer::watch_answers(cluster.new_client()?);
    let listening = if args.step { format!("{listening} · Enter: continue") } else { listening };
    let before = StoryCaption { listening, kubectl: cluster.kubectl_command(), ..StoryCaption::default() };
    let caption = watch::Sender::new(before.clone());
    let show = if look.live {
        StoryOutput::Live(caption.clone())
    } else {
        print_stderr(&format!("{}\ncluster: {} get shops,databases", before.listening, before.kubectl));
        StoryOutput::Lines(look)
    };
    let mut stage = StoryStage::new(cluster.clone(), meter, answers, trees.clone(), pace, show, before);
    if args.step {
        stage.wait_for_keys(read_enter_keys());
    }
    let ending = tokio::select! {
        ending = run_story(stage, args.once) => ending,
        ended = &mut service => DemoEnding::Broken(service_ended_error(ended)),
        () = screen::run_screen(look, caption.subscribe(), trees, &cluster), if look.live => DemoEnding::Interrupted,
        done = wait_for_interrupt() => done.map_or_else(|error| DemoEnding::Broken(error.into()), |()| DemoEnding::Interrupted),
    };
    let (over, scene, scenes) = {
        let caption = caption.borrow();
        (caption.over, caption.scene, caption.scenes)
    };
    stop.cancel();
    // The service's result no longer matters: its cluster is about to be dropped.
    _ = tokio::time::timeout(SERVICE_DRAIN_TIMEOUT, service).await;
    match ending {
        DemoEnding::Held => Ok(ExitCode::SUCCESS),
        DemoEnding::Interrupted if over || !args.once => {
            if look.live && !over {
                // The alternate screen has been closed, and its content with it.
                print_stderr(&format!(
                    "{scene} of {scenes} scenes seen; `rollcall demo --once` prints the whole story."
                ));
            }
            Ok(ExitCode::SUCCESS)
        }
        DemoEnding::Interrupted => {
            print_stderr("rollcall: interrupted before the story was over");
            Ok(ExitCode::from(2))
        }
        DemoEnding::Broken(error) => Err(error),
        DemoEnding::Unmet(unmet) => {
            print_stderr(&format!("rollcall: {unmet}"));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Keeps the crowd alive until it is interrupted.
async fn play_crowd(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let pace = StoryPace::new(args.speed.unwrap_or(1.0), false);
    let (listener, listening) = listen::bind_listener(args.listen, false).await?;
    let url = format!("http://{}", listener.local_addr()?);
    let cluster = Arc::new(DemoCluster::start_server(crowd_manifests::crowd_setup()?).await?);
    let crowd = LivingCrowd::create_all(cluster.clone())?;
    let kubeconfig = DemoKubeconfig::write_file(&cluster.server_url())?;
    let stop = CancellationToken::new();
    let (trees, _) = watch::channel(Arc::default());
    let mut service = start_service(&cluster, listener, trees, stop.clone())?;
    print_stderr(&kubeconfig.hints(&listening, &url));
    let ended = tokio::select! {
        error = crowd.keep_alive(pace) => Err(error),
        ended = &mut service => return Err(service_ended_error(ended)),
        done = wait_for_interrupt() => done.map_err(Into::into),
    };
    stop.cancel();
    // The service's result no longer matters: its cluster is about to be dropped.
    _ = tokio::time::timeout(SERVICE_DRAIN_TIMEOUT, service).await;
    ended.map(|()| ExitCode::SUCCESS)
}

/// Delivers one item per line of standard input. Read on a thread of its own, which is not joined at the end.
fn read_enter_keys() -> mpsc::Receiver<()> {
    let (pressed, keys) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in io::stdin().lines() {
            if line.is_err() || pressed.blocking_send(()).is_err() {
                return;
            }
        }
    });
    keys
}

/// Prints text to standard error. A failed write is ignored.
fn print_stderr(text: &str) {
    _ = writeln!(io::stderr(), "{text}");
}

/// Runs the story; without `--once` it keeps running after the last scene.
async fn run_story(mut stage: StoryStage, once: bool) -> DemoEnding {
    match story::play_story(&mut stage).await.and_then(|()| stage.end_story(once)) {
        Ok(()) if once => DemoEnding::Held,
        Ok(()) => std::future::pending().await,
        Err(error) => DemoEnding::from_error(error),
    }
}

impl DemoEnding {
    fn from_error(error: anyhow::Error) -> DemoEnding {
        if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
            return DemoEnding::Interrupted;
        }
        error.downcast::<UnmetExpectation>().map_or_else(DemoEnding::Broken, DemoEnding::Unmet)
    }
}

type ServiceTask = JoinHandle<anyhow::Result<()>>;

/// Starts the service as `rollcall run` does, with a shorter resync period.
fn start_service(
    cluster: &DemoCluster,
    listener: tokio::net::TcpListener,
    trees: TreeSender,
    stop: CancellationToken,
) -> anyhow::Result<ServiceTask> {
    let args = RunArgs {
        listen: listener.local_addr()?,
        // For this machine alone.
        listener: ListenerArgs {
            probe_listen: None,
            max_connections: 1_024,
            max_connections_per_address: 1_024,
            metrics_auth: false,
            token_audience: Vec::new(),
            tls_cert_file: None,
            tls_key_file: None,
            tls_self_signed: false,
        },
        resync: DEMO_RESYNC_PERIOD,
        audit: Duration::from_mins(10),
        stuck_after: Duration::from_mins(10),
        protected_kinds: Vec::new(),
        group_namespaces: NamespaceGrants::default(),
        group_rules: true,
        grant_roles: Vec::new(),
        aggregate_to: policy::rbac::DEFAULT_NAME.to_owned(),
        namespaces: Vec::new(),
        records_namespace: Some(DEMO_NAMESPACE.to_owned()),
        policy_selector: None,
        policies: None,
        resync_rate: 15,
        metrics_parents: 500,
        // The demo cluster has no Events.
        events: false,
        history: None,
        history_flush: Duration::from_mins(1),
        rollouts: RolloutArgs::default(),
        lease: LeaseArgs { lease_name: "rollcall".to_owned(), ..LeaseArgs::default() },
        seed: Some(1),
        log_format: None,
        log: String::new(),
    };
    let source = PolicySource::Cluster(parse_selector("")?);
    let service = ControllerService {
        client: cluster.new_client()?,
        monitor: None,
        clock: ServerClock::assume_local(),
        source,
        listener,
        probes: None,
        lease: None,
        trees: Some(trees),
        front: None,
        args,
    };
    Ok(tokio::spawn(service.run(stop)))
}

fn service_ended_error(ended: Result<anyhow::Result<()>, tokio::task::JoinError>) -> anyhow::Error {
    let error = match ended {
        Ok(Ok(())) => anyhow::anyhow!("it returned"),
        Ok(Err(error)) => error,
        Err(error) => error.into(),
    };
    error.context("the service ended")
}

/// Completes on Ctrl-C, SIGTERM or SIGHUP.
async fn wait_for_interrupt() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut int = signal(SignalKind::interrupt())?;
    let mut term = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::select! {
        _ = int.recv() => {}
        _ = term.recv() => {}
        _ = hangup.recv() => {}
    }
    Ok(())
}

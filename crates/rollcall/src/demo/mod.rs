//! `rollcall demo`: a cluster in memory, the real service over HTTP, and an operator that plays a story.

mod cast;
mod cluster;
mod listen;
mod pace;
mod peers;
mod said;
mod screen;
mod show;
mod stage;
mod story;
mod transcript;
mod tree;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use controller::args::{LeaseArgs, RunArgs};
use controller::policies::{Source, parse_selector};
use controller::{ServerClock, Service, Trees};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::look::Look;
use cluster::{Cluster, Meter};
use pace::Pace;
use said::Said;
use show::{Caption, Show};
use stage::{Stage, Unmet};

/// The pass, which the service makes every 30 s where nobody says otherwise.
const RESYNC: Duration = Duration::from_secs(3);
/// How long the service may take to finish what it began: nothing of this cluster will be missed.
const DRAIN: Duration = Duration::from_secs(1);
/// How much faster than real time `--once` plays.
const ONCE: f64 = 4.0;

/// `rollcall demo`.
#[derive(Args, Clone, Debug)]
pub(crate) struct DemoArgs {
    /// Play the story to its end without pauses for readers, print what happened, and exit 0 only if every expectation
    /// of the story held.
    #[arg(long)]
    once: bool,
    /// How fast: 2 is twice as fast, 0.5 half as fast, 0 leaves out every pause [default: 1; with --once 4].
    #[arg(long, value_name = "N", value_parser = pace::speed)]
    speed: Option<f64>,
    /// Stay at each moment of the story until Enter is pressed (or a line comes through a pipe; where that ends, it goes on
    /// by itself).
    #[arg(long, conflicts_with = "once")]
    step: bool,
    /// Address of the page, its API, /metrics, /livez, /readyz; where it is taken, a free port beside it [default: 127.0.0.1:8080; with
    /// --once a free port].
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
}

/// How the demo ended.
enum Ending {
    /// The story is over, and everything was as expected.
    Held,
    /// Something was not as expected.
    Unmet(Unmet),
    /// Somebody had seen enough, or is gone.
    Interrupted,
    /// Something does not work.
    Broken(anyhow::Error),
}

/// Plays.
pub(crate) async fn run(args: DemoArgs) -> anyhow::Result<ExitCode> {
    let look = Look::of_this_process(args.once);
    let pace = Pace::new(args.speed.unwrap_or(if args.once { ONCE } else { 1.0 }), !args.once);
    let (listener, listening) = listen::bind(args.listen, args.once).await?;
    let meter = Meter::at(listener.local_addr()?)?;
    let cluster = Arc::new(Cluster::start().await?);
    let (trees_in, trees) = watch::channel(Arc::default());
    let stop = CancellationToken::new();
    let mut service = serve(&cluster, listener, trees_in, stop.clone())?;
    let said = Said::listen(cluster.client()?);
    let listening = if args.step { format!("{listening} · Enter: on") } else { listening };
    let before = Caption { listening, kubectl: cluster.kubectl(), ..Caption::default() };
    let caption = watch::Sender::new(before.clone());
    let show = if look.live {
        Show::Live(caption.clone())
    } else {
        say(&format!("{}\ncluster: {} get shops,databases", before.listening, before.kubectl));
        Show::Lines(look)
    };
    let mut stage = Stage::new(cluster.clone(), meter, said, trees.clone(), pace, show, before);
    if args.step {
        stage.wait_for(keys());
    }
    let ending = tokio::select! {
        ending = tell(stage, args.once) => ending,
        ended = &mut service => Ending::Broken(why(ended)),
        () = screen::run(look, caption.subscribe(), trees, &cluster), if look.live => Ending::Interrupted,
        done = interrupted() => done.map_or_else(|error| Ending::Broken(error.into()), |()| Ending::Interrupted),
    };
    let (over, scene, scenes) = {
        let caption = caption.borrow();
        (caption.over, caption.scene, caption.scenes)
    };
    stop.cancel();
    // Whatever it has to say now, its cluster is gone in a moment.
    _ = tokio::time::timeout(DRAIN, service).await;
    match ending {
        Ending::Held => Ok(ExitCode::SUCCESS),
        Ending::Interrupted if over || !args.once => {
            if look.live && !over {
                // The picture is gone with the screen that it was on.
                say(&format!(
                    "{scene} of {scenes} scenes seen; `rollcall demo --once` prints the whole story."
                ));
            }
            Ok(ExitCode::SUCCESS)
        }
        Ending::Interrupted => {
            say("rollcall: interrupted before the story was over");
            Ok(ExitCode::from(2))
        }
        Ending::Broken(error) => Err(error),
        Ending::Unmet(unmet) => {
            say(&format!("rollcall: {unmet}"));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Lines that somebody types. Read on a thread of its own, which nobody waits for at the end.
fn keys() -> mpsc::Receiver<()> {
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

/// Words for people. Where nobody is left to read them there is nothing to do about it.
fn say(text: &str) {
    _ = writeln!(io::stderr(), "{text}");
}

/// The story; without `--once` it does not end by itself.
async fn tell(mut stage: Stage, once: bool) -> Ending {
    match story::play(&mut stage).await.and_then(|()| stage.end(once)) {
        Ok(()) if once => Ending::Held,
        Ok(()) => std::future::pending().await,
        Err(error) => Ending::of(error),
    }
}

impl Ending {
    fn of(error: anyhow::Error) -> Ending {
        if error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe) {
            return Ending::Interrupted;
        }
        error.downcast::<Unmet>().map_or_else(Ending::Broken, Ending::Unmet)
    }
}

type Running = JoinHandle<anyhow::Result<()>>;

/// The service as `rollcall run` runs it, with a shorter period.
fn serve(
    cluster: &Cluster,
    listener: tokio::net::TcpListener,
    trees: Trees,
    stop: CancellationToken,
) -> anyhow::Result<Running> {
    let args = RunArgs {
        listen: listener.local_addr()?,
        resync: RESYNC,
        audit: Duration::from_mins(10),
        stuck_after: Duration::from_mins(10),
        namespaces: Vec::new(),
        records_namespace: None,
        policy_selector: None,
        policies: None,
        resync_rate: 20,
        metrics_parents: 500,
        // The played cluster has no Events.
        events: false,
        history: None,
        history_flush: Duration::from_mins(1),
        lease: LeaseArgs::default(),
        seed: Some(1),
        log_format: None,
        log: String::new(),
    };
    let source = Source::Cluster(parse_selector("")?);
    let service = Service {
        client: cluster.client()?,
        clock: ServerClock::shared(),
        source,
        listener,
        lease: None,
        trees: Some(trees),
        args,
    };
    Ok(tokio::spawn(service.run(stop)))
}

fn why(ended: Result<anyhow::Result<()>, tokio::task::JoinError>) -> anyhow::Error {
    let error = match ended {
        Ok(Ok(())) => anyhow::anyhow!("it returned"),
        Ok(Err(error)) => error,
        Err(error) => error.into(),
    };
    error.context("the service ended")
}

/// Ctrl-C, a polite kill, or a terminal that was closed.
async fn interrupted() -> io::Result<()> {
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

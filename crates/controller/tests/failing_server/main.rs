//! The whole service over an API server that fails for an hour, in virtual time: how much it asks, and how much it logs.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test that measures")]

mod server;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Parser;
use controller::args::RunArgs;
use controller::policies::PolicySource;
use controller::{ControllerService, ServerClock};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use server::{FailingServer, Failure, Scope};

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    run: RunArgs,
}

/// Most requests a second, and most bytes of log an hour, that any error of the server may cost.
const MAX_REQUESTS: usize = 20;
const MAX_LOG: usize = 1_000_000;
/// What may be sent before the breakers have met the errors.
const ONSET: Duration = Duration::from_mins(1);

/// How many parents, and how long an outage. `ROLLCALL_FULL=1` plays what is promised.
fn extent() -> (usize, Duration) {
    let full = std::env::var("ROLLCALL_FULL").is_ok_and(|full| full == "1");
    if full { (20_000, Duration::from_hours(1)) } else { (100, Duration::from_mins(5)) }
}

/// What an outage cost.
struct Cost {
    span: Duration,
    requests: Vec<(Duration, String)>,
    log: Arc<LogVolume>,
}

#[derive(Default)]
struct LogVolume {
    bytes: AtomicUsize,
    lines: Mutex<BTreeMap<String, usize>>,
}

struct LogWriter(Arc<LogVolume>);

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.bytes.fetch_add(line.len(), Ordering::Relaxed);
        let text: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
        let message = text["message"].as_str().unwrap_or("?").to_owned();
        *self.0.lines.lock().unwrap().entry(message).or_default() += 1;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs the service for the span of an outage. The pass, which costs what it always does, runs where it is what fails.
fn outage(scope: Scope, failure: Failure) -> Cost {
    let (parents, span) = extent();
    let resync = if scope == Scope::Everything { "30s" } else { "0s" };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let log = Arc::new(LogVolume::default());
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new("info,kube_runtime=error"))
        .with_writer(move || LogWriter(writer.clone()))
        .json()
        .flatten_event(true)
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    runtime.block_on(async {
        let server = FailingServer::new(parents, scope, failure);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let service = ControllerService {
            client: kube::Client::new(server.clone(), "default"),
            monitor: None,
            source: PolicySource::Cluster(policy::parse_selector("").unwrap()),
            clock: ServerClock::assume_local(),
            listener,
            probes: None,
            lease: None,
            trees: None,
            args: Cli::parse_from(["rollcall", "--seed", "1", "--resync", resync, "--grant-roles", "a,b,c"])
                .run,
        };
        let stop = CancellationToken::new();
        tokio::select! {
            ended = service.run(stop.clone()) => panic!("the service ended: {ended:?}"),
            () = tokio::time::sleep(span) => {}
        }
        Cost { span, requests: server.requests(), log }
    })
}

impl Cost {
    /// Largest number of requests within a second that begins `after` this time or later.
    fn busiest_second(&self, after: Duration) -> usize {
        let late = self.requests.iter().map(|(at, _)| *at).filter(|at| *at >= after);
        let times: Vec<Duration> = late.collect();
        let mut end = 0;
        let within = times.iter().enumerate().map(|(first, at)| {
            end += times[end..].iter().take_while(|time| **time < *at + Duration::from_secs(1)).count();
            end - first
        });
        within.max().unwrap_or_default()
    }

    fn summary(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (_, asked) in &self.requests {
            let asked = asked.replace(|letter: char| letter.is_ascii_digit(), "");
            *counts.entry(asked).or_default() += 1;
        }
        counts
    }
}

/// Plays these failures one after the other, and holds each to the law.
fn check(scope: Scope, failures: &[Failure]) {
    for failure in failures {
        let cost = outage(scope, *failure);
        let busiest = cost.busiest_second(ONSET);
        let logged = cost.log.bytes.load(Ordering::Relaxed);
        let total = cost.requests.len();
        println!(
            "{scope:?} {failure:?}: {total} requests, {busiest} in the busiest second, {logged} bytes of log"
        );
        assert!(busiest <= MAX_REQUESTS, "{scope:?} {failure:?}: {busiest} a second\n{:?}", cost.summary());
        // Each cause is told more often in its first minutes.
        let allowed =
            MAX_LOG / 10 + (9 * MAX_LOG / 10) / 3_600 * usize::try_from(cost.span.as_secs()).unwrap();
        let lines = cost.log.lines.lock().unwrap();
        assert!(logged <= allowed, "{scope:?} {failure:?}: {logged} bytes of log\n{lines:?}");
        assert!(total > 100, "{scope:?} {failure:?}: something was tried: {total}");
    }
}

#[test]
fn a_server_that_fails_writes_is_asked_rarely_and_logged_briefly() {
    check(Scope::StatusWrites, &[Failure::Status(500, None), Failure::Status(503, Some(5))]);
}

#[test]
fn so_is_one_that_throttles_writes() {
    check(Scope::StatusWrites, &[Failure::Status(429, None), Failure::Status(429, Some(1))]);
}

#[test]
fn so_is_one_that_denies_writes() {
    check(Scope::StatusWrites, &[Failure::Status(403, None), Failure::Status(401, None)]);
    check(Scope::Writes, &[Failure::Status(403, None)]);
}

#[test]
fn so_is_one_that_finds_every_write_in_conflict_or_invalid() {
    check(Scope::StatusWrites, &[Failure::Status(409, None), Failure::Status(422, None)]);
    check(Scope::Writes, &[Failure::Status(409, None)]);
}

#[test]
fn so_is_one_that_finds_every_write_malformed_or_too_large() {
    check(Scope::StatusWrites, &[Failure::Status(400, None), Failure::Status(413, None)]);
}

#[test]
fn so_is_one_that_does_not_find_what_it_lists() {
    check(Scope::StatusWrites, &[Failure::Status(404, None), Failure::Gone]);
}

#[test]
fn so_is_one_that_keeps_nothing_of_what_is_written() {
    check(Scope::StatusWrites, &[Failure::Pruned]);
}

#[test]
fn so_is_one_that_does_not_answer() {
    check(Scope::StatusWrites, &[Failure::Silence, Failure::Refused]);
    check(Scope::Writes, &[Failure::Silence, Failure::Refused]);
}

#[test]
fn so_is_one_that_fails_at_everything() {
    check(Scope::Everything, &[Failure::Status(500, None), Failure::Status(503, Some(5))]);
    check(Scope::Everything, &[Failure::Status(429, Some(1)), Failure::Status(401, None)]);
}

#[test]
fn so_is_one_that_refuses_to_bind_roles_or_to_show_them() {
    for scope in [Scope::Bindings, Scope::Roles] {
        check(
            scope,
            &[Failure::Status(403, None), Failure::Status(500, None), Failure::Status(429, Some(1))],
        );
        check(scope, &[Failure::Status(409, None), Failure::Silence, Failure::Refused]);
    }
}

#[test]
fn so_is_one_that_serves_nothing_or_nobody() {
    check(Scope::Everything, &[Failure::Status(403, None), Failure::Status(404, None)]);
    check(Scope::Everything, &[Failure::Silence, Failure::Refused]);
}

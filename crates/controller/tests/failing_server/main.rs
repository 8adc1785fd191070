//! The whole service over an API server that fails for an hour, in virtual time: how much it asks, and how much it logs.
//!
//! Each row of the tables is played with few parents. `ROLLCALL_FULL_OUTAGES=1 CARGO_PROFILE_DEV_OPT_LEVEL=3 cargo test -p
//! controller --test failing_server -- --nocapture` plays what is promised, and prints what each row cost; `tests/run --full`
//! does so.

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "a test that measures")]

mod cost;
mod failure;
mod lease;
mod objects;
mod request;
mod server;

use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use controller::args::RunArgs;
use controller::lease::LeaseName;
use controller::policies::PolicySource;
use controller::{ControllerService, KUBE_LOG_DIRECTIVES, ServerClock};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use cost::{LogVolume, LogWriter, OutageCost, OutageRequest, count_by_target};
use failure::RequestFailure::{
    Gone, Invalid, OtherObject, Page, Pruned, Refused, Reset, RetryAfter, Rewritten, Silence, Slow, Status,
    Truncated, Untrusted,
};
use failure::{FailureScope, RequestFailure};
use server::FailingServer;

#[derive(Parser)]
struct OutageArguments {
    #[command(flatten)]
    run: RunArgs,
}

/// Most requests a second, and most bytes of log an hour, that any error of the server may cost.
const MAX_REQUESTS: usize = 20 - LIVENESS_READS;
/// Those of them that show whether connections are alive, of which there are none here: one every 2 s at most.
const LIVENESS_READS: usize = 1;
const MAX_LOG: usize = 1_000_000;

/// An answer that comes after the writer has given up, and before reads have.
const LATE: RequestFailure = Slow(Duration::from_secs(29));
/// `Retry-After` beyond all reason, below it, and in the other notation: a minute from then, a day before, and out of reach.
const HUGE: &str = "18446744073709551615";
const NEGATIVE: &str = "-5";
const DATE: &str = "Fri, 31 Dec 2100 23:59:59 GMT";
const PAST: &str = "Thu, 30 Dec 2100 23:59:59 GMT";
const NEVER: &str = "Fri, 31 Dec 9999 23:59:59 GMT";

/// How many parents, and how long an outage. `ROLLCALL_FULL_OUTAGES=1` plays what is promised: an hour, or
/// `ROLLCALL_OUTAGE_MINUTES`.
fn extent(scope: FailureScope) -> (usize, Duration) {
    let minutes = std::env::var("ROLLCALL_OUTAGE_MINUTES").ok().and_then(|minutes| minutes.parse().ok());
    let full = std::env::var("ROLLCALL_FULL_OUTAGES").is_ok_and(|full| full == "1");
    match scope {
        _ if full => (20_000, Duration::from_mins(minutes.unwrap_or(60))),
        // So many that not all of them are told before the breakers have met the errors.
        FailureScope::EverySecondStatusWrite => (1_000, Duration::from_mins(10)),
        FailureScope::StatusWritesOfMany => (2_000, Duration::from_mins(2)),
        _ => (100, Duration::from_mins(5)),
    }
}

/// Runs the service for the span of an outage, with the options that a user has who sets none.
fn outage(scope: FailureScope, failure: RequestFailure) -> OutageCost {
    let (parents, span) = extent(scope);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let log = Arc::new(LogVolume::default());
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(format!("info,{KUBE_LOG_DIRECTIVES}")))
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
            lease: Some(LeaseName {
                namespace: "home".into(),
                name: "rollcall".into(),
                identity: "one".into(),
            }),
            trees: None,
            front: None,
            args: OutageArguments::parse_from(["rollcall", "--seed", "1", "--grant-roles", "a,b,c"]).run,
        };
        let stop = CancellationToken::new();
        tokio::select! {
            ended = service.run(stop.clone()) => panic!("the service ended: {ended:?}"),
            () = tokio::time::sleep(span) => {}
        }
        OutageCost { span, requests: server.take_requests(), log, ready: server.count_ready() }
    })
}

/// Plays these failures one after the other, and holds each to the law. Where writes succeed, at least so many parents are told
/// True meanwhile.
fn check(scope: FailureScope, least_ready: usize, failures: &[RequestFailure]) {
    for failure in failures {
        let cost = outage(scope, *failure);
        let row = format!("{scope:?} {failure:?}");
        let onset = cost.onset(*failure);
        let (second, whole) = (cost.busiest_second(onset, false), cost.busiest_second(onset, true));
        let total = cost.requests.iter().filter(|request| !request.is_news).count();
        let (busiest, logged, whole_log) = (second.len(), cost.log.bytes(), cost.log.all_bytes());
        println!("\n| {row} | {total} | {busiest} | {} | {logged} | {whole_log} |", whole.len());
        let describe = |second: &[&OutageRequest]| {
            let since = second.first().map(|request| request.at);
            format!("{row}: {} a second at {since:?}\n{:?}", second.len(), count_by_target(second))
        };
        assert!(busiest <= MAX_REQUESTS, "{}", describe(&second));
        // What lands comes with it, and what is told of it. Where a kind does not fail at all it is as fast as ever, and so is
        // all where what was dropped is not tried again.
        let lands_too =
            scope == FailureScope::EverySecondStatusWrite && !matches!(failure, RequestFailure::Pruned);
        let all = if lands_too { whole.len() } else { busiest };
        assert!(all <= MAX_REQUESTS + LIVENESS_READS, "{}", describe(&whole));
        // Each cause is told more often in its first minutes, and each kind that fails is one.
        let at_first = if scope.breaks_watches() { MAX_LOG / 4 } else { MAX_LOG / 10 };
        let seconds = usize::try_from(cost.span.as_secs()).unwrap();
        let allowed = at_first + (MAX_LOG - at_first) / 3_600 * seconds;
        assert!(logged <= allowed, "{row}: {logged} bytes of log\n{:?}", cost.log.lines());
        assert!(whole_log <= MAX_LOG, "{row}: {whole_log} bytes of log\n{:?}", cost.log.lines());
        // Where nothing was ever read, there are no parents to ask about.
        let tried = if scope == FailureScope::FromTheStart { 10 } else { 40 };
        assert!(total > tried, "{row}: something was tried: {total}");
        assert!(cost.ready >= least_ready, "{row}: {} are told\n{:?}", cost.ready, cost.log.lines());
    }
}

#[test]
fn a_server_that_fails_writes_is_asked_rarely_and_logged_briefly() {
    let failures = [Status(500), Status(502), Status(503), Status(504), Page(502), Page(503), Page(504)];
    check(FailureScope::StatusWrites, 0, &failures);
}

#[test]
fn so_is_one_with_two_thousand_parents() {
    check(FailureScope::StatusWritesOfMany, 0, &[Status(500), Status(409), Page(200)]);
}

#[test]
fn so_is_one_that_throttles_writes_whatever_time_it_names() {
    check(FailureScope::StatusWrites, 0, &[Status(429), RetryAfter(429, "1"), RetryAfter(503, "5")]);
    let odd = [HUGE, NEGATIVE, DATE, NEVER].map(|value| RetryAfter(429, value));
    check(FailureScope::StatusWrites, 0, &odd);
}

#[test]
fn so_is_one_that_begins_to_fail_in_the_midst_of_a_crowd() {
    let (parents, _) = extent(FailureScope::StatusWrites);
    let failures = [Status(500), RetryAfter(429, "1"), Status(409), Pruned, Silence, LATE, Reset, Page(200)];
    // In the midst of the first words, and in that of the second ones.
    check(FailureScope::StatusWritesFrom(parents / 2), 0, &failures);
    check(FailureScope::StatusWritesFrom(parents * 3 / 2), parents / 3, &failures);
}

#[test]
fn one_that_names_a_date_is_asked_again_when_it_has_come_and_within_reason() {
    let (parents, span) = extent(FailureScope::StatusWrites);
    let minutes = usize::try_from(span.as_secs() / 60).unwrap();
    for (value, least, most) in
        [(DATE, 2 * minutes, 4 * minutes + 20), (NEVER, 2, minutes + 20), (PAST, 80 * minutes, 130 * minutes)]
    {
        let cost = outage(FailureScope::StatusWrites, RetryAfter(503, value));
        let writes =
            cost.requests.iter().filter(|request| request.asked.starts_with("PATCH /apis/example.com/"));
        let asked = writes.count();
        assert!((least..=most).contains(&asked), "{value}: {asked} writes to {parents} parents in {span:?}");
    }
}

#[test]
fn so_is_one_that_denies_writes() {
    check(FailureScope::StatusWrites, 0, &[Status(401), Status(403), Page(403)]);
    check(FailureScope::Writes, 0, &[Status(403)]);
}

#[test]
fn so_is_one_that_finds_every_write_in_conflict_or_invalid() {
    check(FailureScope::StatusWrites, 0, &[Status(409), Status(422)]);
    check(FailureScope::Writes, 0, &[Status(409)]);
    let message = "status.conditions[0].message";
    check(
        FailureScope::StatusWrites,
        0,
        &[
            Invalid("FieldValueRequired", "status.phase", "Required value"),
            Invalid("FieldValueTooLong", message, "Too long: may not be more than 8 bytes"),
            Invalid("FieldValueInvalid", "status", "failed rule: no words at all"),
        ],
    );
}

#[test]
fn so_is_one_that_finds_every_write_malformed_or_too_large() {
    let failures = [Status(400), Status(405), Status(413), Page(413), Status(415)];
    check(FailureScope::StatusWrites, 0, &failures);
}

#[test]
fn so_is_one_that_does_not_find_what_it_lists() {
    check(FailureScope::StatusWrites, 0, &[Status(404), Gone]);
}

#[test]
fn so_is_one_that_keeps_nothing_of_what_is_written_or_something_else() {
    check(FailureScope::StatusWrites, 0, &[Pruned, Rewritten("message"), Rewritten("reason")]);
}

#[test]
fn so_is_one_whose_answer_says_nothing_of_what_was_written() {
    check(FailureScope::StatusWrites, 0, &[Page(200), Truncated, Reset, OtherObject]);
    check(FailureScope::Writes, 0, &[Page(200), Truncated]);
}

#[test]
fn so_is_one_that_does_not_answer_or_too_late() {
    let failures = [Silence, LATE, Refused, Untrusted];
    check(FailureScope::StatusWrites, 0, &failures);
    check(FailureScope::Writes, 0, &failures);
}

#[test]
fn so_is_one_that_fails_at_every_second_write() {
    let scope = FailureScope::EverySecondStatusWrite;
    let (parents, span) = extent(scope);
    // A parent is told twice, and fails as often, at four a second; one that fails again and again waits for a minute.
    let told = (usize::try_from(span.as_secs()).unwrap() * 4).saturating_sub(parents);
    let least = told.min(parents * 99 / 100);
    check(scope, least, &[Status(500), Status(409), Page(200), Truncated, Reset]);
    // One that is not answered takes 15 s, and with many of them there is not the time for all; what was dropped stays so.
    check(scope, 0, &[Silence, Pruned]);
}

#[test]
fn so_is_one_that_fails_at_one_kind_of_two() {
    let failures = [Status(500), Status(403), Status(409), Silence, Page(200), Pruned];
    let scope = FailureScope::StatusWritesOfOneKind;
    check(scope, extent(scope).0 / 2, &failures);
}

#[test]
fn so_is_one_that_refuses_to_bind_roles_or_to_show_them() {
    for scope in [FailureScope::Bindings, FailureScope::Roles] {
        let failures = [
            Status(403),
            Status(500),
            RetryAfter(429, "1"),
            RetryAfter(429, HUGE),
            Status(409),
            Silence,
            Refused,
        ];
        check(scope, 0, &failures);
        check(scope, 0, &[Page(200), Truncated]);
    }
}

#[test]
fn so_is_one_that_fails_at_everything() {
    check(FailureScope::Everything, 0, &[Status(500), Page(502), RetryAfter(503, "5"), Status(401)]);
    check(FailureScope::Everything, 0, &[RetryAfter(429, "1"), RetryAfter(429, HUGE), RetryAfter(429, DATE)]);
}

#[test]
fn so_is_one_that_serves_nothing_or_nobody() {
    check(FailureScope::Everything, 0, &[Status(400), Status(403), Status(404), Status(405), Status(410)]);
    check(FailureScope::Everything, 0, &[Silence, LATE, Refused, Untrusted]);
}

#[test]
fn so_is_one_that_talks_nonsense() {
    check(FailureScope::Everything, 0, &[Page(200), Truncated, Reset, OtherObject]);
    check(FailureScope::Everything, 0, &[Status(409), Status(413), Status(422)]);
}

#[test]
fn so_is_one_that_breaks_the_watches_of_many_kinds() {
    let failures = [Status(500), RetryAfter(429, "1"), Status(403), Silence, Refused, Page(200), Reset];
    for scope in [
        FailureScope::EverythingOfManyKinds,
        FailureScope::ReadsOfManyKinds,
        FailureScope::WatchesOfManyKinds,
    ] {
        check(scope, 0, &failures);
    }
}

#[test]
fn so_is_one_that_fails_from_the_start() {
    check(FailureScope::FromTheStart, 0, &[Status(500), Status(403), RetryAfter(429, "1"), Page(200)]);
    check(FailureScope::FromTheStart, 0, &[Status(404), Silence, Refused, Truncated]);
}

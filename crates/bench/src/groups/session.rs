//! One size, with members that are found in one way.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::cluster::{GroupCluster, MemberSearch};
use crate::compare::observer::AnswerObserver;
use crate::compare::process::SubjectProcess;
use crate::compare::session::{all_requests, count, lease_requests, quantile_ms, writes_to};
use crate::subject::SubjectArgs;

/// Longest time in which the process may stay busy before its figures are taken all the same.
const REST_TIMEOUT: Duration = Duration::from_secs(30);

/// What is measured.
pub(crate) struct GroupPlan {
    pub(crate) parents: usize,
    pub(crate) children: usize,
    pub(crate) flips: u32,
    /// Flips a second.
    pub(crate) rate: u32,
    pub(crate) rest: Duration,
    /// Longest time that answers are waited for.
    pub(crate) patience: Duration,
}

/// What a session took.
#[derive(Clone, Copy)]
pub(crate) struct GroupFigures {
    pub(crate) rest_mb: f64,
    peak_mb: f64,
    start_processor_s: f64,
    start_s: f64,
    writes_per_parent: f64,
    requests_a_minute: f64,
    flip_processor_ms: f64,
    p50_ms: f64,
    p99_ms: f64,
}

impl GroupFigures {
    /// The first two lines of a table.
    pub(crate) fn head() -> String {
        let names = "| | rest, MB | peak, MB | start, CPU-s | start, s | writes per parent | \
            requests a minute at rest | ms of CPU per flip | told p50, ms | told p99, ms |";
        format!("{names}\n|{}", " --- |".repeat(10))
    }

    /// Without the memory and the start of a service over nothing.
    pub(crate) fn above(self, empty: &GroupFigures) -> GroupFigures {
        GroupFigures {
            rest_mb: self.rest_mb - empty.rest_mb,
            peak_mb: self.peak_mb - empty.rest_mb,
            start_processor_s: self.start_processor_s - empty.start_processor_s,
            ..self
        }
    }

    fn values(&self) -> [f64; 9] {
        [
            self.rest_mb,
            self.peak_mb,
            self.start_processor_s,
            self.start_s,
            self.writes_per_parent,
            self.requests_a_minute,
            self.flip_processor_ms,
            self.p50_ms,
            self.p99_ms,
        ]
    }

    /// A line of a table, with ratios to other figures in brackets.
    pub(crate) fn row(&self, name: &str, other: Option<&GroupFigures>) -> String {
        let cell = |(index, value): (usize, &f64)| {
            let ratio = other.map(|other| value / other.values()[index]).filter(|ratio| ratio.is_finite());
            let ratio = ratio.map(|ratio| format!(" [{ratio:.2}×]")).unwrap_or_default();
            format!(" {value:.2}{ratio} |")
        };
        format!("| {name} |{}", self.values().iter().enumerate().map(cell).collect::<String>())
    }
}

/// Starts the service over a cluster, lets it rest, and turns children.
pub(crate) async fn measure(
    subject: &SubjectArgs,
    by: MemberSearch,
    plan: &GroupPlan,
) -> anyhow::Result<GroupFigures> {
    let cluster = GroupCluster::serve(by, plan.parents, plan.children).await?;
    let observer = AnswerObserver::follow(&cluster.server, &by.parent_path(), plan.parents)?;
    let begun = Instant::now();
    (0..plan.parents).for_each(|parent| observer.expect(parent, true, begun));
    let log = cluster.kubeconfig.with_extension("log");
    let mut process = SubjectProcess::start(subject.command(&cluster.kubeconfig)?, &log)?;
    std::fs::remove_file(&log)?;
    observer.wait_until_shown(plan.patience);
    process.wait_until_at_rest(REST_TIMEOUT)?;
    ensure_right(&cluster, "after the start")?;
    let started = observer.take_latencies();
    let mut figures = GroupFigures {
        rest_mb: 0.0,
        peak_mb: process.peak()?,
        start_processor_s: process.processor_seconds()?,
        start_s: started.latencies.last().map_or(0.0, Duration::as_secs_f64),
        writes_per_parent: writes_to(&cluster.server, by.parent_plural()) / count(plan.parents.max(1)),
        requests_a_minute: 0.0,
        flip_processor_ms: 0.0,
        p50_ms: 0.0,
        p99_ms: 0.0,
    };
    cluster.server.forget_requests();
    thread::sleep(plan.rest);
    let requests = all_requests(&cluster.server) - lease_requests(&cluster.server);
    figures.requests_a_minute = requests * 60.0 / plan.rest.as_secs_f64();
    figures.rest_mb = process.memory()?;
    if plan.parents > 0 {
        flip(&cluster, &observer, &mut process, (by, plan), &mut figures)?;
    }
    Ok(figures)
}

/// Turns the first child of one parent after another, at their intended times.
fn flip(
    cluster: &GroupCluster,
    observer: &AnswerObserver,
    process: &mut SubjectProcess,
    (by, plan): (MemberSearch, &GroupPlan),
    figures: &mut GroupFigures,
) -> anyhow::Result<()> {
    let is_shared = by == MemberSearch::Shared;
    let families = if is_shared { 1 } else { plan.parents };
    let (before, begun) = (process.processor_seconds()?, Instant::now());
    for number in 0..plan.flips {
        let due = begun + Duration::from_secs(1) * number / plan.rate;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        let number = usize::try_from(number)?;
        let (parent, ready) = (number % families, (number / families) % 2 == 1);
        let told = if is_shared { 0..plan.parents } else { parent..parent + 1 };
        told.for_each(|parent| observer.expect(parent, ready, due));
        cluster.turn(parent, ready)?;
    }
    observer.wait_until_shown(plan.patience);
    process.wait_until_at_rest(REST_TIMEOUT)?;
    ensure_right(cluster, "after the flips")?;
    figures.flip_processor_ms = (process.processor_seconds()? - before) * 1e3 / f64::from(plan.flips);
    let latencies = observer.take_latencies().latencies;
    figures.p50_ms = quantile_ms(&latencies, 50);
    figures.p99_ms = quantile_ms(&latencies, 99);
    Ok(())
}

fn ensure_right(cluster: &GroupCluster, when: &str) -> anyhow::Result<()> {
    let wrong = cluster.wrong_answers();
    ensure!(wrong == 0, "{wrong} answers are wrong {when}: there are no figures");
    Ok(())
}

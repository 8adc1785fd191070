//! The workloads of one subject at one size.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use sandbox::{RequestTally, SandboxServer};

use super::build::BuiltSubject;
use super::cluster::{UNREADY_INTERVAL, WIDGET_PATH, WidgetCluster};
use super::measurement::Measurement;
use super::observer::AnswerObserver;
use super::process::SubjectProcess;

/// Longest time at which a subject may stay busy after a workload before its figures are taken all the same.
pub(crate) const REST_TIMEOUT: Duration = Duration::from_secs(15);
/// Children that a burst turns, and how often each.
const BURST_CHILDREN: usize = 50;
const BURST_TURNS: usize = 3;
/// Interval between the turns of a burst.
const BURST_INTERVAL: Duration = Duration::from_millis(10);

/// What a session does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionPlan {
    pub(crate) round: u32,
    pub(crate) parents: usize,
    pub(crate) children: usize,
    /// Flips a second, and for how many seconds.
    pub(crate) rate: u32,
    pub(crate) flip_seconds: u32,
    /// Longest time that an answer is waited for.
    pub(crate) patience: Duration,
}

impl SessionPlan {
    /// A measurement without figures.
    pub(crate) fn measurement(&self, subject: &BuiltSubject, workload: &str) -> Measurement {
        Measurement {
            subject: subject.name.to_owned(),
            workload: workload.to_owned(),
            round: self.round,
            parents: self.parents,
            children: self.children,
            ..Measurement::default()
        }
    }
}

/// A subject over a cluster, while it runs.
struct Session<'a> {
    subject: &'a BuiltSubject,
    plan: SessionPlan,
    cluster: WidgetCluster,
    observer: AnswerObserver,
    /// None while it is down.
    process: Option<SubjectProcess>,
}

/// Runs `start`, `flips`, `burst` and `restart`, one after the other. One that fails is the last.
pub(crate) async fn run_session(
    subject: &BuiltSubject,
    plan: SessionPlan,
) -> anyhow::Result<Vec<Measurement>> {
    let is_unready = |parent: usize| (parent + 1).is_multiple_of(UNREADY_INTERVAL);
    let cluster = WidgetCluster::serve(plan.parents, plan.children, is_unready).await?;
    let observer = AnswerObserver::follow(&cluster.server, WIDGET_PATH, plan.parents)?;
    let begun = Instant::now();
    (0..plan.parents).for_each(|parent| observer.expect(parent, !is_unready(parent), begun));
    let process = Some(SubjectProcess::start(subject.command(&cluster.kubeconfig), &subject.log())?);
    let mut session = Session { subject, plan, cluster, observer, process };
    let workloads: [(&str, SessionWorkload<'_>); 4] = [
        ("start", Session::start),
        ("flips", Session::flip),
        ("burst", Session::burst),
        ("restart", Session::restart),
    ];
    let mut measured = Vec::new();
    for (workload, run) in workloads {
        let mut measurement = plan.measurement(subject, workload);
        match run(&mut session) {
            Ok(figures) => {
                measurement.wrong = session.cluster.wrong_answers();
                measurement.requests = by_address(&session.cluster.server);
                measurement.figures = if measurement.wrong == 0 { figures } else { Figures::new() };
            }
            Err(error) => measurement.failure = Some(format!("{error:#}")),
        }
        let goes_on = measurement.failure.is_none();
        measured.push(measurement);
        if !goes_on {
            break;
        }
    }
    Ok(measured)
}

/// A workload, as a method.
type SessionWorkload<'a> = fn(&mut Session<'a>) -> anyhow::Result<Figures>;

/// Figures by name.
pub(crate) type Figures = BTreeMap<String, f64>;

impl Session<'_> {
    fn process(&mut self) -> anyhow::Result<&mut SubjectProcess> {
        self.process.as_mut().context("it does not run")
    }

    /// From the start of the process until every parent has its answer and the process is at rest.
    fn start(&mut self) -> anyhow::Result<Figures> {
        self.observer.wait_until_shown(self.plan.patience);
        self.process()?.wait_until_at_rest(REST_TIMEOUT)?;
        let shown = self.observer.take_latencies();
        Ok(figures([
            ("seconds", shown.latencies.last().map_or(f64::NAN, Duration::as_secs_f64)),
            ("processor_s", self.process()?.processor_seconds()?),
            ("peak_mb", self.process()?.peak()?),
            ("rest_mb", self.process()?.memory()?),
            ("status_writes", status_writes(&self.cluster.server)),
            ("requests", all_requests(&self.cluster.server)),
        ]))
    }

    /// Flips at their intended times, whatever became of those before: each turns a parent's answer.
    fn flip(&mut self) -> anyhow::Result<Figures> {
        self.cluster.server.forget_requests();
        let candidates: Vec<usize> =
            (0..self.plan.parents).filter(|parent| !(parent + 1).is_multiple_of(UNREADY_INTERVAL)).collect();
        let (before, begun) = (self.process()?.processor_seconds()?, Instant::now());
        let flips = self.plan.rate * self.plan.flip_seconds;
        for number in 0..flips {
            let due = begun + Duration::from_secs(1) * number / self.plan.rate;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let number = usize::try_from(number)?;
            let ready = (number / candidates.len()) % 2 == 1;
            let parent = candidates[number % candidates.len()];
            self.observer.expect(parent, ready, due);
            self.cluster.turn(parent, 0, ready)?;
        }
        self.observer.wait_until_shown(self.plan.patience);
        self.process()?.wait_until_at_rest(REST_TIMEOUT)?;
        let took = self.process()?.processor_seconds()? - before;
        let shown = self.observer.take_latencies();
        let all = f64::from(flips);
        Ok(figures([
            ("p50_ms", quantile_ms(&shown.latencies, 50)),
            ("p99_ms", quantile_ms(&shown.latencies, 99)),
            ("never_shown_percent", count(shown.never_shown) / all * 100.0),
            ("processor_ms_per_flip", took / all * 1e3),
            ("status_writes_per_flip", status_writes(&self.cluster.server) / all),
        ]))
    }

    /// All children of some parents turn three times within a second and a half; none is ready at the end.
    fn burst(&mut self) -> anyhow::Result<Figures> {
        let families = BURST_CHILDREN.div_ceil(self.plan.children).min(self.plan.parents);
        for parent in 0..families {
            self.observer.expect(parent, true, Instant::now());
            (0..self.plan.children).try_for_each(|child| self.cluster.turn(parent, child, true))?;
        }
        self.observer.wait_until_shown(self.plan.patience);
        self.process()?.wait_until_at_rest(REST_TIMEOUT)?;
        self.cluster.server.forget_requests();
        let (before, begun) = (self.process()?.processor_seconds()?, Instant::now());
        for turn in 0..BURST_TURNS {
            for number in 0..families * self.plan.children {
                self.cluster.turn(number / self.plan.children, number % self.plan.children, turn % 2 == 1)?;
                thread::sleep(BURST_INTERVAL);
            }
        }
        let ended = Instant::now();
        (0..families).for_each(|parent| self.observer.expect(parent, false, ended));
        self.observer.wait_until_shown(self.plan.patience);
        let settled = ended.elapsed();
        self.process()?.wait_until_at_rest(REST_TIMEOUT)?;
        self.observer.take_latencies();
        Ok(figures([
            ("status_writes", status_writes(&self.cluster.server)),
            ("processor_ms", (self.process()?.processor_seconds()? - before) * 1e3),
            ("settled_s", settled.as_secs_f64()),
            ("turns", count(BURST_TURNS * families * self.plan.children)),
            ("seconds", (ended - begun).as_secs_f64()),
        ]))
    }

    /// A child turns while the process is down: one write is needed when it is back.
    fn restart(&mut self) -> anyhow::Result<Figures> {
        if let Some(process) = self.process.take() {
            process.stop()?;
        }
        let parent = self.plan.parents - 1 - usize::from(self.plan.parents.is_multiple_of(UNREADY_INTERVAL));
        self.cluster.turn(parent, 1 % self.plan.children, false)?;
        self.cluster.server.forget_requests();
        self.observer.take_latencies();
        self.observer.expect(parent, false, Instant::now());
        let command = self.subject.command(&self.cluster.kubeconfig);
        self.process = Some(SubjectProcess::start(command, &self.subject.log())?);
        self.observer.wait_until_shown(self.plan.patience);
        self.process()?.wait_until_at_rest(REST_TIMEOUT)?;
        let shown = self.observer.take_latencies();
        Ok(figures([
            ("status_writes", status_writes(&self.cluster.server)),
            ("seconds", shown.latencies.last().map_or(f64::NAN, Duration::as_secs_f64)),
            ("processor_s", self.process()?.processor_seconds()?),
            ("peak_mb", self.process()?.peak()?),
            ("requests", all_requests(&self.cluster.server)),
        ]))
    }
}

/// Figures by name, without those that nothing was seen for.
pub(crate) fn figures<const N: usize>(all: [(&str, f64); N]) -> Figures {
    let known = all.into_iter().filter(|(_, value)| value.is_finite());
    known.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The latency that this share of all did not exceed.
pub(crate) fn quantile_ms(sorted: &[Duration], percent: usize) -> f64 {
    let index = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(index).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
}

/// A count as a figure.
pub(crate) fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::NAN, f64::from)
}

fn sum(server: &SandboxServer, counts: impl Fn(&RequestTally) -> bool) -> f64 {
    let all = server.request_counts();
    let number: u64 = all.iter().filter(|(tally, _)| counts(tally)).map(|(_, number)| number).sum();
    usize::try_from(number).map_or(f64::NAN, count)
}

/// Writes to parents: to their status, and whatever else of them a subject writes.
pub(crate) fn status_writes(server: &SandboxServer) -> f64 {
    writes_to(server, "widgets")
}

/// Writes to objects of the kind with this plural.
pub(crate) fn writes_to(server: &SandboxServer, plural: &str) -> f64 {
    sum(server, |tally| tally.verb.is_write() && tally.plural == plural)
}

/// Requests of every sort.
pub(crate) fn all_requests(server: &SandboxServer) -> f64 {
    sum(server, |_| true)
}

/// Requests that only keep a lease.
pub(crate) fn lease_requests(server: &SandboxServer) -> f64 {
    sum(server, |tally| tally.plural == "leases")
}

/// The requests as the raw data has them.
pub(crate) fn by_address(server: &SandboxServer) -> BTreeMap<String, u64> {
    let named = |(tally, number): (&RequestTally, &u64)| {
        let slash = if tally.subresource.is_empty() { "" } else { "/" };
        (format!("{} {}{slash}{}", tally.verb.as_str(), tally.plural, tally.subresource), *number)
    };
    server.request_counts().iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_a_latency_that_was_seen() {
        let sorted: Vec<Duration> = (1..=200).map(Duration::from_millis).collect();
        let near = |value: f64, expected: f64| (value - expected).abs() < 1e-9;
        assert!(near(quantile_ms(&sorted, 50), 100.0) && near(quantile_ms(&sorted, 99), 198.0));
        assert!(near(quantile_ms(&sorted[..1], 99), 1.0) && quantile_ms(&[], 50).is_nan());
    }
}

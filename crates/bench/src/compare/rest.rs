//! What subjects do while nothing happens: all side by side, each over a server of its own.

use std::thread;
use std::time::{Duration, Instant};

use super::build::BuiltSubject;
use super::cluster::{WIDGET_PATH, WidgetCluster};
use super::measurement::Measurement;
use super::observer::AnswerObserver;
use super::process::SubjectProcess;
use super::session::{
    Figures, REST_TIMEOUT, SessionPlan, all_requests, by_address, figures, lease_requests, status_writes,
};

/// Number of parents.
const PARENTS: usize = 110;

/// A rest, with some parents that have a child that is not ready.
#[derive(Clone, Copy)]
pub(crate) struct RestWorkload {
    name: &'static str,
    unready: usize,
}

/// Nearly everything is ready, or nothing is.
pub(crate) const RESTS: [RestWorkload; 2] =
    [RestWorkload { name: "rest", unready: 10 }, RestWorkload { name: "unready", unready: PARENTS }];

struct RestingSubject<'a> {
    subject: &'a BuiltSubject,
    cluster: WidgetCluster,
    process: SubjectProcess,
    /// Processor time at the beginning of the minute.
    before: f64,
}

/// Measures all subjects for so many seconds.
pub(crate) async fn run_rest(
    subjects: &[BuiltSubject],
    plan: SessionPlan,
    workload: RestWorkload,
    seconds: u32,
) -> anyhow::Result<Vec<Measurement>> {
    let plan = SessionPlan { parents: PARENTS, ..plan };
    let (mut resting, mut measured) = (Vec::new(), Vec::new());
    for subject in subjects {
        match settle(subject, &plan, workload.unready).await {
            Ok(one) => resting.push(one),
            Err(error) => measured.push(Measurement {
                failure: Some(format!("{error:#}")),
                ..plan.measurement(subject, workload.name)
            }),
        }
    }
    for one in &mut resting {
        one.cluster.server.forget_requests();
        one.before = one.process.processor_seconds()?;
    }
    thread::sleep(Duration::from_secs(u64::from(seconds)));
    for one in &mut resting {
        let mut measurement = plan.measurement(one.subject, workload.name);
        match one.rates(f64::from(seconds)) {
            Ok(figures) => {
                measurement.wrong = one.cluster.wrong_answers();
                measurement.requests = by_address(&one.cluster.server);
                measurement.figures = if measurement.wrong == 0 { figures } else { Figures::new() };
            }
            Err(error) => measurement.failure = Some(format!("{error:#}")),
        }
        measured.push(measurement);
    }
    Ok(measured)
}

/// Starts a subject, and waits until every parent has its answer.
async fn settle<'a>(
    subject: &'a BuiltSubject,
    plan: &SessionPlan,
    unready: usize,
) -> anyhow::Result<RestingSubject<'a>> {
    let is_unready = |parent: usize| parent < unready;
    let cluster = WidgetCluster::serve(plan.parents, plan.children, is_unready).await?;
    let observer = AnswerObserver::follow(&cluster.server, WIDGET_PATH, plan.parents)?;
    (0..plan.parents).for_each(|parent| observer.expect(parent, !is_unready(parent), Instant::now()));
    let mut process = SubjectProcess::start(subject.command(&cluster.kubeconfig), &subject.log())?;
    observer.wait_until_shown(plan.patience);
    process.wait_until_at_rest(REST_TIMEOUT)?;
    Ok(RestingSubject { subject, cluster, process, before: 0.0 })
}

impl RestingSubject<'_> {
    fn rates(&mut self, seconds: f64) -> anyhow::Result<Figures> {
        self.process.check_alive()?;
        let (server, minute) = (&self.cluster.server, 60.0 / seconds);
        let took = self.process.processor_seconds()? - self.before;
        Ok(figures([
            ("requests_per_minute", all_requests(server) * minute),
            ("lease_requests_per_minute", lease_requests(server) * minute),
            ("status_writes_per_minute", status_writes(server) * minute),
            ("processor_ms_per_minute", took * 1e3 * minute),
        ]))
    }
}

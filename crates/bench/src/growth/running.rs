//! A service over a cluster of widgets, and what it takes.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;
use sandbox::{RequestVerb, SandboxServer};

use crate::compare::cluster::{PART_PATH, WIDGET_PATH, WidgetCluster};
use crate::compare::fleet::FleetShape;
use crate::compare::observer::AnswerObserver;
use crate::compare::process::SubjectProcess;
use crate::subject::SubjectArgs;

/// Longest time that answers are waited for.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_mins(5);
/// Longest time in which the process may stay busy before its figures are taken all the same.
pub(crate) const REST_TIMEOUT: Duration = Duration::from_mins(1);
/// Interval at which answers are compared with the children.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Memory and processor time of a service over a cluster without parents.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EmptyService {
    pub(crate) rest_mb: f64,
    pub(crate) start_s: f64,
}

/// A running service over parents and children.
pub(crate) struct RunningFleet {
    pub(crate) cluster: WidgetCluster,
    pub(crate) observer: AnswerObserver,
    pub(crate) process: SubjectProcess,
    pub(crate) parents: usize,
}

impl RunningFleet {
    /// Serves a cluster and starts the service over it; ends when every answer is right and the process at rest.
    pub(crate) async fn start(
        subject: &SubjectArgs,
        shape: &FleetShape,
        is_unready: impl Fn(usize) -> bool,
    ) -> anyhow::Result<RunningFleet> {
        let cluster = WidgetCluster::serve_shape(shape, &is_unready).await?;
        let observer = AnswerObserver::follow(&cluster.server, WIDGET_PATH, shape.parents)?;
        let begun = Instant::now();
        (0..shape.parents).for_each(|parent| observer.expect(parent, !is_unready(parent), begun));
        let process = start_quietly(subject, &cluster.kubeconfig)?;
        let mut fleet = RunningFleet { cluster, observer, process, parents: shape.parents };
        fleet.settle("the start")?;
        fleet.observer.take_latencies();
        Ok(fleet)
    }

    /// Waits until every answer is what the children amount to and the process is at rest, and compares once more.
    pub(crate) fn settle(&mut self, after: &str) -> anyhow::Result<()> {
        self.observer.wait_until_shown(ANSWER_TIMEOUT);
        let begun = Instant::now();
        while self.cluster.wrong_answers() > 0 && begun.elapsed() < REST_TIMEOUT {
            self.process.check_alive()?;
            thread::sleep(CHECK_INTERVAL);
        }
        self.process.wait_until_at_rest(REST_TIMEOUT)?;
        let wrong = self.cluster.wrong_answers();
        ensure!(
            wrong == 0,
            "{wrong} of {} answers are wrong after {after}: there are no figures",
            self.parents
        );
        Ok(())
    }

    /// Starts the service again, over what the one before left.
    pub(crate) fn restart(mut self, subject: &SubjectArgs) -> anyhow::Result<RunningFleet> {
        self.process.stop()?;
        self.cluster.server.forget_requests();
        self.process = start_quietly(subject, &self.cluster.kubeconfig)?;
        self.wait_until_listed()?;
        self.settle("a later start")?;
        Ok(self)
    }

    /// Waits until everything was listed since the requests were forgotten, and is watched. Answers that stand tell nothing of it.
    pub(crate) fn wait_until_listed(&mut self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while ![WIDGET_PATH, PART_PATH].iter().all(|path| is_listed(&self.cluster.server, path)) {
            ensure!(begun.elapsed() < ANSWER_TIMEOUT, "not everything was listed: there are no figures");
            self.process.check_alive()?;
            thread::sleep(CHECK_INTERVAL);
        }
        Ok(())
    }

    /// Turns the first child of one parent after another at this rate; returns the processor time of a flip in ms.
    pub(crate) fn flip(&mut self, flips: u32, rate: u32) -> anyhow::Result<f64> {
        let (before, begun) = (self.process.processor_seconds()?, Instant::now());
        for number in 0..flips {
            let due = begun + Duration::from_secs(1) * number / rate;
            thread::sleep(due.saturating_duration_since(Instant::now()));
            let number = usize::try_from(number)?;
            let (parent, ready) = (number % self.parents, (number / self.parents) % 2 == 1);
            self.observer.expect(parent, ready, due);
            self.cluster.turn(parent, 0, ready)?;
        }
        self.settle("flips")?;
        Ok((self.process.processor_seconds()? - before) * 1e3 / f64::from(flips))
    }
}

/// What the service takes for nothing.
pub(crate) async fn measure_empty(subject: &SubjectArgs) -> anyhow::Result<EmptyService> {
    let fleet = RunningFleet::start(subject, &FleetShape::of(0, 0), |_| false).await?;
    Ok(EmptyService { rest_mb: fleet.process.memory()?, start_s: fleet.process.processor_seconds()? })
}

/// Starts the service with this kubeconfig; what it logs is kept nowhere.
pub(crate) fn start_quietly(subject: &SubjectArgs, kubeconfig: &Path) -> anyhow::Result<SubjectProcess> {
    let log = kubeconfig.with_extension("log");
    let process = SubjectProcess::start(subject.command(kubeconfig)?, &log)?;
    std::fs::remove_file(&log)?;
    Ok(process)
}

/// Whether a kind was listed since the requests were forgotten, and is watched now.
fn is_listed(server: &SandboxServer, path: &str) -> bool {
    let requests = server.logged_requests();
    let mut of_kind = requests.iter().filter(|request| request.path == path).map(|request| request.verb);
    of_kind.any(|verb| verb == RequestVerb::List) && of_kind.next_back() == Some(RequestVerb::Watch)
}

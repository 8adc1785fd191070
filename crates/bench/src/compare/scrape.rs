//! What it costs to be scraped: all that export answers side by side, over one server.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::ensure;

use super::build::BuiltSubject;
use super::cluster::{UNREADY_INTERVAL, WIDGET_PATH, WidgetCluster};
use super::exposition::{ParentCounts, ReadinessSeries, count_samples};
use super::figure::SCRAPE_WORKLOAD;
use super::measurement::Measurement;
use super::observer::AnswerObserver;
use super::process::SubjectProcess;
use super::scrape_client::{ScrapeAnswer, ScrapeClient};
use super::session::{Figures, REST_TIMEOUT, SessionPlan, count, figures, quantile_ms};

/// Scrapes of one subject in a row, over one connection, before it is the next one's turn.
const BLOCK_SCRAPES: usize = 10;
/// Interval of the scrapes at which it is seen whether a subject exports all answers yet.
const WARM_UP_INTERVAL: Duration = Duration::from_millis(500);

/// A subject that exports answers, and what its scrapes took so far.
struct ScrapedSubject<'a> {
    subject: &'a BuiltSubject,
    series: ReadinessSeries,
    process: SubjectProcess,
    port: u16,
    expected: ParentCounts,
    rest_mb: f64,
    processor_seconds: f64,
    /// Time of each scrape.
    times: Vec<Duration>,
    sent_bytes: usize,
    text_bytes: usize,
    samples: usize,
}

/// Scrapes every subject that exports answers so many times.
pub(crate) async fn run_scrapes(
    subjects: &[BuiltSubject],
    plan: SessionPlan,
    scrapes: usize,
) -> anyhow::Result<Vec<Measurement>> {
    let exporters: Vec<_> =
        subjects.iter().filter_map(|subject| Some((subject, subject.role.series()?))).collect();
    if !exporters.iter().any(|(subject, _)| subject.role.writes_answers()) {
        let missing = |(subject, _): &(&BuiltSubject, _)| Measurement {
            failure: Some("nobody writes the answers: name rollcall among the subjects".to_owned()),
            ..plan.measurement(subject, SCRAPE_WORKLOAD)
        };
        return Ok(exporters.iter().map(missing).collect());
    }
    let is_unready = |parent: usize| (parent + 1).is_multiple_of(UNREADY_INTERVAL);
    let cluster = WidgetCluster::serve(plan.parents, plan.children, is_unready).await?;
    let observer = AnswerObserver::follow(&cluster.server, WIDGET_PATH, plan.parents)?;
    (0..plan.parents).for_each(|parent| observer.expect(parent, !is_unready(parent), Instant::now()));
    let (mut scraped, mut measured) = (Vec::new(), Vec::new());
    // The first writes the answers that the others read.
    for (subject, series) in exporters {
        let started = ScrapedSubject::start(subject, series, &plan, &cluster, &observer);
        scraped.push((subject, started));
    }
    for block in 0..scrapes.div_ceil(BLOCK_SCRAPES) {
        for turn in 0..scraped.len() {
            let index = (turn + block) % scraped.len();
            let (_, state) = &mut scraped[index];
            let number = BLOCK_SCRAPES.min(scrapes - block * BLOCK_SCRAPES);
            if let Ok(running) = state
                && let Err(error) = running.scrape_block(number)
            {
                *state = Err(error);
            }
        }
    }
    for (subject, state) in scraped {
        let mut measurement = plan.measurement(subject, SCRAPE_WORKLOAD);
        measurement.wrong = cluster.wrong_answers();
        match state.and_then(|mut running| running.figures()) {
            Ok(figures) => {
                measurement.figures = if measurement.wrong == 0 { figures } else { Figures::new() };
            }
            Err(error) => measurement.failure = Some(format!("{error:#}")),
        }
        measured.push(measurement);
    }
    Ok(measured)
}

impl<'a> ScrapedSubject<'a> {
    /// Starts it, and waits until it exports all answers and is at rest.
    fn start(
        subject: &'a BuiltSubject,
        series: ReadinessSeries,
        plan: &SessionPlan,
        cluster: &WidgetCluster,
        observer: &AnswerObserver,
    ) -> anyhow::Result<ScrapedSubject<'a>> {
        let port = free_port()?;
        let command = subject.serving_command(&cluster.kubeconfig, port);
        let process = SubjectProcess::start(command, &subject.log())?;
        observer.wait_until_shown(plan.patience);
        let expected =
            ParentCounts { parents: count(plan.parents), unready: count(cluster.unready_parents()) };
        let mut started = ScrapedSubject {
            subject,
            series,
            process,
            port,
            expected,
            rest_mb: f64::NAN,
            processor_seconds: 0.0,
            times: Vec::new(),
            sent_bytes: 0,
            text_bytes: 0,
            samples: 0,
        };
        started.warm_up(plan.patience)?;
        Ok(started)
    }

    /// Waits until it exports all answers and is at rest.
    fn warm_up(&mut self, patience: Duration) -> anyhow::Result<()> {
        let begun = Instant::now();
        while let Err(error) = self.scrape_once() {
            self.process.check_alive()?;
            if begun.elapsed() > patience {
                return Err(error);
            }
            thread::sleep(WARM_UP_INTERVAL);
        }
        self.process.wait_until_at_rest(REST_TIMEOUT)?;
        self.rest_mb = self.process.memory()?;
        Ok(())
    }

    /// A scrape that is not measured.
    fn scrape_once(&self) -> anyhow::Result<()> {
        let answer = ScrapeClient::connect(self.port)?.scrape()?;
        self.check(&answer.to_text()?)
    }

    /// Fails if the metrics do not say what the children amount to.
    fn check(&self, exposition: &str) -> anyhow::Result<()> {
        let counted = self.series.count_parents(exposition);
        ensure!(
            counted == self.expected,
            "{} of {} parents are not ready to {}, and {} of {} to their children",
            counted.unready,
            counted.parents,
            self.subject.name,
            self.expected.unready,
            self.expected.parents
        );
        Ok(())
    }

    /// Scrapes so many times in a row, and compares every answer with the children.
    fn scrape_block(&mut self, number: usize) -> anyhow::Result<()> {
        let mut client = ScrapeClient::connect(self.port)?;
        let before = self.process.processor_seconds()?;
        let answers: Vec<ScrapeAnswer> = (0..number).map(|_| client.scrape()).collect::<Result<_, _>>()?;
        self.processor_seconds += self.process.processor_seconds()? - before;
        for answer in answers {
            let text = answer.to_text()?;
            self.check(&text)?;
            self.times.push(answer.took);
            self.sent_bytes += answer.sent();
            self.text_bytes += text.len();
            self.samples = count_samples(&text);
        }
        Ok(())
    }

    fn figures(&mut self) -> anyhow::Result<Figures> {
        self.process.check_alive()?;
        self.times.sort();
        let all = count(self.times.len());
        Ok(figures([
            ("processor_ms_per_scrape", self.processor_seconds * 1e3 / all),
            ("sent_kb", count(self.sent_bytes) / 1e3 / all),
            ("text_kb", count(self.text_bytes) / 1e3 / all),
            ("samples", count(self.samples)),
            ("p50_ms", quantile_ms(&self.times, 50)),
            ("p99_ms", quantile_ms(&self.times, 99)),
            ("rest_mb", self.rest_mb),
            ("scraped_mb", self.process.memory()?),
        ]))
    }
}

/// A port of the loopback address that nobody listens at.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

//! The task that reads rollouts which ended.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use inspect::rollout::WaitCause;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::ended_rollout::EndedRollout;
use super::history_entry::history_entry;
use super::trace_exporter::TraceExporter;
use crate::history::RolloutLine;
use crate::metrics::Metrics;
use crate::page::{PageService, PastRollouts, RolloutReport, read_ended_rollout};

/// Pause between two rollouts. A rollout takes a few dozen requests: at most six a minute. 10 s.
const READ_PAUSE: Duration = Duration::from_secs(10);

/// Reads rollouts.
pub(crate) trait ReadRollouts: Send + Sync + 'static {
    /// What this rollout waited for; the error says why that cannot be told.
    fn read_rollout(
        &self,
        ended: &EndedRollout,
    ) -> impl Future<Output = Result<RolloutReport, String>> + Send;
}

impl ReadRollouts for PageService {
    async fn read_rollout(&self, ended: &EndedRollout) -> Result<RolloutReport, String> {
        read_ended_rollout(self, &ended.uid, &ended.policy).await
    }
}

/// Observes rollouts that ended.
pub(crate) struct RolloutTask<R> {
    /// Reads them.
    pub(crate) reader: R,
    /// Those that ended.
    pub(crate) ended: Receiver<EndedRollout>,
    /// Histogram and counters.
    pub(crate) metrics: Arc<Metrics>,
    /// Sends traces, if that is asked for.
    pub(crate) exporter: Option<TraceExporter>,
    /// Keeps them for the page.
    pub(crate) past: Arc<PastRollouts>,
    /// Where the history takes them from, if there is one.
    pub(crate) history: Option<Sender<RolloutLine>>,
}

impl<R: ReadRollouts> RolloutTask<R> {
    /// Reads one after the other until `stop`.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        while let Some(Some(ended)) = stop.run_until_cancelled(self.ended.recv()).await {
            let observed = async {
                self.observe(&ended).await;
                sleep(READ_PAUSE).await;
            };
            if stop.run_until_cancelled(observed).await.is_none() {
                return;
            }
        }
    }

    async fn observe(&self, ended: &EndedRollout) {
        match self.reader.read_rollout(ended).await {
            Ok(report) => {
                self.metrics.rollouts.rollouts.with_label_values(&["read"]).inc();
                for (cause, took) in time_by_cause(&report) {
                    self.metrics.planned.observe_rollout_wait(&ended.policy, cause, took);
                }
                if let Some(exporter) = &self.exporter {
                    exporter.export(&report).await;
                }
                if let Some(history) = &self.history {
                    // It waits where the history does not take them: rollouts that end meanwhile are counted and left out.
                    let line = RolloutLine { at: report.read_at, entry: history_entry(&report) };
                    _ = history.send(line).await;
                }
                self.past.keep(Arc::new(report));
            }
            Err(why) => {
                self.metrics.rollouts.rollouts.with_label_values(&["failed"]).inc();
                debug!(uid = %ended.uid, policy = ended.policy, why, "cannot tell what the rollout waited for");
            }
        }
    }
}

/// How long a rollout waited for each cause.
fn time_by_cause(report: &RolloutReport) -> BTreeMap<WaitCause, Duration> {
    let mut by_cause = BTreeMap::<WaitCause, Duration>::new();
    for part in &report.parts {
        *by_cause.entry(part.cause).or_default() += part.to - part.from;
    }
    by_cause
}

#[cfg(test)]
mod tests;

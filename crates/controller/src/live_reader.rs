//! Periodic resync: parents that are not ready are read again, live, at a bounded rate. Changes the watch still lacks
//! later are reported as drift.

mod drift_check;
mod drift_log;
mod folding;
mod object_reader;
mod order_intake;
mod place_comparer;
mod place_comparisons;
mod pods_comparer;
mod read_order;
mod read_queue;
mod read_result;
mod resync_queue;
#[cfg(test)]
mod tests;
mod workload_explanations;
mod workload_lookup;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aggregator::KindId;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use timer::Seed;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, sleep_until, timeout};
use tracing::{debug, warn};
use watcher::reflector::Reflector;
use watcher::{ApiFailureCause, LiveReadError, ParentObject};

use drift_check::DriftCheck;
pub(crate) use drift_log::DriftLog;
use object_reader::{MAX_UNLISTED_READS, ObjectReader};
use order_intake::OrderIntake;
use place_comparer::{ComparedObjects, PlaceComparer};
pub(crate) use place_comparisons::PlaceComparisons;
use place_comparisons::{ComparedPlace, PlaceContent};
use pods_comparer::PodsComparer;
pub(crate) use read_order::{ReadOrder, ResyncOrder};
use read_queue::ReadLane;
pub(crate) use read_result::{Drift, LiveReadResult};
use resync_queue::{ResyncQueue, ResyncRequest};
pub(crate) use workload_explanations::WorkloadExplanations;
use workload_lookup::WorkloadExplainer;

use crate::clock::ServerClock;
use crate::failure_reporter::FailureReporter;
use crate::failure_traffic::FailureTraffic;
use crate::kind_tasks::{HistoryBreaks, ResolvedKind, ResolvedKinds};
use crate::metrics::Metrics;
use rollcall_core::{LiveRead, UnreadyWorkload};

/// Longest time that the read of one object may take. 5 s.
const LIVE_READ_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of objects for which a list gets that much time again.
const OBJECTS_PER_TIMEOUT: usize = 500;
/// Executes live reads.
#[derive(Clone)]
pub(crate) struct LiveReader {
    /// The client.
    pub(crate) client: kube::Client,
    /// Reflector that ingests the objects read.
    pub(crate) reflector: Arc<Reflector>,
    /// Resolved API endpoints of kinds.
    pub(crate) resolved: ResolvedKinds,
    /// Counters of reads and drift.
    pub(crate) metrics: Arc<Metrics>,
    /// Maximum number of reads per second.
    pub(crate) rate: u32,
    /// Time in which everything that is not ready is read once.
    pub(crate) period: Duration,
    /// Namespaces that are followed; empty for all.
    pub(crate) namespaces: Vec<String>,
    /// What failing writes ask, which is not asked beside it.
    pub(crate) failure_traffic: Arc<FailureTraffic>,
    /// The API server's clock, which the timestamps of Events come from.
    pub(crate) clock: ServerClock,
    /// What was compared where, shared with the audit.
    pub(crate) comparisons: Arc<PlaceComparisons>,
    /// By what workloads that are not ready were explained.
    pub(crate) explanations: Arc<WorkloadExplanations>,
    /// Log of drift, shared with the audit.
    pub(crate) drift_log: Arc<DriftLog>,
    /// Reports what keeps failing.
    pub(crate) failures: FailureReporter,
    /// Seed that spreads the waits for what does not answer.
    pub(crate) seed: Seed,
    /// Tells that the server's history has gone back.
    pub(crate) breaks: HistoryBreaks,
}

/// How a request of the resync ended.
struct SettledRequest {
    lane: ReadLane,
    answered: bool,
    /// What was compared, if it was that.
    place: Option<ComparedPlace>,
    result: LiveReadResult,
}

impl LiveReader {
    /// Executes live reads until the channel is closed: several at a time, and never more a second than the rate allows.
    /// What others have read live comes as `drifts`.
    pub(crate) async fn run(
        self,
        mut orders: UnboundedReceiver<ReadOrder>,
        mut drifts: UnboundedReceiver<Vec<Drift>>,
    ) {
        let mut last_sent = None;
        let mut checks = FuturesUnordered::new();
        let mut under_way = FuturesUnordered::new();
        let mut queue = ResyncQueue::new(self.seed);
        let mut intake = OrderIntake::new(
            self.reflector.clone(),
            self.resolved.clone(),
            self.namespaces.clone(),
            (self.comparisons.clone(), self.explanations.clone()),
            self.period,
        );
        let mut forget_at = Instant::now() + self.period;
        let mut logging = pin!(self.drift_log.keep_flushing());
        loop {
            self.metrics.set_resync_queue(queue.len());
            let ready = queue.is_ready(Instant::now());
            let retry = queue.next_retry().filter(|_| !ready);
            tokio::select! { biased;
                order = orders.recv() => match order {
                    Some(order) => intake.enqueue_order(order, &mut queue),
                    None => return,
                },
                Some(drifts) = drifts.recv() => checks.push(self.check_drift(drifts, "write")),
                Some(()) = checks.next(), if !checks.is_empty() => {}
                Some(settled) = under_way.next(), if !under_way.is_empty() => {
                    let drifts = self.settle_request(settled, &mut queue);
                    if !drifts.is_empty() {
                        checks.push(self.check_drift(drifts, "resync"));
                    }
                }
                () = self.wait_for_turn(last_sent), if ready => {
                    last_sent = Some(Instant::now());
                    if let Some((lane, request)) = queue.take_next(Instant::now(), &self.reflector) {
                        self.metrics.resync_reads.inc();
                        under_way.push(self.execute(lane, request));
                    }
                }
                () = sleep_until(retry.unwrap_or_else(Instant::now)), if retry.is_some() => {}
                () = sleep_until(forget_at), if !self.explanations.is_empty() => {
                    self.explanations.forget_outdated(&self.reflector);
                    forget_at = Instant::now() + self.period;
                }
                () = &mut logging => {}
            }
        }
    }

    /// Queues what follows a request. Returns the drift that it has found.
    fn settle_request(&self, settled: SettledRequest, queue: &mut ResyncQueue) -> Vec<Drift> {
        let SettledRequest { lane, answered, place, result } = settled;
        let now = Instant::now();
        queue.settle_request(lane, answered, now);
        if let Some(place) = place {
            self.comparisons.settle(&place, answered, now);
            // The pods of workloads that were to be listed are compared, whichever these are now.
            place.pods_of_workloads().into_iter().for_each(|pods| queue.enqueue_comparison(pods));
        }
        result.workloads.into_iter().for_each(|workload| queue.enqueue_workload(workload));
        result.unlisted.into_iter().for_each(|read| queue.enqueue_read(read));
        result.drifts
    }

    /// Waits until another request may be sent.
    async fn wait_for_turn(&self, last_sent: Option<Instant>) {
        let Some(last_sent) = last_sent else { return };
        sleep_until(
            last_sent + Duration::from_secs(1) / self.failure_traffic.spare_rate(self.rate, Instant::now()),
        )
        .await;
    }

    /// Executes a request within its time.
    async fn execute(&self, lane: ReadLane, request: ResyncRequest) -> SettledRequest {
        let mut place = None;
        let result = match request {
            ResyncRequest::Read(read) => timeout(self.read_timeout(&read), self.object_reader().read(&read))
                .await
                .map(|done| done.inspect_err(|error| self.report_read_error(error)).ok()),
            ResyncRequest::Compare(compared) => {
                let (within, compared) = (self.place_timeout(&compared), &*place.insert(compared));
                timeout(within, self.compare_place(compared))
                    .await
                    .map(|done| done.inspect_err(|error| self.report_read_error(error)).ok())
            }
            ResyncRequest::Explain(workload) => {
                timeout(LIVE_READ_TIMEOUT, self.explain_workload(*workload)).await.map(|next| {
                    next.map(|next| LiveReadResult {
                        workloads: next.into_iter().collect(),
                        ..LiveReadResult::default()
                    })
                })
            }
        };
        if result.is_err() {
            let lane = format!("{lane:?}");
            self.failures.report("live read", lane.clone(), move |failures| {
                warn!(lane, failures, "live read was not answered in time; will retry later");
            });
        }
        let result = result.ok().flatten();
        SettledRequest { lane, answered: result.is_some(), place, result: result.unwrap_or_default() }
    }

    /// Longest time for a read.
    fn read_timeout(&self, read: &LiveRead) -> Duration {
        match read {
            LiveRead::One { .. } => LIVE_READ_TIMEOUT,
            LiveRead::All { kind, .. } => self.list_timeout(*kind),
        }
    }

    /// Longest time for a list: the more there is to list, the longer.
    fn list_timeout(&self, kind: KindId) -> Duration {
        let listed = self.resolved.get(&kind).map_or(0, |kind| kind.listed.load(Ordering::Relaxed));
        let objects = self.reflector.count_held(kind).max(listed);
        LIVE_READ_TIMEOUT * u32::try_from(1 + objects / OBJECTS_PER_TIMEOUT).unwrap_or(u32::MAX)
    }

    /// Longest time for what is listed of a place.
    fn place_timeout(&self, place: &ComparedPlace) -> Duration {
        match place.content {
            PlaceContent::Metadata(kind) | PlaceContent::Workloads(kind) => self.list_timeout(kind),
            PlaceContent::Pods => {
                // Once by their metadata, and once whole.
                let objects = 2 * self.comparisons.listed_objects(place).unwrap_or_default();
                LIVE_READ_TIMEOUT * u32::try_from(2 + objects / OBJECTS_PER_TIMEOUT).unwrap_or(u32::MAX)
            }
        }
    }

    /// Compares what a place has with what is held, and returns what is to be read.
    async fn compare_place(&self, place: &ComparedPlace) -> Result<LiveReadResult, LiveReadError> {
        let (PlaceContent::Metadata(kind) | PlaceContent::Workloads(kind)) = place.content else {
            return self.compare_pods(place).await;
        };
        let Some(followed) = self.resolved.get(&kind).map(|kind| Arc::clone(&kind)) else {
            return Ok(LiveReadResult::default());
        };
        if matches!(place.content, PlaceContent::Workloads(_)) {
            return self.list_workloads(&followed, place).await;
        }
        let unlisted = self.compare_objects(&followed, place, MAX_UNLISTED_READS).await?.reads;
        Ok(LiveReadResult { unlisted, ..LiveReadResult::default() })
    }

    /// Compares the pods of a place with those by which its workloads were explained.
    async fn compare_pods(&self, place: &ComparedPlace) -> Result<LiveReadResult, LiveReadError> {
        let comparer = PodsComparer { comparisons: &self.comparisons, explainer: self.workload_explainer() };
        Ok(LiveReadResult { workloads: comparer.compare(place).await?, ..LiveReadResult::default() })
    }

    /// Lists workloads of a kind of which many are not ready, in one namespace or in all; their pods are compared then.
    async fn list_workloads(
        &self,
        followed: &Arc<ResolvedKind>,
        place: &ComparedPlace,
    ) -> Result<LiveReadResult, LiveReadError> {
        let namespace = place.namespace.clone().unwrap_or_default();
        let read = LiveRead::All { kind: followed.id, namespace };
        let listed = self.object_reader().read_as::<ParentObject>(followed, &read, usize::MAX).await?;
        self.explanations.add_unexplained(listed.workloads);
        Ok(LiveReadResult { workloads: Vec::new(), ..listed })
    }

    /// Compares the metadata of a kind, in one namespace or in all, and returns the reads of what is held otherwise: at most so
    /// many of what is newer there or unknown here, and of what is missing there. The resync need not ask for that place again
    /// where these are all.
    pub(crate) async fn audit_metadata(
        &self,
        followed: &ResolvedKind,
        scope: Option<&str>,
        most: usize,
    ) -> Result<Vec<LiveRead>, LiveReadError> {
        let (begun, namespace) = (Instant::now(), scope.map(str::to_owned));
        let place = ComparedPlace { content: PlaceContent::Metadata(followed.id), namespace };
        let compared = self.compare_objects(followed, &place, most).await?;
        if compared.is_whole {
            self.comparisons.cover(&place, begun);
        }
        Ok(compared.reads)
    }

    async fn compare_objects(
        &self,
        followed: &ResolvedKind,
        place: &ComparedPlace,
        most: usize,
    ) -> Result<ComparedObjects, LiveReadError> {
        let Self { client, reflector, comparisons, .. } = self;
        let comparer = PlaceComparer { client, reflector, comparisons };
        let compared = comparer.compare((&followed.api, followed.id), place, most).await?;
        if let Some(listed) = compared.listed.filter(|_| place.namespace.is_none()) {
            // What a kind has become is weighed next time, not what it was when its watch began.
            followed.listed.store(listed, Ordering::Relaxed);
        }
        Ok(compared)
    }

    /// Executes a live read. Returns the objects that were new to the cache, with the version that the watch had not
    /// delivered; none where it failed.
    pub(crate) async fn read_live(&self, read: &LiveRead) -> LiveReadResult {
        self.object_reader()
            .read(read)
            .await
            .inspect_err(|error| self.report_read_error(error))
            .unwrap_or_default()
    }

    fn object_reader(&self) -> ObjectReader<'_> {
        let Self { client, reflector, resolved, .. } = self;
        ObjectReader { client, reflector, resolved }
    }

    /// Looks up why a workload is not ready. Returns the next object to read; `None` where the read failed.
    async fn explain_workload(&self, workload: UnreadyWorkload) -> Option<Option<UnreadyWorkload>> {
        let explained = self.workload_explainer().explain(workload).await;
        explained.inspect_err(|error| error.iter().for_each(|error| self.report_read_error(error))).ok()
    }

    fn workload_explainer(&self) -> WorkloadExplainer<'_> {
        let Self { client, reflector, clock, explanations, .. } = self;
        WorkloadExplainer { client, reflector, clock, explanations }
    }

    fn report_read_error(&self, error: &LiveReadError) {
        // Of a kind that is not served or may not be read its own task speaks.
        if matches!(error.cause, ApiFailureCause::Forbidden | ApiFailureCause::NotInstalled) {
            debug!(%error, "live read failed");
        } else {
            let text = error.to_string();
            self.failures.report("live read", error.cause.metric_label(), move |failures| {
                warn!(error = text, failures, "live read failed");
            });
        }
    }

    /// Checks, after the grace period, what the watch still lacks of what live reads have shown.
    pub(crate) async fn check_drift(&self, drifts: Vec<Drift>, found_by: &str) {
        let Self { reflector, metrics, drift_log, comparisons, breaks, .. } = self;
        DriftCheck { reflector, metrics, drift_log, comparisons, breaks }.run(drifts, found_by).await;
    }
}

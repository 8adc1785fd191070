//! Parts of the service of which several tasks hold a handle.

use std::sync::Arc;

use readiness::Time;
use timer::Seed;
use tokio::sync::Notify;
use watcher::RetryTurns;
use watcher::reflector::Reflector;

use crate::args::RunArgs;
use crate::clock::ServerClock;
use crate::failing_writes::FailingWrites;
use crate::failure_reporter::FailureReporter;
use crate::failure_traffic::FailureTraffic;
use crate::kind_tasks::{HistoryBreaks, ResolvedKinds};
use crate::lease::{self, Leadership, LeaseCandidate, LeaseName};
use crate::metrics::Metrics;

/// Shared parts. Those that tasks signal each other by are here too.
pub(super) struct SharedParts {
    pub(super) client: kube::Client,
    pub(super) clock: ServerClock,
    pub(super) seed: Seed,
    pub(super) metrics: Arc<Metrics>,
    pub(super) reflector: Arc<Reflector>,
    pub(super) resolved: ResolvedKinds,
    pub(super) leadership: Leadership,
    /// Reports what keeps failing.
    pub(super) failures: FailureReporter,
    /// Signals that objects changed.
    pub(super) dirty: Arc<Notify>,
    /// Signals that records have to be updated.
    pub(super) outcomes_moved: Arc<Notify>,
    /// Signals that the API server refused a write.
    pub(super) refusals: Arc<Notify>,
    /// Whether writes of parents keep failing.
    pub(super) failing: Arc<FailingWrites>,
    pub(super) failure_traffic: Arc<FailureTraffic>,
    /// Turns of reads that follow a failure.
    pub(super) turns: Arc<RetryTurns>,
    /// Signals each evaluation of a custom rule.
    pub(super) judged: Arc<Notify>,
    /// Tells that the server's history has gone back.
    pub(super) breaks: HistoryBreaks,
}

impl SharedParts {
    /// Builds them, and the candidate that acquires the leadership if `lease` is to be held.
    pub(super) fn build(
        client: kube::Client,
        clock: ServerClock,
        lease: Option<LeaseName>,
        args: &RunArgs,
    ) -> anyhow::Result<(SharedParts, Option<LeaseCandidate>)> {
        let seed = Seed(args.seed.unwrap_or_else(|| clock.now().0.cast_unsigned()));
        let metrics = Arc::new(Metrics::new(args.metrics_parents)?);
        crate::event_recorder::init_series(&metrics.events);
        let failures = FailureReporter::default();
        let (leadership, candidate) =
            lease::stand_for_election(lease, &client, clock.local_clock(), seed.derive(5), failures.clone());
        let (dirty, outcomes_moved) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let reflector = Arc::new(build_reflector(&dirty, &outcomes_moved, clock.now()));
        let (refusals, judged) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let turns = Arc::<RetryTurns>::default();
        let parts = SharedParts {
            client,
            clock,
            seed,
            metrics,
            reflector,
            resolved: ResolvedKinds::default(),
            leadership,
            failures,
            dirty,
            outcomes_moved,
            refusals,
            failing: Arc::default(),
            failure_traffic: Arc::new(FailureTraffic::new(turns.clone())),
            turns,
            judged,
            breaks: HistoryBreaks::default(),
        };
        Ok((parts, candidate))
    }
}

fn build_reflector(dirty: &Arc<Notify>, outcomes_moved: &Arc<Notify>, now: Time) -> Reflector {
    let (dirty, outcomes_moved) = (dirty.clone(), outcomes_moved.clone());
    let reflector = Reflector::new(move || dirty.notify_one());
    reflector.outcomes().set_waker(move || outcomes_moved.notify_one());
    // Set before the first list, because rules of users may ask for the time.
    reflector.set_now(now);
    reflector
}

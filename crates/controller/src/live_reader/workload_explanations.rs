//! What the explanations of workloads that are not ready rest on: where that is as it was, nothing is read for them again.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aggregator::ObjectId;
use rollcall_core::pod_causes::WorkloadLookup;
use rollcall_core::{PodDigest, UnreadyWorkload};
use rustc_hash::FxHashMap;
use tokio::time::Instant;
use watcher::reflector::Reflector;

/// Maximum number of workloads of which that is kept. Others are read again at each pass.
const MAX_KEPT_EXPLANATIONS: usize = 10_000;
/// Time after which the Events of a workload that lacks pods are listed again, by the next pass, though neither it nor a pod of it has
/// changed. 20 s. A change has them listed at once.
const MIN_EVENT_WAIT: Duration = Duration::from_secs(20);
/// The longest such time, which is reached by doubling it. 5 min: a refusal that begins long after the shortage, and that nothing but
/// an Event shows, is told so much later. That is the price of not listing the Events of each such workload at each pass.
const MAX_EVENT_WAIT: Duration = Duration::from_mins(5);

/// The Events of a workload were listed.
#[derive(Clone, Copy, Debug)]
struct EventLookup {
    at: Instant,
    /// They are listed again after that.
    wait: Duration,
}

#[derive(Debug)]
struct WorkloadExplanation {
    /// With what is to be looked up where its pods are the same.
    workload: Arc<UnreadyWorkload>,
    /// The pods by which it was explained; `None` where they are still to be read.
    pods: Option<PodDigest>,
    has_cause: bool,
    events: Option<EventLookup>,
}

impl WorkloadExplanation {
    fn is_current(&self, reflector: &Reflector) -> bool {
        // A cause that the row has lost since, because the workload was ready for a while, is looked up again.
        let keeps_cause =
            || reflector.read_row(self.workload.owner, |row| row.has_causes_below() == self.has_cause);
        let is_told = self.pods.is_none() || self.workload.event_explained.is_some();
        self.workload.is_current(reflector) && (is_told || keeps_cause() == Some(true))
    }

    fn is_of(&self, workload: &UnreadyWorkload) -> bool {
        let kept = &self.workload;
        kept.uid == workload.uid
            && kept.spec_version == workload.spec_version
            && (kept.version == workload.version || workload.event_explained.is_none())
            && Arc::ptr_eq(&kept.interest, &workload.interest)
    }

    fn as_explained(&self, now: Instant) -> ExplainedWorkload {
        let is_due = |lookup: EventLookup| now >= lookup.at + lookup.wait;
        let awaits_events = matches!(self.workload.lookup, WorkloadLookup::Events(..));
        ExplainedWorkload {
            workload: self.workload.clone(),
            pods: self.pods,
            has_events_due: awaits_events && self.events.is_none_or(is_due),
        }
    }
}

/// A workload that is explained, or to be explained, as it is held now.
#[derive(Clone, Debug)]
pub(super) struct ExplainedWorkload {
    /// The workload.
    pub(super) workload: Arc<UnreadyWorkload>,
    /// The pods by which it was explained; `None` where they are still to be read.
    pub(super) pods: Option<PodDigest>,
    /// Its Events are to be listed, though its pods are the same.
    pub(super) has_events_due: bool,
}

impl ExplainedWorkload {
    /// The lookup of its pods.
    pub(super) fn pod_lookup(&self) -> UnreadyWorkload {
        UnreadyWorkload { lookup: WorkloadLookup::Pods, ..(*self.workload).clone() }
    }
}

/// What is known of each workload that is not ready. Written by live reads, of which several may be about one workload at once: each
/// keeps what it has read together, and the latest stays.
#[derive(Debug, Default)]
pub(crate) struct WorkloadExplanations(Mutex<FxHashMap<ObjectId, WorkloadExplanation>>);

impl WorkloadExplanations {
    fn kept(&self) -> MutexGuard<'_, FxHashMap<ObjectId, WorkloadExplanation>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.kept().is_empty()
    }

    /// A workload whose explanation holds for as long as its pods are the same.
    pub(super) fn find_current(
        &self,
        reflector: &Reflector,
        owner: ObjectId,
        now: Instant,
    ) -> Option<ExplainedWorkload> {
        let kept = self.kept();
        let explanation = kept.get(&owner).filter(|explanation| explanation.is_current(reflector))?;
        Some(explanation.as_explained(now))
    }

    /// All of these in a namespace, or (`None`) in all.
    pub(super) fn current_in(
        &self,
        reflector: &Reflector,
        namespace: Option<&str>,
        now: Instant,
    ) -> Vec<ExplainedWorkload> {
        self.forget_outdated(reflector);
        let kept = self.kept();
        let is_there = |kept: &&WorkloadExplanation| {
            namespace.is_none_or(|namespace| kept.workload.namespace == namespace)
        };
        kept.values().filter(is_there).map(|kept| kept.as_explained(now)).collect()
    }

    /// Workloads that were read, and whose pods are to be read now.
    pub(super) fn add_unexplained(&self, workloads: Vec<UnreadyWorkload>) {
        for workload in workloads {
            if !self.kept().get(&workload.owner).is_some_and(|kept| kept.is_of(&workload)) {
                self.keep(WorkloadExplanation {
                    workload: Arc::new(workload),
                    pods: None,
                    has_cause: false,
                    events: None,
                });
            }
        }
    }

    /// The pods of a workload were read. It has the lookup that is next.
    pub(super) fn on_pods_read(&self, workload: UnreadyWorkload, pods: PodDigest, has_cause: bool) {
        self.keep(WorkloadExplanation {
            workload: Arc::new(workload),
            pods: Some(pods),
            has_cause,
            events: None,
        });
    }

    fn keep(&self, explanation: WorkloadExplanation) {
        let mut kept = self.kept();
        let owner = explanation.workload.owner;
        if kept.len() < MAX_KEPT_EXPLANATIONS || kept.contains_key(&owner) {
            kept.insert(owner, explanation);
        }
    }

    /// The Events of a workload were listed.
    pub(super) fn on_events_read(&self, workload: &UnreadyWorkload, now: Instant) {
        let mut kept = self.kept();
        if let Some(kept) = kept.get_mut(&workload.owner).filter(|kept| kept.is_of(workload)) {
            let wait = kept.events.map_or(MIN_EVENT_WAIT, |lookup| MAX_EVENT_WAIT.min(lookup.wait * 2));
            kept.events = Some(EventLookup { at: now, wait });
        }
    }

    /// Forgets workloads that are ready, gone, changed, or judged otherwise.
    pub(super) fn forget_outdated(&self, reflector: &Reflector) {
        self.kept().retain(|_, explanation| explanation.is_current(reflector));
    }
}

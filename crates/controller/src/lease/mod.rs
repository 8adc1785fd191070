//! Leader election: one replica writes, the others watch, evaluate, and stand by.
//!
//! A `Lease` of coordination.k8s.io names the leader. Each change of it has its resourceVersion as precondition, and
//! writes to parents have the old entries as precondition: a leader that was suspended while it lost its lease
//! overwrites nothing that its successor wrote.

mod election;
mod gate;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use readiness::Time;
use timer::Seed;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::clock::LocalClock;
use crate::failure_reporter::FailureReporter;
pub(crate) use gate::{GatedLeadership, LeadershipGate};

use election::{Election, LEASE_TIMINGS, LeaseRecord, LeaseRequest, LeaseResponse};

/// Timeout of a request about the lease. 5 s.
const LEASE_REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Lease duration when it is taken over by force: time enough to delete the replicas that would acquire it. 5 min.
const TAKEOVER_DURATION: Duration = Duration::from_mins(5);
/// Maximum number of attempts to take over a lease. A leader renews every two seconds, so repeated conflicts are no
/// coincidence.
const MAX_TAKEOVER_ATTEMPTS: u32 = 10;

/// Name of a lease, and the identity under which this process requests it.
#[derive(Clone, Debug)]
pub struct LeaseName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Identity of this process. Unique among all replicas.
    pub identity: String,
}

/// Permission of this process to write. Cheap to clone, and to check before each write.
#[derive(Clone, Debug)]
pub(crate) struct Leadership {
    clock: LocalClock,
    until: Arc<AtomicI64>,
    leads: watch::Receiver<bool>,
}

impl Leadership {
    /// Permanent leadership, without leader election.
    pub(crate) fn permanent(clock: LocalClock) -> Leadership {
        let until = Arc::new(AtomicI64::new(i64::MAX));
        Leadership { clock, until, leads: watch::channel(true).1 }
    }

    /// Leadership that is not held yet, and the handle that grants and revokes it.
    pub(crate) fn with_handle(clock: LocalClock) -> (Leadership, LeadershipHandle) {
        let (until, (said, leads)) = (Arc::new(AtomicI64::new(0)), watch::channel(false));
        (Leadership { clock, until: until.clone(), leads }, LeadershipHandle { until, leads: said })
    }

    /// True if a write may start now.
    pub(crate) fn may_write(&self) -> bool {
        self.clock.now().0 < self.until.load(Relaxed)
    }

    /// Time that a write starting now may take before another replica may lead.
    pub(crate) fn write_time_left(&self) -> Duration {
        let until = Time(self.until.load(Relaxed));
        (until + LEASE_TIMINGS.lease_duration.saturating_sub(LEASE_TIMINGS.renew_deadline)) - self.clock.now()
    }

    /// True if this replica leads, as last published.
    pub(crate) fn is_leader(&self) -> bool {
        *self.leads.borrow()
    }

    /// Waits until leadership is gained or lost. Returns the new state.
    pub(crate) async fn wait_for_change(&mut self) -> bool {
        if self.leads.changed().await.is_err() {
            // Leadership is permanent, or the process is about to end.
            std::future::pending::<()>().await;
        }
        *self.leads.borrow_and_update()
    }
}

/// Leadership of this process, and the candidate that acquires it if leader election is enabled.
pub(crate) fn stand_for_election(
    lease: Option<LeaseName>,
    client: &kube::Client,
    clock: LocalClock,
    seed: Seed,
    failures: FailureReporter,
) -> (Leadership, Option<LeaseCandidate>) {
    let Some(name) = lease else { return (Leadership::permanent(clock), None) };
    let (leadership, handle) = Leadership::with_handle(clock);
    (leadership, Some(LeaseCandidate::new(client, name, clock, seed, handle, failures)))
}

/// Handle that grants and revokes a [`Leadership`].
#[derive(Debug)]
pub(crate) struct LeadershipHandle {
    until: Arc<AtomicI64>,
    leads: watch::Sender<bool>,
}

impl LeadershipHandle {
    /// Sets `until` before publishing the change, so that a new leader may write at once.
    pub(crate) fn set_until(&self, until: Option<Time>) -> bool {
        self.until.store(until.map_or(0, |at| at.0), Relaxed);
        self.leads.send_if_modified(|leads| std::mem::replace(leads, until.is_some()) != until.is_some())
    }
}

/// Acquires the lease, renews it, and releases it.
pub(crate) struct LeaseCandidate {
    api: Api<Lease>,
    name: LeaseName,
    clock: LocalClock,
    seed: Seed,
    handle: LeadershipHandle,
    election: Election,
    /// The object as last observed: fields written by others are preserved.
    lease: Lease,
    forbidden: bool,
    failures: FailureReporter,
}

impl LeaseCandidate {
    pub(crate) fn new(
        client: &kube::Client,
        name: LeaseName,
        clock: LocalClock,
        seed: Seed,
        term: LeadershipHandle,
        failures: FailureReporter,
    ) -> Self {
        LeaseCandidate {
            api: Api::namespaced(client.clone(), &name.namespace),
            election: Election::new(name.identity.clone(), LEASE_TIMINGS),
            name,
            clock,
            seed,
            handle: term,
            lease: Lease::default(),
            forbidden: false,
            failures,
        }
    }

    /// Takes part in the election until `stop`. A held lease is released once `written` signals that no write is in
    /// flight, and else left to run out.
    pub(crate) async fn run(mut self, stop: CancellationToken, written: CancellationToken) {
        let LeaseName { namespace, name, identity } = &self.name;
        info!(lease = format!("{namespace}/{name}"), identity, "joining leader election");
        let mut round = 0;
        loop {
            tokio::select! { biased;
                () = stop.cancelled() => break,
                () = self.clock.sleep_until(Some(self.next_wake_at(round))) => {}
            }
            let now = self.clock.now();
            if now >= self.next_request_at(round) {
                self.request_lease(now).await;
                round += 1;
            }
            self.publish_leadership();
        }
        // The lease is no longer renewed: writes still in flight end with the leadership at the latest.
        let Some(until) = self.election.leads_until() else { return self.release_lease().await };
        let clock = self.clock;
        tokio::select! { biased;
            () = written.cancelled() => self.release_lease().await,
            () = clock.sleep_until(Some(until)) => {
                // A write may still be under way: who comes next waits until the lease runs out, as after a crash.
                info!("writes are still under way; the lease is left to run out");
            }
        }
    }

    /// With jitter, so that replicas started together do not send requests together.
    fn next_request_at(&self, round: u64) -> Time {
        self.election.next_request_at() + self.seed.duration_below(LEASE_TIMINGS.standby_period / 5, round)
    }

    fn next_wake_at(&self, round: u64) -> Time {
        let lapses = self.election.leads_until().filter(|_| self.handle.leads.borrow().to_owned());
        lapses.map_or(self.next_request_at(round), |at| at.min(self.next_request_at(round)))
    }

    fn publish_leadership(&self) {
        let until = self.election.leads_until().filter(|at| *at > self.clock.now());
        if self.handle.set_until(until) {
            let lease = &self.name.name;
            if until.is_some() {
                info!(lease, "became leader");
            } else {
                warn!(lease, leader = self.election.holder_name(), "lost leadership; standing by");
            }
        }
    }

    async fn request_lease(&mut self, now: Time) {
        let before = self.election.holder_name().to_owned();
        let ask = self.election.next_request(now);
        let answer = tokio::time::timeout(LEASE_REQUEST_TIMEOUT, self.send_request(&ask, now));
        // Leadership may expire while a request is in flight, and that has to be published.
        let lapse = async {
            self.clock.sleep_until(self.election.leads_until()).await;
            self.publish_leadership();
            std::future::pending::<()>().await;
        };
        let answer = tokio::select! { answer = answer => answer, () = lapse => return };
        let answer = match answer {
            Ok(Ok((answer, lease))) => {
                self.lease = lease.unwrap_or_default();
                self.forbidden = false;
                answer
            }
            Ok(Err(error)) => self.on_failure(&error),
            Err(_) => self.report_failure("request timed out".to_owned()),
        };
        self.election.observe_response(answer, now, self.clock.now());
        let holder = self.election.holder_name();
        if holder != before && !holder.is_empty() && holder != self.name.identity {
            info!(lease = self.name.name, leader = holder, "standing by");
        }
    }

    fn on_failure(&mut self, error: &kube::Error) -> LeaseResponse {
        let denied = matches!(error, kube::Error::Api(status) if status.code == 403);
        if denied && !self.forbidden {
            let LeaseName { namespace, name, .. } = &self.name;
            warn!(
                rule = format!(
                    "apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update], in namespace {namespace}"
                ),
                "not permitted to hold lease {name}, so nothing is written; grant it with `rollcall rbac | kubectl apply -f -`; \
                 a single replica can run with --leader-elect=false instead"
            );
        } else if !denied {
            self.report_failure(watcher::error_text(error));
        }
        self.forbidden = denied;
        LeaseResponse::Failed
    }

    fn report_failure(&self, error: String) -> LeaseResponse {
        let lease = self.name.name.clone();
        self.failures.report("lease", "", move |failures| {
            warn!(lease, error, failures, "failed to acquire or renew the lease");
        });
        LeaseResponse::Failed
    }

    async fn send_request(
        &self,
        ask: &LeaseRequest,
        now: Time,
    ) -> kube::Result<(LeaseResponse, Option<Lease>)> {
        let (done, written) = match ask {
            LeaseRequest::Get => (self.api.get(&self.name.name).await, false),
            LeaseRequest::Create => {
                let lease = self.claimed_lease(Lease::default(), now, 0, true);
                (self.api.create(&PostParams::default(), &lease).await, true)
            }
            LeaseRequest::Claim { version, transitions } => {
                let mut lease = self.lease.clone();
                lease.metadata.resource_version = Some(version.clone());
                let taken = self.election.held_record().is_none();
                let lease = self.claimed_lease(lease, now, *transitions, taken);
                (self.api.replace(&self.name.name, &PostParams::default(), &lease).await, true)
            }
        };
        match done {
            Ok(lease) => {
                let record = lease_record(&lease);
                Ok((
                    if written { LeaseResponse::Written(record) } else { LeaseResponse::Found(record) },
                    Some(lease),
                ))
            }
            Err(kube::Error::Api(status)) if status.code == 404 && *ask != LeaseRequest::Create => {
                Ok((LeaseResponse::Absent, None))
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok((LeaseResponse::Conflict, None)),
            Err(error) => Err(error),
        }
    }

    fn claimed_lease(&self, mut lease: Lease, now: Time, transitions: i32, taken: bool) -> Lease {
        let at = Timestamp::from_millisecond(now.0).ok().map(MicroTime);
        if lease.metadata.name.is_none() {
            lease.metadata = ObjectMeta {
                name: Some(self.name.name.clone()),
                labels: Some([("app.kubernetes.io/name".to_owned(), "rollcall".to_owned())].into()),
                ..ObjectMeta::default()
            };
        }
        let spec = lease.spec.get_or_insert_default();
        spec.holder_identity = Some(self.name.identity.clone());
        spec.lease_duration_seconds = i32::try_from(LEASE_TIMINGS.lease_duration.as_secs()).ok();
        spec.renew_time.clone_from(&at);
        spec.lease_transitions = Some(transitions);
        if taken {
            spec.acquire_time = at;
        }
        lease
    }

    /// Clears the holder and sets a duration of one second, so that the next leader need not wait.
    async fn release_lease(mut self) {
        let held = self.election.held_record().is_some();
        self.handle.set_until(None);
        if !held {
            return;
        }
        let at = Timestamp::from_millisecond(self.clock.now().0).ok().map(MicroTime);
        let spec = self.lease.spec.get_or_insert_default();
        *spec = LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            renew_time: at.clone(),
            acquire_time: at,
            ..spec.clone()
        };
        let params = PostParams::default();
        let given = self.api.replace(&self.name.name, &params, &self.lease);
        match tokio::time::timeout(LEASE_REQUEST_TIMEOUT, given).await {
            Ok(Ok(_)) => info!(lease = self.name.name, "released the lease"),
            Ok(Err(error)) => debug!(lease = self.name.name, %error, "failed to release the lease"),
            Err(_) => debug!(lease = self.name.name, "failed to release the lease: request timed out"),
        }
    }
}

/// Takes over a lease by force, so that the current leader stops writing and no other replica starts for as long as
/// this needs. When it returns, all writes in flight have been accepted or rejected. A lease that does not exist needs
/// no takeover.
pub async fn take_lease(client: &kube::Client, namespace: &str, name: &str) -> anyhow::Result<()> {
    let (api, clock) = (Api::<Lease>::namespaced(client.clone(), namespace), LocalClock::start());
    for _ in 0..MAX_TAKEOVER_ATTEMPTS {
        let failed = || format!("failed to take lease {namespace}/{name}");
        let Some(mut lease) = api.get_opt(name).await.with_context(failed)? else { return Ok(()) };
        let spec = lease.spec.get_or_insert_default();
        let led = spec.holder_identity.as_ref().is_some_and(|holder| !holder.is_empty());
        let at = Timestamp::from_millisecond(clock.now().0).ok().map(MicroTime);
        *spec = LeaseSpec {
            holder_identity: Some("rollcall release".to_owned()),
            lease_duration_seconds: i32::try_from(TAKEOVER_DURATION.as_secs()).ok(),
            lease_transitions: Some(spec.lease_transitions.unwrap_or(0).saturating_add(1)),
            renew_time: at.clone(),
            acquire_time: at,
            ..spec.clone()
        };
        match api.replace(name, &PostParams::default(), &lease).await {
            Ok(_) => {
                info!(
                    lease = format!("{namespace}/{name}"),
                    "took over the lease for {} s",
                    TAKEOVER_DURATION.as_secs()
                );
                if led {
                    // Until then the leader has observed the change, or may not write any more, and what it had sent has ended:
                    // no write outlasts the lease that permitted it.
                    clock.sleep_until(Some(clock.now() + LEASE_TIMINGS.lease_duration)).await;
                }
                return Ok(());
            }
            // The leader renewed the lease in between.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error).with_context(failed),
        }
    }
    anyhow::bail!(
        "failed to take lease {namespace}/{name}: conflict on each of {MAX_TAKEOVER_ATTEMPTS} attempts"
    )
}

/// Reads the election's fields of a Lease. A Lease without a duration is treated as having our lease duration.
fn lease_record(lease: &Lease) -> LeaseRecord {
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok()).filter(|s| *s > 0);
    LeaseRecord {
        holder: spec.holder_identity.unwrap_or_default(),
        renewed: spec.renew_time.map(|at| at.0.to_string()).unwrap_or_default(),
        transitions: spec.lease_transitions.unwrap_or(0),
        duration: seconds.map_or(LEASE_TIMINGS.lease_duration, Duration::from_secs),
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
    }
}

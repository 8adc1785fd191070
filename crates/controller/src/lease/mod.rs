//! Leader election: one replica writes, the others watch, judge, and wait.
//!
//! A `Lease` of coordination.k8s.io says who leads. Each change of it is guarded by its resourceVersion, and what is written on
//! parents by their old entries: a leader that slept through the loss of its lease changes nothing that its successor wrote.

mod election;
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

use crate::clock::Clock;
use election::{Answer, Ask, Election, PACE, Record};

/// An answer about the lease that takes longer comes too late.
const PATIENCE: Duration = Duration::from_secs(5);
/// For so long nobody else leads once it was taken out of turn: time enough to delete what would.
const TAKEN: Duration = Duration::from_mins(5);
/// A leader renews a lease every two seconds: to meet it again and again is no accident.
const ATTEMPTS: u32 = 10;

/// Which lease, and under which name this process asks for it.
#[derive(Clone, Debug)]
pub struct LeaseName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who asks: like nobody else.
    pub identity: String,
}

/// Whether this process may write. Cheap to clone, and to ask before each write.
#[derive(Clone, Debug)]
pub(crate) struct Mandate {
    clock: Clock,
    until: Arc<AtomicI64>,
    leads: watch::Receiver<bool>,
}

impl Mandate {
    /// Nobody else writes: it always may.
    pub(crate) fn always(clock: Clock) -> Mandate {
        let until = Arc::new(AtomicI64::new(i64::MAX));
        Mandate { clock, until, leads: watch::channel(true).1 }
    }

    /// A mandate that is not held yet, and the end by which it is given and taken.
    pub(crate) fn of(clock: Clock) -> (Mandate, Term) {
        let (until, (said, leads)) = (Arc::new(AtomicI64::new(0)), watch::channel(false));
        (Mandate { clock, until: until.clone(), leads }, Term { until, leads: said })
    }

    /// May a write begin now?
    pub(crate) fn holds(&self) -> bool {
        self.clock.now().0 < self.until.load(Relaxed)
    }

    /// How long a write that begins now may take before somebody else may lead.
    pub(crate) fn lasts(&self) -> Duration {
        let until = Time(self.until.load(Relaxed));
        (until + PACE.lease.saturating_sub(PACE.renew)) - self.clock.now()
    }

    /// Does this one lead, as far as was said?
    pub(crate) fn leads(&self) -> bool {
        *self.leads.borrow()
    }

    /// Waits until leadership was won or lost.
    pub(crate) async fn changed(&mut self) -> bool {
        if self.leads.changed().await.is_err() {
            // It was given for ever, or this process is about to end.
            std::future::pending::<()>().await;
        }
        *self.leads.borrow_and_update()
    }
}

/// What may write, and who asks for it where that has to be asked for.
pub(crate) fn stand(
    lease: Option<LeaseName>,
    client: &kube::Client,
    clock: Clock,
    seed: Seed,
) -> (Mandate, Option<Candidate>) {
    let Some(name) = lease else { return (Mandate::always(clock), None) };
    let (mandate, term) = Mandate::of(clock);
    (mandate, Some(Candidate::new(client, name, clock, seed, term)))
}

/// The end of a mandate that gives and takes it.
#[derive(Debug)]
pub(crate) struct Term {
    until: Arc<AtomicI64>,
    leads: watch::Sender<bool>,
}

impl Term {
    /// `until` first: who is told to lead may write.
    fn set(&self, until: Option<Time>) -> bool {
        self.until.store(until.map_or(0, |at| at.0), Relaxed);
        self.leads.send_if_modified(|leads| std::mem::replace(leads, until.is_some()) != until.is_some())
    }
}

/// Asks for the lease, keeps it, and gives it up.
pub(crate) struct Candidate {
    api: Api<Lease>,
    name: LeaseName,
    clock: Clock,
    seed: Seed,
    term: Term,
    election: Election,
    /// The object as last seen: what others put into it is kept.
    lease: Lease,
    forbidden: bool,
}

impl Candidate {
    pub(crate) fn new(client: &kube::Client, name: LeaseName, clock: Clock, seed: Seed, term: Term) -> Self {
        Candidate {
            api: Api::namespaced(client.clone(), &name.namespace),
            election: Election::new(name.identity.clone(), PACE),
            name,
            clock,
            seed,
            term,
            lease: Lease::default(),
            forbidden: false,
        }
    }

    /// Stands for election until `stop`; what was held is given up once `written` says that nothing is being written.
    pub(crate) async fn run(mut self, stop: CancellationToken, written: CancellationToken) {
        let LeaseName { namespace, name, identity } = &self.name;
        info!(lease = format!("{namespace}/{name}"), identity, "stands for election");
        let mut round = 0;
        loop {
            tokio::select! { biased;
                () = stop.cancelled() => break,
                () = self.clock.until(Some(self.wake(round))) => {}
            }
            let now = self.clock.now();
            if now >= self.due(round) {
                self.ask(now).await;
                round += 1;
            }
            self.tell();
        }
        // Nothing renews it any more: what is still under way ends with the mandate at the latest.
        let until = self.election.leads_until();
        tokio::select! {
            () = written.cancelled() => {}
            () = self.clock.until(Some(until.unwrap_or_default())) => {}
        }
        self.give_up().await;
    }

    /// Replicas that start together do not ask together.
    fn due(&self, round: u64) -> Time {
        self.election.next() + self.seed.below(PACE.look / 5, round)
    }

    fn wake(&self, round: u64) -> Time {
        let lapses = self.election.leads_until().filter(|_| self.term.leads.borrow().to_owned());
        lapses.map_or(self.due(round), |at| at.min(self.due(round)))
    }

    fn tell(&self) {
        let until = self.election.leads_until().filter(|at| *at > self.clock.now());
        if self.term.set(until) {
            let lease = &self.name.name;
            if until.is_some() {
                info!(lease, "leads");
            } else {
                warn!(lease, leader = self.election.holder(), "stands by: it does not lead any more");
            }
        }
    }

    async fn ask(&mut self, now: Time) {
        let before = self.election.holder().to_owned();
        let ask = self.election.ask(now);
        let answer = tokio::time::timeout(PATIENCE, self.answer(&ask, now));
        // Between asking and being answered a mandate may lapse: somebody has to notice.
        let lapse = async {
            self.clock.until(self.election.leads_until()).await;
            self.tell();
            std::future::pending::<()>().await;
        };
        let answer = tokio::select! { answer = answer => answer, () = lapse => return };
        let answer = match answer {
            Ok(Ok((answer, lease))) => {
                self.lease = lease.unwrap_or_default();
                self.forbidden = false;
                answer
            }
            Ok(Err(error)) => {
                self.failed(&error);
                Answer::Failed
            }
            Err(_) => {
                warn!(lease = self.name.name, "no answer about the lease");
                Answer::Failed
            }
        };
        self.election.hear(answer, now, self.clock.now());
        let holder = self.election.holder();
        if holder != before && !holder.is_empty() && holder != self.name.identity {
            info!(lease = self.name.name, leader = holder, "stands by");
        }
    }

    fn failed(&mut self, error: &kube::Error) {
        let denied = matches!(error, kube::Error::Api(status) if status.code == 403);
        if denied && !self.forbidden {
            let LeaseName { namespace, name, .. } = &self.name;
            warn!(
                rule = format!(
                    "apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update], in namespace {namespace}"
                ),
                "not permitted to hold lease {name}, so nothing is written: `rollcall rbac | kubectl apply -f -` grants that; \
                 --leader-elect=false needs no lease, where one replica runs"
            );
        } else if !denied {
            warn!(lease = self.name.name, %error, "failed to ask for the lease");
        }
        self.forbidden = denied;
    }

    async fn answer(&self, ask: &Ask, now: Time) -> kube::Result<(Answer, Option<Lease>)> {
        let (done, written) = match ask {
            Ask::Look => (self.api.get(&self.name.name).await, false),
            Ask::Create => {
                let lease = self.claim(Lease::default(), now, 0, true);
                (self.api.create(&PostParams::default(), &lease).await, true)
            }
            Ask::Claim { version, transitions } => {
                let mut lease = self.lease.clone();
                lease.metadata.resource_version = Some(version.clone());
                let taken = self.election.held().is_none();
                let lease = self.claim(lease, now, *transitions, taken);
                (self.api.replace(&self.name.name, &PostParams::default(), &lease).await, true)
            }
        };
        match done {
            Ok(lease) => {
                let record = record(&lease);
                Ok((if written { Answer::Written(record) } else { Answer::Found(record) }, Some(lease)))
            }
            Err(kube::Error::Api(status)) if status.code == 404 && *ask != Ask::Create => {
                Ok((Answer::Absent, None))
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok((Answer::Conflict, None)),
            Err(error) => Err(error),
        }
    }

    fn claim(&self, mut lease: Lease, now: Time, transitions: i32, taken: bool) -> Lease {
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
        spec.lease_duration_seconds = i32::try_from(PACE.lease.as_secs()).ok();
        spec.renew_time.clone_from(&at);
        spec.lease_transitions = Some(transitions);
        if taken {
            spec.acquire_time = at;
        }
        lease
    }

    /// Empty, and for a second only: the next one need not wait.
    async fn give_up(mut self) {
        let held = self.election.held().is_some();
        self.term.set(None);
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
        match tokio::time::timeout(PATIENCE, given).await {
            Ok(Ok(_)) => info!(lease = self.name.name, "gave up the lease"),
            Ok(Err(error)) => debug!(lease = self.name.name, %error, "failed to give up the lease"),
            Err(_) => debug!(lease = self.name.name, "failed to give up the lease: no answer"),
        }
    }
}

/// Takes a lease out of turn, so that whoever leads writes no more, and nobody else begins for as long as this needs. What
/// was to be written has been written or refused when this returns. Where there is no such lease nobody writes by it.
pub async fn take(client: &kube::Client, namespace: &str, name: &str) -> anyhow::Result<()> {
    let (api, clock) = (Api::<Lease>::namespaced(client.clone(), namespace), Clock::start());
    for _ in 0..ATTEMPTS {
        let failed = || format!("failed to take lease {namespace}/{name}");
        let Some(mut lease) = api.get_opt(name).await.with_context(failed)? else { return Ok(()) };
        let spec = lease.spec.get_or_insert_default();
        let led = spec.holder_identity.as_ref().is_some_and(|holder| !holder.is_empty());
        let at = Timestamp::from_millisecond(clock.now().0).ok().map(MicroTime);
        *spec = LeaseSpec {
            holder_identity: Some("rollcall release".to_owned()),
            lease_duration_seconds: i32::try_from(TAKEN.as_secs()).ok(),
            lease_transitions: Some(spec.lease_transitions.unwrap_or(0).saturating_add(1)),
            renew_time: at.clone(),
            acquire_time: at,
            ..spec.clone()
        };
        match api.replace(name, &PostParams::default(), &lease).await {
            Ok(_) => {
                info!(lease = format!("{namespace}/{name}"), "taken, for {} s", TAKEN.as_secs());
                if led {
                    // By then its leader has seen it, or may not write because it could not renew.
                    clock.until(Some(clock.now() + PACE.renew)).await;
                }
                return Ok(());
            }
            // Its leader renewed it in between.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error).with_context(failed),
        }
    }
    anyhow::bail!("failed to take lease {namespace}/{name}: it changed {ATTEMPTS} times meanwhile")
}

/// What matters of a Lease. One that says nothing of its duration holds for as long as ours.
fn record(lease: &Lease) -> Record {
    let spec = lease.spec.clone().unwrap_or_default();
    let seconds = spec.lease_duration_seconds.and_then(|s| u64::try_from(s).ok()).filter(|s| *s > 0);
    Record {
        holder: spec.holder_identity.unwrap_or_default(),
        renewed: spec.renew_time.map(|at| at.0.to_string()).unwrap_or_default(),
        transitions: spec.lease_transitions.unwrap_or(0),
        duration: seconds.map_or(PACE.lease, Duration::from_secs),
        version: lease.metadata.resource_version.clone().unwrap_or_default(),
    }
}

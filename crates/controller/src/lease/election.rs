//! Leader election, decided from the content of a Lease and from the local time at which it was observed to change.
//! Pure.
//!
//! As in client-go, clocks of other replicas are never compared: a lease has expired once it has not changed for its
//! duration *as observed locally*, and its holder stops writing well before any other replica can observe that.

use std::time::Duration;

use readiness::Time;

/// Durations of leader election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeaseTimings {
    /// Time after its last change for which other replicas do not acquire a lease.
    pub(crate) lease_duration: Duration,
    /// Time without a successful renewal after which the leader stops writing.
    pub(crate) renew_deadline: Duration,
    /// Interval at which a leader renews the lease.
    pub(crate) retry_period: Duration,
    /// Interval at which a standby reads the lease.
    pub(crate) standby_period: Duration,
}

/// The first three are client-go's defaults. A standby reads more often, so that a released lease is acquired quickly.
pub(crate) const LEASE_TIMINGS: LeaseTimings = LeaseTimings {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_secs(2),
    standby_period: Duration::from_secs(1),
};

/// Fields of a Lease that the election uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeaseRecord {
    /// Identity of the holder; empty if the lease is not held.
    pub(crate) holder: String,
    /// `renewTime` as written by the holder. Only a change of it is evaluated, never its value.
    pub(crate) renewed: String,
    /// Number of times the lease changed hands (`leaseTransitions`).
    pub(crate) transitions: i32,
    /// Lease duration of the holder.
    pub(crate) duration: Duration,
    /// Its resourceVersion.
    pub(crate) version: String,
}

/// Request to the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseRequest {
    /// Reads the Lease.
    Get,
    /// Creates the Lease with this replica as its holder.
    Create,
    /// Acquires or renews the Lease, with its resourceVersion as precondition.
    Claim { version: String, transitions: i32 },
}

/// Result of a request about the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseResponse {
    /// The Lease as read; not written by this replica.
    Found(LeaseRecord),
    /// The Lease does not exist.
    Absent,
    /// The Lease as written; this replica holds it.
    Written(LeaseRecord),
    /// The precondition failed: another client changed it first.
    Conflict,
    /// The outcome is unknown.
    Failed,
}

/// One candidate of the election.
#[derive(Clone, Debug)]
pub(crate) struct Election {
    identity: String,
    timings: LeaseTimings,
    /// Last observed Lease, and the local time since which it has been observed unchanged.
    observed: Option<(LeaseRecord, Time)>,
    absent: bool,
    /// Start of the request of the last successful renewal: other replicas cannot have observed it earlier.
    renewed: Option<Time>,
    next: Time,
}

impl Election {
    /// Creates a candidate. The identity must be unique.
    pub(crate) fn new(identity: String, pace: LeaseTimings) -> Self {
        Election {
            identity,
            timings: pace,
            observed: None,
            absent: false,
            renewed: None,
            next: Time::default(),
        }
    }

    /// Next request to send.
    pub(crate) fn next_request(&self, now: Time) -> LeaseRequest {
        match &self.observed {
            None if self.absent => LeaseRequest::Create,
            None => LeaseRequest::Get,
            Some((record, since)) => {
                let ours = record.holder == self.identity;
                let free = record.holder.is_empty() || *since + record.duration <= now;
                if ours || free {
                    let transitions = record.transitions.saturating_add(i32::from(!ours));
                    LeaseRequest::Claim { version: record.version.clone(), transitions }
                } else {
                    LeaseRequest::Get
                }
            }
        }
    }

    /// Handles the response to the request sent at `asked`.
    pub(crate) fn observe_response(&mut self, answer: LeaseResponse, asked: Time, now: Time) {
        self.absent = false;
        match answer {
            LeaseResponse::Written(record) => {
                self.observed = Some((record, now));
                self.renewed = Some(asked);
                self.next = asked + self.timings.retry_period;
            }
            LeaseResponse::Found(record) => {
                if record.holder != self.identity {
                    self.renewed = None;
                }
                let since = self
                    .observed
                    .take()
                    .filter(|(old, _)| is_not_renewed(old, &record))
                    .map_or(now, |(_, at)| at);
                self.observed = Some((record, since));
                self.next = if self.next_request(now) == LeaseRequest::Get {
                    now + self.timings.standby_period
                } else {
                    now
                };
            }
            LeaseResponse::Absent => {
                (self.observed, self.renewed, self.absent) = (None, None, true);
                self.next = now;
            }
            LeaseResponse::Conflict => {
                self.observed = None;
                self.next = now;
            }
            LeaseResponse::Failed => {
                let pause = if self.renewed.is_some() {
                    self.timings.retry_period
                } else {
                    self.timings.standby_period
                };
                self.next = now + pause;
            }
        }
    }

    /// Time of the next request.
    pub(crate) fn next_request_at(&self) -> Time {
        self.next
    }

    /// Time until which this replica may start a write; `None` if it does not lead.
    pub(crate) fn leads_until(&self) -> Option<Time> {
        self.renewed.map(|at| at + self.timings.renew_deadline)
    }

    /// The Lease to release, if this replica holds it.
    pub(crate) fn held_record(&self) -> Option<&LeaseRecord> {
        self.observed.as_ref().map(|(record, _)| record).filter(|record| record.holder == self.identity)
    }

    /// Identity of the last observed holder.
    pub(crate) fn holder_name(&self) -> &str {
        self.observed.as_ref().map_or("", |(record, _)| record.holder.as_str())
    }
}

/// True if the holder has not renewed in between. Other changes of the resourceVersion, such as a label, are no
/// renewal.
fn is_not_renewed(old: &LeaseRecord, new: &LeaseRecord) -> bool {
    (&old.holder, &old.renewed, old.transitions) == (&new.holder, &new.renewed, new.transitions)
}

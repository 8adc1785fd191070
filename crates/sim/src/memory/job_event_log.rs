//! Events of the Job controller: late, sometimes never written, and expiring.

use rollcall_core::records::JobEvents;
use serde_json::{Value, json};
use watcher::status::time;

use super::simulated_job::{JOB_KIND, SimulatedJob};
use crate::scenario::Dice;

/// One Event, and the time from which it can be read.
struct JobEvent {
    uid: String,
    readable_at: i64,
    event: Value,
}

/// The Events about Jobs that the server keeps.
#[derive(Default)]
pub(super) struct JobEventLog {
    events: Vec<JobEvent>,
}

impl JobEventLog {
    /// Emits an Event of the Job controller about a Job.
    pub(super) fn emit_event(&mut self, dice: &mut Dice, now: i64, job: &SimulatedJob, reason: &str) {
        // Events are best effort: some are never written.
        if dice.chance(8) {
            return;
        }
        let readable_at = now + dice.between(0, 3_000);
        let SimulatedJob { uid, name, version, .. } = job;
        let event = json!({
            "involvedObject": {"kind": "Job", "apiVersion": "batch/v1", "namespace": "shop", "name": name, "uid": uid,
                "resourceVersion": version.to_string()},
            "reportingComponent": "job-controller", "reason": reason,
            "firstTimestamp": time::format_seconds(readiness::Time(now)),
        });
        self.events.push(JobEvent { uid: uid.clone(), readable_at, event });
    }

    /// Expires all Events, as the API server does after their TTL.
    pub(super) fn expire_events(&mut self) {
        self.events.clear();
    }

    /// Returns the Events that can be read by now.
    pub(super) fn readable_events(&self, now: i64) -> JobEvents {
        let readable = self.events.iter().filter(|event| event.readable_at <= now);
        let mut events = JobEvents::new(JOB_KIND);
        events
            .read_page(&json!({ "items": readable.map(|event| &event.event).collect::<Vec<_>>() }), |_| true);
        events
    }

    /// Returns `true` if the Event of the Job's creation still exists.
    pub(super) fn has_creation_event(&self, uid: &str) -> bool {
        self.events.iter().any(|event| event.uid == uid && event.event["reason"] == "SuccessfulCreate")
    }
}

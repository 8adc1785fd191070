//! Events of the Job controller: late, sometimes never written, and expiring.

use rollcall_core::records::JobEvents;
use serde_json::json;
use watcher::status::time;

use super::job_cluster::{JOB_KIND, JobCluster};
use super::job_event::JobEvent;

impl JobCluster {
    /// Emits an Event of the Job controller about a Job.
    pub(super) fn emit_job_event(&mut self, n: usize, reason: &str) {
        // Events are best effort: some are never written.
        if self.chance(8) {
            return;
        }
        let at = self.now + self.millis_below(3_000);
        let (uid, name, version) = self.job_identity(n);
        let event = json!({
            "involvedObject": {"kind": "Job", "apiVersion": "batch/v1", "namespace": "shop", "name": name, "uid": uid,
                "resourceVersion": version.to_string()},
            "reportingComponent": "job-controller", "reason": reason,
            "firstTimestamp": time::format_seconds(readiness::Time(self.now)),
        });
        self.job_events.push(JobEvent { uid, readable_at: at, event });
    }

    /// Expires all Events, as the API server does after their TTL.
    pub(super) fn expire_events(&mut self) {
        self.log_event("all Events expire");
        self.job_events.clear();
    }

    /// Returns the Events that can be read by now.
    pub(super) fn readable_events(&self) -> JobEvents {
        let events =
            self.job_events.iter().filter(|told| told.readable_at <= self.now).map(|told| &told.event);
        let mut heard = JobEvents::new(JOB_KIND);
        heard.read_page(&json!({ "items": events.collect::<Vec<_>>() }), |_| true);
        heard
    }

    /// Returns `true` if the Event of the Job's creation still exists.
    pub(super) fn has_creation_event(&self, uid: &str) -> bool {
        self.job_events.iter().any(|told| told.uid == uid && told.event["reason"] == "SuccessfulCreate")
    }
}

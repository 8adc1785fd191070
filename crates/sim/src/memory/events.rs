//! Events about Jobs, as the Job controller leaves them behind: late, sometimes never, and not for ever.

use controller::core::records::Heard;
use serde_json::{Value, json};
use watcher::status::time;

use super::service::JOBS;
use super::world::World;

/// One Event, and from when on it can be read.
#[derive(Clone)]
pub(super) struct Told {
    pub(super) uid: String,
    at: i64,
    event: Value,
}

impl World {
    /// The Job controller says something about a Job.
    pub(super) fn tell(&mut self, n: usize, reason: &str) {
        // It is only ever an attempt.
        if self.chance(8) {
            return;
        }
        let at = self.now + self.below(3_000) as i64;
        let (uid, name, version) = self.named(n);
        let event = json!({
            "involvedObject": {"kind": "Job", "apiVersion": "batch/v1", "namespace": "shop", "name": name, "uid": uid,
                "resourceVersion": version.to_string()},
            "reportingComponent": "job-controller", "reason": reason,
            "firstTimestamp": time::format(readiness::Time(self.now)),
        });
        self.told.push(Told { uid, at, event });
    }

    /// The server keeps no Event for ever.
    pub(super) fn expire(&mut self) {
        self.say("all Events expire");
        self.told.clear();
    }

    /// What can be heard by now.
    pub(super) fn heard(&self) -> Heard {
        let events = self.told.iter().filter(|told| told.at <= self.now).map(|told| &told.event);
        let mut heard = Heard::new(JOBS);
        heard.read(&json!({ "items": events.collect::<Vec<_>>() }), |_| true);
        heard
    }

    /// Is anything left that tells of its beginning?
    pub(super) fn is_told_of(&self, uid: &str) -> bool {
        self.told.iter().any(|told| told.uid == uid && told.event["reason"] == "SuccessfulCreate")
    }
}

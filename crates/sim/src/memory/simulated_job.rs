//! Jobs and parents as the server holds them, and their watch lines.

use aggregator::KindId;
use readiness::Time;
use serde_json::{Value, json};
use watcher::status::time::format_seconds;

pub(super) const JOB_KIND: KindId = KindId(1);
pub(super) const PARENT_KIND: KindId = KindId(2);

/// One Job, existing or deleted.
pub(super) struct SimulatedJob {
    pub(super) uid: String,
    pub(super) name: String,
    pub(super) slot: String,
    pub(super) parent: usize,
    /// The Job only has the name of one that the parent owns.
    pub(super) stranger: bool,
    pub(super) created: i64,
    /// Outcome: `true` if it succeeded; `None` while it runs.
    pub(super) end: Option<bool>,
    pub(super) gone: bool,
    pub(super) deleting: bool,
    pub(super) version: u64,
    /// First resourceVersion of the Job.
    pub(super) born: u64,
}

/// One parent.
pub(super) struct SimulatedParent {
    pub(super) uid: String,
    pub(super) generation: u64,
    pub(super) gone: bool,
    pub(super) version: u64,
}

/// A line of a watch.
#[derive(Clone)]
pub(super) enum JobWatchLine {
    Present(Value),
    Deleted(Value),
}

impl JobWatchLine {
    /// Returns the resourceVersion of its object.
    pub(super) fn version(&self) -> u64 {
        let (JobWatchLine::Present(object) | JobWatchLine::Deleted(object)) = self;
        let text = object["metadata"]["resourceVersion"].as_str();
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

impl SimulatedJob {
    /// Returns the manifest; `owner` is the UID of the parent.
    pub(super) fn manifest(&self, owner: &str) -> Value {
        let moment = |at: i64| format_seconds(Time(at));
        let mut object = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": self.name, "namespace": "shop", "uid": self.uid, "generation": 1,
                "resourceVersion": self.version.to_string(), "creationTimestamp": moment(self.created),
                "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Widget", "name": owner, "uid": owner}]},
            "spec": {"completions": 1}, "status": {"startTime": moment(self.created)},
        });
        if self.stranger {
            object["metadata"]["ownerReferences"] = json!([]);
        }
        if self.slot != self.name {
            object["metadata"]["generateName"] = json!(self.slot);
        }
        if self.deleting {
            object["metadata"]["deletionTimestamp"] = json!(moment(self.created + 1_000));
            object["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
        }
        if let Some(well) = self.end {
            let kind = if well { "Complete" } else { "Failed" };
            object["status"]["conditions"] =
                json!([{"type": kind, "status": "True", "reason": "BackoffLimitExceeded"}]);
        }
        object
    }
}

impl SimulatedParent {
    /// Returns the manifest.
    pub(super) fn manifest(&self) -> Value {
        let SimulatedParent { uid, generation, version, .. } = self;
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": uid, "namespace": "shop", "uid": uid, "generation": generation,
                "resourceVersion": version.to_string()},
            "spec": {}, "status": {"observedGeneration": generation},
        })
    }
}

impl JobWatchLine {
    /// Returns the line about an object that has changed, or is gone.
    pub(super) fn of_object(object: Value, gone: bool) -> JobWatchLine {
        if gone { JobWatchLine::Deleted(object) } else { JobWatchLine::Present(object) }
    }
}

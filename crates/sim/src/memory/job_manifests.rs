//! Manifests of the objects, and their watch events.

use serde_json::{Value, json};

use super::job_cluster::{JOB_KIND, JobCluster, JobWatchLine, PARENT_KIND, SimulatedJob, SimulatedParent};

impl JobCluster {
    pub(super) fn publish_job(&mut self, n: usize) {
        self.version += 1;
        self.jobs[n].version = self.version;
        let job = &self.jobs[n];
        let what = format!(
            "{} {} ended {:?} gone {} deleting {}",
            job.uid, job.name, job.end, job.gone, job.deleting
        );
        let (object, gone) = (self.job_manifest(n), job.gone);
        self.log_event(what);
        let line = if gone { JobWatchLine::Deleted(object) } else { JobWatchLine::Present(object) };
        self.lines.entry(JOB_KIND.0).or_default().push(line);
    }

    pub(super) fn publish_parent(&mut self, n: usize) {
        self.version += 1;
        self.parents[n].version = self.version;
        let what = format!(
            "{} generation {} gone {}",
            self.parents[n].uid, self.parents[n].generation, self.parents[n].gone
        );
        let (object, gone) = (self.parent_manifest(n), self.parents[n].gone);
        self.log_event(what);
        let line = if gone { JobWatchLine::Deleted(object) } else { JobWatchLine::Present(object) };
        self.lines.entry(PARENT_KIND.0).or_default().push(line);
    }

    /// Returns the UID, name and resourceVersion of a Job.
    pub(super) fn job_identity(&self, n: usize) -> (String, String, u64) {
        let SimulatedJob { uid, name, version, .. } = &self.jobs[n];
        (uid.clone(), name.clone(), *version)
    }

    /// Returns the manifest of a Job.
    pub(super) fn job_manifest(&self, n: usize) -> Value {
        let job = &self.jobs[n];
        let owner = &self.parents[job.parent].uid;
        let moment = |at: i64| watcher::status::time::format_seconds(readiness::Time(at));
        let mut object = json!({
            "apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": job.name, "namespace": "shop", "uid": job.uid, "generation": 1,
                "resourceVersion": job.version.to_string(), "creationTimestamp": moment(job.created),
                "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Widget", "name": owner, "uid": owner}]},
            "spec": {"completions": 1}, "status": {"startTime": moment(job.created)},
        });
        if job.stranger {
            object["metadata"]["ownerReferences"] = json!([]);
        }
        if job.slot != job.name {
            object["metadata"]["generateName"] = json!(job.slot);
        }
        if job.deleting {
            object["metadata"]["deletionTimestamp"] = json!(moment(job.created + 1_000));
            object["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
        }
        if let Some(well) = job.end {
            let kind = if well { "Complete" } else { "Failed" };
            object["status"]["conditions"] =
                json!([{"type": kind, "status": "True", "reason": "BackoffLimitExceeded"}]);
        }
        object
    }

    fn parent_manifest(&self, n: usize) -> Value {
        let SimulatedParent { uid, generation, version, .. } = &self.parents[n];
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": uid, "namespace": "shop", "uid": uid, "generation": generation,
                "resourceVersion": version.to_string()},
            "spec": {}, "status": {"observedGeneration": generation},
        })
    }

    /// Lists all objects of a kind.
    pub(super) fn list_kind(&self, kind: u16) -> Vec<Value> {
        if kind == JOB_KIND.0 {
            (0..self.jobs.len()).filter(|n| !self.jobs[*n].gone).map(|n| self.job_manifest(n)).collect()
        } else {
            (0..self.parents.len())
                .filter(|n| !self.parents[*n].gone)
                .map(|n| self.parent_manifest(n))
                .collect()
        }
    }
}

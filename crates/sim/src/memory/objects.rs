//! Objects as they are, and as their watches tell of them.

use serde_json::{Value, json};

use super::service::{JOBS, PARENTS};
use super::world::{Job, Line, Parent, World};

impl World {
    pub(super) fn tell_job(&mut self, n: usize) {
        self.version += 1;
        self.jobs[n].version = self.version;
        let job = &self.jobs[n];
        let what = format!(
            "{} {} ended {:?} gone {} deleting {}",
            job.uid, job.name, job.end, job.gone, job.deleting
        );
        let (object, gone) = (self.job(n), job.gone);
        self.say(what);
        let line = if gone { Line::Gone(object) } else { Line::There(object) };
        self.lines.entry(JOBS.0).or_default().push(line);
    }

    pub(super) fn tell_parent(&mut self, n: usize) {
        self.version += 1;
        self.parents[n].version = self.version;
        let what = format!(
            "{} generation {} gone {}",
            self.parents[n].uid, self.parents[n].generation, self.parents[n].gone
        );
        let (object, gone) = (self.parent(n), self.parents[n].gone);
        self.say(what);
        let line = if gone { Line::Gone(object) } else { Line::There(object) };
        self.lines.entry(PARENTS.0).or_default().push(line);
    }

    /// Uid, name and version of a Job.
    pub(super) fn named(&self, n: usize) -> (String, String, u64) {
        let Job { uid, name, version, .. } = &self.jobs[n];
        (uid.clone(), name.clone(), *version)
    }

    /// A Job as it is.
    pub(super) fn job(&self, n: usize) -> Value {
        let job = &self.jobs[n];
        let owner = &self.parents[job.parent].uid;
        let moment = |at: i64| watcher::status::time::format(readiness::Time(at));
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

    fn parent(&self, n: usize) -> Value {
        let Parent { uid, generation, version, .. } = &self.parents[n];
        json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": uid, "namespace": "shop", "uid": uid, "generation": generation,
                "resourceVersion": version.to_string()},
            "spec": {}, "status": {"observedGeneration": generation},
        })
    }

    /// Everything of a kind that there is.
    pub(super) fn list(&self, kind: u16) -> Vec<Value> {
        if kind == JOBS.0 {
            (0..self.jobs.len()).filter(|n| !self.jobs[*n].gone).map(|n| self.job(n)).collect()
        } else {
            (0..self.parents.len()).filter(|n| !self.parents[*n].gone).map(|n| self.parent(n)).collect()
        }
    }
}

//! The steps of a history: what the cluster does by itself, and what it does to the service.

use serde_json::json;

use super::job_cluster::{JOB_KIND, JobCluster, PARENT_KIND};
use super::service_process::ServiceProcess;

impl JobCluster {
    /// Runs one random step of the cluster or of the service.
    pub(super) fn run_step(&mut self, service: &mut ServiceProcess) {
        self.now += self.millis_below(1_500);
        match self.below(100) {
            0..12 => _ = self.create_job(),
            12..24 => self.finish_some_job(),
            24..34 => self.delete_some_job(),
            34..36 => self.respecify_some_parent(),
            36..66 => service.watch_kind(self, JOB_KIND),
            66..74 => service.watch_kind(self, PARENT_KIND),
            74..76 => service.lose_watch_position(self),
            76..80 => service.read_job_live(self),
            80..92 => service.step_records(self),
            92..95 => service.seek_evidence(self),
            95..97 => self.spoil_record(service),
            97 => self.delete_some_parent(),
            98 => self.restart_service(service),
            _ => self.run_outage(service),
        }
        service.run_turn(self);
    }

    /// Stops the process for a while, in which Jobs run, run again, and vanish.
    fn run_outage(&mut self, service: &mut ServiceProcess) {
        self.log_event("outage");
        self.outages += 1;
        service.stop_process(self);
        for _ in 0..5 + self.below(30) {
            self.now += self.millis_below(1_500);
            match self.below(10) {
                0..4 => self.run_whole_job(),
                4 => _ = self.create_job(),
                5..7 => self.finish_some_job(),
                7..9 => self.delete_some_job(),
                _ => self.respecify_some_parent(),
            }
        }
        if self.chance(20) {
            self.now += 3_600_000;
            self.expire_events();
        }
        self.restart_service(service);
    }

    /// Stops all changes and applies all pending work.
    pub(super) fn run_calm(&mut self, service: &mut ServiceProcess) {
        self.log_event("calm");
        for _ in 0..40 {
            self.now += 500;
            service.drain_all(self);
            service.run_turn(self);
        }
    }

    /// Kills the process at an arbitrary moment and starts another.
    pub(super) fn restart_service(&mut self, service: &mut ServiceProcess) {
        self.log_event("restart");
        self.restarts += 1;
        service.stop_process(self);
        *service = ServiceProcess::new(self);
    }

    /// Deletes or corrupts a record, as a person might.
    fn spoil_record(&mut self, service: &mut ServiceProcess) {
        let at = self.below(self.records.len());
        let Some(name) = self.records.keys().nth(at).cloned() else { return };
        if self.chance(50) {
            self.log_event(format_args!("record {name} deleted by hand"));
            self.records.remove(&name);
            return service.observe_record_deleted(&name);
        }
        self.log_event(format_args!("record {name} spoiled by hand"));
        self.version += 1;
        let version = self.version;
        if let Some(record) = self.records.get_mut(&name) {
            record["metadata"]["resourceVersion"] = json!(version.to_string());
            record["spec"]["outcomes"][0]["outcome"] = json!("Splendid");
            service.observe_record(&record.clone());
        }
    }
}

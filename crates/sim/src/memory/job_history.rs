//! A history of remembered Jobs: what the cluster does by itself, and what it does to the service.

use serde_json::json;

use super::job_cluster::JobCluster;
use super::memory_checks::{check_memory, check_memory_at_end, check_takeover};
use super::memory_counts::MemoryCounts;
use super::service_process::ServiceProcess;
use super::simulated_job::{JOB_KIND, PARENT_KIND};
use crate::scenario::Sabotage;
use crate::timeline::InvariantFailure;

/// Number of steps in each history.
const HISTORY_STEPS: usize = 400;

/// The history of one seed.
pub(super) struct JobHistory {
    world: JobCluster,
    service: ServiceProcess,
    /// Process that waits for the other to end.
    standby: Option<ServiceProcess>,
}

impl JobHistory {
    pub(super) fn new(seed: u64, sabotage: Option<Sabotage>) -> JobHistory {
        let world = JobCluster::new(seed, sabotage);
        let mut service = ServiceProcess::new(&world);
        service.records.lead();
        JobHistory { service, standby: None, world }
    }

    /// Plays the history to its end; returns its log, the first violated check, and the counts.
    pub(super) fn play(mut self) -> (Vec<String>, Option<InvariantFailure>, MemoryCounts) {
        for _ in 0..HISTORY_STEPS {
            self.run_step();
            check_memory(&self.world, &self.service);
            if self.world.has_failed() {
                break;
            }
        }
        let counts = if self.world.has_failed() { MemoryCounts::default() } else { self.rest_and_restart() };
        let failure = self.world.first_failure();
        (self.world.log, failure, counts)
    }

    /// Lets everything settle, then checks that a restart writes nothing and remembers the same. The first restart may
    /// differ: it may take an older run that still exists for the newest, if a newer one was deleted before its end; and
    /// Events may tell it of a Job that the earlier process saw to have another owner.
    fn rest_and_restart(&mut self) -> MemoryCounts {
        self.run_calm();
        check_memory(&self.world, &self.service);
        if self.standby.is_some() {
            self.take_over();
            self.run_calm();
            check_memory(&self.world, &self.service);
        }
        let tally = check_memory_at_end(&self.world, &self.service);
        let mut written = 0;
        for _ in 0..2 {
            written = self.world.written;
            self.restart_service();
            self.run_calm();
            check_memory(&self.world, &self.service);
            let again = check_memory_at_end(&self.world, &self.service);
            self.world.demand(again.right + again.strangers >= tally.right, "a restart at rest forgets");
        }
        self.world.demand(written == self.world.written, "a restart at rest writes records");
        tally
    }

    /// Runs one random step of the cluster or of the self.service.
    fn run_step(&mut self) {
        self.world.now += self.world.millis_below(1_500);
        match self.world.below(100) {
            0..12 => _ = self.world.create_job(),
            12..24 => self.world.finish_some_job(),
            24..34 => self.world.delete_some_job(),
            34..36 => self.world.respecify_some_parent(),
            36..66 => self.service.watch_kind(&mut self.world, JOB_KIND),
            66..74 => self.service.watch_kind(&mut self.world, PARENT_KIND),
            74..76 => self.service.lose_watch_position(&mut self.world),
            76..80 => self.service.read_job_live(&mut self.world),
            80..92 => self.service.step_records(&mut self.world),
            92..95 => self.service.seek_evidence(&mut self.world),
            95..97 => self.spoil_record(),
            97 => self.world.delete_some_parent(),
            98 => self.restart_service(),
            _ => self.run_outage(),
        }
        self.service.run_turn(&self.world);
        self.step_standby();
    }

    /// Runs a step of the process that stands by, or starts one.
    fn step_standby(&mut self) {
        let Some(standby) = &mut self.standby else {
            if self.world.standby_dice.chance(2) {
                self.world.log_event("another process stands by");
                self.standby = Some(ServiceProcess::new(&self.world));
            }
            return;
        };
        match self.world.standby_dice.below(10) {
            0..4 => standby.watch_kind(&mut self.world, JOB_KIND),
            4 => standby.watch_kind(&mut self.world, PARENT_KIND),
            5..7 => {
                let lines = self.world.standby_dice.below(4);
                standby.follow_records(&mut self.world, lines);
            }
            7 => standby.seek_evidence(&mut self.world),
            8 if self.world.standby_dice.chance(20) => standby.lose_watch_position(&mut self.world),
            _ => {}
        }
        standby.run_turn(&self.world);
        check_memory(&self.world, standby);
    }

    /// Lets the process that stands by take over from the other, which has ended.
    fn take_over(&mut self) {
        let Some(mut standby) = self.standby.take() else { return };
        self.world.log_event("the process that stood by takes over");
        self.world.takeovers += 1;
        standby.catch_up(&mut self.world);
        check_takeover(&self.world, &standby);
        standby.records.lead();
        self.service = standby;
    }

    /// Stops the process for a while, in which Jobs run, run again, and vanish.
    fn run_outage(&mut self) {
        self.world.log_event("outage");
        self.world.outages += 1;
        self.service.records.stop(&mut self.world);
        for _ in 0..5 + self.world.below(30) {
            self.world.now += self.world.millis_below(1_500);
            match self.world.below(10) {
                0..4 => self.world.run_whole_job(),
                4 => _ = self.world.create_job(),
                5..7 => self.world.finish_some_job(),
                7..9 => self.world.delete_some_job(),
                _ => self.world.respecify_some_parent(),
            }
        }
        if self.world.chance(20) {
            self.world.now += 3_600_000;
            self.world.log_event("all Events expire");
            self.world.events.expire_events();
        }
        self.restart_service();
    }

    /// Stops all changes and applies all pending work.
    fn run_calm(&mut self) {
        self.world.log_event("calm");
        for _ in 0..40 {
            self.world.now += 500;
            self.service.drain_all(&mut self.world);
            self.service.run_turn(&self.world);
        }
    }

    /// Kills the process at an arbitrary moment and starts another.
    fn restart_service(&mut self) {
        self.world.log_event("restart");
        self.world.restarts += 1;
        self.service.records.stop(&mut self.world);
        if self.standby.is_some() && self.world.standby_dice.chance(70) {
            return self.take_over();
        }
        self.service = ServiceProcess::new(&self.world);
        self.service.records.lead();
    }

    /// Deletes or corrupts a record, as a person might.
    fn spoil_record(&mut self) {
        let at = self.world.below(self.world.records.len());
        let Some(name) = self.world.records.keys().nth(at).cloned() else { return };
        if self.world.chance(50) {
            self.world.log_event(format_args!("record {name} deleted by hand"));
            self.world.store_record(&name, None);
            return self.service.records.observe_record(&self.service.core.reflector, &name, None);
        }
        self.world.log_event(format_args!("record {name} spoiled by hand"));
        self.world.version += 1;
        let version = self.world.version;
        if let Some(mut record) = self.world.records.get(&name).cloned() {
            record["metadata"]["resourceVersion"] = json!(version.to_string());
            record["spec"]["outcomes"][0]["outcome"] = json!("Splendid");
            self.service.records.observe_record(&self.service.core.reflector, &name, Some(&record));
            self.world.store_record(&name, Some(record));
        }
    }
}

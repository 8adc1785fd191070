//! The true state: Jobs, their parents, the server's records, and the watch lines and Events about them.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt::Display;

use readiness::millis_to_seconds;
use serde_json::Value;

use super::job_event_log::JobEventLog;
use super::simulated_job::{JOB_KIND, JobWatchLine, PARENT_KIND, SimulatedJob, SimulatedParent};
use crate::scenario::{Dice, DiceStream, Sabotage};
use crate::timeline::InvariantFailure;

/// Start time of every history, in milliseconds since the Unix epoch.
const HISTORY_START_MS: i64 = 1_800_000_000_000;
/// Letters of generated names.
const NAME_SUFFIX_LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// The simulated cluster.
pub(super) struct JobCluster {
    dice: Dice,
    /// Dice of the relists of records.
    pub(super) relist_dice: Dice,
    /// Dice of how these go on and break off, and of all lists of a process that stands by.
    pub(super) record_list_dice: Dice,
    /// Dice of what a process that stands by sees.
    pub(super) standby_dice: Dice,
    strict: bool,
    pub(super) sabotage: Option<Sabotage>,
    pub(super) now: i64,
    pub(super) version: u64,
    pub(super) jobs: Vec<SimulatedJob>,
    pub(super) parents: Vec<SimulatedParent>,
    /// All watch lines since the beginning, by kind.
    pub(super) lines: BTreeMap<u32, Vec<JobWatchLine>>,
    /// Records as stored by the server.
    pub(super) records: BTreeMap<String, Value>,
    /// All watch lines of records since the beginning; `None` is a deletion.
    pub(super) record_lines: Vec<(String, Option<Value>)>,
    /// Number of the service's writes to records.
    pub(super) written: usize,
    pub(super) restarts: u64,
    pub(super) outages: u64,
    /// Processes that took over after they had stood by.
    pub(super) takeovers: u64,
    /// Lists of records that broke off.
    pub(super) half_lists: u64,
    /// Unobserved runs that Events revealed.
    pub(super) superseded: u64,
    pub(super) events: JobEventLog,
    pub(super) log: Vec<String>,
    failure: OnceCell<InvariantFailure>,
}

pub(super) fn make_uid(class: u32, n: impl Display) -> String {
    format!("{class:08}-0000-4000-8000-{n:0>12}")
}

/// Returns the suffix that the server appends to a name prefix.
fn generated_suffix(mut number: usize) -> String {
    let mut letter = || {
        let at = number % NAME_SUFFIX_LETTERS.len();
        number /= NAME_SUFFIX_LETTERS.len();
        char::from(NAME_SUFFIX_LETTERS[at])
    };
    (0..5).map(|_| letter()).collect()
}

impl JobCluster {
    pub(super) fn new(seed: u64, sabotage: Option<Sabotage>) -> JobCluster {
        let mut world = JobCluster {
            dice: DiceStream::Jobs.dice(seed),
            relist_dice: DiceStream::JobRelists.dice(seed),
            record_list_dice: DiceStream::RecordLists.dice(seed),
            standby_dice: DiceStream::JobStandbys.dice(seed),
            strict: seed % 2 == 1,
            sabotage,
            now: HISTORY_START_MS,
            version: 10,
            jobs: Vec::new(),
            parents: Vec::new(),
            lines: BTreeMap::from([(JOB_KIND.0, Vec::new()), (PARENT_KIND.0, Vec::new())]),
            records: BTreeMap::new(),
            record_lines: Vec::new(),
            written: 0,
            restarts: 0,
            outages: 0,
            takeovers: 0,
            half_lists: 0,
            superseded: 0,
            events: JobEventLog::default(),
            log: vec!["of what is remembered:".to_owned()],
            failure: OnceCell::new(),
        };
        for n in 0..3 {
            world.parents.push(SimulatedParent {
                uid: make_uid(1, n),
                generation: 1,
                gone: false,
                version: 0,
            });
            world.publish_parent(n);
        }
        world
    }

    /// Returns `true` if the policy sets `rememberGeneration`: half of all do.
    pub(super) fn is_strict(&self) -> bool {
        self.strict
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.dice.below(n)
    }

    pub(super) fn millis_below(&mut self, n: i64) -> i64 {
        self.dice.between(0, n)
    }

    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.dice.chance(percent)
    }

    pub(super) fn log_event(&mut self, what: impl Display) {
        self.log.push(format!("{:>8.3} {what}", millis_to_seconds(self.now - HISTORY_START_MS)));
    }

    /// Checks a condition on which it rests that a finished Job stays finished.
    pub(super) fn demand(&self, holds: bool, what: impl Display) {
        self.demand_invariant("a finished job stays finished", holds, what);
    }

    /// Checks a condition of an invariant; the first that does not hold ends the history.
    pub(super) fn demand_invariant(&self, invariant: &'static str, holds: bool, what: impl Display) {
        if !holds {
            let at = millis_to_seconds(self.now - HISTORY_START_MS);
            _ = self.failure.set(InvariantFailure { invariant, detail: format!("at {at:.3} s: {what}") });
        }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failure.get().is_some()
    }

    pub(super) fn first_failure(&self) -> Option<InvariantFailure> {
        self.failure.get().cloned()
    }

    /// Stores a record, or deletes it, and publishes that.
    pub(super) fn store_record(&mut self, name: &str, record: Option<Value>) {
        match &record {
            Some(record) => _ = self.records.insert(name.to_owned(), record.clone()),
            None => _ = self.records.remove(name),
        }
        self.record_lines.push((name.to_owned(), record));
    }

    /// Runs a Job from its creation to its end and deletion.
    pub(super) fn run_whole_job(&mut self) {
        if let Some(n) = self.create_job() {
            self.now += self.millis_below(1_500);
            self.finish_job(n);
            self.now += self.millis_below(1_500);
            self.remove_job(n);
        }
    }

    pub(super) fn create_job(&mut self) -> Option<usize> {
        let parent = self.below(self.parents.len());
        if self.parents[parent].gone {
            return None;
        }
        let (slot, generated) = [("migrate", false), ("seed", false), ("backup", true)][self.below(3)];
        let number = self.jobs.len();
        let name = format!("{slot}{parent}");
        let (slot, name) = if generated {
            (format!("{name}-"), format!("{name}-{}", generated_suffix(number)))
        } else {
            (name.clone(), name)
        };
        if self.jobs.iter().any(|job| !job.gone && job.name == name) {
            return None;
        }
        let (uid, created, stranger) = (make_uid(2, number), self.now, self.chance(15));
        self.jobs.push(SimulatedJob {
            uid,
            name,
            slot,
            parent,
            stranger,
            created,
            end: None,
            gone: false,
            deleting: false,
            version: 0,
            born: self.version + 1,
        });
        self.publish_job(number);
        self.emit_job_event(number, "SuccessfulCreate");
        Some(number)
    }

    fn pick_job(&mut self, which: impl Fn(&SimulatedJob) -> bool) -> Option<usize> {
        let all: Vec<usize> = (0..self.jobs.len()).filter(|n| which(&self.jobs[*n])).collect();
        let at = self.below(all.len());
        all.get(at).copied()
    }

    pub(super) fn finish_some_job(&mut self) {
        if let Some(n) = self.pick_job(|job| !job.gone && job.end.is_none()) {
            self.finish_job(n);
        }
    }

    fn finish_job(&mut self, n: usize) {
        let well = self.chance(65);
        self.jobs[n].end = Some(well);
        self.publish_job(n);
        self.emit_job_event(n, if well { "Completed" } else { "BackoffLimitExceeded" });
    }

    pub(super) fn delete_some_job(&mut self) {
        let early = self.chance(8);
        let Some(n) = self.pick_job(|job| !job.gone && (early || job.end.is_some())) else { return };
        if !self.jobs[n].deleting && self.chance(40) {
            self.jobs[n].deleting = true;
            return self.publish_job(n);
        }
        self.remove_job(n);
    }

    fn remove_job(&mut self, n: usize) {
        self.jobs[n].gone = true;
        self.publish_job(n);
    }

    pub(super) fn respecify_some_parent(&mut self) {
        let n = self.below(self.parents.len());
        if !self.parents[n].gone {
            self.parents[n].generation += 1;
            self.publish_parent(n);
        }
    }

    pub(super) fn delete_some_parent(&mut self) {
        if self.chance(80) || self.parents.len() > 5 {
            return;
        }
        let n = self.below(self.parents.len());
        if !self.parents[n].gone {
            self.parents[n].gone = true;
            self.publish_parent(n);
            for job in 0..self.jobs.len() {
                let of = &self.jobs[job];
                if of.parent == n && !of.stranger && !of.gone {
                    self.remove_job(job);
                }
            }
            let uid = make_uid(1, self.parents.len());
            self.parents.push(SimulatedParent { uid, generation: 1, gone: false, version: 0 });
            self.publish_parent(self.parents.len() - 1);
        }
    }

    fn publish_job(&mut self, n: usize) {
        self.version += 1;
        self.jobs[n].version = self.version;
        let job = &self.jobs[n];
        let what = format!(
            "{} {} ended {:?} gone {} deleting {}",
            job.uid, job.name, job.end, job.gone, job.deleting
        );
        let line = JobWatchLine::of_object(self.job_manifest(job), job.gone);
        self.log_event(what);
        self.lines.entry(JOB_KIND.0).or_default().push(line);
    }

    fn publish_parent(&mut self, n: usize) {
        self.version += 1;
        self.parents[n].version = self.version;
        let parent = &self.parents[n];
        let what = format!("{} generation {} gone {}", parent.uid, parent.generation, parent.gone);
        let line = JobWatchLine::of_object(parent.manifest(), parent.gone);
        self.log_event(what);
        self.lines.entry(PARENT_KIND.0).or_default().push(line);
    }

    fn job_manifest(&self, job: &SimulatedJob) -> Value {
        job.manifest(&self.parents[job.parent].uid)
    }

    /// Emits an Event of the Job controller about a Job.
    fn emit_job_event(&mut self, n: usize, reason: &str) {
        self.events.emit_event(&mut self.dice, self.now, &self.jobs[n], reason);
    }

    /// Lists all objects of a kind.
    pub(super) fn list_kind(&self, kind: u32) -> Vec<Value> {
        if kind == JOB_KIND.0 {
            self.jobs.iter().filter(|job| !job.gone).map(|job| self.job_manifest(job)).collect()
        } else {
            self.parents.iter().filter(|parent| !parent.gone).map(SimulatedParent::manifest).collect()
        }
    }
}
